//! A listing for programs.

use super::entries::{Entries, Entry};
use super::text::second;
use serde::Serialize;
use sooner_http::target::push_escaped;

#[derive(Serialize)]
struct Item {
    name: String,
    href: String,
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    size_bytes: Option<u64>,
    modified: String,
}

/// The object for the directory at `path`, as clients know it, no longer than about `bytes_max`.
pub fn object(path: &[u8], entries: &Entries, bytes_max: usize) -> String {
    let mut path = String::from_utf8_lossy(path).into_owned();
    if !path.is_empty() {
        path.push('/');
    }
    let mut json = format!("{{\"path\":{},\"entries\":[", quoted(&format!("/{path}")));
    let mut count = 0;
    for entry in &entries.list {
        if json.len() >= bytes_max {
            break;
        }
        json.push_str(if count == 0 { "\n" } else { ",\n" });
        json.push_str(&serde_json::to_string(&item(entry)).unwrap_or_default());
        count += 1;
    }
    let is_complete = !entries.is_cut && count == entries.list.len();
    json.push_str(&format!("\n],\"is_complete\":{is_complete}}}\n"));
    json
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn item(entry: &Entry) -> Item {
    let mut href = String::from("./");
    push_escaped(&mut href, &entry.name);
    if entry.is_directory {
        href.push('/');
    }
    Item {
        name: String::from_utf8_lossy(&entry.name).into_owned(),
        href,
        kind: if entry.is_directory {
            "directory"
        } else {
            "file"
        },
        size_bytes: (!entry.is_directory).then_some(entry.size_bytes),
        modified: second(entry.modified),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::time::Duration;

    fn entry(name: &[u8], is_directory: bool) -> Entry {
        Entry {
            name: name.into(),
            is_directory,
            size_bytes: 5,
            modified: Duration::from_secs(1_795_293_667),
        }
    }

    #[test]
    fn is_json_whatever_the_names_hold() {
        let entries = Entries {
            list: vec![entry(b"d", true), entry(b"a\"b\n\xff", false)],
            is_cut: false,
        };
        let read: Value = serde_json::from_str(&object(b"x\"y", &entries, 1 << 20)).unwrap();
        assert_eq!(
            read,
            json!({
                "path": "/x\"y/",
                "entries": [
                    {"name": "d", "href": "./d/", "type": "directory", "modified": "2026-11-21T20:41:07Z"},
                    {"name": "a\"b\n\u{fffd}", "href": "./a%22b%0A%FF", "type": "file", "size_bytes": 5, "modified": "2026-11-21T20:41:07Z"},
                ],
                "is_complete": true,
            })
        );
        let cut: Value = serde_json::from_str(&object(b"", &entries, 1)).unwrap();
        assert_eq!(
            cut,
            json!({"path": "/", "entries": [], "is_complete": false})
        );
    }
}
