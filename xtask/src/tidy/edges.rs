//! The map of crates in ARCHITECTURE.md against what the Cargo.toml files say, both ways.
//!
//! The map is the Markdown table with the columns crate, why, uses, tests use; names stand in
//! backticks. A row may use only rows above it, so that arrows point one way.

use super::crates::Crate;
use std::collections::BTreeSet;

/// One row of the map.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    name: String,
    uses: BTreeSet<String>,
    tests_use: BTreeSet<String>,
}

/// Differences between the map and the crates.
pub fn check(architecture: &str, crates: &[Crate]) -> Vec<String> {
    let rows = table(architecture);
    let mut findings = Vec::new();
    for one in crates {
        match rows.iter().find(|row| row.name == one.name) {
            Some(row) => {
                compare(one, "uses", &row.uses, &ours(one, false), &mut findings);
                compare(
                    one,
                    "tests use",
                    &row.tests_use,
                    &ours(one, true),
                    &mut findings,
                );
            }
            None => findings.push(format!(
                "ARCHITECTURE.md: no row for the crate `{}`: say why it exists",
                one.name
            )),
        }
    }
    for row in rows
        .iter()
        .filter(|row| !crates.iter().any(|one| one.name == row.name))
    {
        findings.push(format!(
            "ARCHITECTURE.md: the crate `{}` does not exist: remove its row",
            row.name
        ));
    }
    findings.extend(upward_arrows(&rows));
    findings
}

fn ours(one: &Crate, only_tests: bool) -> BTreeSet<String> {
    let edges = one
        .dependencies
        .iter()
        .filter(|edge| edge.is_ours && edge.only_tests == only_tests);
    edges.map(|edge| edge.name.clone()).collect()
}

fn compare(
    one: &Crate,
    column: &str,
    map: &BTreeSet<String>,
    real: &BTreeSet<String>,
    findings: &mut Vec<String>,
) {
    for missing in real.difference(map) {
        findings.push(format!(
            "{}/Cargo.toml: the edge `{} -> {missing}` is not in ARCHITECTURE.md's column `{column}`: \
             remove it, or add it there with its reason",
            one.folder, one.name
        ));
    }
    for stale in map.difference(real) {
        findings.push(format!(
            "ARCHITECTURE.md: the edge `{} -> {stale}` in the column `{column}` no longer exists: remove it",
            one.name
        ));
    }
}

fn upward_arrows(rows: &[Row]) -> Vec<String> {
    let mut above = BTreeSet::new();
    let mut findings = Vec::new();
    for row in rows {
        for edge in row
            .uses
            .iter()
            .chain(&row.tests_use)
            .filter(|edge| !above.contains(edge.as_str()))
        {
            findings.push(format!(
                "ARCHITECTURE.md: `{}` uses `{edge}`, which is not above it",
                row.name
            ));
        }
        above.insert(row.name.as_str());
    }
    findings
}

/// The rows of the first table whose header begins with `crate`.
fn table(architecture: &str) -> Vec<Row> {
    architecture
        .lines()
        .skip_while(|line| !line.starts_with("| crate |"))
        .skip(2)
        .map_while(|line| line.strip_prefix('|'))
        .filter_map(|line| {
            let cells: Vec<&str> = line.split('|').collect();
            let [name, _why, uses, tests_use, ..] = cells.as_slice() else {
                return None;
            };
            let name = in_backticks(name).pop_first()?;
            Some(Row {
                name,
                uses: in_backticks(uses),
                tests_use: in_backticks(tests_use),
            })
        })
        .collect()
}

fn in_backticks(cell: &str) -> BTreeSet<String> {
    cell.split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::crates::Dependency;
    use super::*;

    const MAP: &str = "\
# Map
| crate | why | uses | tests use |
|---|---|---|---|
| `policy` | who goes next | | |
| `uplink` | bytes in order | `policy` | |
| `web` | serves | `uplink` `policy` | `policy` |

after it";

    fn one(name: &str, edges: &[(&str, bool)]) -> Crate {
        let edge = |(name, only_tests): &(&str, bool)| Dependency {
            name: (*name).to_owned(),
            is_ours: true,
            only_tests: *only_tests,
        };
        Crate {
            name: name.to_owned(),
            description: String::new(),
            folder: format!("crates/{name}"),
            dependencies: edges.iter().map(edge).collect(),
        }
    }

    #[test]
    fn a_map_that_agrees_has_no_findings() {
        let crates = [
            one("policy", &[]),
            one("uplink", &[("policy", false)]),
            one(
                "web",
                &[("uplink", false), ("policy", false), ("policy", true)],
            ),
        ];
        assert_eq!(check(MAP, &crates), Vec::<String>::new());
    }

    #[test]
    fn missing_and_stale_edges_and_rows_are_found() {
        let crates = [
            one("policy", &[]),
            one("uplink", &[("policy", true)]),
            one("load", &[]),
        ];
        let findings = check(MAP, &crates);
        let expected = [
            "the edge `uplink -> policy` in the column `uses` no longer exists",
            "the edge `uplink -> policy` is not in ARCHITECTURE.md's column `tests use`",
            "no row for the crate `load`",
            "the crate `web` does not exist",
        ];
        assert_eq!(findings.len(), expected.len(), "{findings:?}");
        for (finding, expected) in findings.iter().zip(expected) {
            assert!(finding.contains(expected), "{finding}");
        }
    }

    #[test]
    fn arrows_point_one_way() {
        let map =
            "| crate | why | uses | tests use |\n|-|-|-|-|\n| `a` | | `b` | |\n| `b` | | | |\n";
        let findings = check(map, &[one("a", &[("b", false)]), one("b", &[])]);
        assert_eq!(
            findings,
            ["ARCHITECTURE.md: `a` uses `b`, which is not above it"]
        );
    }
}
