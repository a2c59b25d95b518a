//! apt updates its lists from a repository and downloads packages, with a state of its own.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use anyhow::Result;

use super::super::run::Run;
use super::super::{Suite, fetch};
use super::needs::{self, program};
use super::pair::{Setup, Way};
use super::visit::{Counted, Visit, compare};
use super::zsync::noise;
use crate::process;

/// The suite.
pub const SUITE: Suite = Suite {
    name: "apt",
    about: "apt-get with a repository of its own; needs apt-utils and dpkg",
    prepare,
    run,
};

const PATIENCE_S: u32 = 60;
/// Small packages, besides a large one: more than apt asks for before it has read an answer.
const SMALL: u32 = 30;
const LARGE_BYTES: usize = 3_000_000;
/// Files in memory are looked at once a second.
const SEEN_AGAIN: Duration = Duration::from_millis(1500);

fn prepare(_: &Path) -> Result<()> {
    needs::debian(&[
        program("apt-ftparchive", "apt-utils"),
        program("apt-get", "apt"),
        program("dpkg-deb", "dpkg"),
    ])
}

fn run(run: &mut Run) -> Result<()> {
    run.version("apt", &fetch::installed_version("apt").unwrap_or_default());
    let scratch = tempfile::tempdir()?;
    let root = scratch.path().join("root");
    repository(&root, scratch.path())?;
    let setup = Setup {
        root: &root,
        routes: &[],
    };
    let mut case = |name: &str, talk: fn(&mut Visit) -> Result<Counted>| {
        compare(run, name, &Way::ALL, &setup, |visit| {
            begin(visit)?;
            talk(visit)
        })
    };
    case("update", |visit| {
        update(visit)?;
        Ok(Counted::Requests)
    })?;
    case("update, nothing new", |visit| {
        update(visit)?;
        update(visit)?;
        Ok(Counted::Requests)
    })?;
    case("update, a package more", |visit| {
        update(visit)?;
        package(&visit.folder, &visit.root, "added", &[b'a'; 100])?;
        index(&visit.root)?;
        sleep(SEEN_AGAIN);
        update(visit)?;
        download(visit, &["added"])?;
        Ok(Counted::Requests)
    })?;
    case("download", |visit| {
        update(visit)?;
        let small: Vec<String> = (0..SMALL).map(|number| format!("small{number}")).collect();
        let mut names: Vec<&str> = small.iter().map(String::as_str).collect();
        names.push("large");
        download(visit, &names)?;
        Ok(Counted::Requests)
    })?;
    case("download, goes on after a part", |visit| {
        update(visit)?;
        partial(visit, LARGE_BYTES / 3)?;
        install(visit)?;
        Ok(Counted::Requests)
    })?;
    case("download, goes on when all is there", |visit| {
        update(visit)?;
        partial(visit, usize::MAX)?;
        install(visit)?;
        Ok(Counted::Requests)
    })?;
    case("download, the part is of another version", |visit| {
        update(visit)?;
        partial(visit, LARGE_BYTES / 3)?;
        let part = visit.folder.join("cache/archives/partial/large_1_all.deb");
        process::output(Command::new("touch").args(["-d", "2001-01-01"]).arg(part))?;
        install(visit)?;
        Ok(Counted::Requests)
    })?;
    case("download, the file is missing", |visit| {
        update(visit)?;
        visit.may_fail = true;
        fs::remove_file(visit.root.join("large_1_all.deb"))?;
        sleep(SEEN_AGAIN);
        download(visit, &["large"])?;
        Ok(Counted::Requests)
    })
}

/// Packages, and what apt reads of them.
fn repository(root: &Path, scratch: &Path) -> Result<()> {
    fs::create_dir(root)?;
    for number in 0..SMALL {
        package(
            scratch,
            root,
            &format!("small{number}"),
            &noise(2000, number.into()),
        )?;
    }
    package(scratch, root, "large", &noise(LARGE_BYTES, 99))?;
    index(root)
}

/// Makes a package that holds one file.
fn package(scratch: &Path, root: &Path, name: &str, content: &[u8]) -> Result<()> {
    let tree = scratch.join("package").join(name);
    for folder in ["DEBIAN", "usr/share/suite"] {
        fs::create_dir_all(tree.join(folder))?;
    }
    fs::write(tree.join("usr/share/suite").join(name), content)?;
    fs::write(
        tree.join("DEBIAN/control"),
        format!(
            "Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: S <s@example.org>\n\
             Description: a package of the suite\n"
        ),
    )?;
    let mut build = Command::new("dpkg-deb");
    // The same moment in each, so that both servers have the same package.
    build
        .env("SOURCE_DATE_EPOCH", "1600000000")
        .args(["--root-owner-group", "--build"])
        .arg(&tree)
        .arg(root);
    process::output(&mut build)?;
    Ok(())
}

