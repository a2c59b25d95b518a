//! nginx as a server of other people's making: clear text, TLS and HTTP/2 on ports of its own.

use sooner_testbed::certificate::Certificate;
use sooner_testbed::{nginx, port, skip};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// A running nginx that serves a folder; it ends when dropped.
pub struct Nginx {
    _nginx: nginx::Nginx,
    _scratch: tempfile::TempDir,
    certificate: Certificate,
    secured: SocketAddr,
    secured_http2: SocketAddr,
    clear_http2: SocketAddr,
}

impl Nginx {
    /// Starts it on `root`; `None` where there is none with TLS and HTTP/2, which is printed.
    pub fn start(root: &Path) -> Option<Nginx> {
        Nginx::start_with(root, "")
    }

    /// The same with more directives of its block `http`. It answers anything at `/any`.
    pub fn start_with(root: &Path, directives: &str) -> Option<Nginx> {
        if !nginx::has_modules(&["http_ssl_module", "http_v2_module"]) {
            // The harness names a test's thread after it.
            let test = std::thread::current();
            skip(
                test.name().unwrap_or("nginx"),
                "no nginx with TLS and HTTP/2",
            );
            return None;
        }
        let scratch = tempfile::tempdir().unwrap();
        let names = ["localhost", "127.0.0.1"];
        let certificate = Certificate::make_authority(scratch.path(), &names).unwrap();
        let [secured, secured_http2, clear_http2] = port::free_ones().unwrap();
        let http = format!(
            "access_log off; {directives} ssl_certificate {}; ssl_certificate_key {};\n\
             ssl_protocols TLSv1.2 TLSv1.3; ssl_session_cache shared:tickets:1m; server {{ \
             listen {secured} ssl; listen {secured_http2} ssl http2; listen {clear_http2} http2; root {};\n\
             location = /any {{ return 200 hello; }} }}\n",
            certificate.certificate.display(),
            certificate.key.display(),
            root.display()
        );
        let nginx = nginx::Nginx::start(scratch.path(), &http, clear_http2).unwrap();
        Some(Nginx {
            _nginx: nginx,
            _scratch: scratch,
            certificate,
            secured,
            secured_http2,
            clear_http2,
        })
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
        self.certificate.certificate.clone()
    }
}
