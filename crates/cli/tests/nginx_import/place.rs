//! A folder with a shape, its files, and both servers.

use super::files::FILES;
use super::got::Got;
use super::php::{self, Php};
use super::requests::Case;
use sooner_testbed::certificate::Certificate;
use sooner_testbed::nginx::Nginx;
use sooner_testbed::{ChildGuard, port};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

/// The files of the shapes.
const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../import/tests/nginx");
/// The user anna with the password secret.
const USERS: &str = "anna:$apr1$Qx7Jd0Zk$K//PJepOS3aVmsEfGwbjy/\n";
/// Longer than any answer takes.
const PATIENCE: Duration = Duration::from_secs(10);

/// All shapes.
pub const SHAPES: [&str; 37] = [
    "debian-default",
    "static-www",
    "certbot",
    "spa",
    "wordpress",
    "laravel",
    "django",
    "rails-puma",
    "node-websocket",
    "grafana",
    "jenkins",
    "nextcloud",
    "h5bp",
    "load-balancing",
    "gitea",
    "docker-registry",
    "mailman",
    "phpmyadmin",
    "many-sites",
    "drop-default",
    "snippets",
    "wordpress-debian",
    "symfony",
    "drupal",
    "php-plain",
    "staff",
    "locked",
    "keep",
    "gzip",
    "conditions",
    "default-passed",
    "default-passed-tls",
    "wp-config",
    "pages",
    "behind-balancer",
    "nested",
    "led",
];

/// A server behind both that says what it was asked.
pub struct Echo {
    addresses: [SocketAddr; 2],
}

/// Starts the two servers behind; they end with the process.
pub fn echo() -> Echo {
    let addresses = ["A", "B"].map(|name| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                thread::spawn(move || say(name, connection));
            }
        });
        address
    });
    Echo { addresses }
}

/// Answers requests on one connection with what they were.
fn say(name: &str, connection: TcpStream) {
    let mut writer = connection.try_clone().unwrap();
    let mut reader = BufReader::new(connection);
    loop {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            match reader.read_line(&mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) if line.trim().is_empty() => break,
                Ok(_) => lines.push(line.trim().to_owned()),
            }
        }
        let field = |wanted: &str| {
            let found = lines.iter().find_map(|line| {
                let (name, value) = line.split_once(": ")?;
                name.eq_ignore_ascii_case(wanted).then_some(value)
            });
            found.unwrap_or("-").to_owned()
        };
        let request = lines[0].rsplit_once(' ').unwrap().0.to_owned();
        let is_switching =
            field("upgrade") != "-" && field("connection").eq_ignore_ascii_case("upgrade");
        let host = field("host");
        let host = host.split(':').next().unwrap_or_default();
        // What a case would like to know of the head.
        let asked = field("x-echo");
        let asked = asked.split(',').filter(|name| *name != "-");
        let told: Vec<String> = asked
            .map(|name| format!(" {name}={}", field(name)))
            .collect();
        let body = match told.as_slice() {
            [] => format!("{name} {request} host={host}"),
            told => format!("{name} {request}{}", told.concat()),
        };
        let answer = if is_switching {
            "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"
                .to_owned()
        } else {
            let body = if request.starts_with("HEAD") {
                ""
            } else {
                &body
            };
            format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            )
        };
        if writer.write_all(answer.as_bytes()).is_err() || is_switching {
            return;
        }
    }
}

/// A folder of one shape.
pub struct Place {
    folder: TempDir,
    shape: &'static str,
    echo: [SocketAddr; 2],
    /// The socket of PHP.
    php: PathBuf,
}

/// Both servers.
pub struct Servers {
    _nginx: Nginx,
    _sooner: ChildGuard,
    /// Clear text and TLS, of nginx and of Sooner.
    addresses: [[SocketAddr; 2]; 2],
}

impl Place {
    pub fn new(shape: &'static str, echo: &Echo, php: &Php) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in FILES {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        // Workers of nginx are another user.
        open_to_all(folder.path());
        Self {
            folder,
            shape,
            echo: echo.addresses,
            php: php.socket(),
        }
    }

