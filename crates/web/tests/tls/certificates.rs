//! Certificates of authorities that exist only here, and the tables that name their files.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use serde::Deserialize;
use sooner_web::tls::TlsConfig;
use std::path::PathBuf;
use tempfile::TempDir;

/// An authority with a trusted signature.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate with its key.
pub struct Pair {
    pub certificate_pem: String,
    pub key_pem: String,
    pub certificate: CertificateDer<'static>,
    key_der: Vec<u8>,
}

impl Pair {
    fn new(certificate: rcgen::Certificate, key: &KeyPair) -> Self {
        Self {
            certificate_pem: certificate.pem(),
            key_pem: key.serialize_pem(),
            certificate: certificate.der().clone(),
            key_der: key.serialize_der(),
        }
    }

    pub fn key(&self) -> PrivateKeyDer<'static> {
        PrivatePkcs8KeyDer::from(self.key_der.clone()).into()
    }
}

fn parameters(names: &[&str], common_name: &str) -> CertificateParams {
    let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut parameters = CertificateParams::new(names).unwrap();
    parameters
        .distinguished_name
        .push(DnType::CommonName, common_name);
    parameters
}

fn authority_parameters(name: &str) -> CertificateParams {
    let mut parameters = parameters(&[], name);
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters
}

fn date(parameters: &mut CertificateParams, from_year: i32, to_year: i32) {
    parameters.not_before = date_time_ymd(from_year, 1, 1);
    parameters.not_after = date_time_ymd(to_year, 1, 1);
}

impl Authority {
    pub fn new(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        Self(CertifiedIssuer::self_signed(authority_parameters(name), key).unwrap())
    }

    /// An authority with a certificate that this one signs.
    pub fn below(&self, name: &str) -> Self {
        self.below_as(authority_parameters(name))
    }

    /// The same, good from one year to another.
    pub fn below_between(&self, name: &str, from_year: i32, to_year: i32) -> Self {
        let mut parameters = authority_parameters(name);
        date(&mut parameters, from_year, to_year);
        self.below_as(parameters)
    }

    fn below_as(&self, parameters: CertificateParams) -> Self {
        let key = KeyPair::generate().unwrap();
        Self(CertifiedIssuer::signed_by(parameters, key, &self.0).unwrap())
    }

    pub fn pem(&self) -> String {
        self.0.pem()
    }

    pub fn certificate(&self) -> CertificateDer<'static> {
        self.0.der().clone()
    }

    /// A certificate for `names`, good until the year 4096.
    pub fn issue(&self, names: &[&str]) -> Pair {
        self.issue_changed(names, |_| {})
    }

    /// The same, good from one year to another.
    pub fn issue_between(&self, names: &[&str], from_year: i32, to_year: i32) -> Pair {
        self.issue_changed(names, |parameters| date(parameters, from_year, to_year))
    }

    fn issue_changed(&self, names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Pair {
        let key = KeyPair::generate().unwrap();
        let mut parameters = parameters(names, names.first().unwrap_or(&"somebody"));
        change(&mut parameters);
        Pair::new(parameters.signed_by(&key, &self.0).unwrap(), &key)
    }
}

/// A folder with PEM files.
pub struct Files(TempDir);

/// Tables as they stand in a configuration.
pub struct Tables {
    pub text: String,
    pub tables: Vec<TlsConfig>,
}

#[derive(Deserialize)]
struct Document {
    tls: Vec<TlsConfig>,
}

impl Files {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Writes `NAME.pem` and `NAME.key`.
    pub fn write_pair(&self, name: &str, pair: &Pair) {
        self.write(&format!("{name}.pem"), &pair.certificate_pem);
        self.write(&format!("{name}.key"), &pair.key_pem);
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Tables for pairs that were written, each with more lines.
    pub fn tables(&self, tables: &[(&str, &str)]) -> Tables {
        let folder = self.0.path().display();
        let text: String = tables
            .iter()
            .map(|(name, more)| {
                let more = more.replace("FOLDER", &folder.to_string());
                format!("[[tls]]\ncertificate = \"{folder}/{name}.pem\"\nkey = \"{folder}/{name}.key\"\n{more}\n")
            })
            .collect();
        let document: Document = toml::from_str(&text).unwrap();
        Tables {
            text,
            tables: document.tls,
        }
    }
}
