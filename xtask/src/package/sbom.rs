//! A bill of materials in CycloneDX's JSON: the program, every crate that is linked into it with
//! licence and checksum, and which uses which.

use super::Release;
use super::linked::Linked;
use serde_json::{Value, json};

/// The document; the same for the same commit and target.
pub fn document(release: &Release, crates: &[Linked], libc: Option<&Libc>) -> Value {
    let own = format!("pkg:cargo/sooner-cli@{}", release.version);
    let mut components: Vec<Value> = crates.iter().map(component).collect();
    components.extend(libc.map(Libc::component));
    let uses: Vec<Value> = crates
        .iter()
        .map(|one| {
            let on: Vec<String> = one
                .uses
                .iter()
                .map(|(name, version)| purl(name, version))
                .collect();
            json!({"ref": purl(&one.name, &one.version), "dependsOn": on})
        })
        .collect();
    json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": release.timestamp(),
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": "sooner",
                "version": release.version,
                "licenses": [{"expression": "MIT OR Apache-2.0"}],
                "purl": own,
                "properties": [
                    {"name": "sooner:commit", "value": release.commit},
                    {"name": "sooner:target", "value": release.target},
                    {"name": "sooner:rustc", "value": release.rustc},
                ],
            },
        },
        "components": components,
        "dependencies": uses,
    })
}

fn component(one: &Linked) -> Value {
    let mut component = json!({
        "type": "library",
        "bom-ref": purl(&one.name, &one.version),
        "name": one.name,
        "version": one.version,
        "licenses": [{"expression": one.licence.replace('/', " OR ")}],
        "purl": purl(&one.name, &one.version),
    });
    if let Some(checksum) = &one.checksum {
        component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
    }
    if let Some(repository) = &one.repository {
        component["externalReferences"] = json!([{"type": "vcs", "url": repository}]);
    }
    component
}

fn purl(name: &str, version: &str) -> String {
    format!("pkg:cargo/{name}@{version}")
}

/// The C library that is linked in.
pub struct Libc {
    pub name: &'static str,
    pub licence: &'static str,
}

impl Libc {
    fn component(&self) -> Value {
        json!({
            "type": "library",
            "bom-ref": format!("pkg:generic/{}", self.name),
            "name": self.name,
            "licenses": [{"expression": self.licence}],
            "purl": format!("pkg:generic/{}", self.name),
        })
    }
}
