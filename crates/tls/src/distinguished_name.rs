//! The text of a distinguished name, as RFC 4514 writes it and nginx in `$ssl_client_s_dn`: the
//! last attribute comes first, and what divides attributes is escaped within their values.
//!
//! A server behind this one lets clients in by this text, so no value may look like two. What is
//! not ASCII is escaped too, as a header can hold nothing else.

use std::fmt::Write;
use x509_parser::asn1_rs::{Any, Tag};
use x509_parser::prelude::{AttributeTypeAndValue, X509Name};

/// The names of attributes that OpenSSL writes; others are written by number.
const NAMES: [(&str, &str); 30] = [
    ("2.5.4.3", "CN"),
    ("2.5.4.4", "SN"),
    ("2.5.4.5", "serialNumber"),
    ("2.5.4.6", "C"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.9", "street"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("2.5.4.12", "title"),
    ("2.5.4.13", "description"),
    ("2.5.4.15", "businessCategory"),
    ("2.5.4.16", "postalAddress"),
    ("2.5.4.17", "postalCode"),
    ("2.5.4.20", "telephoneNumber"),
    ("2.5.4.41", "name"),
    ("2.5.4.42", "GN"),
    ("2.5.4.43", "initials"),
    ("2.5.4.44", "generationQualifier"),
    ("2.5.4.45", "x500UniqueIdentifier"),
    ("2.5.4.46", "dnQualifier"),
    ("2.5.4.65", "pseudonym"),
    ("2.5.4.97", "organizationIdentifier"),
    ("0.9.2342.19200300.100.1.1", "UID"),
    ("0.9.2342.19200300.100.1.25", "DC"),
    ("1.2.840.113549.1.9.1", "emailAddress"),
    ("1.2.840.113549.1.9.2", "unstructuredName"),
    ("1.3.6.1.4.1.311.60.2.1.1", "jurisdictionL"),
    ("1.3.6.1.4.1.311.60.2.1.2", "jurisdictionST"),
    ("1.3.6.1.4.1.311.60.2.1.3", "jurisdictionC"),
];

/// The text of `name`; `None` where it is empty, or where a value is not what it says it is.
pub fn text_of(name: &X509Name<'_>) -> Option<String> {
    let mut text = String::new();
    let parts: Vec<_> = name.iter_rdn().collect();
    for part in parts.into_iter().rev() {
        let attributes: Vec<_> = part.iter().collect();
        for (at, attribute) in attributes.into_iter().rev().enumerate() {
            if !text.is_empty() {
                text.push(if at == 0 { ',' } else { '+' });
            }
            push_attribute(attribute, &mut text)?;
        }
    }
    (!text.is_empty()).then_some(text)
}

fn push_attribute(attribute: &AttributeTypeAndValue<'_>, text: &mut String) -> Option<()> {
    let number = attribute.attr_type().to_id_string();
    let value = attribute.attr_value();
    let known = NAMES.iter().find(|(own, _)| *own == number);
    text.push_str(known.map_or(&number, |(_, name)| name));
    text.push('=');
    // What an attribute holds that has no name here is not known (RFC 4514, 2.4).
    let characters = match known {
        Some(_) => characters(value)?,
        None => None,
    };
    match characters {
        Some(characters) => push_escaped(&characters, text),
        None => push_encoded(value, text)?,
    }
    Some(())
}

/// The characters of a value: `Some(None)` where it is no text, `None` where it is one that cannot
/// be read.
fn characters(value: &Any<'_>) -> Option<Option<String>> {
    let latin_1 = |bytes: &[u8]| bytes.iter().copied().map(char::from).collect();
    Some(Some(match value.tag() {
        Tag::Utf8String => std::str::from_utf8(value.data).ok()?.to_owned(),
        Tag::PrintableString
        | Tag::NumericString
        | Tag::Ia5String
        | Tag::VisibleString
        | Tag::T61String => latin_1(value.data),
        Tag::BmpString => {
            let (pairs, []) = value.data.as_chunks::<2>() else {
                return None;
            };
            let units: Vec<u16> = pairs.iter().copied().map(u16::from_be_bytes).collect();
            String::from_utf16(&units).ok()?
        }
        Tag::UniversalString => {
            let (fours, []) = value.data.as_chunks::<4>() else {
                return None;
            };
            let letters = fours.iter().copied().map(u32::from_be_bytes);
            letters.map(char::from_u32).collect::<Option<String>>()?
        }
        _ => return Some(None),
    }))
}

/// Escapes what has a meaning, and what a header cannot hold.
fn push_escaped(value: &str, text: &mut String) {
    let last = value.len().saturating_sub(1);
    for (at, byte) in value.bytes().enumerate() {
        match byte {
            b'"' | b'+' | b',' | b';' | b'<' | b'>' | b'\\' => {
                text.extend(['\\', char::from(byte)]);
            }
            b' ' if at == 0 || at == last => text.push_str("\\ "),
            b'#' if at == 0 => text.push_str("\\#"),
            b' '..=b'~' => text.push(byte.into()),
            _ => _ = write!(text, "\\{byte:02X}"),
        }
    }
}

/// Writes a value as its encoding; `None` where that is none of RFC 5280's.
fn push_encoded(value: &Any<'_>, text: &mut String) -> Option<()> {
    let tag = u8::try_from(value.tag().0).ok().filter(|tag| *tag < 31)?;
    let form = u8::from(value.header.constructed()) << 5;
    text.push('#');
    let length = value.data.len();
    let mut bytes = vec![(value.class() as u8) << 6 | form | tag];
    match u8::try_from(length) {
        Ok(short @ 0..128) => bytes.push(short),
        _ => {
            let long = length.to_be_bytes();
            let long = &long[(length.leading_zeros() / 8) as usize..];
            bytes.push(0x80 | u8::try_from(long.len()).ok()?);
            bytes.extend_from_slice(long);
        }
    }
    bytes.extend_from_slice(value.data);
    for byte in bytes {
        _ = write!(text, "{byte:02X}");
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificate::subject_of;
    use proptest::prelude::*;
    use rcgen::{CertificateParams, DistinguishedName, DnType, DnValue, KeyPair};
    use std::process::Command;

    /// A certificate with these attributes, in PEM and its subject here.
    fn made(attributes: &[(DnType, DnValue)]) -> (String, Option<String>) {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        for (kind, value) in attributes {
            params.distinguished_name.push(kind.clone(), value.clone());
        }
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        (certificate.pem(), subject_of(certificate.der()))
    }

    fn utf8(text: &str) -> DnValue {
        DnValue::Utf8String(text.to_owned())
    }

    fn common_name(text: &str) -> Option<String> {
        made(&[(DnType::CommonName, utf8(text))]).1
    }

    #[test]
    fn a_value_cannot_look_like_two_attributes() {
        for (value, text) in [
            ("alice, O=Admins", "CN=alice\\, O=Admins"),
            ("alice,O=Admins", "CN=alice\\,O=Admins"),
            ("alice+O=Admins", "CN=alice\\+O=Admins"),
            ("a\"b\\c<d>e;f", "CN=a\\\"b\\\\c\\<d\\>e\\;f"),
            (" a b ", "CN=\\ a b\\ "),
            (" ", "CN=\\ "),
            ("#a#", "CN=\\#a#"),
            ("a\0b\r\nc\u{7f}", "CN=a\\00b\\0D\\0Ac\\7F"),
            ("Lu\u{10d}i\u{107}", "CN=Lu\\C4\\8Di\\C4\\87"),
        ] {
            assert_eq!(common_name(value).as_deref(), Some(text), "{value:?}");
        }
        let (_, text) = made(&[
            (DnType::OrganizationName, utf8("Admins")),
            (DnType::CommonName, utf8("alice")),
        ]);
        assert_eq!(text.as_deref(), Some("CN=alice,O=Admins"));
        assert_eq!(made(&[]).1, None);
    }

    #[test]
    fn what_cannot_be_read_has_no_text() {
        let (pem, _) = made(&[(DnType::CommonName, utf8("mark: ????"))]);
        let (_, document) = x509_parser::pem::parse_x509_pem(pem.as_bytes()).unwrap();
        let mut der = document.contents;
        let places: Vec<usize> = (0..der.len() - 4)
            .filter(|at| &der[*at..at + 4] == b"????")
            .collect();
        for at in places {
            der[at] = 0xff;
        }
        assert_eq!(subject_of(&der.into()), None, "not UTF-8");
    }

    /// As nginx has it, which has OpenSSL write it.
    #[test]
    fn openssl_writes_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("certificate.pem");
        let printable = |text: &str| DnValue::PrintableString(text.try_into().unwrap());
        let bmp = DnValue::BmpString("b\u{e9}\u{10d}".try_into().unwrap());
        let universal = DnValue::UniversalString("u\u{1f600}".try_into().unwrap());
        let teletex = DnValue::TeletexString("t61".try_into().unwrap());
        for attributes in [
            vec![
                (DnType::CountryName, printable("XX")),
                (DnType::StateOrProvinceName, utf8("S \u{fc}")),
                (DnType::LocalityName, bmp),
                (DnType::OrganizationName, utf8(" Example, Inc. ")),
                (DnType::OrganizationalUnitName, universal),
                (DnType::CommonName, utf8("#alice+\"bob\"\\;<>=\t")),
            ],
            vec![
                (DnType::OrganizationName, teletex),
                (
                    DnType::CustomDnType(vec![0, 9, 2342, 19_200_300, 100, 1, 1]),
                    utf8("u1"),
                ),
                (
                    DnType::CustomDnType(vec![1, 2, 840, 113_549, 1, 9, 1]),
                    DnValue::Ia5String("a@example.org".try_into().unwrap()),
                ),
                (
                    DnType::CustomDnType(vec![1, 2, 3, 4, 5]),
                    utf8(&"long".repeat(50)),
                ),
            ],
        ] {
            let (pem, text) = made(&attributes);
            std::fs::write(&path, pem).unwrap();
            let mut command = Command::new("openssl");
            command.args(["x509", "-noout", "-subject", "-nameopt", "RFC2253", "-in"]);
            let Ok(output) = command.arg(&path).output() else {
                eprintln!("skipped: openssl_writes_the_same: needs the package openssl");
                return;
            };
            let theirs = String::from_utf8(output.stdout).unwrap();
            let theirs = theirs.trim_end_matches('\n').strip_prefix("subject=");
            assert_eq!(text.as_deref(), theirs, "{attributes:?}");
        }
    }

    proptest! {
        #[test]
        fn another_value_is_another_text(
            one in "[ a,+\\\\#\"\u{e9}]{0,5}",
            other in "[ a,+\\\\#\"\u{e9}]{0,5}",
        ) {
            let escaped = |value: &str| {
                let mut text = String::new();
                push_escaped(value, &mut text);
                text
            };
            let (first, second) = (escaped(&one), escaped(&other));
            prop_assert!(first.bytes().all(|byte| matches!(byte, b' '..=b'~')));
            prop_assert_eq!(first == second, one == other);
        }
    }
}
