//! `sooner gate import` as a process: what it prints is what `sooner gate --check` accepts, and bad
//! input has its line and exit code 2.
//!
//! What is expected stands in gate_import_data/gate.toml, with FOLDER for the folder;
//! SOONER_GOLDEN=write makes it anew.

use sooner_testbed::{port, skip};
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/gate_import_data");
const DEBIANS: &str = "/etc/pgbouncer/pgbouncer.ini";

fn sooner(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sooner"));
    let output = command.arg("gate").args(args).current_dir(folder).output();
    output.expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

/// The sample files, and certificates of the names that are in them.
fn sample() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["pgbouncer.ini", "more.ini", "users.txt", "hba.conf"] {
        fs::copy(Path::new(DATA).join(name), folder.path().join(name)).unwrap();
    }
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    for name in ["c.pem", "ca.pem", "db ca.pem"] {
        fs::write(folder.path().join(name), made.cert.pem()).unwrap();
    }
    let key = made.signing_key.serialize_pem();
    fs::write(folder.path().join("k.pem"), key).unwrap();
    folder
}

#[test]
fn everything_is_translated_or_said_and_the_gate_would_start() {
    let folder = sample();
    let output = sooner(folder.path(), &["import", "pgbouncer.ini"]);
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_eq!(
        said,
        "sooner gate import: 27 settings are not carried over; comments say which\n"
    );
    let printed = text(&output.stdout);
    let place = folder.path().canonicalize().unwrap();
    let placeless = printed.replace(place.to_str().unwrap(), "FOLDER");
    let golden = Path::new(DATA).join("gate.toml");
    if std::env::var_os("SOONER_GOLDEN").is_some() {
        fs::write(&golden, &placeless).unwrap();
    }
    assert_eq!(placeless, fs::read_to_string(golden).unwrap());
    assert_eq!(printed.matches("# not carried over: ").count(), 27);
    let arguments = ["import", "pgbouncer.ini", "--out", "gate.toml"];
    let written = sooner(folder.path(), &arguments);
    assert_eq!(
        (text(&written.stdout), text(&written.stderr)),
        (String::new(), said)
    );
    let file = folder.path().join("gate.toml");
    assert_eq!(fs::read_to_string(&file).unwrap(), printed);
    // The address of another machine, at which a gate here could not listen.
    let own = printed.replace("\"10.0.0.1:6666\"", "\"127.0.0.2:6666\"");
    assert_ne!(own, printed);
    fs::write(&file, own).unwrap();
    let output = sooner(folder.path(), &["--config", "gate.toml", "--check"]);
    assert_eq!(text(&output.stdout), "the gate would start\n", "{output:?}");
}