/// Writes the lists of the repository anew.
fn index(root: &Path) -> Result<()> {
    for list in ["Packages", "Packages.gz", "Release"] {
        let _ = fs::remove_file(root.join(list));
    }
    let archive = |what: &str| {
        process::output(
            Command::new("apt-ftparchive")
                .args([what, "."])
                .current_dir(root),
        )
    };
    fs::write(root.join("Packages"), archive("packages")?)?;
    process::output(
        Command::new("gzip")
            .args(["--keep", "--no-name"])
            .arg(root.join("Packages")),
    )?;
    let release = archive("release")?;
    let lines = release.lines().filter(|line| !line.starts_with("Date: "));
    let release: String = lines.map(|line| format!("{line}\n")).collect();
    fs::write(root.join("Release"), release)?;
    Ok(())
}

/// The folders of apt's state.
fn begin(visit: &Visit) -> Result<()> {
    for folder in ["etc", "lists/partial", "cache/archives/partial", "out"] {
        fs::create_dir_all(visit.folder.join(folder))?;
    }
    let line = format!("deb [trusted=yes] {} ./\n", visit.url("/"));
    fs::write(visit.folder.join("etc/sources.list"), line)?;
    fs::write(visit.folder.join("status"), "")?;
    Ok(())
}

fn apt(visit: &Visit, arguments: &[&str]) -> Command {
    let at = |name: &str| visit.folder.join(name).display().to_string();
    let mut apt = Command::new("apt-get");
    for (key, value) in [
        ("Dir::Etc::SourceList", at("etc/sources.list")),
        ("Dir::Etc::SourceParts", at("etc/none")),
        ("Dir::State", at("")),
        ("Dir::State::Lists", at("lists")),
        ("Dir::State::Status", at("status")),
        ("Dir::Cache", at("cache")),
        ("APT::Sandbox::User", "root".to_owned()),
        ("APT::Get::List-Cleanup", "false".to_owned()),
        ("Acquire::Retries", "0".to_owned()),
        ("Acquire::http::Proxy", "DIRECT".to_owned()),
        ("Acquire::https::Proxy", "DIRECT".to_owned()),
        (
            "Acquire::https::CAInfo",
            visit.authority.display().to_string(),
        ),
        ("Acquire::Languages", "none".to_owned()),
    ] {
        apt.arg("-o").arg(format!("{key}={value}"));
    }
    apt.args(arguments).current_dir(visit.folder.join("out"));
    apt
}

/// Updates the lists, and notes what they hold.
fn update(visit: &mut Visit) -> Result<()> {
    visit.run("update", PATIENCE_S, &apt(visit, &["update"]))?;
    let lists = fs::read_dir(visit.folder.join("lists"))?.flatten();
    let mut lists: Vec<_> = lists.map(|list| list.path()).collect();
    lists.sort();
    for list in lists.iter().filter(|list| list.is_file()) {
        let name = list.to_string_lossy();
        let name = name.rsplit('_').next().unwrap_or_default().to_owned();
        if name != "lock" && !name.ends_with("/lock") {
            visit.hash(&name, list);
        }
    }
    Ok(())
}

/// Downloads packages into the folder `out`, and notes what came.
fn download(visit: &mut Visit, names: &[&str]) -> Result<()> {
    let download = apt(visit, &[&["download"], names].concat());
    visit.run("download", PATIENCE_S, &download)?;
    for name in names {
        let file = format!("{name}_1_all.deb");
        visit.hash(name, &visit.folder.join("out").join(file));
    }
    Ok(())
}

/// Downloads the large package as for an installation, which goes on with what is there.
fn install(visit: &mut Visit) -> Result<()> {
    let install = apt(visit, &["--yes", "--download-only", "install", "large"]);
    visit.run("install --download-only", PATIENCE_S, &install)?;
    visit.hash(
        "large",
        &visit.folder.join("cache/archives/large_1_all.deb"),
    );
    Ok(())
}

/// Leaves so many bytes of the large package as a download that broke off does.
fn partial(visit: &Visit, bytes: usize) -> Result<()> {
    let file = visit.root.join("large_1_all.deb");
    let part = visit.folder.join("cache/archives/partial/large_1_all.deb");
    let content = fs::read(&file)?;
    fs::write(&part, &content[..bytes.min(content.len())])?;
    process::output(Command::new("touch").arg("-r").args([&file, &part]))?;
    Ok(())
}
