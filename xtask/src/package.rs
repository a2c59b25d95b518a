//! `cargo xtask package`: what is given away, in `target/package`: an archive with the static
//! program, a .deb, an image, a bill of materials, licences, and the checksums of all. Needs no
//! network where the crates have been fetched; the same commit gives the same bytes.

mod archive;
mod build;
mod check;
mod content;
mod debian;
mod image;
mod licences;
mod linked;
mod pages;
mod sbom;

pub use check::check;

use crate::process;
use anyhow::{Context, Result, bail};
use archive::{PLAIN, PROGRAM, Tree, gzip, sha256};
use content::Content;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use time::OffsetDateTime;

/// Of which commit packages are made, and when that was.
pub struct Release {
    pub version: String,
    pub commit: String,
    /// Of the commit, in seconds since 1970.
    pub epoch: u64,
    pub target: String,
    pub rustc: String,
}

impl Release {
    /// Of the commit that is checked out. Where this is no clone, SOURCE_DATE_EPOCH says when.
    fn of_checkout(target: &str) -> Result<Self> {
        let git = |format: &str| {
            let mut log = Command::new("git");
            log.args(["log", "-1", &format!("--format={format}")]);
            process::output(log.current_dir(process::root()))
        };
        let epoch = match std::env::var("SOURCE_DATE_EPOCH") {
            Ok(epoch) => epoch,
            Err(_) => {
                git("%ct").context("no commit to take the time from; set SOURCE_DATE_EPOCH")?
            }
        };
        let rustc = process::output(
            Command::new("rustc")
                .arg("--version")
                .current_dir(process::root()),
        )?;
        let epoch: u64 = epoch
            .trim()
            .parse()
            .context("SOURCE_DATE_EPOCH is no number")?;
        time(epoch)?;
        Ok(Self {
            version: env!("CARGO_PKG_VERSION").into(),
            commit: git("%H").map_or_else(|_| "unknown".into(), |hash| hash.trim().to_owned()),
            epoch,
            target: target.into(),
            rustc: rustc.trim().to_owned(),
        })
    }

    /// One that is always the same.
    #[cfg(test)]
    pub fn for_tests() -> Self {
        Self {
            version: "1.2.3".into(),
            commit: "0123abc".into(),
            epoch: 1_767_225_600,
            target: "x86_64-unknown-linux-gnu".into(),
            rustc: "rustc 1.95.0".into(),
        }
    }

    fn time(&self) -> OffsetDateTime {
        time(self.epoch).unwrap_or(OffsetDateTime::UNIX_EPOCH)
    }

    /// `2026-01-01`.
    pub fn date(&self) -> String {
        self.time().date().to_string()
    }

    /// `2026-01-01T00:00:00Z`.
    pub fn timestamp(&self) -> String {
        let (hour, minute, second) = self.time().to_hms();
        format!("{}T{hour:02}:{minute:02}:{second:02}Z", self.date())
    }

    /// `Thu, 01 Jan 2026 00:00:00 +0000`.
    pub fn rfc_2822(&self) -> String {
        let time = self.time();
        let (hour, minute, second) = time.to_hms();
        let (weekday, month) = (time.weekday().to_string(), time.month().to_string());
        format!(
            "{}, {:02} {} {} {hour:02}:{minute:02}:{second:02} +0000",
            &weekday[..3],
            time.day(),
            &month[..3],
            time.year()
        )
    }
}

fn time(epoch: u64) -> Result<OffsetDateTime> {
    let seconds = i64::try_from(epoch)?;
    Ok(OffsetDateTime::from_unix_timestamp(seconds)?)
}

