//! zsync fetches of a large file what has changed, with many ranges in a request.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::super::run::Run;
use super::super::{Suite, fetch};
use super::needs::{self, program};
use super::pair::{Setup, Way};
use super::visit::{Counted, compare};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "zsync",
    about: "zsync updates a large file from older ones; needs zsync",
    prepare,
    run,
};

const PATIENCE_S: u32 = 60;
const FILE_BYTES: usize = 20_000_000;

/// An older version, and what is done to the file to get it.
type Older = (&'static str, fn(&mut Vec<u8>));
const OLDER: [Older; 6] = [
    ("some parts changed", |file| overwrite(file, 400_000, 3000)),
    ("hundreds of small changes", |file| {
        overwrite(file, 25_000, 10)
    }),
    ("something inserted", |file| {
        file.splice(5_000_000..5_000_000, noise(777, 3));
    }),
    ("the end is missing", |file| file.truncate(FILE_BYTES / 2)),
    ("nothing changed", |_| ()),
    ("nothing is there", Vec::clear),
];

fn prepare(_: &Path) -> Result<()> {
    needs::debian(&[program("zsync", "zsync")])
}

fn run(run: &mut Run) -> Result<()> {
    run.version(
        "zsync",
        &fetch::installed_version("zsync").unwrap_or_default(),
    );
    let scratch = tempfile::tempdir()?;
    let (root, file) = (scratch.path().join("root"), noise(FILE_BYTES, 1));
    fs::create_dir(&root)?;
    fs::write(root.join("large.bin"), &file)?;
    describe(&root, "large.bin", &[])?;
    let setup = Setup {
        root: &root,
        routes: &[],
    };
    let old = scratch.path().join("old");
    for (case, change) in OLDER {
        let mut older = file.clone();
        change(&mut older);
        fs::write(&old, older)?;
        compare(run, case, &[Way::Clear], &setup, |visit| {
            let mut zsync = Command::new("zsync");
            let url = visit.url("/large.bin.zsync");
            zsync.arg("-q").arg("-i").arg(&old).arg(url);
            visit.run("zsync", PATIENCE_S, &zsync)?;
            visit.hash("large.bin", &visit.folder.join("large.bin"));
            Ok(Counted::Requests)
        })?;
    }
    compressed(run, &root, &old)
}

/// zsync looks into a compressed file, and asks for the parts of it that it needs.
fn compressed(run: &mut Run, root: &Path, old: &Path) -> Result<()> {
    let lines = (0..400_000_u32).map(|line| format!("{}\n", line.wrapping_mul(2_654_435_761)));
    let mut text = lines.collect::<String>().into_bytes();
    fs::write(root.join("text"), &text)?;
    crate::process::output(Command::new("gzip").arg("--best").arg(root.join("text")))?;
    describe(root, "text.gz", &["-u", "text.gz"])?;
    overwrite(&mut text, 300_000, 100);
    fs::write(old, text)?;
    let setup = Setup { root, routes: &[] };
    compare(run, "a compressed file", &[Way::Clear], &setup, |visit| {
        let mut zsync = Command::new("zsync");
        let url = visit.url("/text.gz.zsync");
        zsync.arg("-q").arg("-i").arg(old).arg(url);
        visit.run("zsync", PATIENCE_S, &zsync)?;
        for name in ["text", "text.gz"] {
            visit.hash(name, &visit.folder.join(name));
        }
        Ok(Counted::Requests)
    })
}

fn describe(root: &Path, name: &str, more: &[&str]) -> Result<()> {
    let mut zsyncmake = Command::new("zsyncmake");
    zsyncmake
        .args(more)
        .arg("-o")
        .arg(format!("{name}.zsync"))
        .arg(name);
    fetch::quietly(zsyncmake.current_dir(root))
}

/// Other bytes at every so many, so many long.
fn overwrite(file: &mut [u8], every: usize, bytes: usize) {
    for (number, part) in (2_u64..).zip(file.chunks_mut(every)) {
        let bytes = bytes.min(part.len());
        part[..bytes].copy_from_slice(&noise(bytes, number));
    }
}

/// Bytes that cannot be compressed, the same for the same seed.
pub fn noise(bytes: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes()
    });
    let mut noise = Vec::with_capacity(bytes + 8);
    while noise.len() < bytes {
        noise.extend(words.next().unwrap_or_default());
    }
    noise.truncate(bytes);
    noise
}
