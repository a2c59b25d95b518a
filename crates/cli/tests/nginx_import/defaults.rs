//! Requests for hosts that no server names, and for what becomes of pages of errors and redirects.

use super::requests::{Case, but, get, tls, with};

const OTHER: &str = "10.0.0.5";
const NAMED: &str = "example.org";
const FILES: &str = "static.example.org";
const BLOG: &str = "blog.example.org";
const PAGES: &str = "pages.example.org";
const PACKED: &str = "packed.example.org";
const GZIP: &str = "Accept-Encoding: gzip\r\n";
pub const NO_HOST: &str = "an upstream gets no Host where the client sent none";
pub const SHUNNED: &str = "a server that failed is not asked for a while: 503 and not 502";
pub const LOOPS: &str = "a redirect that leads to itself is left out: 501";

/// Still more requests.
pub const DEFAULT_CASES: &[Case] = &[
    get("default-passed", NAMED, "/x"),
    get("default-passed", NAMED, "/api/x"),
    get("default-passed", OTHER, "/x"),
    get("default-passed", OTHER, "/api/x"),
    get("default-passed", "www.example.org", "/x?y=z"),
    get("default-passed", FILES, "/about.html"),
    get("default-passed", FILES, "/dir/"),
    get("default-passed", FILES, "/missing"),
    get("default-passed", FILES, "/api/x"),
    get("default-passed", "b.example.org", "/x"),
    get("default-passed", "b.example.org", "/api/x"),
    but(get("default-passed", "", "/x"), 200, NO_HOST),
    get("default-passed-tls", NAMED, "/x"),
    get("default-passed-tls", OTHER, "/x"),
    get("default-passed-tls", FILES, "/about.html"),
    get("default-passed-tls", FILES, "/x"),
    tls(get("default-passed-tls", NAMED, "/x")),
    tls(get("default-passed-tls", "www.example.org", "/x")),
    tls(get("default-passed-tls", FILES, "/about.html")),
    tls(get("default-passed-tls", FILES, "/x")),
    get("wp-config", BLOG, "/"),
    get("wp-config", BLOG, "/wp-admin/"),
    get("wp-config", BLOG, "/2020/hello/"),
    get("wp-config", BLOG, "/wp-config.php"),
    get("wp-config", BLOG, "/WP-config.php"),
    get("wp-config", BLOG, "/wp-config.php.bak"),
    get("wp-config", BLOG, "/uploads/x.png"),
    get("pages", PAGES, "/old"),
    get("pages", PAGES, "/old/x"),
    get("pages", PAGES, "/older"),
    get("pages", PAGES, "/one"),
    get("pages", PAGES, "/about.html"),
    but(get("pages", PAGES, "/loop/x"), 501, LOOPS),
    get("pages", PAGES, "/dead/x"),
    get("pages", PAGES, "/dead/x"),
    but(get("pages", PAGES, "/dead/x"), 503, SHUNNED),
    get("pages", PAGES, "/gone/x"),
    with(GZIP, get("gzip", PACKED, "/long.js")),
    with(GZIP, get("gzip", PACKED, "/long.xml")),
];
