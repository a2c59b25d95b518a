//! The package for Debian: a tree of files and what dpkg is told of it, packed by `dpkg-deb`, which
//! takes its times from SOURCE_DATE_EPOCH.

use super::Release;
use super::archive::{PLAIN, PROGRAM, Tree, gzip, hex};
use super::content::Content;
use crate::process;
use anyhow::{Context, Result, ensure};
use md5::{Digest, Md5};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What dpkg runs.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];
/// Files below /etc that an administrator may change; dpkg keeps what was changed.
const CONFIGURATION: [(&str, &str); 5] = [
    ("etc/sooner/sooner.toml", "sooner.toml"),
    ("etc/sooner/gate.toml", "gate.toml"),
    ("etc/sooner/attach-cpu.env", "attach-cpu.env"),
    ("etc/sooner/attach-postgres.env", "attach-postgres.env"),
    ("etc/logrotate.d/sooner", "sooner.logrotate"),
];
const UNITS: [&str; 6] = [
    "sooner.service",
    "sooner.socket",
    "sooner-gate.service",
    "sooner-attach@.service",
    "sooner-attach-cpu.service",
    "sooner-attach-postgres.service",
];
/// Beside the configurations themselves.
const EXAMPLES: [&str; 1] = ["attach-eth0.env"];
const DOC: &str = "usr/share/doc/sooner";

/// How it is packed.
pub struct Options<'a> {
    /// With the package's own number behind it, like `0.1.0-1`.
    pub version: &'a str,
    /// `xz`, or `gzip` where time matters more than size.
    pub compression: &'a str,
    /// Added to each configuration: what another version of the package would have there.
    pub configuration_ends: &'a str,
}

/// Writes the package into a folder, and returns its file.
pub fn write(
    release: &Release,
    content: &Content,
    options: &Options,
    into: &Path,
) -> Result<PathBuf> {
    let tree = tree(release, content, options)?;
    let stage = into.join("deb");
    tree.write(&stage)?;
    let file = into.join(format!("sooner_{}_amd64.deb", options.version));
    let mut pack = Command::new("dpkg-deb");
    pack.args(["--root-owner-group", "--threads-max=1"])
        .arg(format!("-Z{}", options.compression))
        .arg("--build")
        .args([&stage, &file])
        .env("SOURCE_DATE_EPOCH", release.epoch.to_string());
    process::output(&mut pack).context("cannot pack the .deb; install dpkg")?;
    fs::remove_dir_all(&stage)?;
    Ok(file)
}

/// Everything in it, `DEBIAN/` too.
fn tree(release: &Release, content: &Content, options: &Options) -> Result<Tree> {
    let packaging = process::root().join("packaging");
    let mut tree = Tree::default();
    tree.add("usr/bin/sooner", PROGRAM, content.program.clone());
    for (path, from) in CONFIGURATION {
        let mut text = read(&packaging.join(from))?;
        text.push_str(options.configuration_ends);
        tree.add(path, PLAIN, text);
        if path.starts_with("etc/sooner/") {
            tree.add_file(
                &format!("{DOC}/examples/{from}"),
                PLAIN,
                &packaging.join(from),
            )?;
        }
    }
    for unit in UNITS {
        let path = format!("usr/lib/systemd/system/{unit}");
        tree.add_file(&path, PLAIN, &packaging.join(unit))?;
    }
    for example in EXAMPLES {
        let path = format!("{DOC}/examples/{example}");
        tree.add_file(&path, PLAIN, &packaging.join(example))?;
    }
    for entry in fs::read_dir(&packaging)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // Dashboards, rules, manifests: to be copied.
        if entry.file_type()?.is_dir() && name != "debian" {
            tree.add_files(&format!("{DOC}/examples/{name}"), &entry.path())?;
        }
    }
    let (users, folders) = (
        "usr/lib/sysusers.d/sooner.conf",
        "usr/lib/tmpfiles.d/sooner.conf",
    );
    tree.add_file(users, PLAIN, &packaging.join("sooner.sysusers"))?;
    tree.add_file(folders, PLAIN, &packaging.join("sooner.tmpfiles"))?;
    for (name, page) in &content.pages {
        let section = name.rsplit('.').next().unwrap_or_default();
        let path = format!("usr/share/man/man{section}/{name}.gz");
        tree.add(&path, PLAIN, gzip(page)?);
    }
    for (path, name) in [
        (
            "usr/share/bash-completion/completions/sooner",
            "sooner.bash",
        ),
        ("usr/share/zsh/vendor-completions/_sooner", "_sooner"),
        (
            "usr/share/fish/vendor_completions.d/sooner.fish",
            "sooner.fish",
        ),
    ] {
        let bytes = content
            .completions
            .get(name)
            .context("a completion is missing")?;
        tree.add(path, PLAIN, bytes.clone());
    }
    documents(&mut tree, release, content, options, &packaging)?;
    control(&mut tree, content, options, &packaging)?;
    Ok(tree)
}

