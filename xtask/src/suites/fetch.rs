//! Gets suites from where their packages are: Debian's sources and packages, and Python's index.
//! Nothing of the system is changed, and what was fetched once is kept.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::process;

/// Seconds for one download or build; a network that swallows packets must not hold up the others.
const PATIENCE_S: u32 = 600;

/// The same command, ended when it takes longer than so many seconds: its exit code is 124 then.
pub fn patient(seconds: u32, program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("timeout");
    command
        .args(["--kill-after=5", &seconds.to_string()])
        .arg(program);
    command
}

/// Debian's source package, unpacked with Debian's changes in `FOLDER/source`: of the version that
/// is installed, or else the newest that can be had.
pub fn debian_source(folder: &Path, source: &str, version: Option<&str>) -> Result<PathBuf> {
    let unpacked = folder.join("source");
    if unpacked.exists() {
        return Ok(unpacked);
    }
    let apt = Apt::new(folder)?;
    let exact = version.map(|version| format!("{source}={version}"));
    let names = exact.as_deref().into_iter().chain([source]);
    let got = names
        .into_iter()
        .any(|name| apt.run(&["source", "--download-only", name]).is_ok());
    ensure!(got, "Debian's source package {source} cannot be had");
    let description = first_with(folder, ".dsc").context("apt-get left no .dsc")?;
    let mut unpack = patient(PATIENCE_S, "dpkg-source");
    unpack.args(["--no-check", "-x"]).arg(description);
    quietly(unpack.arg(&unpacked))?;
    Ok(unpacked)
}

/// What is in a binary package of Debian, unpacked and not installed, in `FOLDER/PACKAGE`.
pub fn debian_files(folder: &Path, package: &str, version: Option<&str>) -> Result<PathBuf> {
    let unpacked = folder.join(package);
    if unpacked.exists() {
        return Ok(unpacked);
    }
    let exact = version.map(|version| format!("{package}={version}"));
    let got = exact.as_deref().into_iter().chain([package]).any(|name| {
        let mut download = patient(PATIENCE_S, "apt-get");
        download.args(["--quiet=2", "download", name]);
        quietly(download.current_dir(folder)).is_ok()
    });
    ensure!(got, "Debian's package {package} cannot be had");
    let file = first_with(folder, ".deb").context("apt-get left no .deb")?;
    quietly(
        patient(PATIENCE_S, "dpkg")
            .arg("-x")
            .arg(&file)
            .arg(&unpacked),
    )?;
    fs::remove_file(file)?;
    Ok(unpacked)
}

/// The version of an installed package of Debian.
pub fn installed_version(package: &str) -> Option<String> {
    let mut query = Command::new("dpkg-query");
    query.args(["-W", "-f=${Version}", package]);
    let version = process::output(&mut query).ok()?;
    (!version.is_empty()).then_some(version)
}

/// apt-get with lists of sources of its own: those of the system, rewritten for source packages.
struct Apt {
    folder: PathBuf,
}

impl Apt {
    fn new(folder: &Path) -> Result<Self> {
        let apt = folder.join("apt");
        for part in ["sources", "lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(apt.join(part))?;
        }
        let system = Path::new("/etc/apt");
        let mut lists = vec![system.join("sources.list")];
        if let Ok(parts) = fs::read_dir(system.join("sources.list.d")) {
            lists.extend(parts.flatten().map(|part| part.path()));
        }
        for list in lists {
            if let (Ok(text), Some(name)) = (fs::read_to_string(&list), list.file_name()) {
                let text = text.replace("Types: deb\n", "Types: deb-src\n");
                let lines = text.lines().map(|line| match line.strip_prefix("deb ") {
                    Some(rest) => format!("deb-src {rest}\n"),
                    None => format!("{line}\n"),
                });
                fs::write(apt.join("sources").join(name), lines.collect::<String>())?;
            }
        }
        let apt = Self {
            folder: folder.to_owned(),
        };
        // Other lists than Debian's may have no sources; what is missing is told by what follows.
        let _ = apt.run(&["update"]);
        Ok(apt)
    }

    fn run(&self, arguments: &[&str]) -> Result<()> {
        let place = |part: &str| self.folder.join("apt").join(part).display().to_string();
        let mut command = patient(PATIENCE_S, "apt-get");
        command.arg("--quiet=2").args([
            "-o".to_owned(),
            "Dir::Etc::SourceList=-".to_owned(),
            "-o".to_owned(),
            format!("Dir::Etc::SourceParts={}", place("sources")),
            "-o".to_owned(),
            format!("Dir::State::Lists={}", place("lists")),
            "-o".to_owned(),
            format!("Dir::Cache={}", place("cache")),
            // The user that apt becomes for downloads may not enter our folder.
            "-o".to_owned(),
            "APT::Sandbox::User=root".to_owned(),
        ]);
        quietly(command.args(arguments).current_dir(&self.folder))
    }
}

/// An environment of Python's in `FOLDER/venv`, in which these packages are installed.
pub fn python(folder: &Path, requirements: &[&str]) -> Result<()> {
    let venv = folder.join("venv");
    let (stamp, wanted) = (venv.join("suites.txt"), requirements.join("\n"));
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    quietly(
        patient(PATIENCE_S, "/usr/bin/python3")
            .args(["-m", "venv", "--clear"])
            .arg(&venv),
    )?;
    let mut pip = patient(PATIENCE_S, venv.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--only-binary=:all:"]);
    quietly(pip.args(requirements))?;
    Ok(fs::write(stamp, wanted)?)
}

/// A source distribution of Python's index, `NAME==VERSION`, unpacked in `FOLDER/source`.
pub fn python_source(folder: &Path, requirement: &str) -> Result<()> {
    let unpacked = folder.join("source");
    let (name, _) = requirement.split_once("==").context("NAME==VERSION")?;
    if unpacked.exists() {
        return Ok(());
    }
    let mut pip = patient(PATIENCE_S, folder.join("venv/bin/python"));
    pip.args(["-m", "pip", "download", "--quiet", "--no-deps"])
        .args(["--no-binary", name, requirement, "--dest"]);
    quietly(pip.arg(folder))?;
    let file = first_with(folder, ".tar.gz").context("pip left no .tar.gz")?;
    let partial = folder.join("partial");
    fs::create_dir_all(&partial)?;
    let mut tar = patient(PATIENCE_S, "tar");
    tar.args(["--strip-components=1", "-xzf"]).arg(&file);
    quietly(tar.arg("-C").arg(&partial))?;
    Ok(fs::rename(partial, unpacked)?)
}

/// Runs a command; its output matters only where it fails.
pub fn quietly(command: &mut Command) -> Result<()> {
    eprintln!("$ {}", process::shown(command));
    process::output(command)?;
    Ok(())
}

fn first_with(folder: &Path, ending: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    let mut paths = entries.map(|entry| entry.path());
    paths.find(|path| path.to_string_lossy().ends_with(ending))
}
