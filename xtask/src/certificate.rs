//! A certificate for test servers, made on the spot.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process;

/// Files with a self-signed certificate of an elliptic curve (P-256) and its key.
#[derive(Clone)]
pub struct Certificate {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl Certificate {
    /// The one in `folder`, for the server's host and localhost; made if it is not there yet, for everybody to read, because
    /// servers without privilege need it too. It ends before a year is over, as that of a public authority.
    pub fn of(folder: &Path) -> anyhow::Result<Self> {
        let made = Self {
            certificate: folder.join("certificate.pem"),
            key: folder.join("key.pem"),
        };
        if made.certificate.exists() {
            return Ok(made);
        }
        let mut openssl = Command::new("openssl");
        openssl.args([
            "req",
            "-x509",
            "-nodes",
            "-days",
            "300",
            "-subj",
            "/CN=localhost",
        ]);
        openssl.args(["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]);
        openssl.args([
            "-addext",
            "subjectAltName=DNS:localhost,IP:10.77.0.1,IP:127.0.0.1",
        ]);
        openssl
            .arg("-keyout")
            .arg(&made.key)
            .arg("-out")
            .arg(&made.certificate);
        process::output(&mut openssl)?;
        process::output(Command::new("chmod").arg("644").arg(&made.key))?;
        Ok(made)
    }

    /// The table of a `sooner` configuration.
    pub fn table(&self) -> String {
        format!(
            "[[tls]]\ncertificate = \"{}\"\nkey = \"{}\"\n",
            self.certificate.display(),
            self.key.display()
        )
    }

    /// The directives of an nginx configuration.
    pub fn nginx(&self) -> String {
        format!(
            "  ssl_certificate {}; ssl_certificate_key {}; ssl_protocols TLSv1.2 TLSv1.3;",
            self.certificate.display(),
            self.key.display()
        )
    }
}
