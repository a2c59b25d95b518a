//! What every crate owes: a description, and no dependency it does not use.

use super::files::File;
use crate::process;
use anyhow::{Context, Result};
use serde_json::Value;
use std::path::Path;

/// A crate of this repository, as its Cargo.toml says.
#[derive(Debug)]
pub struct Crate {
    /// Package name without `sooner-`.
    pub name: String,
    pub description: String,
    /// Its layer, as its manifest names it.
    pub layer: String,
    /// Folder from the root, with `/`.
    pub folder: String,
    pub dependencies: Vec<Dependency>,
}

/// One line of a `[dependencies]` or `[dev-dependencies]` table.
#[derive(Debug)]
pub struct Dependency {
    /// Package name without `sooner-`.
    pub name: String,
    /// Whether it is a crate of this repository.
    pub is_ours: bool,
    pub only_tests: bool,
}

/// The crates of the workspace.
pub fn all(root: &Path) -> Result<Vec<Crate>> {
    let arguments = ["metadata", "--no-deps", "--format-version", "1"];
    let json = process::output(&mut process::cargo(&arguments))?;
    read_metadata(&json, root)
}

fn read_metadata(json: &str, root: &Path) -> Result<Vec<Crate>> {
    let metadata: Value = serde_json::from_str(json)?;
    let packages = metadata["packages"]
        .as_array()
        .context("cargo metadata lists no packages")?;
    packages
        .iter()
        .map(|package| read_package(package, root))
        .collect()
}

fn read_package(package: &Value, root: &Path) -> Result<Crate> {
    let manifest = Path::new(
        package["manifest_path"]
            .as_str()
            .context("a package without a manifest")?,
    );
    let folder = manifest
        .parent()
        .and_then(|folder| folder.strip_prefix(root).ok());
    let dependencies = package["dependencies"]
        .as_array()
        .context("a package without dependencies")?;
    Ok(Crate {
        name: short_name(&package["name"]),
        description: package["description"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        layer: package["metadata"]["sooner"]["layer"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        folder: folder
            .context("a package outside the root")?
            .to_string_lossy()
            .into_owned(),
        dependencies: dependencies
            .iter()
            .map(|dependency| Dependency {
                // As the code calls it, where that is not the package's name.
                name: match &dependency["rename"] {
                    Value::Null => short_name(&dependency["name"]),
                    renamed => short_name(renamed),
                },
                is_ours: dependency["path"].is_string(),
                only_tests: dependency["kind"] == "dev",
            })
            .collect(),
    })
}

fn short_name(name: &Value) -> String {
    let name = name.as_str().unwrap_or_default();
    name.strip_prefix("sooner-").unwrap_or(name).to_owned()
}

/// Missing descriptions, and dependencies that no source file of the crate names.
pub fn check(crates: &[Crate], files: &[File]) -> Vec<String> {
    let mut findings = Vec::new();
    for one in crates {
        if one.description.trim().is_empty() {
            findings.push(format!(
                "{}/Cargo.toml: no description: say in five words what it is",
                one.folder
            ));
        }
        for dependency in one
            .dependencies
            .iter()
            .filter(|dependency| !is_used(one, dependency, files))
        {
            let name = &dependency.name;
            findings.push(format!(
                "{}/Cargo.toml: no source file uses `{name}`: remove it",
                one.folder
            ));
        }
    }
    findings
}

fn is_used(of: &Crate, dependency: &Dependency, files: &[File]) -> bool {
    let prefix = if dependency.is_ours { "sooner_" } else { "" };
    let name = format!("{prefix}{}", dependency.name.replace('-', "_"));
    let folder = format!("{}/", of.folder);
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut lines = files
        .iter()
        .filter(|file| file.path.starts_with(&folder) && file.path.ends_with(".rs"))
        .flat_map(|file| file.text.lines())
        .filter(|line| !line.trim_start().starts_with("//"));
    lines.any(|line| {
        line.split(|letter| !is_word(letter))
            .any(|word| word == name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const METADATA: &str = r#"{"packages": [{"name": "sooner-web", "description": null,
        "manifest_path": "/r/crates/web/Cargo.toml", "dependencies": [
        {"name": "sooner-uplink", "path": "/r/crates/uplink", "kind": null},
        {"name": "http-body", "kind": "dev"}]}]}"#;

    #[test]
    fn metadata_becomes_crates_with_short_names() {
        let crates = read_metadata(METADATA, Path::new("/r")).unwrap();
        assert_eq!(
            (crates[0].name.as_str(), crates[0].folder.as_str()),
            ("web", "crates/web")
        );
        let dependencies = &crates[0].dependencies;
        assert_eq!(
            (dependencies[0].name.as_str(), dependencies[0].is_ours),
            ("uplink", true)
        );
        assert!(dependencies[1].only_tests && !dependencies[1].is_ours);
    }

    #[test]
    fn a_dependency_has_the_name_that_the_code_has_for_it() {
        let renamed = METADATA.replace(r#""http-body","#, r#""md-5", "rename": "md5","#);
        let crates = read_metadata(&renamed, Path::new("/r")).unwrap();
        assert_eq!(crates[0].dependencies[1].name, "md5");
    }

    #[test]
    fn missing_descriptions_and_unused_dependencies_are_found() {
        let crates = read_metadata(METADATA, Path::new("/r")).unwrap();
        let source = File::new(
            "crates/web/src/lib.rs".into(),
            "//! x\nuse sooner_uplink::Flow;\n".into(),
        );
        let findings = check(&crates, &[source]);
        assert_eq!(findings.len(), 2, "{findings:?}");
        assert!(findings[1].contains("`http-body`"));
    }
}