    /// The shape with the addresses and folders of this run.
    fn text(&self, text: &str, addresses: [SocketAddr; 2]) -> String {
        let at = self.folder.path().display().to_string();
        let certificate = format!("{at}/certificate.pem");
        let key = format!("{at}/key.pem");
        let socket = format!("unix:{}", self.php.display());
        let mut text = text
            .lines()
            .filter(|line| !line.contains("listen [::]") && !line.trim_start().starts_with("user "))
            .collect::<Vec<_>>()
            .join("\n");
        for (from, to) in [
            ("listen 80", format!("listen {}", addresses[0])),
            ("listen       80", format!("listen {}", addresses[0])),
            ("listen          80", format!("listen {}", addresses[0])),
            ("listen 443", format!("listen {}", addresses[1])),
            ("127.0.0.1:3000", self.echo[0].to_string()),
            ("localhost:3000", self.echo[0].to_string()),
            ("127.0.0.1:3001", self.echo[1].to_string()),
            (
                "http://unix:/run/app.sock",
                format!("http://{}", self.echo[0]),
            ),
            ("unix:/run/app.sock", self.echo[0].to_string()),
            // Of a shape without TLS.
            ("127.0.0.1:8081", addresses[1].to_string()),
            (
                "/etc/letsencrypt/live/example.org/fullchain.pem",
                certificate.clone(),
            ),
            ("/etc/letsencrypt/live/example.org/privkey.pem", key.clone()),
            ("/etc/ssl/cloud.crt", certificate.clone()),
            ("/etc/ssl/cloud.key", key.clone()),
            (
                "/etc/nginx/modules-enabled/*.conf",
                format!("{at}/none/*.conf"),
            ),
            ("/etc/nginx/users", format!("{at}/users")),
            ("/etc/nginx/conf.d/nginx.htpasswd", format!("{at}/users")),
            ("unix:/run/php/php8.2-fpm.sock", socket.clone()),
            ("unix:/var/run/php/php8.2-fpm.sock", socket.clone()),
            ("unix:/run/php/php-fpm.sock", socket.clone()),
            ("unix:/var/run/php/php-fpm.sock", socket),
            ("/var/www", format!("{at}/var/www")),
            ("/var/log/nginx", at.clone()),
            ("/run/nginx.pid", format!("{at}/own.pid")),
            ("/srv", format!("{at}/srv")),
        ] {
            text = text.replace(from, &to);
        }
        text + "\n"
    }

    /// Writes the shape into a folder of that name; the path of its main file, and whether that is
    /// a whole configuration.
    fn write(&self, name: &str, addresses: [SocketAddr; 2]) -> (PathBuf, bool) {
        let to = self.folder.path().join(name);
        fs::create_dir_all(&to).unwrap();
        let single = Path::new(DATA).join(format!("{}.conf", self.shape));
        if let Ok(text) = fs::read_to_string(&single) {
            let path = to.join("shape.conf");
            fs::write(&path, self.text(&text, addresses)).unwrap();
            return (path, text.contains("\nhttp {"));
        }
        self.copy(&Path::new(DATA).join(self.shape), &to, addresses);
        (to.join("nginx.conf"), true)
    }

