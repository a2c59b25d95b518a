//! The requests, and where the answers may differ.

use super::balancer::{INFO, TOLD};
use super::defaults::{LOOPS, NO_HOST, SHUNNED};
use super::led::GROUPS;

/// One request to a shape.
pub struct Case {
    pub shape: &'static str,
    /// Without one it is a request of HTTP/1.0 that names none.
    pub host: &'static str,
    pub method: &'static str,
    pub path: &'static str,
    pub is_tls: bool,
    /// More lines of the head, each with its end.
    pub fields: &'static str,
    pub differs: Option<Difference>,
}

/// Where Sooner answers otherwise than nginx, and why it may.
#[derive(Clone, Copy)]
pub struct Difference {
    /// The status of Sooner's answer.
    pub ours: u16,
    pub why: &'static str,
}

impl Case {
    pub fn scheme(&self) -> &'static str {
        if self.is_tls { "https" } else { "http" }
    }

    pub fn text(&self) -> String {
        let Self {
            method, host, path, ..
        } = self;
        format!("{method} {}://{host}{path}", self.scheme())
    }
}

pub const fn get(shape: &'static str, host: &'static str, path: &'static str) -> Case {
    Case {
        shape,
        host,
        method: "GET",
        path,
        is_tls: false,
        fields: "",
        differs: None,
    }
}

pub const fn by(method: &'static str, case: Case) -> Case {
    Case { method, ..case }
}

pub const fn tls(case: Case) -> Case {
    Case {
        is_tls: true,
        ..case
    }
}

pub const fn with(fields: &'static str, case: Case) -> Case {
    Case { fields, ..case }
}

pub const fn but(case: Case, ours: u16, why: &'static str) -> Case {
    Case {
        differs: Some(Difference { ours, why }),
        ..case
    }
}

pub const FASTCGI: &str = "what FastCGI would answer is left out: 501, and never the source";
pub const TWICE: &str = "what goes on behind the name of a script is no path of the application";
const HEADERS: &str = "headers of files with a script as their last resort are the script's";
pub const FIRST: &str = "a script that stands for its directory goes before a file that does";
pub const ONE: &str = "a script that nginx does not run is not shown either";
const CLOSED: &str = "a connection that nginx closes without an answer gets 403";
pub const HIDDEN: &str = "names that begin with a dot are refused unless dot_files says otherwise";
pub const PASSWORD: &str =
    "a password that cannot be asked for, and what it may be about, is refused";
pub const MORE: &str = "a password is asked for at more paths";
pub const NO_LIST: &str = "a directory that is not listed is not there: 404 and not 403";
const SCRIPT: &str = "a missing script or picture is not the application's page";

const DOTS: &str = "a path with the segment .. is refused";
const QUERY: &str = "the query of a request goes along with its redirect";
const VARIABLE: &str = "a header made of variables is left out";

/// All of them.
pub const REASONS: [&str; 20] = [
    HEADERS, FIRST, FASTCGI, TWICE, ONE, CLOSED, HIDDEN, PASSWORD, MORE, NO_LIST, SCRIPT, DOTS,
    QUERY, VARIABLE, NO_HOST, SHUNNED, LOOPS, TOLD, INFO, GROUPS,
];

