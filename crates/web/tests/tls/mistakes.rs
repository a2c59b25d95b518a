//! Tables that cannot be served with: one line each, with the place in the file.

use super::certificates::{Authority, Files, Tables};
use sooner_web::tls::{prepare, unreadable};
use std::time::{Duration, SystemTime};

/// The mistake, and the text it points at.
fn mistake(tables: &Tables) -> (String, String) {
    let mistake = prepare(&tables.tables, SystemTime::now()).err().unwrap();
    let place = mistake
        .span
        .clone()
        .map(|span| tables.text[span].to_owned());
    let line = mistake.to_string();
    assert!(!line.contains('\n'), "{line}");
    (line, place.unwrap_or_default())
}

/// What is said of tables that can be served with.
fn warnings_at(tables: &Tables, now: SystemTime) -> Vec<String> {
    let warnings = prepare(&tables.tables, now).unwrap().warnings;
    warnings.iter().map(ToString::to_string).collect()
}

fn expect(tables: &Tables, line_start: &str, place_part: &str) {
    let (line, place) = mistake(tables);
    assert!(line.starts_with(line_start), "{line}");
    assert!(place.contains(place_part), "{line}: {place}");
}

#[test]
fn a_date_is_a_warning() {
    let authority = Authority::new("Test authority");
    let files = Files::new();
    files.write_pair("old", &authority.issue_between(&["a.example"], 2001, 2002));
    files.write_pair("new", &authority.issue_between(&["a.example"], 3001, 3002));
    for (name, words) in [
        (
            "old",
            "expired on Tue, 01 Jan 2002 00:00:00 GMT: clients may refuse it; renew it",
        ),
        (
            "new",
            "is not valid before Thu, 01 Jan 3001 00:00:00 GMT: clients may refuse it; is this machine's clock right?",
        ),
    ] {
        let tables = files.tables(&[(name, "")]);
        let file = files.path(&format!("{name}.pem"));
        let warning = format!(
            "tls.certificate: the certificate of CN=a.example in {} {words}",
            file.display()
        );
        assert_eq!(warnings_at(&tables, SystemTime::now()), [warning]);
    }
    let tables = files.tables(&[("old", "")]);
    let day = Duration::from_secs(86_400);
    let end = SystemTime::UNIX_EPOCH + Duration::from_secs(1_009_843_200);
    assert!(warnings_at(&tables, end - 15 * day).is_empty());
    let warnings = warnings_at(&tables, end - 2 * day);
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].contains("in 2 days"), "{}", warnings[0]);
    assert!(warnings_at(&tables, end + day)[0].contains("expired"));
}

#[test]
fn the_date_of_an_issuer_is_a_warning() {
    let middle = Authority::new("Root").below_between("Middle", 2001, 2002);
    let leaf = middle.issue(&["a.example"]);
    let files = Files::new();
    files.write("x.key", &leaf.key_pem);
    files.write("x.pem", &[leaf.certificate_pem, middle.pem()].concat());
    let warnings = warnings_at(&files.tables(&[("x", "")]), SystemTime::now());
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    let begin = "tls.certificate: the certificate of CN=Middle in ";
    assert!(
        warnings[0].starts_with(begin) && warnings[0].contains("x.pem expired on "),
        "{}",
        warnings[0]
    );
}

#[test]
fn files_that_are_not_what_they_should_be() {
    let authority = Authority::new("Test authority");
    let files = Files::new();
    let pair = authority.issue(&["a.example"]);
    files.write_pair("x", &pair);
    files.write("missing.key", &pair.key_pem);
    files.write("swapped.pem", &pair.key_pem);
    files.write("swapped.key", &pair.certificate_pem);
    files.write_pair("mismatched", &pair);
    files.write("mismatched.key", &authority.issue(&["a.example"]).key_pem);
    files.write("empty.pem", "");
    files.write("keyless.pem", &pair.certificate_pem);
    files.write("keyless.key", "nothing\n");
    for (name, line, place) in [
        (
            "missing",
            "tls.certificate: there is no file",
            "missing.pem",
        ),
        ("swapped", "tls.certificate: ", "swapped.pem"),
        ("mismatched", "tls.key: the key in ", "mismatched.key"),
        ("empty", "tls.certificate: ", "empty.pem"),
        ("keyless", "tls.key: ", "keyless.key"),
    ] {
        expect(&files.tables(&[(name, "")]), line, place);
    }
    assert!(unreadable(&files.tables(&[("x", "")]).tables).is_empty());
    let gone = unreadable(&files.tables(&[("nothing", "")]).tables);
    assert_eq!(gone.len(), 2);
}