#[cfg(unix)]
#[test]
fn a_file_with_passwords_is_for_its_owner() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let mode = |database: &str| {
        let ini = format!("[databases]\n{database}\n[pgbouncer]\n");
        fs::write(folder.path().join("p.ini"), ini).unwrap();
        let output = sooner(folder.path(), &["import", "p.ini", "--out", "gate.toml"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let metadata = fs::metadata(folder.path().join("gate.toml")).unwrap();
        metadata.permissions().mode() & 0o777
    };
    // The umask takes from what others may, and never from what the owner may.
    assert_eq!(mode("a = host=x") & 0o600, 0o600);
    assert_eq!(mode("a = host=x user=u password=secret"), 0o600);
    // Also where a file is already.
    let file = folder.path().join("gate.toml");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(mode("a = host=x user=u password=secret"), 0o600);
}

#[test]
fn debians_sample_is_read() {
    let folder = tempfile::tempdir().unwrap();
    if fs::read(DEBIANS).is_err() {
        skip(
            "debians_sample_is_read",
            &format!("no {DEBIANS} that can be read (pgbouncer, and root)"),
        );
        return;
    }
    let output = sooner(folder.path(), &["import", DEBIANS]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let printed = text(&output.stdout);
    let listen =
        r#"listen = ["127.0.0.1:6432", "[::1]:6432", "/var/run/postgresql/.s.PGSQL.6432"]"#;
    assert!(printed.contains(listen), "{printed}");
    assert!(printed.contains("# [[database]]"), "{printed}");
    // It has no database, which a flag can give.
    fs::write(folder.path().join("gate.toml"), printed).unwrap();
    let backend = "postgresql:///?host=/run/postgresql";
    let args = ["--config", "gate.toml", "--backend", backend, "--check"];
    let said = text(&sooner(folder.path(), &args).stdout);
    assert_eq!(said, "the gate would start\n");
}

#[test]
fn bad_input_has_its_line_and_nothing_is_printed() {
    let folder = sample();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    for (main, included, said) in [
        (
            "[pgbouncer]\npool_modus = x\n",
            "",
            "sooner: p.ini:2: pool_modus is not a key",
        ),
        (
            "[pgbouncer]\n%include more.ini\n",
            "\nx",
            "sooner: more.ini:2: \"x\" is not a setting",
        ),
        (
            "[pgbouncer]\nauth_type=hba\nauth_hba_file=more.ini",
            "host all all 10.0.0.0 255.0.255.0 md5",
            "sooner: more.ini:1: 255.0.255.0 is a mask with gaps",
        ),
        (
            "[pgbouncer]\n%include none.ini",
            "",
            "sooner: p.ini:2: cannot read none.ini: No such file",
        ),
    ] {
        write("p.ini", main);
        write("more.ini", included);
        let output = sooner(folder.path(), &["import", "p.ini"]);
        let really = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{really}");
        assert!(
            really.starts_with(said) && really.lines().count() == 1,
            "{really}"
        );
        assert!(output.stdout.is_empty());
    }
    let output = sooner(folder.path(), &["import", "none"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).starts_with("sooner: cannot read none: "));
}

#[test]
fn a_star_is_both_kinds_of_address() {
    if TcpListener::bind("[::1]:0").is_err() {
        skip("a_star_is_both_kinds_of_address", "no IPv6 here");
        return;
    }
    let port = port::free().unwrap().port();
    let folder = tempfile::tempdir().unwrap();
    let ini = format!(
        "[databases]\n* = host=127.0.0.1\n[pgbouncer]\nauth_type = any\nunix_socket_dir =\nlisten_addr = *\nlisten_port = {port}\n"
    );
    fs::write(folder.path().join("p.ini"), ini).unwrap();
    let printed = sooner(folder.path(), &["import", "p.ini"]).stdout;
    fs::write(folder.path().join("gate.toml"), printed).unwrap();
    let mut gate = Command::new(env!("CARGO_BIN_EXE_sooner"))
        .args(["gate", "--config", "gate.toml"])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = String::new();
    let output = gate.stdout.take().unwrap();
    BufReader::new(output).read_line(&mut ready).unwrap();
    let found = ["127.0.0.1", "::1"].map(|host| TcpStream::connect((host, port)).is_ok());
    gate.kill().unwrap();
    gate.wait().unwrap();
    assert_eq!(found, [true, true], "{ready}");
}

/// Every file in a folder, with what is in it.
fn files_below(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files_below(&path));
        } else {
            let text = fs::read_to_string(&path).unwrap();
            all.push((path, text));
        }
    }
    all
}

/// Who installs a package has the manual pages, and no clone.
#[test]
fn what_is_installed_or_made_names_no_document_of_the_repository() {
    let packaging = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging");
    let mut files = files_below(&packaging);
    assert!(files.len() > 10);
    let folder = tempfile::TempDir::new().unwrap();
    let ini = folder.path().join("pgbouncer.ini");
    let text = "[databases]\nshop = host=db\n[pgbouncer]\nauth_type = trust\n";
    fs::write(&ini, text).unwrap();
    let made = Command::new(env!("CARGO_BIN_EXE_sooner"))
        .args(["gate", "import"])
        .arg(&ini)
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let made = String::from_utf8(made.stdout).unwrap();
    assert!(made.contains("man gate.toml"), "{made}");
    files.push((ini, made));
    for (path, text) in files {
        for line in text.lines() {
            assert!(!line.contains("docs/"), "{}: {line}", path.display());
        }
    }
}
