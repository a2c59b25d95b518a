//! What rustls does not say of a certificate: its names, its dates, who issued it, and whether a
//! chain is in order.

use crate::distinguished_name;
use rustls::pki_types::CertificateDer;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::X509Certificate;

/// How long before its end a certificate is complained about: time enough to renew it, and short of
/// what renewal by machine leaves (a third of the life, 15 days of 47).
const WARNING_TIME: Duration = Duration::from_secs(14 * 86_400);

/// What a certificate says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The DNS names it is for, in lower case.
    pub names: Vec<String>,
    /// Whether it is for addresses.
    pub has_address: bool,
    subject: String,
    issuer: String,
    raw_subject: Vec<u8>,
    raw_issuer: Vec<u8>,
    not_before: SystemTime,
    not_after: SystemTime,
}

impl Facts {
    /// Reads a certificate; the error says why it is none.
    pub fn of(der: &CertificateDer<'_>) -> Result<Self, String> {
        let (_, certificate) =
            x509_parser::parse_x509_certificate(der).map_err(|error| error.to_string())?;
        let mut names = Vec::new();
        let mut has_address = false;
        let alternatives = certificate
            .subject_alternative_name()
            .map_err(|error| error.to_string())?;
        for name in alternatives
            .iter()
            .flat_map(|found| &found.value.general_names)
        {
            match name {
                GeneralName::DNSName(name) => names.push(name.to_ascii_lowercase()),
                GeneralName::IPAddress(_) => has_address = true,
                _ => {}
            }
        }
        Ok(Self {
            names,
            has_address,
            subject: subject(&certificate),
            issuer: printable(&certificate.issuer().to_string()),
            raw_subject: certificate.subject().as_raw().to_vec(),
            raw_issuer: certificate.issuer().as_raw().to_vec(),
            not_before: time(certificate.validity().not_before.timestamp()),
            not_after: time(certificate.validity().not_after.timestamp()),
        })
    }

    /// A warning if it is not good at `now`, or not for long; it comes from `file`.
    pub fn date_warning(&self, file: &Path, now: SystemTime) -> Option<String> {
        let certificate = format!("the certificate of {} in {}", self.subject, file.display());
        if now < self.not_before {
            let start = httpdate::fmt_http_date(self.not_before);
            return Some(format!(
                "{certificate} is not valid before {start}: clients may refuse it; is this machine's clock right?"
            ));
        }
        let end = httpdate::fmt_http_date(self.not_after);
        match self.not_after.duration_since(now) {
            Err(_) => Some(format!(
                "{certificate} expired on {end}: clients may refuse it; renew it"
            )),
            Ok(left) if left < WARNING_TIME => {
                let days = left.as_secs() / 86_400;
                Some(format!(
                    "{certificate} expires on {end}, in {days} days; renew it"
                ))
            }
            Ok(_) => None,
        }
    }
}

/// Whether each certificate was issued by the one after it (RFC 5246, 7.4.2), by their names.
pub fn check_order(chain: &[Facts]) -> Result<(), String> {
    for (index, pair) in chain.windows(2).enumerate() {
        let [issued, issuer] = pair else { continue };
        if issued.raw_issuer != issuer.raw_subject {
            return Err(format!(
                "the chain is out of order: certificate {number} ({}) was issued by {}, but certificate {next} is that of {}; the server's comes first, then each issuer after the one it issued",
                issued.subject,
                issued.issuer,
                issuer.subject,
                number = index + 1,
                next = index + 2,
            ));
        }
    }
    Ok(())
}

/// The subject of a client's certificate, in the form `CN=alice,O=Example\, Inc.,C=XX` of RFC 4514;
/// `None` where it cannot be written so.
pub fn subject_of(der: &CertificateDer<'_>) -> Option<String> {
    let (_, certificate) = x509_parser::parse_x509_certificate(der).ok()?;
    distinguished_name::text_of(certificate.subject())
}

