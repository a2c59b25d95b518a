//! The layers of crates: which of them may use which, what the lowest may depend on, and the map of
//! crates in ARCHITECTURE.md.
//!
//! A crate's manifest names its layer under `[package.metadata.sooner]`. *decide* uses only
//! *decide*; *run* and *know* use *decide* and themselves; *measure* uses everything; the binary
//! and the tools use everything, and nothing uses them. What only tests use is free of the rule.

use super::crates::Crate;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The layers, and those that each of them may use.
const LAYERS: [(&str, &[&str]); 6] = [
    ("decide", &["decide"]),
    ("run", &["decide", "run"]),
    ("know", &["decide", "know"]),
    ("measure", &["decide", "run", "know", "measure"]),
    ("binary", &["decide", "run", "know", "measure"]),
    ("tool", &["decide", "run", "know", "measure"]),
];

/// What brings I/O or a clock into a crate that only decides.
const IMPURE: [&str; 9] = [
    "tokio",
    "mio",
    "hyper",
    "hyper-util",
    "h2",
    "rustix",
    "socket2",
    "libc",
    "aya",
];

/// Layers with bans of their own, and the file that has them, from such a crate's folder.
const BANS: [(&str, &str); 2] = [
    ("decide", "../decide.clippy.toml"),
    ("know", "../know.clippy.toml"),
];

/// What contradicts the layers, and where the map and the crates differ.
pub fn check(map: &str, crates: &[Crate], root: &Path) -> Vec<String> {
    let layer_of: BTreeMap<&str, &str> = crates
        .iter()
        .map(|one| (one.name.as_str(), one.layer.as_str()))
        .collect();
    let mut findings = Vec::new();
    for one in crates {
        findings.extend(check_edges(one, &layer_of));
        if one.layer == "decide" {
            findings.extend(check_purity(one));
        }
        findings.extend(check_bans(one, root));
    }
    findings.extend(check_map(map, crates));
    findings
}

fn check_edges(one: &Crate, layer_of: &BTreeMap<&str, &str>) -> Vec<String> {
    let place = format!("{}/Cargo.toml", one.folder);
    let Some((_, allowed)) = LAYERS.iter().find(|(layer, _)| *layer == one.layer) else {
        let known = LAYERS.map(|(layer, _)| layer).join(", ");
        return vec![format!(
            "{place}: [package.metadata.sooner] layer is \"{}\", and would have to be one of {known}",
            one.layer
        )];
    };
    let uses = one
        .dependencies
        .iter()
        .filter(|edge| edge.is_ours && !edge.only_tests);
    uses.filter_map(|edge| {
        let layer = layer_of.get(edge.name.as_str())?;
        (!allowed.contains(layer)).then(|| {
            format!(
                "{place}: `{}` ({}) uses `{}` ({layer}): {} may use only {}",
                one.name,
                one.layer,
                edge.name,
                one.layer,
                allowed.join(", ")
            )
        })
    })
    .collect()
}

fn check_purity(one: &Crate) -> Vec<String> {
    let impure = one
        .dependencies
        .iter()
        .filter(|edge| !edge.only_tests && IMPURE.contains(&edge.name.as_str()));
    impure
        .map(|edge| {
            format!(
                "{}/Cargo.toml: `{}` only decides and depends on `{}`: take time and bytes as \
                 values, and leave I/O to a crate of the layer run",
                one.folder, one.name, edge.name
            )
        })
        .collect()
}

fn check_bans(one: &Crate, root: &Path) -> Option<String> {
    let (layer, bans) = BANS.iter().find(|(layer, _)| *layer == one.layer)?;
    let file = root.join(&one.folder).join("clippy.toml");
    let is_linked = fs::read_link(file).is_ok_and(|to| to == Path::new(bans));
    (!is_linked).then(|| {
        format!(
            "{}/clippy.toml: is no link to {bans}, which has the bans of the layer {layer}",
            one.folder
        )
    })
}

/// The rows of the map that begin a crate: name and layer.
fn rows(map: &str) -> BTreeMap<&str, &str> {
    let table = map
        .lines()
        .skip_while(|line| !line.starts_with("| crate |"));
    let rows = table.skip(2).map_while(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| {
        let (name, rest) = row.split_once("` |")?;
        Some((name, rest.split('|').next()?.trim()))
    })
    .collect()
}

