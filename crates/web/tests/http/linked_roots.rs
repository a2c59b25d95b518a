//! Roots and symbolic links: links that name their root, a root that is a link itself, a root that
//! another directory replaces. Where nginx is installed, it answers beside this server.

use super::support::{Client, Response, Site};
use crate::site::{CHUNK_BYTES, PATIENCE};
use sooner_testbed::nginx::{self, Nginx};
use sooner_testbed::{port, skip};
use sooner_uplink::Uplink;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Releases of an application, and the link to the one that is served.
struct Releases {
    folder: TempDir,
}

impl Releases {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // nginx's workers are another user.
        fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let releases = Self { folder };
        for number in [7, 8] {
            let text = number.to_string();
            releases.write(&format!("releases/{number}/a.txt"), &text);
            releases.write(&format!("releases/{number}/{number}.txt"), &text);
            releases.write(&format!("releases/{number}/{number}.php"), &text);
        }
        releases.switch(7);
        releases
    }

    fn write(&self, name: &str, content: &str) {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn current(&self) -> PathBuf {
        self.folder.path().join("current")
    }

    /// What `ln -sfn` does.
    fn switch(&self, number: u32) {
        let beside = self.folder.path().join("beside");
        symlink(format!("releases/{number}"), &beside).unwrap();
        fs::rename(beside, self.current()).unwrap();
    }

    fn serve(&self, more: &str) -> Site {
        // Several workers would see that the link leads elsewhere at different times.
        let root = self.current();
        let config = format!("workers = 1\n[[site]]\nroot = {root:?}\n{more}");
        Site::run(&config, CHUNK_BYTES, |_| Uplink::unlimited())
    }
}

/// An nginx that serves `root`, in a folder of its own.
fn nginx_before(root: &Path) -> (TempDir, Nginx, SocketAddr) {
    let address = port::free().unwrap();
    let http = format!(
        "access_log off; server {{ listen {address}; root {}; }}\n",
        root.display()
    );
    let folder = tempfile::tempdir().unwrap();
    let nginx = Nginx::start(folder.path(), &http, address).unwrap();
    (folder, nginx, address)
}

fn ask(address: SocketAddr, target: &str) -> Response {
    let mut client = Client::connect(address);
    client.send_get(target);
    client.response("GET")
}

