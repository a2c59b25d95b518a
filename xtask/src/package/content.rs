//! What every kind of package holds: the program, manual pages, completions, licences, and the bill
//! of materials.

use super::{Release, licences, linked, pages, sbom};
use crate::process;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Files by their names.
pub struct Content {
    pub program: Vec<u8>,
    /// Manual pages of both sections.
    pub pages: BTreeMap<String, Vec<u8>>,
    pub completions: BTreeMap<String, Vec<u8>>,
    /// Licences of what is linked.
    pub third_party: String,
    /// CycloneDX.
    pub sbom: String,
}

impl Content {
    /// Has the program write what it knows of itself into a folder, and gathers the rest.
    pub fn gather(
        release: &Release,
        program: &Path,
        libc: Option<&sbom::Libc>,
        folder: &Path,
    ) -> Result<Self> {
        let made = folder.join("files");
        let mut write = Command::new(program);
        write.arg("package").arg(&made);
        write.env("SOURCE_DATE_EPOCH", release.epoch.to_string());
        process::output(&mut write)?;
        let mut all = files(&made.join("man"))?;
        for (name, page) in pages::all(release)? {
            all.insert(name, page.into_bytes());
        }
        let crates = linked::linked(&release.target)?;
        let mistakes = licences::mistakes(&crates);
        ensure!(mistakes.is_empty(), "{}", mistakes.join("\n"));
        let sbom = sbom::document(release, &crates, libc);
        let content = Self {
            program: fs::read(program)
                .with_context(|| format!("cannot read {}", program.display()))?,
            pages: all,
            completions: files(&made.join("completions"))?,
            third_party: licences::texts(&crates)?,
            sbom: serde_json::to_string_pretty(&sbom)?,
        };
        fs::remove_dir_all(&made)?;
        Ok(content)
    }

    /// Something of each kind.
    #[cfg(test)]
    pub fn for_tests() -> Self {
        let one = |name: &str| (name.to_owned(), name.as_bytes().to_vec());
        Self {
            program: b"program".to_vec(),
            pages: [one("sooner.1")].into(),
            completions: ["sooner.bash", "_sooner", "sooner.fish"].map(one).into(),
            third_party: "texts".into(),
            sbom: "{}".into(),
        }
    }
}

fn files(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    let entries = fs::read_dir(folder);
    for entry in entries.with_context(|| format!("cannot read {}", folder.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        files.insert(name, fs::read(entry.path())?);
    }
    Ok(files)
}
