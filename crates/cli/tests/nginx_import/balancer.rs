//! What applications are told of the request: `Host` and `X-Forwarded-*`, and where the port of
//! the client's own `Host` goes.

use super::requests::{Case, but, get, with};

const SHAPE: &str = "behind-balancer";
pub const TOLD: &str = "what a proxy in front would be quoted with is what the request was";
pub const INFO: &str = "PATH_INFO is empty and not missing where nothing follows the script";

/// Has the application say which `Host` it got.
const HOST: &str = "X-Echo: host\r\n";
const CLIENT: &str = "X-Echo: x-real-ip,x-forwarded-for,x-forwarded-proto\r\n";
/// What a client says of itself is not believed.
const LIAR: &str = "X-Real-IP: 9.9.9.9\r\nX-Forwarded-For: 9.9.9.9\r\nX-Forwarded-Proto: https\r\n\
    X-Echo: x-real-ip,x-forwarded-for,x-forwarded-proto\r\n";

pub const BALANCER_CASES: &[Case] = &[
    with(HOST, get(SHAPE, "example.org", "/a")),
    with(HOST, get(SHAPE, "EXAMPLE.org", "/a")),
    with(HOST, get(SHAPE, "example.org.", "/a")),
    with(HOST, get(SHAPE, "example.org:8080", "/a")),
    with(HOST, get(SHAPE, "Example.ORG.:8080", "/a")),
    with(HOST, get(SHAPE, "Example.org:8080", "/raw/a")),
    with(HOST, get(SHAPE, "Example.org:8080", "/named/a")),
    with(CLIENT, get(SHAPE, "example.org", "/a")),
    with(LIAR, get(SHAPE, "example.org", "/a")),
    with(HOST, get(SHAPE, "EXAMPLE.org:8080", "/balanced/a")),
    // What the file says in place of what Sooner would.
    with(
        "X-Forwarded-Proto: gopher\r\nX-Echo: x-forwarded-proto\r\n",
        get(SHAPE, "example.org", "/balanced/a"),
    ),
    with(
        "X-Echo: x-forwarded-host,x-forwarded-port\r\n",
        get(SHAPE, "example.org", "/balanced/a"),
    ),
    with(
        "X-Key: forged\r\nX-Id: 7\r\nAccept-Encoding: gzip\r\nAuthorization: Basic eA==\r\n\
         X-Echo: x-key,x-from,x-copy,x-none,accept-encoding,authorization\r\n",
        get(SHAPE, "Example.org", "/balanced/a?b=c"),
    ),
    but(get("wordpress", "blog.example.org", "/info.php"), 200, INFO),
    but(
        get("php-plain", "plain.example.org", "/info.php"),
        200,
        INFO,
    ),
    get("drupal", "drupal.example.org", "/info.php"),
    get(SHAPE, "app.example.org", "/a/b?c=d"),
    get(SHAPE, "example.org", "/old/a"),
    get(SHAPE, "example.org", "/old/"),
    get(SHAPE, "example.org", "/here"),
    get(SHAPE, "example.org:8080", "/here"),
    get(SHAPE, "example.org", "/braces"),
    get(SHAPE, "www.example.org", "/here"),
    but(get(SHAPE, "www.example.org:8080", "/here"), 301, TOLD),
];