/// Makes all packages with a profile, `dist` where none is named; whether it worked.
pub fn run(words: &[&str]) -> Result<bool> {
    let profile = match words {
        [] => "dist",
        ["--profile", profile] => profile,
        _ => bail!("usage: cargo xtask package [--profile PROFILE]"),
    };
    let folder = target_folder().join("package");
    let target = build::target()?;
    if let Some(remark) = &target.remark {
        println!("note: {remark}");
    }
    let release = Release::of_checkout(target.name)?;
    fs::create_dir_all(&folder)?;
    let built = build::build(&target, profile, &folder.join("build"), release.epoch)?;
    let Some(program) = built else {
        return Ok(false);
    };
    let content = Content::gather(&release, &program, Some(&target.libc), &folder)?;
    let mut made = vec![tarball(&release, &content, &folder)?];
    let (version, image) = (&release.version, write_image(&release, &content, &folder)?);
    made.push(image);
    made.push(write(
        &folder,
        &format!("sooner-{version}.cdx.json"),
        content.sbom.as_bytes(),
    )?);
    made.push(write(
        &folder,
        &format!("sooner-{version}-THIRD-PARTY.txt"),
        content.third_party.as_bytes(),
    )?);
    if process::is_installed("dpkg-deb") {
        let options = debian::Options {
            version: &format!("{version}-1"),
            compression: "xz",
            configuration_ends: "",
        };
        made.push(debian::write(&release, &content, &options, &folder)?);
    } else {
        println!("skipped: the .deb: there is no dpkg-deb; install dpkg");
    }
    let sums = checksums(&made)?;
    print!("{sums}");
    write(&folder, "SHA256SUMS", sums.as_bytes())?;
    println!(
        "packages of {} ({profile}) are in {}",
        release.commit,
        folder.display()
    );
    build::check_others()
}

/// Where cargo builds.
fn target_folder() -> PathBuf {
    let folder = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    process::root().join(folder.unwrap_or_else(|| "target".into()))
}

/// The program with all that belongs to it, for any distribution.
fn tarball(release: &Release, content: &Content, folder: &Path) -> Result<PathBuf> {
    let root = process::root();
    let name = format!("sooner-{}-x86_64-linux", release.version);
    let mut tree = Tree::default();
    tree.add(&format!("{name}/sooner"), PROGRAM, content.program.clone());
    for file in ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        tree.add_file(&format!("{name}/{file}"), PLAIN, &root.join(file))?;
    }
    tree.add(
        &format!("{name}/THIRD-PARTY.txt"),
        PLAIN,
        content.third_party.as_bytes(),
    );
    tree.add(
        &format!("{name}/sooner.cdx.json"),
        PLAIN,
        content.sbom.as_bytes(),
    );
    for (file, bytes) in &content.pages {
        tree.add(&format!("{name}/man/{file}"), PLAIN, bytes.clone());
    }
    for (file, bytes) in &content.completions {
        tree.add(&format!("{name}/completions/{file}"), PLAIN, bytes.clone());
    }
    let packaging = root.join("packaging");
    for entry in fs::read_dir(&packaging)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            let file = entry.file_name();
            let path = format!("{name}/packaging/{}", file.to_string_lossy());
            tree.add_file(&path, PLAIN, &entry.path())?;
        }
    }
    let packed = gzip(&tree.tar(release.epoch)?)?;
    write(folder, &format!("{name}.tar.gz"), &packed)
}

fn write_image(release: &Release, content: &Content, folder: &Path) -> Result<PathBuf> {
    let texts = image::Texts {
        third_party: &content.third_party,
        sbom: &content.sbom,
    };
    let bytes = image::archive(release, content.program.clone(), &texts)?;
    let name = format!("sooner-{}-amd64.oci.tar", release.version);
    write(folder, &name, &bytes)
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> Result<PathBuf> {
    let path = folder.join(name);
    fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

/// As `sha256sum --check` reads them.
fn checksums(files: &[PathBuf]) -> Result<String> {
    let mut lines = Vec::new();
    for file in files {
        let name = file
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        lines.push((name, sha256(&fs::read(file)?)));
    }
    lines.sort();
    let lines = lines.iter().map(|(name, sum)| format!("{sum}  {name}\n"));
    Ok(lines.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_commit_is_written_in_three_ways() {
        let release = Release::for_tests();
        assert_eq!(release.date(), "2026-01-01");
        assert_eq!(release.timestamp(), "2026-01-01T00:00:00Z");
        assert_eq!(release.rfc_2822(), "Thu, 01 Jan 2026 00:00:00 +0000");
    }

    #[test]
    fn checksums_are_as_sha256sum_reads_them() {
        let folder = tempfile::tempdir().unwrap();
        let file = write(folder.path(), "a", b"").unwrap();
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(checksums(&[file]).unwrap(), format!("{empty}  a\n"));
    }
}