/// The requests.
pub const CASES: &[Case] = &[
    get("debian-default", "any.example.org", "/"),
    get("debian-default", "any.example.org", "/about.html"),
    get("debian-default", "any.example.org", "/missing"),
    get("debian-default", "any.example.org", "/dir"),
    get("debian-default", "any.example.org", "/dir/"),
    get("debian-default", "any.example.org", "/a%20b.txt"),
    get("debian-default", "any.example.org", "//about.html"),
    get("debian-default", "any.example.org", "/about.html?x=1"),
    get(
        "debian-default",
        "any.example.org",
        "/.well-known/acme-challenge/token",
    ),
    by(
        "HEAD",
        get("debian-default", "any.example.org", "/about.html"),
    ),
    by(
        "POST",
        get("debian-default", "any.example.org", "/about.html"),
    ),
    but(
        get("debian-default", "any.example.org", "/.git/config"),
        403,
        HIDDEN,
    ),
    but(
        get("debian-default", "any.example.org", "/empty/"),
        404,
        NO_LIST,
    ),
    get("static-www", "www.example.org", "/dir/?a=b"),
    get("static-www", "www.example.org", "/a%20b"),
    get("static-www", "example.org", "/"),
    get("static-www", "example.org", "/css/site.css"),
    get("static-www", "example.org", "/favicon.ico"),
    get("static-www", "example.org", "/missing"),
    get("static-www", "example.org", "/404.html"),
    get("static-www", "example.org", "/old-blog/2019/x"),
    get("static-www", "example.org", "/about"),
    get("static-www", "example.org", "/about/"),
    get("static-www", "example.org", "/news/2020/x"),
    get("certbot", "example.org", "/dir/?x=y"),
    get("certbot", "www.example.org", "/"),
    get("certbot", "else.example.org", "/"),
    tls(get("certbot", "example.org", "/")),
    tls(get("certbot", "www.example.org", "/missing")),
    tls(get("certbot", "example.org", "/dir")),
    get("spa", "app.example.org", "/"),
    get("spa", "app.example.org", "/users/17"),
    get("spa", "app.example.org", "/users/john.doe"),
    get("spa", "app.example.org", "/about.html"),
    get("spa", "app.example.org", "/static/app.js"),
    get("spa", "app.example.org", "/static/missing.js"),
    get("spa", "app.example.org", "/api/users/1?x=%2F"),
    get("spa", "app.example.org", "/api"),
    by("POST", get("spa", "app.example.org", "/api/users")),
    get("spa", "app.example.org", "/health"),
    by("HEAD", get("spa", "app.example.org", "/health")),
    get("spa", "other.example.org", "/api/x"),
    but(get("spa", "app.example.org", "/missing.png"), 404, SCRIPT),
    get("wordpress", "blog.example.org", "/about.html"),
    get("wordpress", "blog.example.org", "/css/site.css"),
    get("wordpress", "blog.example.org", "/wp-config.php"),
    get("wordpress", "blog.example.org", "/xmlrpc.php"),
    get("wordpress", "blog.example.org", "/.htaccess"),
    get("wordpress", "blog.example.org", "/robots.txt"),
    get("wordpress", "blog.example.org", "/index.php"),
    get("wordpress", "blog.example.org", "/index%2Ephp"),
    get("wordpress", "blog.example.org", "/uploads/x.php"),
    get("wordpress", "blog.example.org", "/2020/hello"),
    get("wordpress", "blog.example.org", "/"),
    get("laravel", "example.com", "/robots.txt"),
    get("laravel", "example.com", "/.env"),
    get("laravel", "example.com", "/index.php"),
    get("laravel", "example.com", "/users"),
    get("laravel", "example.com", "/"),
    // nginx sends its source.
    but(get("laravel", "example.com", "/other.php"), 404, ONE),
    but(get("laravel", "example.com", "/other.php/x"), 404, TWICE),
    get("django", "example.com", "/"),
    get("django", "www.example.com", "/admin/?next=/"),
    get("django", "example.com", "/static/app.css"),
    get("django", "example.com", "/static/missing.css"),
    but(get("django", "example.com", "/static/../admin"), 400, DOTS),
    get("django", "example.com", "/media/p.png"),
    get("django", "example.com", "/private/secret"),
    by("POST", get("django", "example.com", "/login")),
    but(get("django", "unknown.example.com", "/"), 403, CLOSED),
    get("rails-puma", "shop.example.org", "/"),
    get("rails-puma", "shop.example.org", "/robots.txt"),
    get("rails-puma", "shop.example.org", "/products/1?page=2"),
    get("rails-puma", "shop.example.org", "/assets/app.js"),
    get("rails-puma", "shop.example.org", "/assets/none.js"),
    get("node-websocket", "chat.example.org", "/"),
    get(
        "node-websocket",
        "chat.example.org",
        "/socket.io/?EIO=4&transport=polling",
    ),
    by(
        "UPGRADE",
        get("node-websocket", "chat.example.org", "/socket"),
    ),
    by("PUT", get("node-websocket", "chat.example.org", "/x%20y")),
    get("grafana", "ops.example.org", "/grafana/d/abc?orgId=1"),
    get("grafana", "ops.example.org", "/grafana"),
    get("grafana", "ops.example.org", "/prometheus/graph?g0=x"),
    get("grafana", "ops.example.org", "/prometheus/"),
    get("grafana", "ops.example.org", "/about.html"),
    by(
        "UPGRADE",
        get("grafana", "ops.example.org", "/grafana/api/live/ws"),
    ),
    get("jenkins", "ci.example.org", "/job/x/build?delay=0"),
    get("jenkins", "ci.example.org", "/userContent/readme.txt"),
    get("nextcloud", "cloud.example.org", "/apps?x=1"),
    tls(get("nextcloud", "cloud.example.org", "/robots.txt")),
    tls(get("nextcloud", "cloud.example.org", "/data/x.txt")),
    tls(get("nextcloud", "cloud.example.org", "/build")),
    tls(get("nextcloud", "cloud.example.org", "/.htaccess")),
    tls(but(
        get("nextcloud", "cloud.example.org", "/css/site.css"),
        200,
        HEADERS,
    )),
    tls(get("nextcloud", "cloud.example.org", "/.well-known/caldav")),
    tls(get(
        "nextcloud",
        "cloud.example.org",
        "/.well-known/webfinger",
    )),
    tls(get("nextcloud", "cloud.example.org", "/remote/x")),
    tls(get("nextcloud", "cloud.example.org", "/index.php/login")),
    tls(get("nextcloud", "cloud.example.org", "/apps/files?x=1")),
    tls(get("nextcloud", "cloud.example.org", "/apps/x.css")),
    // nginx has it answered by index.php.
    tls(but(
        get("nextcloud", "cloud.example.org", "/wp-login.php"),
        404,
        ONE,
    )),
    tls(get("nextcloud", "cloud.example.org", "/remote.php")),
    tls(get("nextcloud", "cloud.example.org", "/")),
    but(get("h5bp", "example.com", "/"), 200, VARIABLE),
    get("h5bp", "www.example.com", "/x?y"),
    get("h5bp", "example.com", "/db.bak"),
    get("h5bp", "example.com", "/DB.BAK"),
    get("h5bp", "example.com", "/.git/config"),
    get("h5bp", "example.com", "/nothing"),
    but(get("h5bp", "stranger.example.com", "/"), 403, CLOSED),
    get("load-balancing", "lb.example.org", "/sticky/x"),
    get(
        "gitea",
        "git.example.org",
        "/user/repo.git/info/refs?service=git-upload-pack",
    ),
    get("gitea", "git.example.org", "/_/static/assets/app.css"),
    get("gitea", "git.example.org", "/_/static/other"),
    get("docker-registry", "registry.example.org", "/v2/"),
    by(
        "PUT",
        get(
            "docker-registry",
            "registry.example.org",
            "/v2/a/blobs/uploads/1?digest=sha256:x",
        ),
    ),
    get("docker-registry", "registry.example.org", "/v2"),
    get("docker-registry", "registry.example.org", "/private/x"),
    get("mailman", "lists.example.org", "/"),
    get("mailman", "lists.example.org", "/mailman3/lists/"),
    get("mailman", "lists.example.org", "/mailman3/static/app.css"),
    get(
        "mailman",
        "lists.example.org",
        "/mailman3/static/favicon.ico",
    ),
    get("mailman", "lists.example.org", "/archives/"),
    get("mailman", "lists.example.org", "/archives"),
    but(
        get("mailman", "lists.example.org", "/cgi-bin/mailman/listinfo"),
        501,
        FASTCGI,
    ),
    get("phpmyadmin", "db.example.org", "/"),
    get("phpmyadmin", "db.example.org", "/status"),
    get("phpmyadmin", "db.example.org", "/downloads/d.bin"),
    get("phpmyadmin", "db.example.org", "/admin/x.txt"),
    but(
        get("phpmyadmin", "db.example.org", "/phpmyadmin/index.php"),
        501,
        FASTCGI,
    ),
    get("many-sites", "unknown.example.net", "/"),
    get("many-sites", "one.example.org", "/"),
    get("many-sites", "a.two.example.org", "/x"),
    get("many-sites", "three.example.org", "/x"),
    get("many-sites", "b.three.example.org", "/files/a.txt"),
    get("many-sites", "special.two.example.org", "/"),
    get("many-sites", "special.two.example.org", "/api/x"),
    get("many-sites", "special.two.example.org", "/x"),
    get("many-sites", "one.example.org", "/api/x"),
    get("drop-default", "only.example.org", "/gone"),
    get("drop-default", "only.example.org", "/gone/far"),
    get("drop-default", "only.example.org", "/moved"),
    but(
        get("drop-default", "only.example.org", "/moved?x=1"),
        308,
        QUERY,
    ),
    by("POST", get("drop-default", "only.example.org", "/moved")),
    get("drop-default", "only.example.org", "/teapot"),
    get("drop-default", "only.example.org", "/nothing"),
    get("drop-default", "only.example.org", "/backup/db.sql"),
    get("drop-default", "only.example.org", "/about.html"),
    but(get("drop-default", "x.example.org", "/"), 403, CLOSED),
    get("snippets", "a.example.org", "/x?y=z"),
    get(
        "snippets",
        "a.example.org",
        "/.well-known/acme-challenge/token",
    ),
    tls(get("snippets", "a.example.org", "/x")),
    tls(get("snippets", "a.example.org", "/ws/y?z")),
    tls(get(
        "snippets",
        "a.example.org",
        "/.well-known/acme-challenge/token",
    )),
    get("snippets", "b.example.org", "/"),
    get("snippets", "b.example.org", "/ws/y"),
    get("snippets", "b.example.org", "/missing"),
    get("conditions", "example.org", "/"),
    get("conditions", "example.org", "/deep/link"),
    get("conditions", "example.org", "/index.html"),
    get("conditions", "example.org", "/about.html"),
    get("conditions", "example.org", "/admin/x.txt"),
    get("conditions", "example.org", "/Admin/x.txt"),
    get("conditions", "example.org", "/db.bak"),
    get("conditions", "example.org", "/backup/db.sql"),
    get("conditions", "example.org", "/BACKUP/db.sql"),
    get("conditions", "example.org", "/status"),
    get("conditions", "example.org", "/status?a=b"),
    get("conditions", "example.org", "/union=x"),
    get("conditions", "example.org", "/build/x.txt"),
    by("HEAD", get("conditions", "example.org", "/build/x.txt")),
    get("conditions", "example.org", "/dir/"),
    by("HEAD", get("conditions", "example.org", "/dir/")),
    get("conditions", "example.org", "/data/x.txt"),
    tls(get("conditions", "example.org", "/data/x.txt")),
    get("conditions", "example.org", "/static/app.js"),
    tls(get("conditions", "example.org", "/static/app.js")),
    get("conditions", "example.org", "/css/site.css"),
    get("conditions", "www.example.org", "/css/site.css"),
    tls(get("conditions", "www.example.org", "/css/site.css")),
    get("conditions", "www.example.org", "/uploads/x.png"),
    get("conditions", "other.org", "/about.html"),
    get("conditions", "other.org", "/"),
];