    fn copy(&self, from: &Path, to: &Path, addresses: [SocketAddr; 2]) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap().flatten() {
            let target = to.join(entry.file_name());
            if entry.path().is_dir() {
                self.copy(&entry.path(), &target, addresses);
            } else {
                let text = fs::read_to_string(entry.path()).unwrap();
                fs::write(target, self.text(&text, addresses)).unwrap();
            }
        }
    }

    pub fn start(&self) -> Servers {
        let at = self.folder.path();
        Certificate::make(at, &["localhost", "*.example.org", "example.org"]).unwrap();
        let addresses = port::free_ones::<4>().unwrap();
        let theirs = [addresses[0], addresses[1]];
        let ours = [addresses[2], addresses[3]];
        let (path, is_whole) = self.write("theirs", theirs);
        fs::write(
            at.join("theirs/mime.types"),
            "types { text/html html; text/css css; application/javascript js; text/xml xml; }",
        )
        .unwrap();
        fs::write(at.join("users"), USERS).unwrap();
        // nginx has relative names in its own folder.
        for folder in ["theirs", "."] {
            php::write_params(&at.join(folder));
        }
        let text = fs::read_to_string(&path).unwrap();
        // Of a whole one what is within `http`: outside it is the fixture's own.
        let inside = if is_whole { within_http(&text) } else { text };
        let includes = inside.replace("include ", &format!("include {}/theirs/", at.display()));
        let inside = includes.replace(&format!("{}/theirs//", at.display()), "/");
        for name in ["sites-enabled/a", "sites-enabled/b"] {
            let path = at.join("theirs").join(name);
            if let Ok(text) = fs::read_to_string(&path) {
                let text = text.replace("include ", &format!("include {}/theirs/", at.display()));
                fs::write(path, text).unwrap();
            }
        }
        let nginx = Nginx::start(at, &inside, theirs[0])
            .unwrap_or_else(|error| panic!("{}: {error}", self.shape));
        Servers {
            _nginx: nginx,
            _sooner: self.start_ours(ours),
            addresses: [theirs, ours],
        }
    }

    fn start_ours(&self, addresses: [SocketAddr; 2]) -> ChildGuard {
        let (path, _) = self.write("ours", addresses);
        php::write_params(&self.folder.path().join("ours"));
        let program = env!("CARGO_BIN_EXE_sooner");
        let config = self.folder.path().join("sooner.toml");
        let output = Command::new(program)
            .args(["serve", "import"])
            .arg(path)
            .arg("--out")
            .arg(&config)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {said}", self.shape);
        let text = fs::read_to_string(&config).unwrap();
        let comments = text.matches("# not carried over: ").count();
        let counted = match comments {
            0 => "everything".to_owned(),
            count => format!("{count} directive"),
        };
        assert!(said.contains(&counted), "{}: {said}", self.shape);
        if let Some(folder) = std::env::var_os("SOONER_IMPORTED") {
            fs::copy(
                &config,
                Path::new(&folder).join(format!("{}.toml", self.shape)),
            )
            .unwrap();
        }
        let mut child = Command::new(program)
            .args(["serve", "--config"])
            .arg(&config)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut messages = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        messages.read_line(&mut line).unwrap();
        assert!(line.contains("http://"), "{}: {line}\n{text}", self.shape);
        thread::spawn(move || messages.read_to_end(&mut Vec::new()));
        ChildGuard(child)
    }
}

impl Servers {
    /// The answers of nginx and of Sooner; none where there is no client.
    pub fn both(&self, case: &Case) -> Option<(Got, Got)> {
        let [theirs, ours] = self.addresses.map(|addresses| {
            let address = addresses[usize::from(case.is_tls)];
            let bytes = if case.is_tls {
                over_tls(address, case)?
            } else {
                in_clear_text(address, case)
            };
            Some(Got::of(&bytes, case, address.port()))
        });
        Some((theirs?, ours?))
    }
}

fn in_clear_text(address: SocketAddr, case: &Case) -> Vec<u8> {
    let mut connection = TcpStream::connect(address).unwrap();
    connection.set_read_timeout(Some(PATIENCE)).unwrap();
    let upgrade = if case.method == "UPGRADE" {
        "Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    } else {
        "Connection: close\r\n"
    };
    let method = if case.method == "UPGRADE" {
        "GET"
    } else {
        case.method
    };
    let length = if method == "POST" {
        "Content-Length: 0\r\n"
    } else {
        ""
    };
    let version = match case.host {
        "" => "HTTP/1.0\r\n".to_owned(),
        host => format!("HTTP/1.1\r\nHost: {host}\r\n"),
    };
    let request = format!(
        "{method} {} {version}{}{upgrade}{length}\r\n",
        case.path, case.fields
    );
    connection.write_all(request.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    // nginx closes over what it does not answer.
    let _ = connection.read_to_end(&mut bytes);
    bytes
}

fn over_tls(address: SocketAddr, case: &Case) -> Option<Vec<u8>> {
    let port = address.port();
    let output = Command::new("curl")
        .args(["-skgi", "--http1.1", "--path-as-is", "--max-time", "10"])
        .args(["--resolve", &format!("{}:{port}:127.0.0.1", case.host)])
        .args(["-H", &format!("Host: {}", case.host)])
        .arg(format!("https://{}:{port}{}", case.host, case.path))
        .output();
    output.ok().map(|output| output.stdout)
}

fn within_http(text: &str) -> String {
    let (_, inside) = text.split_once("http {").unwrap();
    let (inside, _) = inside.rsplit_once('}').unwrap();
    inside.to_owned()
}

/// Lets other users in.
fn open_to_all(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
}
