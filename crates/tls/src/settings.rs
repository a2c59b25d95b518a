//! The `[[tls]]` tables: one a certificate.

use serde::Deserialize;
use std::path::PathBuf;
use toml::Spanned;

/// One certificate with its key; the first table's is sent to clients that ask for no name, or for
/// one no certificate has.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsConfig {
    /// PEM file: the server's certificate, then each issuer after the one it issued. Its names
    /// decide who gets it.
    pub certificate: Spanned<PathBuf>,
    /// PEM file: the private key of that certificate (PKCS #8, PKCS #1 or SEC 1), without a
    /// passphrase.
    pub key: Spanned<PathBuf>,
    /// PEM file: the authorities that make a client's certificate good by their signature. It holds
    /// for all names, so one table says it.
    #[serde(default)]
    pub client_ca: Option<Spanned<PathBuf>>,
    /// Whether clients without a certificate are refused; true when `client_ca` is there and
    /// nothing is said.
    #[serde(default)]
    pub client_required: Option<Spanned<bool>>,
    /// Protocol versions that are spoken, for all names; both when nothing is said.
    #[serde(default)]
    pub versions: Option<Spanned<Vec<TlsVersion>>>,
}

/// A version of the protocol; older ones are broken, and not to be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum TlsVersion {
    /// RFC 5246.
    #[serde(rename = "1.2")]
    Tls12,
    /// RFC 8446.
    #[serde(rename = "1.3")]
    Tls13,
}
