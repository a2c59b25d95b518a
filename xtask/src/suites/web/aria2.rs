//! aria2 downloads with several connections at once, checks, and goes on where it stopped.

use std::fs;
use std::path::Path;
use std::process::Command;

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
    name: "aria2",
    about: "aria2 with segments, checksums and metalinks; needs aria2",
    prepare,
    run,
};

const PATIENCE_S: u32 = 60;
const FILE_BYTES: usize = 20_000_000;
const SMALL: usize = 100;

type Case = (&'static str, fn(&mut Visit) -> Result<Counted>);
const CASES: [Case; 10] = [
    ("eight connections", |visit| {
        let checksum = format!("--checksum=sha-256={}", sha256(visit)?);
        large(visit, &["-x8", "-s8", "-k1M", &checksum])?;
        Ok(Counted::KindsOfStatuses)
    }),
    ("the checksum is another", |visit| {
        visit.may_fail = true;
        let checksum = format!("--checksum=sha-256={}", "0".repeat(64));
        large(visit, &["-x4", "-s4", "-k1M", &checksum])?;
        Ok(Counted::KindsOfStatuses)
    }),
    ("metalink", metalink),
    ("goes on with what it noted", |visit| {
        visit.may_fail = true;
        // It is ended after the first seconds of a slow download.
        large(
            visit,
            &["-x4", "-s4", "-k1M", "--max-download-limit=2M", "--stop=3"],
        )?;
        visit.may_fail = false;
        large(visit, &["-x4", "-s4", "-k1M", "-c"])?;
        Ok(Counted::KindsOfStatuses)
    }),
    ("goes on after a part", |visit| {
        part(visit, FILE_BYTES / 3)?;
        large(visit, &["-c", "-s1"])?;
        Ok(Counted::Requests)
    }),
    ("goes on when all is there", |visit| {
        part(visit, FILE_BYTES)?;
        large(visit, &["-c", "-s1"])?;
        Ok(Counted::Requests)
    }),
    ("goes on when more is there than the file has", |visit| {
        visit.may_fail = true;
        fs::write(visit.folder.join("large.bin"), noise(FILE_BYTES + 10, 5))?;
        large(visit, &["-c", "-s1"])?;
        Ok(Counted::Requests)
    }),
    ("only when it is newer", |visit| {
        let conditional = ["--conditional-get=true", "--allow-overwrite=true"];
        large(visit, &conditional)?;
        large(visit, &conditional)?;
        Ok(Counted::Requests)
    }),
    ("a hundred files", |visit| {
        let urls: String = (0..SMALL)
            .map(|number| format!("{}\n", visit.url(&format!("/small{number}"))))
            .collect();
        fs::write(visit.folder.join("list"), urls)?;
        let aria2 = aria2(visit, &["-i", "list", "-j", "8"]);
        visit.run("aria2", PATIENCE_S, &aria2)?;
        for number in 0..SMALL {
            let name = format!("small{number}");
            visit.hash(&name, &visit.folder.join(&name));
        }
        Ok(Counted::Requests)
    }),
    ("no such file", |visit| {
        visit.may_fail = true;
        let url = visit.url("/none.bin");
        let aria2 = aria2(visit, &[&url]);
        visit.run("aria2", PATIENCE_S, &aria2)?;
        Ok(Counted::Requests)
    }),
];

fn prepare(_: &Path) -> Result<()> {
    needs::debian(&[program("aria2c", "aria2")])
}

fn run(run: &mut Run) -> Result<()> {
    run.version(
        "aria2",
        &fetch::installed_version("aria2").unwrap_or_default(),
    );
    let scratch = tempfile::tempdir()?;
    let root = scratch.path().join("root");
    fs::create_dir(&root)?;
    fs::write(root.join("large.bin"), noise(FILE_BYTES, 5))?;
    for number in 0..SMALL {
        fs::write(root.join(format!("small{number}")), noise(number * 997, 6))?;
    }
    let setup = Setup {
        root: &root,
        routes: &[],
    };
    for (name, talk) in CASES {
        compare(run, name, &Way::ALL, &setup, talk)?;
    }
    Ok(())
}

fn aria2(visit: &Visit, arguments: &[&str]) -> Command {
    let mut aria2 = Command::new("aria2c");
    aria2
        .args([
            "--no-conf",
            "--enable-color=false",
            "--summary-interval=0",
            "--max-tries=2",
        ])
        .arg(format!("--ca-certificate={}", visit.authority.display()))
        .args(arguments)
        .current_dir(&visit.folder);
    aria2
}

/// Downloads the large file, and notes what came.
fn large(visit: &mut Visit, arguments: &[&str]) -> Result<()> {
    let url = visit.url("/large.bin");
    let aria2 = aria2(visit, &[arguments, &[&url]].concat());
    visit.run("aria2", PATIENCE_S, &aria2)?;
    if !arguments
        .iter()
        .any(|argument| argument.starts_with("--stop"))
    {
        visit.hash("large.bin", &visit.folder.join("large.bin"));
    }
    Ok(())
}

/// Leaves so many bytes of the large file, as a download that broke off does.
fn part(visit: &Visit, bytes: usize) -> Result<()> {
    let content = fs::read(visit.root.join("large.bin"))?;
    Ok(fs::write(
        visit.folder.join("large.bin"),
        &content[..bytes],
    )?)
}

fn sha256(visit: &Visit) -> Result<String> {
    let line = process::output(Command::new("sha256sum").arg(visit.root.join("large.bin")))?;
    Ok(line.split(' ').next().unwrap_or_default().to_owned())
}

/// Two sources of which one is not there, and checksums of the whole and of its pieces.
fn metalink(visit: &mut Visit) -> Result<Counted> {
    let content = fs::read(visit.root.join("large.bin"))?;
    let piece = visit.folder.join("piece");
    let mut pieces = String::new();
    for bytes in content.chunks(1 << 20) {
        fs::write(&piece, bytes)?;
        let line = process::output(Command::new("sha1sum").arg(&piece))?;
        pieces += &format!(
            "<hash>{}</hash>",
            line.split(' ').next().unwrap_or_default()
        );
    }
    let text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><metalink xmlns=\"urn:ietf:params:xml:ns:metalink\">\
         <file name=\"large.bin\"><size>{FILE_BYTES}</size><hash type=\"sha-256\">{}</hash>\
         <pieces length=\"1048576\" type=\"sha-1\">{pieces}</pieces>\
         <url priority=\"1\">{}</url><url priority=\"2\">{}</url></file></metalink>",
        sha256(visit)?,
        // Under another name: of a host that failed once aria2 takes nothing more.
        visit.url("/none.bin").replace("127.0.0.1", "localhost"),
        visit.url("/large.bin"),
    );
    fs::write(visit.folder.join("large.meta4"), text)?;
    let aria2 = aria2(visit, &["-s4", "-k1M", "--metalink-file=large.meta4"]);
    visit.run("aria2", PATIENCE_S, &aria2)?;
    visit.hash("large.bin", &visit.folder.join("large.bin"));
    Ok(Counted::KindsOfStatuses)
}
