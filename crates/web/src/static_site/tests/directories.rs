//! Directories: the index, the slash, the listing.

use super::*;
use serde_json::Value;

#[test]
fn the_first_index_that_exists() {
    let fixture = Fixture::new("index = ['index.html', 'index.txt']");
    fixture.write("index.txt", "text");
    assert_eq!(fixture.get("/", &[]).text(), "text");
    fixture.write("index.html", "page");
    let got = fixture.get("/", &[]);
    assert_eq!((got.status, got.text()), (200, "page"));
    assert_eq!(got.header("content-type"), "text/html; charset=utf-8");
}

#[test]
fn a_directory_ends_with_a_slash() {
    let fixture = Fixture::plain();
    fixture.write("a b/index.html", "sub");
    let got = fixture.get("/a%20b?x=1", &[]);
    assert_eq!((got.status, got.header("location")), (301, "/a%20b/?x=1"));
    let got = fixture.get("//a%20b", &[]);
    assert_eq!(got.header("location"), "/a%20b/");
    assert_eq!(fixture.get("/a%20b/", &[]).text(), "sub");
    assert_eq!(fixture.get("/a%20b/index.html/", &[]).status, 404);
}

#[test]
fn a_directory_shows_nothing_unless_told_so() {
    let fixture = Fixture::plain();
    fixture.write("d/a", "a");
    assert_eq!(fixture.get("/d/", &[]).status, 404);
}

fn listed(listing: &str) -> Fixture {
    let settings = format!("listing = '{listing}'\nheaders = {{ x-a = 'b' }}");
    let fixture = Fixture::new(&settings);
    fixture.write("d/<b>.txt", vec![0; 2048]);
    fixture.write("d/a", "a");
    fixture.write("d/sub/x", "x");
    fixture.write("d/.hidden", "h");
    fixture
}

#[test]
fn a_page_of_names() {
    let fixture = listed("html");
    let got = fixture.get("/d/", &[("accept", "application/json")]);
    assert_eq!(got.status, 200);
    assert_eq!(got.header("content-type"), "text/html; charset=utf-8");
    assert_eq!(got.header("x-a"), "b");
    assert!(got.header("content-security-policy").contains("'none'"));
    assert_eq!(got.header("vary"), "");
    let text = got.text();
    let places: Vec<_> = ["../", "./sub/", "./%3Cb%3E.txt", "./a"]
        .iter()
        .map(|href| text.find(&format!("href=\"{href}\"")).unwrap())
        .collect();
    assert!(places.is_sorted(), "{text}");
    assert!(text.contains("&lt;b&gt;.txt</a>") && text.contains("2.0 KiB"));
    assert!(!text.contains("hidden"));
    assert_eq!(fixture.get("/d", &[]).status, 301);
    assert_eq!(fixture.get("/none/", &[]).status, 404);
    assert_eq!(fixture.get("/d/a/", &[]).status, 404);
}

#[test]
fn names_for_programs() {
    let fixture = listed("json");
    let got = fixture.get("/d/", &[]);
    assert_eq!(got.header("content-type"), "application/json");
    let listing: Value = serde_json::from_slice(&got.body).unwrap();
    assert_eq!(listing["path"], "/d/");
    assert_eq!(listing["is_complete"], true);
    let names: Vec<_> = listing["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["sub", "<b>.txt", "a"]);
    assert_eq!(listing["entries"][1]["size_bytes"], 2048);
    assert_eq!(listing["entries"][1]["modified"], "1994-11-06T08:49:37Z");
}

#[test]
fn a_page_or_json_as_the_client_likes() {
    let fixture = listed("auto");
    for (accept, kind) in [
        ("application/json", "application/json"),
        ("text/html, */*;q=0.8", "text/html; charset=utf-8"),
        ("*/*", "text/html; charset=utf-8"),
    ] {
        let got = fixture.get("/d/", &[("accept", accept)]);
        assert_eq!(got.header("content-type"), kind);
        assert_eq!(got.header("vary"), "accept");
    }
}

#[test]
fn an_index_is_shown_instead_of_names() {
    let fixture = listed("html");
    fixture.write("d/index.html", "index");
    assert_eq!(fixture.get("/d/", &[]).text(), "index");
}

#[test]
fn every_name_leads_to_its_file() {
    let fixture = listed("json");
    let names = ["a:b", "100%", "x y", "#", "?q", "\u{fc}", "a&b", "'\"", "+"];
    for name in names {
        fixture.write(&format!("n/{name}"), name);
    }
    let got = fixture.get("/n/", &[]);
    let listing: Value = serde_json::from_slice(&got.body).unwrap();
    for entry in listing["entries"].as_array().unwrap() {
        let href = entry["href"].as_str().unwrap().replace("./", "/n/");
        let name = entry["name"].as_str().unwrap();
        assert_eq!(fixture.get(&href, &[]).text(), name);
        let mut escaped = String::from("/n/");
        push_escaped(&mut escaped, name.as_bytes());
        assert_eq!(href, escaped);
    }
    assert_eq!(listing["entries"].as_array().unwrap().len(), names.len());
}

#[test]
fn listings_have_a_bound_together() {
    let fixture = listed("html");
    let request = Request::builder().uri("/d/").body(()).unwrap();
    let (mut waiting, mut refused) = (Vec::new(), None);
    while refused.is_none() && waiting.len() < 1000 {
        match fixture.site.respond(&request, Moment::now()) {
            StaticReply::Listing(pending) => waiting.push(pending),
            StaticReply::Now(response) | StaticReply::File(response, _) => refused = Some(response),
        }
    }
    let refused = read(refused.unwrap());
    assert_eq!((refused.status, refused.header("retry-after")), (503, "1"));
    assert_eq!(refused.header("x-a"), "b");
    waiting.pop();
    assert_eq!(fixture.get("/d/", &[]).status, 200);
}

#[test]
fn a_directory_that_vanishes_before_it_is_read_is_not_found() {
    let fixture = listed("html");
    std::fs::create_dir(fixture.path("gone")).unwrap();
    let request = Request::builder().uri("/gone/").body(()).unwrap();
    let StaticReply::Listing(pending) = fixture.site.respond(&request, Moment::now()) else {
        panic!("no listing");
    };
    std::fs::remove_dir(fixture.path("gone")).unwrap();
    std::fs::write(fixture.path("gone"), "a file now").unwrap();
    assert_eq!(read(pending.read()).status, 404);
}

#[test]
fn a_long_directory_is_cut() {
    let fixture = listed("json");
    std::fs::create_dir(fixture.path("long")).unwrap();
    for number in 0..10_001 {
        std::fs::File::create(fixture.path(&format!("long/{number}"))).unwrap();
    }
    let got = fixture.get("/long/", &[]);
    let listing: Value = serde_json::from_slice(&got.body).unwrap();
    assert_eq!(listing["is_complete"], false);
    assert_eq!(listing["entries"].as_array().unwrap().len(), 10_000);
}
