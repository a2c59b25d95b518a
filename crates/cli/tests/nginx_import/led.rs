//! Requests that are led elsewhere, and files that are tried.

use super::requests::{Case, but, get};

const LED: &str = "led.example.org";
const ASSETS: &str = "assets.example.org";
const GONE: &str = "gone.example.org";
/// Why a redirect is not there.
pub const GROUPS: &str = "several groups of an expression cannot be said: 501";

/// Of redirects and of `try_files`.
pub const LED_CASES: &[Case] = &[
    get("led", LED, "/blog/x"),
    get("led", LED, "/blog/"),
    get("led", LED, "/old/x/y.html"),
    but(get("led", LED, "/one/x"), 501, GROUPS),
    get("led", LED, "/moved/x"),
    get("led", LED, "/moved/x?a=b"),
    get("led", LED, "/query/x?a=b"),
    get("led", LED, "/build/x.txt"),
    get("led", LED, "/about.html"),
    get("led", LED, "/css/site.css"),
    get("led", LED, "/css/none.css"),
    get("led", LED, "/dir/index.html"),
    get("led", LED, "/static/"),
    get("led", LED, "/static/app.js"),
    get("led", LED, "/admin/"),
    get("led", LED, "/admin/x.txt"),
    get("led", ASSETS, "/x"),
    get("led", ASSETS, "/css/site.css"),
    get("led", ASSETS, "/a/B.JS?v=1"),
    get("led", GONE, "/shop"),
    get("led", GONE, "/shop/x"),
    get("led", GONE, "/healthz"),
    get("led", GONE, "/x?a=b"),
];
