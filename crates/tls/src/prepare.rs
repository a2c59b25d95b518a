//! From the `[[tls]]` tables to what rustls needs; every mistake is found here, before anything is
//! replaced.

use super::certificate::{Facts, check_order};
use super::names::{ByName, Names};
use super::pem;
use super::settings::{TlsConfig, TlsVersion};
use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::{Ticketer, default_provider};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoClientAuth, ServerSessionMemoryCache, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::version::{TLS12, TLS13};
use rustls::{Error, InconsistentKeys, RootCertStore, ServerConfig, SupportedProtocolVersion};
use sooner_config::Misconfigured;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;
use toml::Spanned;

/// Sessions remembered for clients that speak TLS 1.2 and take no tickets; all others carry their
/// session themselves.
const SESSIONS_MAX: usize = 1024;

const CERTIFICATE: &str = "tls.certificate";
const KEY: &str = "tls.key";
const CLIENT_CA: &str = "tls.client_ca";
const CLIENT_REQUIRED: &str = "tls.client_required";
const VERSIONS: &str = "tls.versions";

/// Checked tables, ready to be used.
#[derive(Debug)]
pub struct Prepared {
    /// What rustls serves by.
    pub config: Arc<ServerConfig>,
    /// What can be served and needs a look: dates, and names that are missing.
    pub warnings: Vec<Misconfigured>,
}

/// Reads and checks all files; `protocols` are spoken inside (ALPN, RFC 7301). Certificates that
/// are not valid at `now` cause warnings.
///
/// Sessions begun under another preparation are not resumed (their clients do a full handshake):
/// the demands on clients may have changed.
pub fn prepare(
    tables: &[TlsConfig],
    protocols: &[&[u8]],
    now: SystemTime,
) -> Result<Prepared, Misconfigured> {
    let provider = Arc::new(default_provider());
    let mut warnings = Vec::new();
    let resolver = by_name(tables, &provider, now, &mut warnings)?;
    let mut config = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&versions(tables)?)
        .map_err(|error| Misconfigured::without_place(VERSIONS, error))?
        .with_client_cert_verifier(client_verifier(tables, provider)?)
        .with_cert_resolver(Arc::new(resolver));
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    config.session_storage = ServerSessionMemoryCache::new(SESSIONS_MAX);
    config.ticketer = Ticketer::new().map_err(|error| {
        Misconfigured::without_place("tls", format!("no keys for session tickets: {error}"))
    })?;
    Ok(Prepared {
        config: Arc::new(config),
        warnings,
    })
}

/// Which files the process can no longer read, now that it has become another user: a reload would
/// fail at them.
pub fn unreadable(tables: &[TlsConfig]) -> Vec<Misconfigured> {
    pem::unreadable(tables.iter().flat_map(|table| {
        let client_ca = table.client_ca.as_ref().map(|file| (file, CLIENT_CA));
        [(&table.certificate, CERTIFICATE), (&table.key, KEY)]
            .into_iter()
            .chain(client_ca)
    }))
}

fn by_name(
    tables: &[TlsConfig],
    provider: &CryptoProvider,
    now: SystemTime,
    warnings: &mut Vec<Misconfigured>,
) -> Result<ByName, Misconfigured> {
    let mut names = Names::default();
    let mut default = None;
    let mut owners: BTreeMap<String, usize> = BTreeMap::new();
    for (index, table) in tables.iter().enumerate() {
        let path = table.certificate.get_ref();
        let (certified, facts) = certified_key(table, provider, now, warnings)?;
        let default = default.get_or_insert_with(|| certified.clone());
        if facts.names.is_empty() && !(facts.has_address && Arc::ptr_eq(default, &certified)) {
            warnings.push(Misconfigured::at(
                &table.certificate,
                CERTIFICATE,
                format!(
                    "{} has no DNS name (subjectAltName); clients will not accept it for any",
                    path.display()
                ),
            ));
        }
        for name in facts.names {
            names.insert(&name, certified.clone());
            // One certificate may say a name twice.
            let other = *owners.entry(name.clone()).or_insert(index);
            if other != index {
                let message = format!(
                    "{name} is in {} too; a name can have one certificate only",
                    tables[other].certificate.get_ref().display()
                );
                return Err(Misconfigured::at(&table.certificate, CERTIFICATE, message));
            }
        }
    }
    let default = default.ok_or_else(|| {
        Misconfigured::without_place(
            "tls",
            "listen_tls needs a [[tls]] table with certificate and key",
        )
    })?;
    Ok(ByName { names, default })
}