/// Asks until the answer is the one that is waited for.
fn becomes(site: &Site, target: &str, expected: (u16, Option<&str>)) {
    let start = Instant::now();
    loop {
        let got = site.get(target, "");
        let is_text = expected.1.is_none_or(|text| got.text() == text);
        if got.status == expected.0 && is_text {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "{target}: {got:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Links in `site`, of which each name says where it leads.
fn links(site: &Site) {
    site.write("releases/7/a.css", "css of 7");
    site.write("releases/7/sub/b.css", "sub of 7");
    let root = site.path("");
    let link = |target: &Path, name: &str| symlink(target, site.path(name)).unwrap();
    link(&root.join("releases/7"), "current");
    link(&root.join("releases/7/a.css"), "file.css");
    link(&root.join("releases/7/"), "slash");
    link(&root.join("./releases//7/./sub/.."), "dots");
    link(&root.join("current/sub"), "chain");
    link(Path::new("chain/b.css"), "relative");
    link(Path::new("../root/releases/7"), "out_and_in");
    link(&root.join("releases/8"), "broken");
    link(&root.join("round"), "round");
    link(&root.join("file.css/"), "not_a_directory");
    link(&root, "itself");
    symlink(
        root.join("releases/7/a.css"),
        site.path("releases/7/sub/up"),
    )
    .unwrap();
}

#[test]
fn absolute_links_below_the_root_lead_where_they_lead_behind_nginx() {
    let site = Site::start();
    links(&site);
    for (target, status, text) in [
        ("/current/a.css", 200, "css of 7"),
        ("/current/sub/b.css", 200, "sub of 7"),
        ("/current/sub/up", 200, "css of 7"),
        ("/file.css", 200, "css of 7"),
        ("/slash/a.css", 200, "css of 7"),
        ("/dots/a.css", 200, "css of 7"),
        ("/chain/b.css", 200, "sub of 7"),
        ("/relative", 200, "sub of 7"),
        ("/out_and_in/a.css", 200, "css of 7"),
        ("/itself/itself/current/a.css", 200, "css of 7"),
        ("/current/none.css", 404, ""),
        ("/broken/a.css", 404, ""),
        ("/broken", 404, ""),
        ("/not_a_directory", 404, ""),
        ("/file.css/b.css", 404, ""),
    ] {
        let got = site.get(target, "");
        assert_eq!(got.status, status, "{target}");
        assert!(status != 200 || got.text() == text, "{target}");
    }
    assert_eq!(site.get("/current", "").status, 301);
    assert_eq!(site.get("/round", "").status, 404);
    if !nginx::has_modules(&[]) {
        let name = "absolute_links_below_the_root_lead_where_they_lead_behind_nginx";
        return skip(name, "needs the package nginx");
    }
    for folder in [site.path("").as_path(), site.outside()] {
        fs::set_permissions(folder, PermissionsExt::from_mode(0o755)).unwrap();
    }
    let (_folder, _nginx, nginx) = nginx_before(&site.path(""));
    for target in [
        "/current/a.css",
        "/current/sub/up",
        "/file.css",
        "/slash/a.css",
        "/dots/a.css",
        "/relative",
        "/out_and_in/a.css",
        "/itself/itself/current/a.css",
        "/current",
        "/current/none.css",
        "/broken/a.css",
        "/not_a_directory",
        "/file.css/b.css",
    ] {
        let [ours, theirs] = [site.address, nginx].map(|at| ask(at, target));
        assert_eq!(ours.status, theirs.status, "{target}");
        assert!(ours.status != 200 || ours.body == theirs.body, "{target}");
    }
}

#[test]
fn absolute_links_that_lead_out_are_refused() {
    let site = Site::start();
    site.write("a", "a");
    let beside = site.outside().join("root-beside");
    fs::create_dir(&beside).unwrap();
    fs::write(beside.join("secret"), "secret").unwrap();
    fs::write(site.outside().join("secret"), "secret").unwrap();
    let root = site.path("");
    for (number, target) in [
        beside.clone(),
        root.join("../secret"),
        root.join("a/../../secret"),
        root.join("none/../../secret"),
        PathBuf::from("/"),
        PathBuf::from("../root-beside"),
        PathBuf::from("../root/../secret"),
        site.outside().to_path_buf(),
    ]
    .iter()
    .enumerate()
    {
        symlink(target, site.path(&format!("link{number}"))).unwrap();
        for path in ["", "/secret", "/etc/passwd", "/a"] {
            let got = site.get(&format!("/link{number}{path}"), "");
            assert!(
                matches!(got.status, 403 | 404) && !got.text().contains("secret"),
                "{target:?} {path}: {got:?}"
            );
        }
    }
}

#[test]
fn both_names_of_a_root_that_is_a_link_are_its_own() {
    let releases = Releases::new();
    let release = releases.folder.path().join("releases/7");
    symlink(releases.current().join("a.txt"), release.join("by_link")).unwrap();
    symlink(release.join("a.txt"), release.join("by_place")).unwrap();
    let other = releases.folder.path().join("releases/8/a.txt");
    symlink(other, release.join("other")).unwrap();
    let site = releases.serve("listing = 'json'\n");
    assert_eq!(site.get("/by_link", "").text(), "7");
    assert_eq!(site.get("/by_place", "").text(), "7");
    assert_eq!(site.get("/other", "").status, 403);
    let listing = site.get("/", "");
    for (name, is_listed) in [("by_link", true), ("by_place", true), ("other", false)] {
        let href = format!("\"./{name}\"");
        assert_eq!(listing.text().contains(&href), is_listed, "{name}");
    }
}

#[test]
fn a_root_that_is_a_link_is_the_directory_that_it_leads_to_now() {
    let releases = Releases::new();
    let site = releases.serve("");
    assert_eq!(site.get("/a.txt", "").text(), "7");
    releases.switch(8);
    // A file that was not asked for before, and one that is in memory.
    becomes(&site, "/8.txt", (200, Some("8")));
    assert_eq!(site.get("/a.txt", "").text(), "8");
    assert_eq!(site.get("/7.txt", "").status, 404);
    fs::remove_dir_all(releases.folder.path().join("releases/7")).unwrap();
    assert_eq!(site.get("/a.txt", "").text(), "8");
    fs::remove_file(releases.current()).unwrap();
    becomes(&site, "/a.txt", (404, None));
    releases.switch(8);
    becomes(&site, "/a.txt", (200, Some("8")));
    if !nginx::has_modules(&[]) {
        let name = "a_root_that_is_a_link_is_the_directory_that_it_leads_to_now";
        return skip(name, "needs the package nginx");
    }
    let (_folder, _nginx, nginx) = nginx_before(&releases.current());
    assert_eq!(ask(nginx, "/a.txt").text(), "8");
    fs::remove_file(releases.current()).unwrap();
    assert_eq!(ask(nginx, "/a.txt").status, 404);
    releases.write("releases/9/a.txt", "9");
    releases.switch(9);
    assert_eq!(ask(nginx, "/a.txt").text(), "9");
    becomes(&site, "/a.txt", (200, Some("9")));
}

#[test]
fn locations_listings_and_scripts_follow_a_root_that_is_a_link() {
    let releases = Releases::new();
    let site = releases.serve(&format!(
        "listing = 'json'\n\
         [[site.location]]\npaths = ['/s/*']\nroot = {root:?}\nstrip_prefix = '/s/'\n\
         [[upstream]]\nname = 'php'\nservers = ['fastcgi+unix:{}']\n\
         fastcgi = {{ root = {root:?} }}\n\
         [[route]]\npath = '/'\nupstream = 'php'\n",
        releases.folder.path().join("no.sock").display(),
        root = releases.current(),
    ));
    assert!(site.get("/", "").text().contains("7.txt"));
    assert_eq!(site.get("/s/7.txt", "").text(), "7");
    // A script that is there goes to PHP, which does not run here.
    assert_eq!(site.get("/7.php", "").status, 502);
    assert_eq!(site.get("/8.php", "").status, 404);
    releases.switch(8);
    becomes(&site, "/8.php", (502, None));
    assert_eq!(site.get("/7.php", "").status, 404);
    becomes(&site, "/s/8.txt", (200, Some("8")));
    assert_eq!(site.get("/s/7.txt", "").status, 404);
    becomes(&site, "/8.txt", (200, Some("8")));
    let listing = site.get("/", "");
    assert!(listing.text().contains("8.txt") && !listing.text().contains("7.txt"));
}

#[test]
fn what_is_sent_from_a_directory_goes_on_when_another_replaces_it() {
    const LARGE_BYTES: usize = 64 << 20;
    // Several would see the other directory at different times.
    let site = Site::start_with("workers = 1");
    site.write("a", "old");
    let large = fs::File::create(site.path("large")).unwrap();
    large.set_len(LARGE_BYTES as u64).unwrap();
    assert_eq!(site.get("/a", "").text(), "old");
    let mut client = site.connect();
    client.send("GET /large HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    assert_eq!(client.head().status, 200);
    fs::rename(site.path(""), site.outside().join("old")).unwrap();
    site.write("a", "new");
    becomes(&site, "/a", (200, Some("new")));
    assert_eq!(site.get("/large", "").status, 404);
    fs::remove_dir_all(site.outside().join("old")).unwrap();
    assert_eq!(client.rest().unwrap().len(), LARGE_BYTES);
}

#[test]
fn links_are_listed_where_a_prefix_of_the_path_is_not_on_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::start_site(&format!(
        "[[site.location]]\npaths = ['/static/*']\nroot = {:?}\n\
         strip_prefix = '/static/'\nlisting = 'json'\n",
        folder.path(),
    ));
    let at = |name: &str| folder.path().join(name);
    fs::create_dir_all(at("d")).unwrap();
    fs::create_dir_all(at("static/d")).unwrap();
    fs::write(at("d/a.txt"), "12345").unwrap();
    symlink("a.txt", at("d/link")).unwrap();
    symlink("../../secret", at("d/out")).unwrap();
    symlink(at("d/a.txt"), at("d/absolute")).unwrap();
    // Where the path of the request would lead below the root, prefix and all.
    fs::write(at("static/d/out"), "of another file").unwrap();
    assert_eq!(site.get("/static/d/link", "").text(), "12345");
    let listing = site.get("/static/d/", "");
    let listing: serde_json::Value = serde_json::from_slice(&listing.body).unwrap();
    assert_eq!(listing["path"], "/static/d/");
    let entries = listing["entries"].as_array().unwrap().iter();
    let entries: Vec<_> = entries
        .map(|entry| (entry["name"].as_str(), entry["size_bytes"].as_u64()))
        .collect();
    assert_eq!(
        entries,
        ["a.txt", "absolute", "link"].map(|name| (Some(name), Some(5)))
    );
}
