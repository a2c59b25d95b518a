//! Which file a target names, and which files it never names.

use super::support::Site;
use std::os::unix::fs::symlink;

#[test]
fn nothing_outside_the_folder_is_ever_served() {
    let site = Site::start();
    std::fs::write(site.outside().join("secret"), "secret").unwrap();
    site.write("sub/inside", "inside");
    site.write(".hidden", "secret");
    site.write("sub/.git/config", "secret");
    symlink(site.outside().join("secret"), site.path("absolute")).unwrap();
    symlink("../../secret", site.path("sub/relative")).unwrap();
    symlink("..", site.path("up")).unwrap();
    symlink("/", site.path("slash")).unwrap();
    for (target, status) in [
        ("/../secret", 400),
        ("/sub/../../secret", 400),
        ("/%2e%2e/secret", 400),
        ("/%2E./secret", 400),
        ("/..%2fsecret", 400),
        ("/%2e%2e%2fsecret", 400),
        ("/..%5csecret", 400),
        ("/..\\secret", 400),
        ("/%252e%252e/secret", 404),
        ("/..;/secret", 403),
        ("/.../secret", 403),
        ("//etc/passwd", 404),
        ("/sub/inside%00.txt", 400),
        ("/%zz", 400),
        ("/sub%2finside", 400),
        ("/.hidden", 403),
        ("/%2ehidden", 403),
        ("/sub/.git/config", 403),
        ("/absolute", 403),
        ("/sub/relative", 403),
        ("/up/secret", 403),
        ("/slash/etc/passwd", 403),
        ("/proc/self/root/etc/passwd", 404),
    ] {
        let response = site.get(target, "");
        assert_eq!(response.status, status, "{target}");
        assert!(!response.text().contains("secret"), "{target}");
    }
    assert_eq!(site.get("/sub//inside", "").text(), "inside");
}

#[test]
fn links_that_stay_inside_are_followed() {
    let site = Site::start();
    site.write("real/a.txt", "a");
    symlink("real", site.path("link")).unwrap();
    symlink("../real/a.txt", site.path("real/b.txt")).unwrap();
    assert_eq!(site.get("/link/a.txt", "").text(), "a");
    assert_eq!(site.get("/real/b.txt", "").text(), "a");
}

#[test]
fn a_directory_is_its_index_behind_a_slash() {
    let site = Site::start();
    site.write("index.html", "root");
    site.write("a b/index.html", "sub");
    site.write("bare/x", "x");
    assert_eq!(site.get("/", "").text(), "root");
    assert_eq!(site.get("/a%20b/", "").text(), "sub");
    let redirect = site.get("/a%20b?x=1", "");
    assert_eq!(
        (redirect.status, redirect.header("location")),
        (301, Some("/a%20b/?x=1"))
    );
    assert_eq!(site.get("//a%20b", "").header("location"), Some("/a%20b/"));
    for missing in ["/bare/", "/bare/x/", "/none/", "/index.html/"] {
        assert_eq!(site.get(missing, "").status, 404, "{missing}");
    }
}

#[test]
fn only_regular_files_that_can_be_read() {
    let site = Site::start();
    let _socket = std::os::unix::net::UnixListener::bind(site.path("socket")).unwrap();
    assert_eq!(site.get("/socket", "").status, 404);
    assert_eq!(site.get(&format!("/{}", "x".repeat(300)), "").status, 404);
    assert_eq!(site.get(&format!("/{}", "x/".repeat(3000)), "").status, 404);
}

#[test]
fn names_beyond_ascii() {
    let site = Site::start();
    site.write("gr\u{fc}n.txt", "g");
    site.write("100%.txt", "h");
    assert_eq!(site.get("/gr%C3%BCn.txt", "").text(), "g");
    assert_eq!(site.get("/100%25.txt", "").text(), "h");
}

#[test]
fn a_redirect_is_about_all_spellings_of_its_path() {
    let redirect =
        |from: &str, to: &str| format!("[[site.redirect]]\nfrom = '{from}'\nto = '{to}'\n");
    let site = Site::start_site(
        &[
            redirect("/old", "/new"),
            redirect("/blog/*", "/b/$1"),
            redirect("/", "/home"),
        ]
        .concat(),
    );
    for (target, location) in [
        ("/old", "/new"),
        ("//old", "/new"),
        ("/%6fld", "/new"),
        ("/./old", "/new"),
        ("///%2fold?a", "/new?a"),
        ("/blog/x", "/b/x"),
        ("//blog/x", "/b/x"),
        ("/blog//x", "/b/x"),
        ("//blog//a//b", "/b/a//b"),
        ("//", "/home"),
        ("/%2f", "/home"),
    ] {
        let response = site.get(target, "");
        assert_eq!(response.header("location"), Some(location), "{target}");
    }
    assert_eq!(site.get("//older", "").status, 404);
}