/// One table's chain and key, checked, and what its first certificate says.
fn certified_key(
    table: &TlsConfig,
    provider: &CryptoProvider,
    now: SystemTime,
    warnings: &mut Vec<Misconfigured>,
) -> Result<(Arc<CertifiedKey>, Facts), Misconfigured> {
    let path = table.certificate.get_ref();
    let of_certificate =
        |message: String| Misconfigured::at(&table.certificate, CERTIFICATE, message);
    let chain = pem::certificates(&table.certificate, CERTIFICATE)?;
    let facts = chain
        .iter()
        .map(Facts::of)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| {
            of_certificate(format!(
                "{} holds a certificate that cannot be read: {error}",
                path.display()
            ))
        })?;
    check_order(&facts).map_err(of_certificate)?;
    // No mistake: it would keep other names from being served, and the clock may be set later.
    let dates = facts
        .iter()
        .filter_map(|certificate| certificate.date_warning(path, now));
    warnings.extend(dates.map(of_certificate));
    let key = pem::private_key(&table.key, KEY)?;
    let certified = CertifiedKey::from_der(chain, key, provider)
        .map_err(|error| Misconfigured::at(&table.key, KEY, key_mistake(table, error)))?;
    // There is at least one certificate, or `certificates` would have said so.
    let first = facts
        .into_iter()
        .next()
        .ok_or_else(|| of_certificate("no certificate".into()))?;
    Ok((Arc::new(certified), first))
}

fn key_mistake(table: &TlsConfig, error: Error) -> String {
    let (key, certificate) = (table.key.get_ref(), table.certificate.get_ref());
    match error {
        Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => format!(
            "the key in {} is not that of the first certificate in {}",
            key.display(),
            certificate.display()
        ),
        error => format!(
            "{} holds a key that cannot be used: {error}; RSA (2048 bits or more), ECDSA (P-256, P-384) and Ed25519 can",
            key.display()
        ),
    }
}

fn versions(tables: &[TlsConfig]) -> Result<Vec<&'static SupportedProtocolVersion>, Misconfigured> {
    let wanted = for_all_names(tables, VERSIONS, |table| table.versions.as_ref())?;
    let Some(wanted) = wanted else {
        return Ok(vec![&TLS13, &TLS12]);
    };
    if wanted.get_ref().is_empty() {
        let message = "no version; leave the key out, or name \"1.2\", \"1.3\" or both";
        return Err(Misconfigured::at(wanted, VERSIONS, message));
    }
    let has = |version| wanted.get_ref().contains(&version);
    let mut versions = Vec::new();
    if has(TlsVersion::Tls13) {
        versions.push(&TLS13);
    }
    if has(TlsVersion::Tls12) {
        versions.push(&TLS12);
    }
    Ok(versions)
}

/// Who checks clients' certificates: for all names alike, because a request's host need not be the
/// handshake's name.
fn client_verifier(
    tables: &[TlsConfig],
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, Misconfigured> {
    let file = for_all_names(tables, CLIENT_CA, |table| table.client_ca.as_ref())?;
    let required = for_all_names(tables, CLIENT_REQUIRED, |table| {
        table.client_required.as_ref()
    })?;
    let Some(file) = file else {
        return match required {
            Some(required) => Err(Misconfigured::at(
                required,
                CLIENT_REQUIRED,
                "there is no client_ca to check clients' certificates by",
            )),
            None => Ok(Arc::new(NoClientAuth)),
        };
    };
    let wrong = |error: &dyn std::fmt::Display| Misconfigured::at(file, CLIENT_CA, error);
    let mut builder = WebPkiClientVerifier::builder_with_provider(authorities(file)?, provider);
    if required.is_some_and(|required| !required.get_ref()) {
        builder = builder.allow_unauthenticated();
    }
    let verifier = builder.build().map_err(|error| wrong(&error))?;
    Ok(verifier)
}

fn authorities(file: &Spanned<PathBuf>) -> Result<Arc<RootCertStore>, Misconfigured> {
    let mut roots = RootCertStore::empty();
    for (index, certificate) in pem::certificates(file, CLIENT_CA)?.into_iter().enumerate() {
        roots.add(certificate).map_err(|error| {
            let (path, number) = (file.get_ref().display(), index + 1);
            let message = format!("certificate {number} in {path} cannot be an authority: {error}");
            Misconfigured::at(file, CLIENT_CA, message)
        })?;
    }
    Ok(Arc::new(roots))
}

/// A setting that one table makes for all names, or several make alike.
fn for_all_names<'a, T: PartialEq>(
    tables: &'a [TlsConfig],
    key: &str,
    setting: impl Fn(&'a TlsConfig) -> Option<&'a Spanned<T>>,
) -> Result<Option<&'a Spanned<T>>, Misconfigured> {
    let mut settings = tables.iter().filter_map(setting);
    let first = settings.next();
    match settings.find(|other| first.is_some_and(|first| first.get_ref() != other.get_ref())) {
        Some(other) => Err(Misconfigured::at(
            other,
            key,
            "another [[tls]] table has another value; it holds for all names, so write it in one table",
        )),
        None => Ok(first),
    }
}