/// The common name of a certificate's subject, if it has exactly one.
pub fn common_name_of(der: &CertificateDer<'_>) -> Option<String> {
    let (_, certificate) = x509_parser::parse_x509_certificate(der).ok()?;
    let mut names = certificate.subject().iter_common_name();
    let name = names.next()?.as_str().ok()?.to_owned();
    names.next().is_none().then_some(name)
}

fn subject(certificate: &X509Certificate<'_>) -> String {
    printable(&certificate.subject().to_string())
}

/// What may stand in a log line or a header: visible ASCII and spaces, the rest as question marks.
fn printable(text: &str) -> String {
    let visible = |letter: char| {
        if letter == ' ' || letter.is_ascii_graphic() {
            letter
        } else {
            '?'
        }
    };
    text.chars().map(visible).collect()
}

/// Dates before 1970 count as 1970, and those a certificate writes for "never" (the year 9999) stay
/// printable.
fn time(seconds: i64) -> SystemTime {
    const END_OF_9999: u64 = 253_402_300_799;
    let seconds = u64::try_from(seconds).unwrap_or(0).min(END_OF_9999);
    UNIX_EPOCH + Duration::from_secs(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn facts(subject: &str, issuer: &str) -> Facts {
        Facts {
            names: Vec::new(),
            has_address: false,
            subject: subject.into(),
            issuer: issuer.into(),
            raw_subject: subject.into(),
            raw_issuer: issuer.into(),
            not_before: time(1_000_000),
            not_after: time(2_000_000_000),
        }
    }

    #[test]
    fn dates_are_compared_with_the_given_now() {
        let facts = facts("CN=a", "CN=b");
        let warning = |seconds| facts.date_warning(Path::new("a.pem"), time(seconds));
        assert_eq!(
            warning(999_999).unwrap(),
            "the certificate of CN=a in a.pem is not valid before Mon, 12 Jan 1970 13:46:40 GMT: \
             clients may refuse it; is this machine's clock right?"
        );
        assert_eq!(warning(1_000_000), None);
        let soon = warning(2_000_000_000 - 3 * 86_400 - 5);
        assert!(soon.unwrap().contains("in 3 days"));
        assert_eq!(
            warning(2_000_000_001).unwrap(),
            "the certificate of CN=a in a.pem expired on Wed, 18 May 2033 03:33:20 GMT: clients \
             may refuse it; renew it"
        );
    }

    #[test]
    fn a_chain_goes_from_the_server_to_the_root() {
        let (leaf, middle, root) = (facts("l", "m"), facts("m", "r"), facts("r", "r"));
        assert_eq!(check_order(std::slice::from_ref(&leaf)), Ok(()));
        assert_eq!(
            check_order(&[leaf.clone(), middle.clone(), root.clone()]),
            Ok(())
        );
        assert!(check_order(&[middle, leaf.clone()]).is_err());
        assert!(
            check_order(&[leaf, root])
                .unwrap_err()
                .starts_with("the chain is out of order: certificate 1 (l) was issued by m")
        );
    }

    #[test]
    fn names_and_dates_of_a_made_certificate() {
        let made =
            rcgen::generate_simple_self_signed(["A.example".into(), "127.0.0.1".into()]).unwrap();
        let facts = Facts::of(made.cert.der()).unwrap();
        assert_eq!(facts.names, ["a.example"]);
        assert!(facts.has_address);
        assert_eq!(
            subject_of(made.cert.der()).as_deref(),
            Some("CN=rcgen self signed cert")
        );
        assert_eq!(
            common_name_of(made.cert.der()).as_deref(),
            Some("rcgen self signed cert")
        );
    }

    #[test]
    fn what_cannot_be_shown_is_not() {
        assert_eq!(printable("CN=a\r\nb: c\u{e9}"), "CN=a??b: c?");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>) {
            let _ = Facts::of(&CertificateDer::from(bytes));
        }
    }
}
