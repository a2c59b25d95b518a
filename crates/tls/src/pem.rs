//! Certificates and keys out of PEM files (RFC 7468), and in one line why not.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sooner_config::Misconfigured;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use toml::Spanned;

/// The longest file that is read, bytes; a chain has some thousand, all public authorities together
/// some hundred thousand.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// All certificates of the file named by `key`, at least one.
pub fn certificates(
    file: &Spanned<PathBuf>,
    key: &str,
) -> Result<Vec<CertificateDer<'static>>, Misconfigured> {
    let path = file.get_ref();
    let wrong = |message: String| Misconfigured::at(file, key, message);
    let bytes = read(path).map_err(wrong)?;
    let certificates = CertificateDer::pem_slice_iter(&bytes)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| wrong(format!("{} is not PEM: {error}", path.display())))?;
    if certificates.is_empty() {
        return Err(wrong(no_certificate(path, &bytes)));
    }
    Ok(certificates)
}

/// The first private key of the file.
pub fn private_key(
    file: &Spanned<PathBuf>,
    key: &str,
) -> Result<PrivateKeyDer<'static>, Misconfigured> {
    let path = file.get_ref();
    let wrong = |message: String| Misconfigured::at(file, key, message);
    let bytes = read(path).map_err(wrong)?;
    if contains(&bytes, "ENCRYPTED") {
        return Err(wrong(format!(
            "the key in {} has a passphrase; `openssl pkey -in FILE -out FILE.open` writes it without one",
            path.display()
        )));
    }
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| {
        wrong(match error {
            rustls::pki_types::pem::Error::NoItemsFound => no_key(path, &bytes),
            error => format!("{} is not PEM: {error}", path.display()),
        })
    })
}

/// Which of the files can no longer be read: what a reload would find, said while there is time.
pub fn unreadable<'a>(
    files: impl IntoIterator<Item = (&'a Spanned<PathBuf>, &'a str)>,
) -> Vec<Misconfigured> {
    let mut mistakes = Vec::new();
    for (file, key) in files {
        if let Err(error) = File::open(file.get_ref()) {
            mistakes.push(Misconfigured::at(
                file,
                key,
                unopened(file.get_ref(), &error),
            ));
        }
    }
    mistakes
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes))
        .map_err(|error| unopened(path, &error))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(format!(
            "{} is longer than {FILE_BYTES_MAX} bytes: not a certificate or a key",
            path.display()
        ));
    }
    Ok(bytes)
}

fn unopened(path: &Path, error: &io::Error) -> String {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => format!("there is no file {path}; name an existing PEM file"),
        io::ErrorKind::PermissionDenied => {
            format!("no permission to read {path}; the user the server runs as must be able to")
        }
        _ => format!("cannot read {path}: {error}"),
    }
}

fn no_certificate(path: &Path, bytes: &[u8]) -> String {
    let path = path.display();
    if contains(bytes, "PRIVATE KEY-----") {
        format!("{path} holds no certificate but a private key; are certificate and key swapped?")
    } else if contains(bytes, "-----BEGIN ") {
        format!("{path} holds no certificate: no line -----BEGIN CERTIFICATE-----")
    } else if bytes.first() == Some(&DER_SEQUENCE) {
        format!("{path} is not PEM but DER; `openssl x509 -inform DER -in FILE` prints it as PEM")
    } else {
        format!("{path} is not PEM: no line -----BEGIN CERTIFICATE-----")
    }
}

fn no_key(path: &Path, bytes: &[u8]) -> String {
    let path = path.display();
    if contains(bytes, "-----BEGIN CERTIFICATE-----") {
        format!("{path} holds no private key but a certificate; are certificate and key swapped?")
    } else if contains(bytes, "-----BEGIN ") {
        format!("{path} holds no private key: no line -----BEGIN PRIVATE KEY-----")
    } else if bytes.first() == Some(&DER_SEQUENCE) {
        format!("{path} is not PEM but DER; `openssl pkey -inform DER -in FILE` prints it as PEM")
    } else {
        format!("{path} is not PEM: no line -----BEGIN PRIVATE KEY-----")
    }
}

/// What every DER file of interest begins with (X.690, 8.9).
const DER_SEQUENCE: u8 = 0x30;

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|window| window == text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file_of(bytes: &[u8]) -> (tempfile::TempDir, Spanned<PathBuf>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.pem");
        std::fs::write(&path, bytes).unwrap();
        (folder, Spanned::new(5..9, path))
    }

    #[test]
    fn says_what_the_file_is_instead() {
        for (bytes, of_certificate, of_key) in [
            (&b""[..], "is not PEM: no line", "is not PEM: no line"),
            (&b"hello\n"[..], "is not PEM: no line", "is not PEM: no line"),
            (&b"\x30\x82\x01"[..], "not PEM but DER", "not PEM but DER"),
            (
                &b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"[..],
                "holds no certificate: no line",
                "holds no private key: no line",
            ),
            (
                &b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"[..],
                "are certificate and key swapped?",
                "",
            ),
            (
                &b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"[..],
                "",
                "are certificate and key swapped?",
            ),
            (
                &b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n"[..],
                "are certificate and key swapped?",
                "has a passphrase",
            ),
            (
                &b"-----BEGIN CERTIFICATE-----\nAAAA\n"[..],
                "is not PEM: ",
                "is not PEM: ",
            ),
        ] {
            let (_folder, file) = file_of(bytes);
            for (result, wanted) in [
                (certificates(&file, "tls.certificate").err(), of_certificate),
                (private_key(&file, "tls.key").err(), of_key),
            ] {
                match result {
                    Some(mistake) => {
                        assert!(!wanted.is_empty(), "{mistake}");
                        assert!(mistake.message.contains(wanted), "{mistake}");
                        assert_eq!(mistake.span, Some(5..9));
                        assert!(!mistake.message.contains('\n'));
                    }
                    None => assert_eq!(wanted, ""),
                }
            }
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let file = Spanned::new(1..2, PathBuf::from("/no/such.pem"));
        let mistake = certificates(&file, "tls.certificate").unwrap_err();
        assert_eq!(
            mistake.to_string(),
            "tls.certificate: there is no file /no/such.pem; name an existing PEM file"
        );
        assert_eq!(unreadable([(&file, "tls.certificate")]), [mistake]);
    }

    #[test]
    fn a_file_without_end_is_not_read_to_its_end() {
        let file = Spanned::new(1..2, PathBuf::from("/dev/zero"));
        let mistake = private_key(&file, "tls.key").unwrap_err();
        assert!(mistake.message.contains("is longer than"), "{mistake}");
    }
}
