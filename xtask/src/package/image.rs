//! An image of the Open Container Initiative, written without a daemon and without root: the
//! program, a user without rights, the certificates of public authorities, and nothing else.

use super::Release;
use super::archive::{PLAIN, PROGRAM, Tree, gzip, sha256};
use anyhow::Result;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// The user and the group of everything that runs, as images without a root user have it.
const USER: u64 = 65532;
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// Where rustls-native-certs looks first.
const AUTHORITIES: &str = "etc/ssl/certs/ca-certificates.crt";

/// What is in the image beside the program.
pub struct Texts<'a> {
    pub third_party: &'a str,
    pub sbom: &'a str,
}

/// The image as an archive of its layout: `skopeo`, `podman` and Docker from 25 on read it.
pub fn archive(release: &Release, program: Vec<u8>, texts: &Texts) -> Result<Vec<u8>> {
    let layer = files(program, texts).tar(release.epoch)?;
    let packed = gzip(&layer)?;
    let mut layout = Tree::default();
    let mut blob = |bytes: Vec<u8>, kind: &str| {
        let digest = sha256(&bytes);
        let size = bytes.len();
        layout.add(&format!("blobs/sha256/{digest}"), PLAIN, bytes);
        json!({"mediaType": kind, "digest": format!("sha256:{digest}"), "size": size})
    };
    let layer_blob = blob(packed, LAYER);
    let config = config(release, &sha256(&layer));
    let config_blob = blob(serde_json::to_vec(&config)?, CONFIG);
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": config_blob,
        "layers": [layer_blob],
        "annotations": labels(release),
    });
    let mut manifest_blob = blob(serde_json::to_vec(&manifest)?, MANIFEST);
    manifest_blob["platform"] = json!({"architecture": "amd64", "os": "linux"});
    manifest_blob["annotations"] = json!({
        "org.opencontainers.image.ref.name": release.version,
        "io.containerd.image.name": format!("localhost/sooner:{}", release.version),
    });
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [manifest_blob]});
    layout.add("index.json", PLAIN, serde_json::to_vec(&index)?);
    layout.add("oci-layout", PLAIN, r#"{"imageLayoutVersion":"1.0.0"}"#);
    layout.tar(release.epoch)
}

/// What the image holds.
fn files(program: Vec<u8>, texts: &Texts) -> Tree {
    let mut tree = Tree::default();
    for folder in [
        "etc",
        "etc/ssl",
        "etc/ssl/certs",
        "usr",
        "usr/bin",
        "usr/share",
    ] {
        tree.add_folder(folder, PROGRAM, 0);
    }
    for folder in [
        "usr/share/doc",
        "usr/share/doc/sooner",
        "run",
        "srv",
        "srv/www",
        "var",
        "var/log",
    ] {
        tree.add_folder(folder, PROGRAM, 0);
    }
    for folder in ["etc/sooner", "run/sooner", "var/log/sooner"] {
        tree.add_folder(folder, PROGRAM, USER);
    }
    tree.add_folder("tmp", 0o1777, 0);
    tree.add("usr/bin/sooner", PROGRAM, program);
    let users =
        format!("root:x:0:0:root:/:/sbin/nologin\nsooner:x:{USER}:{USER}:Sooner:/:/sbin/nologin\n");
    tree.add("etc/passwd", PLAIN, users);
    tree.add("etc/group", PLAIN, format!("root:x:0:\nsooner:x:{USER}:\n"));
    tree.add("etc/nsswitch.conf", PLAIN, "hosts: files dns\n");
    tree.add(AUTHORITIES, PLAIN, authorities());
    tree.add(
        "usr/share/doc/sooner/THIRD-PARTY.txt",
        PLAIN,
        texts.third_party,
    );
    tree.add("usr/share/doc/sooner/sooner.cdx.json", PLAIN, texts.sbom);
    tree
}

/// The authorities that Mozilla trusts, as PEM: of a crate, so that Cargo.lock says which.
fn authorities() -> String {
    let mut text = String::new();
    for certificate in webpki_root_certs::TLS_SERVER_ROOT_CERTS {
        text.push_str("-----BEGIN CERTIFICATE-----\n");
        let letters = STANDARD.encode(certificate);
        for line in letters.as_bytes().chunks(64) {
            // Base64 is ASCII, and writing to a string cannot fail.
            let _ = writeln!(text, "{}", String::from_utf8_lossy(line));
        }
        text.push_str("-----END CERTIFICATE-----\n");
    }
    text
}

fn config(release: &Release, layer: &str) -> Value {
    json!({
        "created": release.timestamp(),
        "architecture": "amd64",
        "os": "linux",
        "config": {
            "User": format!("{USER}:{USER}"),
            "ExposedPorts": {"8080/tcp": {}},
            "Env": ["PATH=/usr/bin", "XDG_RUNTIME_DIR=/run"],
            "Entrypoint": ["/usr/bin/sooner"],
            "Cmd": ["serve", "--listen", "0.0.0.0:8080", "/srv/www"],
            "WorkingDir": "/",
            "StopSignal": "SIGTERM",
            "Labels": labels(release),
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{layer}")]},
        "history": [{"created": release.timestamp(), "created_by": "cargo xtask package"}],
    })
}

fn labels(release: &Release) -> Value {
    json!({
        "org.opencontainers.image.title": "sooner",
        "org.opencontainers.image.description":
            "Servers answer sooner by deciding who goes first",
        "org.opencontainers.image.version": release.version,
        "org.opencontainers.image.revision": release.commit,
        "org.opencontainers.image.created": release.timestamp(),
        "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn every_digest_is_that_of_its_blob() {
        let texts = Texts {
            third_party: "texts",
            sbom: "{}",
        };
        let release = Release::for_tests();
        let image = archive(&release, b"program".to_vec(), &texts).unwrap();
        assert_eq!(
            image,
            archive(&release, b"program".to_vec(), &texts).unwrap()
        );
        let mut blobs = Vec::new();
        let mut index = Value::Null;
        for entry in tar::Archive::new(image.as_slice()).entries().unwrap() {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().display().to_string();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            if let Some(digest) = path.strip_prefix("blobs/sha256/") {
                assert_eq!(sha256(&bytes), digest);
                blobs.push(format!("sha256:{digest}"));
            } else if path == "index.json" {
                index = serde_json::from_slice(&bytes).unwrap();
            }
        }
        assert_eq!(blobs.len(), 3);
        let manifest = index["manifests"][0]["digest"].as_str().unwrap();
        assert!(blobs.iter().any(|blob| blob == manifest));
    }

    #[test]
    fn the_authorities_are_certificates() {
        let text = authorities();
        assert!(text.matches("BEGIN CERTIFICATE").count() > 100);
        assert!(text.lines().all(|line| line.len() <= 64));
    }
}