fn documents(
    tree: &mut Tree,
    release: &Release,
    content: &Content,
    options: &Options,
    packaging: &Path,
) -> Result<()> {
    let root = process::root();
    let overrides = "usr/share/lintian/overrides/sooner";
    tree.add_file(
        overrides,
        PLAIN,
        &packaging.join("debian/lintian-overrides"),
    )?;
    tree.add_file(
        &format!("{DOC}/copyright"),
        PLAIN,
        &packaging.join("debian/copyright"),
    )?;
    let changes = fs::read(root.join("CHANGELOG.md"))?;
    tree.add(&format!("{DOC}/changelog.gz"), PLAIN, gzip(&changes)?);
    let debian = format!(
        "sooner ({}) unstable; urgency=medium\n\n  * Package made by the authors; changelog.gz \
         says what is new.\n\n -- {}  {}\n",
        options.version,
        maintainer(),
        release.rfc_2822()
    );
    tree.add(
        &format!("{DOC}/changelog.Debian.gz"),
        PLAIN,
        gzip(debian.as_bytes())?,
    );
    tree.add(
        &format!("{DOC}/THIRD-PARTY.txt.gz"),
        PLAIN,
        gzip(content.third_party.as_bytes())?,
    );
    tree.add(
        &format!("{DOC}/sooner.cdx.json.gz"),
        PLAIN,
        gzip(content.sbom.as_bytes())?,
    );
    Ok(())
}

/// `DEBIAN/`: what dpkg reads and runs.
fn control(tree: &mut Tree, content: &Content, options: &Options, packaging: &Path) -> Result<()> {
    let (mut sums, mut conffiles) = (String::new(), String::new());
    let mut kilobytes = 0;
    for (path, bytes) in tree.files() {
        kilobytes += bytes.len().div_ceil(1024);
        writeln!(sums, "{}  {path}", hex(&Md5::digest(bytes)))?;
        if path.starts_with("etc/") {
            writeln!(conffiles, "/{path}")?;
        }
    }
    let depends = c_library(&content.program).map_or(String::new(), |version| {
        format!("libc6 (>= {version}), libgcc-s1, ")
    });
    let text = read(&packaging.join("debian/control"))?
        .replace("@VERSION@", options.version)
        .replace("@MAINTAINER@", &maintainer())
        .replace("@SIZE@", &kilobytes.to_string())
        .replace("@LIBRARIES@", &depends);
    let mark = regex::Regex::new("@[A-Z]+@")?;
    ensure!(
        !mark.is_match(&text),
        "packaging/debian/control: a mark is left: {text}"
    );
    tree.add("DEBIAN/control", PLAIN, text);
    tree.add("DEBIAN/md5sums", PLAIN, sums);
    tree.add("DEBIAN/conffiles", PLAIN, conffiles);
    for script in SCRIPTS {
        let from = packaging.join("debian").join(script);
        tree.add_file(&format!("DEBIAN/{script}"), PROGRAM, &from)?;
    }
    Ok(())
}

/// The version of glibc that a program needs at least; `None` where it needs none.
fn c_library(program: &[u8]) -> Option<String> {
    let names = regex::bytes::Regex::new(r"\x00GLIBC_2\.(\d+)").ok()?;
    let is_linked = regex::bytes::Regex::new(r"\x00libc\.so\.6\x00").ok()?;
    if !is_linked.is_match(program) || !is_dynamic(program) {
        return None;
    }
    let versions = names.captures_iter(program).filter_map(|found| {
        let digits = String::from_utf8_lossy(&found[1]).into_owned();
        digits.parse::<u32>().ok()
    });
    versions.max().map(|newest| format!("2.{newest}"))
}

/// Whether a program names the loader that brings its libraries.
pub fn is_dynamic(program: &[u8]) -> bool {
    let head = &program[..program.len().min(4096)];
    head.windows(10).any(|bytes| bytes == b"/ld-linux-")
}

/// `DEBFULLNAME` and `DEBEMAIL`, as Debian's own tools take them.
pub fn maintainer() -> String {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let name = variable("DEBFULLNAME").unwrap_or_else(|| "The Sooner authors".into());
    let address = variable("DEBEMAIL").unwrap_or_else(|| "sooner@example.org".into());
    format!("{name} <{address}>")
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_of_the_library_counts() {
        let program =
            b"\x7fELF /lib64/ld-linux-x86-64.so.2\0 \0libc.so.6\0\0GLIBC_2.9\0\0GLIBC_2.34\0";
        assert_eq!(c_library(program), Some("2.34".into()));
        assert_eq!(c_library(b"\x7fELF \0libc.so.6\0\0GLIBC_2.34\0"), None);
    }

    #[test]
    fn every_file_of_packaging_is_in_the_package() {
        let content = Content::for_tests();
        let options = Options {
            version: "1.2.3-1",
            compression: "gzip",
            configuration_ends: "",
        };
        let tree = tree(&Release::for_tests(), &content, &options).unwrap();
        let packaged: Vec<&[u8]> = tree.files().map(|(_, bytes)| bytes).collect();
        for entry in fs::read_dir(process::root().join("packaging")).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                let bytes = fs::read(&path).unwrap();
                assert!(
                    packaged.contains(&bytes.as_slice()),
                    "{} is in no package",
                    path.display()
                );
            }
        }
        let control = tree
            .files()
            .find(|(path, _)| *path == "DEBIAN/control")
            .unwrap();
        let control = String::from_utf8_lossy(control.1).into_owned();
        assert!(control.contains("Version: 1.2.3-1\n"), "{control}");
    }
}
