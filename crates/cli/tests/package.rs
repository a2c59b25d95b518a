//! What packages ship: manual pages, completions, and an example configuration that is right in
//! every line.

use assert_cmd::Command as Checked;
use sooner_testbed::skip;
use sooner_web::config::Config;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

const EXAMPLE: &str = include_str!("../../../packaging/sooner.toml");
const GATE_EXAMPLE: &str = include_str!("../../../packaging/gate.toml");

fn package() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    Checked::cargo_bin("sooner")
        .unwrap()
        .arg("package")
        .arg(folder.path())
        .assert()
        .success();
    folder
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
}

#[test]
fn manual_pages_and_completions_are_written() {
    let folder = package();
    for file in [
        "man/sooner.1",
        "man/sooner-serve.1",
        "man/sooner-load-replay.1",
        "completions/sooner.bash",
        "completions/_sooner",
        "completions/sooner.fish",
    ] {
        let text = fs::read_to_string(folder.path().join(file)).expect(file);
        assert!(text.contains("sooner"), "{file}");
    }
    let pages = files(&folder.path().join("man"));
    assert!(
        !pages.iter().any(|page| page.ends_with("sooner-package.1")),
        "{pages:?}"
    );
    let serve = fs::read_to_string(folder.path().join("man/sooner-serve.1")).unwrap();
    for flag in ["listen\\-tls", "config", "check"] {
        assert!(serve.contains(flag), "{flag}");
    }
}

#[test]
fn manual_pages_render_without_warnings() {
    let can_render = ["man", "groff"].iter().all(|program| {
        let found = Command::new(program).arg("--version").output();
        found.is_ok_and(|output| output.status.success())
    });
    if !can_render {
        skip(
            "manual_pages_render_without_warnings",
            "no man or no groff; install man-db",
        );
        return;
    }
    let folder = package();
    for page in files(&folder.path().join("man")) {
        let output = Command::new("man")
            .args(["--warnings", "-E", "UTF-8", "-Tutf8", "-l"])
            .arg(&page)
            .env("LC_ALL", "C.UTF-8")
            .env("MANWIDTH", "100")
            .env("MANPAGER", "cat")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && said.is_empty(),
            "{}: {said}",
            page.display()
        );
        assert!(output.stdout.len() > 200, "{}", page.display());
    }
}

#[test]
fn the_shell_reads_its_completions() {
    let folder = package();
    let checked = Command::new("bash")
        .arg("-n")
        .arg(folder.path().join("completions/sooner.bash"))
        .status();
    match checked {
        Ok(status) => assert!(status.success()),
        Err(_) => skip("the_shell_reads_its_completions", "no bash; install bash"),
    }
}

/// An example with everything that is commented out in force: prose has a space after the mark,
/// keys have none.
fn uncommented(example: &str) -> String {
    example
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(key) if !key.starts_with([' ', '#']) => key,
            _ => line,
        })
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn every_line_of_the_example_is_right() {
    Config::parse(EXAMPLE).unwrap().check().unwrap();
    Config::parse(&uncommented(EXAMPLE)).unwrap();
    sooner_pooler::config::Config::parse(GATE_EXAMPLE).unwrap();
    sooner_pooler::config::Config::parse(&uncommented(GATE_EXAMPLE)).unwrap();
}

#[test]
fn every_page_has_examples_exit_codes_and_what_else_to_read() {
    let folder = package();
    let pages = files(&folder.path().join("man"));
    assert!(pages.len() > 30, "{pages:?}");
    for page in &pages {
        let text = fs::read_to_string(page).unwrap();
        for heading in ["EXAMPLES", "EXIT STATUS", "SEE ALSO"] {
            let line = format!("\n.SH {heading}\n");
            assert_eq!(
                text.matches(&line).count(),
                1,
                "{heading} of {}",
                page.display()
            );
        }
    }
    let serve = fs::read_to_string(folder.path().join("man/sooner-serve.1")).unwrap();
    for words in [
        ".SH FILES",
        "/etc/sooner/sooner.toml",
        ".BR sooner.toml (5)",
    ] {
        assert!(serve.contains(words), "{words}");
    }
}

/// The services of the package, by their file names.
fn services() -> Vec<(String, String)> {
    let packaging = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging");
    files(Path::new(packaging))
        .into_iter()
        .filter(|path| path.extension().is_some_and(|end| end == "service"))
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect()
}

fn values<'a>(unit: &'a str, key: &str) -> Vec<&'a str> {
    let lines = unit.lines().filter_map(|line| line.split_once('='));
    let own = lines.filter(|(name, _)| *name == key);
    own.map(|(_, value)| value).collect()
}

#[test]
fn services_are_started_again_without_an_end() {
    let services = services();
    assert!(services.len() >= 5, "{services:?}");
    for (name, unit) in services {
        assert_eq!(values(&unit, "Restart"), ["on-failure"], "{name}");
        // systemd gives up after five starts in ten seconds.
        assert_eq!(values(&unit, "RestartSec"), ["5"], "{name}");
        assert!(!unit.contains("StartLimit"), "{name}");
    }
}

#[test]
fn services_check_a_reload_as_a_reload() {
    let mut checked = Vec::new();
    for (name, unit) in services() {
        if let Some(first) = values(&unit, "ExecReload").first() {
            let start = values(&unit, "ExecStart");
            assert_eq!(*first, format!("{} --check-reload", start[0]), "{name}");
            checked.push(name);
        }
    }
    assert_eq!(checked, ["sooner-gate.service", "sooner.service"]);
}

#[test]
fn an_attachment_comes_and_goes_with_its_device() {
    let services = services();
    let unit = services
        .iter()
        .find(|(name, _)| name == "sooner-attach@.service");
    let (_, unit) = unit.unwrap();
    let device = "sys-subsystem-net-devices-%i.device";
    assert_eq!(values(unit, "BindsTo"), [device]);
    assert_eq!(values(unit, "WantedBy"), ["multi-user.target", device]);
}

#[test]
fn the_example_starts_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_str().unwrap();
    let text = EXAMPLE
        .replace("/srv/www", root)
        .replace("/var/log/sooner", root)
        .replace("0.0.0.0:80\"", "127.0.0.1:0\"");
    let file = folder.path().join("sooner.toml");
    fs::write(&file, text).unwrap();
    Checked::cargo_bin("sooner")
        .unwrap()
        .args(["serve", "--check", "--config"])
        .arg(&file)
        .assert()
        .success()
        .stdout(format!("{}: ok\n", file.display()));
}
