//! The crates that are linked into `sooner`, as cargo resolves them for a target, with what their
//! Cargo.toml and Cargo.lock say of them.

use crate::process;
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

/// A crate of another project that is part of the program.
pub struct Linked {
    pub name: String,
    pub version: String,
    /// What its Cargo.toml says of the licence.
    pub licence: String,
    pub authors: Vec<String>,
    pub repository: Option<String>,
    /// Where its sources are.
    pub folder: PathBuf,
    /// SHA-256 of its archive, from Cargo.lock.
    pub checksum: Option<String>,
    /// What it uses itself, of those that are linked: name and version.
    pub uses: Vec<(String, String)>,
}

/// Crates by name and version.
type Names = BTreeSet<(String, String)>;

/// What a program for this target is made of, by name; nothing that only builds or tests it.
pub fn linked(target: &str) -> Result<Vec<Linked>> {
    let names = resolved(target)?;
    let checksums = checksums()?;
    let metadata = metadata(target)?;
    let packages = metadata["packages"].as_array();
    let packages = packages.context("cargo metadata lists no packages")?;
    let uses = uses(&metadata, &names);
    let mut found = Vec::new();
    for package in packages {
        let text = |key: &str| package[key].as_str().map(str::to_owned);
        let key = (
            text("name").unwrap_or_default(),
            text("version").unwrap_or_default(),
        );
        if package["source"].is_null() || !names.contains(&key) {
            continue;
        }
        let manifest = PathBuf::from(text("manifest_path").unwrap_or_default());
        let authors = package["authors"].as_array().into_iter().flatten();
        found.push(Linked {
            licence: text("license").unwrap_or_default(),
            authors: authors
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
            repository: text("repository"),
            folder: manifest
                .parent()
                .context("a manifest in no folder")?
                .to_path_buf(),
            checksum: checksums.get(&key).cloned(),
            uses: uses.get(&key).cloned().unwrap_or_default(),
            name: key.0,
            version: key.1,
        });
    }
    found.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    Ok(found)
}

/// What `cargo tree` shows of the program's own dependencies: features as they are for it alone.
fn resolved(target: &str) -> Result<Names> {
    let mut tree = process::cargo(&[
        "tree",
        "--offline",
        "--locked",
        "--package=sooner-cli",
        "--edges=normal,no-proc-macro",
        "--prefix=none",
        "--format={p}",
        "--target",
        target,
    ]);
    let text = process::output(&mut tree)?;
    Ok(text.lines().filter_map(name_and_version).collect())
}

/// Of a line like `anyhow v1.0.100` or `sooner-cli v0.1.0 (/path)`.
fn name_and_version(line: &str) -> Option<(String, String)> {
    let mut words = line.split(' ');
    let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
    Some((name.to_owned(), version.to_owned()))
}

fn metadata(target: &str) -> Result<Value> {
    let mut command = process::cargo(&[
        "metadata",
        "--offline",
        "--locked",
        "--format-version=1",
        "--filter-platform",
        target,
    ]);
    let text = process::output(&mut command)?;
    serde_json::from_str(&text).context("cannot read what cargo metadata prints")
}

/// Which of the linked crates each of them uses.
fn uses(metadata: &Value, names: &Names) -> BTreeMap<(String, String), Vec<(String, String)>> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let by_id: BTreeMap<&str, (String, String)> = packages
        .filter_map(|package| {
            let key = (
                package["name"].as_str()?.to_owned(),
                package["version"].as_str()?.to_owned(),
            );
            Some((package["id"].as_str()?, key))
        })
        .collect();
    let nodes = metadata["resolve"]["nodes"]
        .as_array()
        .into_iter()
        .flatten();
    let of_node = |node: &Value| {
        let key = by_id.get(node["id"].as_str()?)?.clone();
        let used = node["dependencies"].as_array()?.iter();
        let used = used.filter_map(|id| by_id.get(id.as_str()?).cloned());
        Some((key, used.filter(|key| names.contains(key)).collect()))
    };
    nodes.filter_map(of_node).collect()
}

/// Cargo.lock, as far as it is of interest here.
#[derive(serde::Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(serde::Deserialize)]
struct Locked {
    name: String,
    version: String,
    checksum: Option<String>,
}

fn checksums() -> Result<BTreeMap<(String, String), String>> {
    let path = process::root().join("Cargo.lock");
    let text = fs::read_to_string(&path)?;
    let lock: Lock = toml::from_str(&text).context("cannot read Cargo.lock")?;
    let packages = lock.package.into_iter();
    Ok(packages
        .filter_map(|one| Some(((one.name, one.version), one.checksum?)))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_tree_is_a_name_and_a_version() {
        let expected = Some(("anyhow".to_owned(), "1.0.100".to_owned()));
        assert_eq!(name_and_version("anyhow v1.0.100 (*)"), expected);
        assert_eq!(name_and_version(""), None);
    }
}
