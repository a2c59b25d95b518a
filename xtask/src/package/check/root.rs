//! The .deb in a root of its own: installed, upgraded over a configuration that its administrator
//! changed, removed, purged.

use super::{Made, OLD_VERSION};
use crate::packages;
use crate::process::{self, Finished};
use crate::tally::Tally;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

const STEP: &str = "package: install, upgrade, remove, purge";
/// What an administrator adds.
const CHANGE: &str = "# Changed here.\n";
/// Debian's essential packages, and what the package needs beside them.
const PACKAGES: &str = "--include=systemd-standalone-sysusers,systemd-standalone-tmpfiles";

/// Goes through a package's life.
pub fn check(made: &Made, tally: &mut Tally) -> Result<()> {
    let missing = ["mmdebstrap", "chroot"]
        .into_iter()
        .find(|one| !process::is_installed(one));
    if let Some(missing) = missing {
        tally.skip(STEP, &format!("no {missing}; install {missing}"));
        return Ok(());
    }
    if !packages::is_root() {
        tally.skip(STEP, "needs chroot: run as root");
        return Ok(());
    }
    let Some(archive) = essential(made)? else {
        tally.skip(STEP, "no Debian packages to be had for a root; see above");
        return Ok(());
    };
    let folder = made.folder.join("root");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    let mut unpack = Command::new("tar");
    unpack.arg("-xf").arg(&archive).arg("-C").arg(&folder);
    // Devices cannot be made everywhere, and the package needs none.
    process::output(unpack.arg("--exclude=./dev/*"))?;
    let root = Root { folder };
    if !root.run(&["true"])?.success {
        tally.skip(STEP, "cannot enter a root of its own here");
        return Ok(());
    }
    for file in [&made.old, &made.new] {
        let name = file.file_name().context("a package has a name")?;
        fs::copy(file, root.folder.join("tmp").join(name))?;
    }
    let done = life(&root, made);
    if let Err(error) = &done {
        println!("{STEP}: {error:#}");
    }
    tally.step(STEP, done.is_ok());
    fs::remove_dir_all(&root.folder)?;
    Ok(())
}

/// An archive of a small Debian; made once, because that takes a minute.
fn essential(made: &Made) -> Result<Option<PathBuf>> {
    let archive = made.folder.join("debian.tar");
    if archive.exists() {
        return Ok(Some(archive));
    }
    let half = made.folder.join("half.tar");
    let mut make = Command::new("mmdebstrap");
    make.args(["--variant=essential", "--quiet", PACKAGES, &suite()]);
    let finished = process::run(make.arg(&half))?;
    if !finished.success {
        return Ok(None);
    }
    fs::rename(&half, &archive)?;
    Ok(Some(archive))
}

/// The Debian of this machine: the program is linked for its libraries. Elsewhere the stable one.
fn suite() -> String {
    let text = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let value = |key: &str| {
        let mut lines = text.lines();
        lines.find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
    };
    match (value("ID"), value("VERSION_CODENAME")) {
        (Some("debian"), Some(name)) => name.to_owned(),
        _ => "stable".to_owned(),
    }
}

/// A root folder of another system.
struct Root {
    folder: PathBuf,
}

impl Root {
    fn at(&self, path: &str) -> PathBuf {
        self.folder.join(path.trim_start_matches('/'))
    }

    fn run(&self, words: &[&str]) -> Result<Finished> {
        // systemd-tmpfiles looks at /proc; it goes with this command's namespace.
        let enter = "mount -t proc proc \"$0/proc\" && exec chroot \"$0\" \"$@\"";
        let mut command = Command::new("unshare");
        command.args(["--mount", "--", "sh", "-c", enter]);
        command.arg(&self.folder).args(words).env_clear();
        command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        Ok(process::run(
            command.env("DEBIAN_FRONTEND", "noninteractive"),
        )?)
    }

    fn must(&self, words: &[&str]) -> Result<()> {
        let finished = self.run(words)?;
        ensure!(finished.success, "`{}` failed", words.join(" "));
        Ok(())
    }

    /// A package that was copied to /tmp.
    fn install(&self, file: &Path) -> Result<()> {
        let name = file.file_name().context("a package has a name")?;
        let path = format!("/tmp/{}", name.to_string_lossy());
        self.must(&["dpkg", "--force-confold", "--install", &path])
    }

    fn text(&self, path: &str) -> Result<String> {
        fs::read_to_string(self.at(path)).with_context(|| format!("cannot read {path}"))
    }

    fn is_there(&self, path: &str) -> bool {
        fs::symlink_metadata(self.at(path)).is_ok()
    }
}

