//! What is served, and when a page asks for it.

use crate::measure::bench::Bench;
use anyhow::Result;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

pub const WARM_UP_SECONDS: u64 = 2;
/// Where the file is that the busy client asks for.
pub const HOG_PATH: &str = "objects/1.hog";
/// Longer than all calls of a page take here.
const PAGE_EVERY_SECONDS: u64 = 2;

/// A page and its other client.
pub struct Page {
    /// Calls of a page, all at once.
    pub calls: u64,
    pub call_bytes: u64,
    pub hog_bytes: u64,
    pub seconds: u64,
    /// What the narrowest place carries.
    pub rate_mbit: u64,
}

impl Page {
    /// The part of the narrowest place that pages take: replayed at this load, they come as often
    /// as said.
    pub fn load(&self) -> f64 {
        let page_bits = (8 * self.calls * self.call_bytes) as f64;
        page_bits / (self.rate_mbit as f64 * 1e6) / PAGE_EVERY_SECONDS as f64
    }
}

/// The files that are served, and a trace of pages.
pub struct Files {
    pub root: PathBuf,
    pub trace: PathBuf,
}

impl Files {
    pub fn make(bench: &Bench<'_>, page: &Page) -> Result<Self> {
        let root = bench.folder("root")?;
        let trace = write_trace(bench.scratch(), page)?;
        let mut mkroot = bench.sooner(&["load", "mkroot"]);
        mkroot.arg(&trace).arg(&root);
        bench.output(mkroot)?;
        Ok(Self { root, trace })
    }
}

fn write_trace(folder: &Path, page: &Page) -> Result<PathBuf> {
    let (call_bytes, hog_bytes) = (page.call_bytes, page.hog_bytes);
    let mut lines = String::from("t,bytes,client,object,status\n");
    let pages = (page.seconds + WARM_UP_SECONDS) / PAGE_EVERY_SECONDS + 1;
    for number in 0..pages {
        for call in 0..page.calls {
            // Times that are no whole seconds stay as they are.
            let (s, ms) = (number * PAGE_EVERY_SECONDS, 1 + call / 8);
            writeln!(lines, "{s}.{ms:03},{call_bytes},0,0,200")?;
        }
    }
    let calls = pages * page.calls;
    let objects = format!(
        "object,requests,max_bytes,ext\n0,{calls},{call_bytes},call\n1,0,{hog_bytes},hog\n"
    );
    let path = folder.join("page.csv");
    fs::write(&path, lines)?;
    fs::write(folder.join("page.objects.csv"), objects)?;
    Ok(path)
}