fn check_map(map: &str, crates: &[Crate]) -> Vec<String> {
    let rows = rows(map);
    let mut findings = Vec::new();
    for one in crates {
        match rows.get(one.name.as_str()) {
            Some(layer) if *layer == one.layer => {}
            Some(layer) => findings.push(format!(
                "ARCHITECTURE.md: `{}` stands under {layer}, and its Cargo.toml says {}",
                one.name, one.layer
            )),
            None => findings.push(format!(
                "ARCHITECTURE.md: no row for the crate `{}`: say why it exists",
                one.name
            )),
        }
    }
    let stale = rows
        .keys()
        .filter(|name| !crates.iter().any(|one| one.name == **name));
    findings.extend(
        stale.map(|name| {
            format!("ARCHITECTURE.md: the crate `{name}` does not exist: remove its row")
        }),
    );
    findings
}

#[cfg(test)]
mod tests {
    use super::super::crates::Dependency;
    use super::*;

    const MAP: &str = "\
# Map
| crate | layer | why |
|---|---|---|
| `policy` | decide | who goes next |
| `uplink` | run | bytes in order |
| `lab` | measure | experiments |

after it";

    /// Dependencies: a star in front marks those of the tests, a dot those of others.
    fn one(name: &str, layer: &str, edges: &[&str]) -> Crate {
        let edge = |name: &&str| Dependency {
            name: name.trim_start_matches(['*', '.']).to_owned(),
            is_ours: !name.starts_with('.'),
            only_tests: name.starts_with('*'),
        };
        Crate {
            name: name.to_owned(),
            description: String::new(),
            layer: layer.to_owned(),
            folder: format!("crates/{name}"),
            dependencies: edges.iter().map(edge).collect(),
        }
    }

    fn findings(crates: &[Crate]) -> Vec<String> {
        let root = tempfile::tempdir().unwrap();
        for one in crates {
            let bans = BANS.iter().find(|(layer, _)| *layer == one.layer);
            if let Some((_, bans)) = bans {
                let folder = root.path().join(&one.folder);
                fs::create_dir_all(&folder).unwrap();
                std::os::unix::fs::symlink(bans, folder.join("clippy.toml")).unwrap();
            }
        }
        check(MAP, crates, root.path())
    }

    #[test]
    fn what_the_rule_allows_has_no_findings() {
        let crates = [
            one("policy", "decide", &["*lab"]),
            one("uplink", "run", &["policy", ".tokio"]),
            one("lab", "measure", &["uplink", "policy"]),
        ];
        assert_eq!(findings(&crates), Vec::<String>::new());
    }

    #[test]
    fn a_wrong_edge_is_found_whatever_the_layers() {
        let crates = [
            one("policy", "decide", &["uplink"]),
            one("uplink", "run", &["lab"]),
            one("lab", "measure", &[]),
        ];
        assert_eq!(
            findings(&crates),
            [
                "crates/policy/Cargo.toml: `policy` (decide) uses `uplink` (run): decide may use \
                 only decide",
                "crates/uplink/Cargo.toml: `uplink` (run) uses `lab` (measure): run may use only \
                 decide, run",
            ]
        );
    }

    #[test]
    fn a_crate_that_only_decides_has_neither_io_nor_other_bans() {
        let policy = one("policy", "decide", &[".tokio"]);
        let others = [
            one("uplink", "run", &[]),
            one("lab", "measure", &[]),
            policy,
        ];
        let root = tempfile::tempdir().unwrap();
        let found = check(MAP, &others, root.path());
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("depends on `tokio`"), "{found:?}");
        assert!(
            found[1].starts_with("crates/policy/clippy.toml"),
            "{found:?}"
        );
    }

    #[test]
    fn the_map_has_each_crate_with_its_layer() {
        let crates = [
            one("policy", "decide", &[]),
            one("uplink", "know", &[]),
            one("load", "somewhere", &[]),
        ];
        let found = findings(&crates);
        assert_eq!(
            found,
            [
                "crates/load/Cargo.toml: [package.metadata.sooner] layer is \"somewhere\", and \
                 would have to be one of decide, run, know, measure, binary, tool",
                "ARCHITECTURE.md: `uplink` stands under run, and its Cargo.toml says know",
                "ARCHITECTURE.md: no row for the crate `load`: say why it exists",
                "ARCHITECTURE.md: the crate `lab` does not exist: remove its row",
            ]
        );
    }
}