#[test]
fn chains() {
    let root = Authority::new("Root");
    let middle = root.below("Middle");
    let leaf = middle.issue(&["a.example"]);
    let files = Files::new();
    files.write("x.key", &leaf.key_pem);
    let chain = |parts: &[&str]| {
        files.write("x.pem", &parts.concat());
        files.tables(&[("x", "")])
    };
    let good = chain(&[&leaf.certificate_pem, &middle.pem(), &root.pem()]);
    assert!(prepare(&good.tables, SystemTime::now()).is_ok());
    expect(
        &chain(&[&leaf.certificate_pem, &root.pem(), &middle.pem()]),
        "tls.certificate: the chain is out of order: certificate 1 (CN=a.example) was issued by CN=Middle, but certificate 2 is that of CN=Root",
        "x.pem",
    );
    expect(
        &chain(&[&middle.pem(), &leaf.certificate_pem]),
        "tls.certificate: the chain is out of order",
        "x.pem",
    );
}

#[test]
fn names() {
    let authority = Authority::new("Test authority");
    let files = Files::new();
    files.write_pair("one", &authority.issue(&["a.example", "*.example"]));
    files.write_pair("two", &authority.issue(&["b.example", "A.example"]));
    files.write_pair("none", &authority.issue(&[]));
    expect(
        &files.tables(&[("one", ""), ("two", "")]),
        "tls.certificate: a.example is in ",
        "two.pem",
    );
    let nameless = files.tables(&[("none", ""), ("one", "")]);
    let warnings = prepare(&nameless.tables, SystemTime::now())
        .unwrap()
        .warnings;
    assert!(warnings[0].message.contains("has no DNS name"));
    let (line, _) = mistake(&Tables {
        text: String::new(),
        tables: Vec::new(),
    });
    assert_eq!(
        line,
        "tls: listen_tls needs a [[tls]] table with certificate and key"
    );
}

#[test]
fn what_holds_for_all_names() {
    let authority = Authority::new("Test authority");
    let files = Files::new();
    files.write_pair("one", &authority.issue(&["one.example"]));
    files.write_pair("two", &authority.issue(&["two.example"]));
    files.write("ca.pem", &authority.pem());
    files.write("empty.pem", "");
    for (one, two, line, place) in [
        (
            "client_required = true",
            "",
            "tls.client_required: there is no client_ca",
            "true",
        ),
        (
            "client_ca = \"FOLDER/empty.pem\"",
            "",
            "tls.client_ca: ",
            "empty.pem",
        ),
        (
            "client_ca = \"FOLDER/none.pem\"",
            "",
            "tls.client_ca: there is no file",
            "none.pem",
        ),
        (
            "client_ca = \"FOLDER/ca.pem\"",
            "client_ca = \"FOLDER/empty.pem\"",
            "tls.client_ca: another [[tls]] table has another value",
            "empty.pem",
        ),
        (
            "versions = [\"1.3\"]",
            "versions = [\"1.2\", \"1.3\"]",
            "tls.versions: another [[tls]] table has another value",
            "[\"1.2\", \"1.3\"]",
        ),
        ("versions = []", "", "tls.versions: no version", "[]"),
    ] {
        expect(&files.tables(&[("one", one), ("two", two)]), line, place);
    }
    let same = "client_ca = \"FOLDER/ca.pem\"\nversions = [\"1.3\"]";
    for (one, two) in [(same, same), (same, ""), ("", same)] {
        let tables = files.tables(&[("one", one), ("two", two)]);
        assert!(prepare(&tables.tables, SystemTime::now()).is_ok());
    }
}
