//! HEAD says what GET says, for every kind of answer; and connections live on after each of them.

use super::support::{Response, Site};

const SETTINGS: &str = "
    hosts = ['example.org']
    listing = 'auto'
    fallback = '/app.html'
    precompressed = ['br']
    headers = { x-frame-options = 'DENY' }
    errors = { 404 = '/errors/404.html' }
    redirect = [{ from = '/old/*', to = '/new/$1', status = 308 }]
";

fn site() -> Site {
    let site = Site::start_site(SETTINGS);
    site.write("a.txt", "0123456789".repeat(100));
    site.write("app.html", "<p>app");
    site.write("app.js", "plain");
    site.write("app.js.br", "brotli");
    site.write("errors/404.html", "<p>none");
    site.write("dir/one", "1");
    site.write("large.bin", vec![7; 1 << 20]);
    site
}

/// The status and all headers but the date.
fn facts(response: &Response) -> (u16, Vec<(String, String)>) {
    let headers = response.headers.iter();
    let headers = headers.filter(|(name, _)| name != "date").cloned();
    (response.status, headers.collect())
}

#[test]
fn head_is_get_without_the_body() {
    let site = site();
    let mut client = site.connect();
    for (target, headers, status) in [
        ("/a.txt", "", 200),
        ("/large.bin", "", 200),
        ("/app.js", "accept-encoding: br\r\n", 200),
        ("/a.txt", "if-none-match: *\r\n", 304),
        ("/a.txt", "if-match: \"x\"\r\n", 412),
        ("/users/7", "", 200),
        ("/missing.js", "", 404),
        ("/.hidden", "", 403),
        ("/%00", "", 400),
        ("/dir", "", 301),
        ("/dir/", "", 200),
        ("/dir/", "accept: application/json\r\n", 200),
        ("/old/a?b", "", 308),
    ] {
        let mut ask = |method: &str| {
            client.send(&format!(
                "{method} {target} HTTP/1.1\r\nhost: example.org\r\n{headers}\r\n"
            ));
            client.response(method)
        };
        let (head, get) = (ask("HEAD"), ask("GET"));
        assert_eq!(get.status, status, "{target}");
        assert_eq!(facts(&head), facts(&get), "{target}");
        assert_eq!(get.header("x-frame-options"), Some("DENY"), "{target}");
        if status != 304 {
            let length = get.body.len().to_string();
            assert_eq!(get.header("content-length"), Some(length.as_str()));
        }
    }
}

#[test]
fn hosts_that_are_none_are_refused() {
    let site = site();
    for host in [
        "",
        "host: a\r\nhost: b\r\n",
        "host: a b\r\n",
        "host: a/b\r\n",
        "host: [::1\r\n",
        "host: a:port\r\n",
    ] {
        let mut client = site.connect();
        client.send(&format!("GET /a.txt HTTP/1.1\r\n{host}\r\n"));
        assert_eq!(client.response("GET").status, 400, "{host:?}");
    }
    for host in ["host:\r\n", "host: [::1]:80\r\n", "host: EXAMPLE.org.\r\n"] {
        let mut client = site.connect();
        client.send(&format!("GET /a.txt HTTP/1.1\r\n{host}\r\n"));
        assert_eq!(client.response("GET").status, 200, "{host:?}");
    }
    let mut client = site.connect();
    client.send("GET /a.txt HTTP/1.0\r\n\r\n");
    assert_eq!(client.response("GET").status, 200);
}

#[test]
fn a_listing_of_a_long_directory_leaves_the_connection_usable() {
    let site = site();
    for number in 0..3000 {
        site.write(&format!("long/file-{number:05}"), "");
    }
    let mut client = site.connect();
    let request = "GET /long/ HTTP/1.1\r\nhost: example.org\r\n\r\n";
    client.send(&request.repeat(3));
    for _ in 0..3 {
        let response = client.response("GET");
        assert_eq!(response.status, 200);
        assert!(response.text().contains("file-00000</a>"));
        assert!(response.text().contains("file-02999</a>"));
    }
}