fn life(root: &Root, made: &Made) -> Result<()> {
    root.install(&made.old)?;
    installed(root)?;
    let mine = format!("{}{CHANGE}", root.text("/etc/sooner/sooner.toml")?);
    fs::write(root.at("/etc/sooner/sooner.toml"), &mine)?;
    fs::write(root.at("/var/log/sooner/access.log"), "a line\n")?;
    upgraded(root, made, &mine)?;
    root.must(&["dpkg", "--remove", "sooner"])?;
    ensure!(
        !root.is_there("/usr/bin/sooner"),
        "the program stays after remove"
    );
    ensure!(
        root.is_there("/etc/sooner/sooner.toml"),
        "remove takes the configuration away"
    );
    ensure!(
        root.is_there("/var/log/sooner/access.log"),
        "remove takes logs away"
    );
    // And back: what was configured counts again.
    root.install(&made.new)?;
    ensure!(
        root.text("/etc/sooner/sooner.toml")? == mine,
        "a configuration did not come back"
    );
    root.must(&["dpkg", "--purge", "sooner"])?;
    purged(root)
}

fn installed(root: &Root) -> Result<()> {
    root.must(&["/usr/bin/sooner", "--version"])?;
    let users = root.text("/etc/passwd")?;
    for user in ["sooner", "sooner-gate"] {
        let line = users
            .lines()
            .find(|line| line.starts_with(&format!("{user}:")));
        let line = line.with_context(|| format!("there is no user {user}"))?;
        ensure!(
            line.ends_with("/usr/sbin/nologin"),
            "who is {user} can log in: {line}"
        );
    }
    let number = |name: &str| {
        let line = users
            .lines()
            .find(|line| line.starts_with(&format!("{name}:")));
        line.and_then(|line| line.split(':').nth(2)?.parse::<u32>().ok())
    };
    let logs = fs::metadata(root.at("/var/log/sooner")).context("no /var/log/sooner")?;
    ensure!(
        Some(logs.uid()) == number("sooner"),
        "/var/log/sooner is another user's"
    );
    ensure!(
        logs.permissions().mode() & 0o7 == 0,
        "every user can read /var/log/sooner"
    );
    ensure!(root.is_there("/run/sooner"), "no /run/sooner");
    for wants in ["multi-user.target.wants", "sockets.target.wants"] {
        let folder = root.at(&format!("/etc/systemd/system/{wants}"));
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        let enabled: Vec<_> = entries.map(|entry| entry.file_name()).collect();
        let own = enabled
            .iter()
            .any(|name| name.to_string_lossy().starts_with("sooner"));
        ensure!(!own, "a unit was enabled: {enabled:?}");
    }
    fs::create_dir_all(root.at("/srv/www"))?;
    let check = [
        "/usr/bin/sooner",
        "serve",
        "--check",
        "--config",
        "/etc/sooner/sooner.toml",
    ];
    root.must(&check)?;
    fs::write(root.at("/etc/sooner/users.txt"), "\"ann\" \"secret\"\n")?;
    root.must(&[
        "/usr/bin/sooner",
        "gate",
        "--check",
        "--config",
        "/etc/sooner/gate.toml",
    ])?;
    fs::remove_file(root.at("/etc/sooner/users.txt"))?;
    Ok(())
}

fn upgraded(root: &Root, made: &Made, mine: &str) -> Result<()> {
    root.install(&made.new)?;
    ensure!(
        root.text("/etc/sooner/sooner.toml")? == mine,
        "an upgrade lost a change"
    );
    let beside = root.text("/etc/sooner/sooner.toml.dpkg-dist")?;
    ensure!(
        !beside.contains(CHANGE),
        "the package's own file is not beside it"
    );
    // What was not changed here is the new version's.
    let gate = root.text("/etc/sooner/gate.toml")?;
    ensure!(
        !gate.contains(super::OLD_END),
        "a file that was left alone is the old one"
    );
    let listed = root.run(&["dpkg-query", "--show", "--showformat=${Version}", "sooner"])?;
    let version = listed.lines.join("");
    ensure!(
        !version.is_empty() && !version.contains(OLD_VERSION),
        "still {version}"
    );
    ensure!(
        root.is_there("/var/log/sooner/access.log"),
        "an upgrade takes logs away"
    );
    Ok(())
}

fn purged(root: &Root) -> Result<()> {
    for path in [
        "/etc/sooner",
        "/etc/logrotate.d/sooner",
        "/var/log/sooner",
        "/run/sooner",
    ] {
        ensure!(!root.is_there(path), "{path} stays after purge");
    }
    // As Debian does: its number must not become another user's, to whom files that were left
    // elsewhere would belong.
    let users = root.text("/etc/passwd")?;
    ensure!(users.contains("\nsooner:"), "purge removes the user");
    Ok(())
}
