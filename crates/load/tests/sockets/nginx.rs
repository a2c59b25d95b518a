//! nginx as a server of other people's making: clear text, TLS and HTTP/2 on ports of its own.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A running nginx that serves a folder; it ends when dropped.
pub struct Nginx {
    child: Child,
    scratch: tempfile::TempDir,
    secured: SocketAddr,
    secured_http2: SocketAddr,
    clear_http2: SocketAddr,
}

impl Nginx {
    /// Starts it on `root`; `None` where there is none with TLS and HTTP/2, which is printed.
    pub fn start(root: &Path) -> Option<Nginx> {
        let built = Command::new("nginx").arg("-V").output().ok();
        let modules = built.map_or(String::new(), |output| {
            String::from_utf8_lossy(&output.stderr).into_owned()
        });
        if !["http_ssl_module", "http_v2_module"]
            .iter()
            .all(|module| modules.contains(module))
        {
            // The harness names a test's thread after it.
            let test = std::thread::current();
            let test = test.name().unwrap_or("nginx");
            println!("skipped: {test}: no nginx with TLS and HTTP/2");
            return None;
        }
        let scratch = tempfile::tempdir().unwrap();
        // An authority signed by itself, which is what `openssl req -x509` makes.
        let names = ["localhost".to_owned(), "127.0.0.1".into()];
        let mut params = rcgen::CertificateParams::new(names).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        std::fs::write(scratch.path().join("certificate.pem"), certificate.pem()).unwrap();
        std::fs::write(scratch.path().join("key.pem"), key.serialize_pem()).unwrap();
        let [secured, secured_http2, clear_http2] = free_ports();
        let listens = [
            format!("listen {secured} ssl;"),
            format!("listen {secured_http2} ssl http2;"),
            format!("listen {clear_http2} http2;"),
        ];
        let config = config(scratch.path(), root, &listens.concat());
        let path = scratch.path().join("nginx.conf");
        std::fs::write(&path, config).unwrap();
        let child = Command::new("nginx")
            .arg("-c")
            .arg(&path)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let nginx = Nginx {
            child,
            scratch,
            secured,
            secured_http2,
            clear_http2,
        };
        nginx.await_listening();
        Some(nginx)
    }

    fn await_listening(&self) {
        while TcpStream::connect(self.clear_http2).is_err() {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// HTTP/1.1 over TLS.
    pub fn secured(&self) -> String {
        format!("https://{}", self.secured)
    }

    /// HTTP/2 over TLS.
    pub fn secured_http2(&self) -> String {
        format!("https://{}", self.secured_http2)
    }

    /// HTTP/2 in clear text.
    pub fn clear_http2(&self) -> String {
        format!("http://{}", self.clear_http2)
    }

    /// Its certificate, which signs itself.
    pub fn certificate(&self) -> PathBuf {
        self.scratch.path().join("certificate.pem")
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // Asked, so that it ends its worker too.
        Command::new("kill")
            .arg(self.child.id().to_string())
            .status()
            .ok();
        self.child.wait().ok();
    }
}

/// Ports that nobody uses now; another process may take one before nginx does, and then the test fails.
fn free_ports() -> [SocketAddr; 3] {
    let listeners = [(); 3].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    listeners.map(|listener| listener.local_addr().unwrap())
}

fn config(scratch: &Path, root: &Path, listens: &str) -> String {
    let at = scratch.display();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {at}/{kind};"))
        .concat();
    format!(
        "daemon off; worker_processes 1; pid {at}/pid; error_log {at}/error.log;\n\
         events {{ worker_connections 1024; }}\n\
         http {{ {temporary} access_log off; ssl_certificate {at}/certificate.pem; ssl_certificate_key {at}/key.pem;\n\
         ssl_protocols TLSv1.2 TLSv1.3; ssl_session_cache shared:tickets:1m; server {{ {listens} root {}; }} }}\n",
        root.display()
    )
}
