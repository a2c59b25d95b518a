//! A listing to look at: one page without a script and without anything from elsewhere.

use super::entries::{Entries, Entry};
use super::text::{minute, push_html, size};
use sooner_http::target::push_escaped;

/// What a browser may do with the page: apply the style that is in it.
pub const CONTENT_SECURITY_POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}\
h1{font-size:1.25rem;overflow-wrap:anywhere}\
table{border-collapse:collapse;width:100%}\
th{text-align:left;font-weight:600}\
th,td{padding:.25rem .5rem;border-bottom:1px solid #8884}\
td:first-child{overflow-wrap:anywhere}\
.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}\
a{text-decoration:none}a:hover{text-decoration:underline}\
";

/// The page for the directory at `path`, as clients know it, no longer than about `bytes_max`.
pub fn page(path: &[u8], entries: &Entries, bytes_max: usize) -> String {
    let mut html = String::from("<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n");
    html.push_str("<meta name=\"viewport\" content=\"width=device-width\">\n<title>");
    push_title(&mut html, path);
    html.push_str("</title>\n<style>");
    html.push_str(STYLE);
    html.push_str("</style>\n<h1>");
    push_title(&mut html, path);
    html.push_str(
        "</h1>\n<table>\n<tr><th>Name<th class=\"n\">Size<th class=\"n\">Changed (UTC)\n",
    );
    if !path.is_empty() {
        html.push_str("<tr><td><a href=\"../\">../</a><td><td>\n");
    }
    let mut count = 0;
    for entry in &entries.list {
        if html.len() >= bytes_max {
            break;
        }
        push_row(&mut html, entry);
        count += 1;
    }
    html.push_str("</table>\n");
    if entries.is_cut || count < entries.list.len() {
        html.push_str(&format!("<p>There is more than the {count} names above.\n"));
    }
    html
}

fn push_title(html: &mut String, path: &[u8]) {
    html.push_str("Index of /");
    if !path.is_empty() {
        push_html(html, &String::from_utf8_lossy(path));
        html.push('/');
    }
}

fn push_row(html: &mut String, entry: &Entry) {
    let slash = if entry.is_directory { "/" } else { "" };
    // The dot keeps a colon in the name from ending a scheme.
    html.push_str("<tr><td><a href=\"./");
    push_escaped(html, &entry.name);
    html.push_str(slash);
    html.push_str("\">");
    push_html(html, &String::from_utf8_lossy(&entry.name));
    html.push_str(slash);
    html.push_str("</a><td class=\"n\">");
    if !entry.is_directory {
        html.push_str(&size(entry.size_bytes));
    }
    html.push_str("<td class=\"n\">");
    html.push_str(&minute(entry.modified));
    html.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn entries(names: &[&[u8]]) -> Entries {
        let entry = |name: &&[u8]| Entry {
            name: name.to_vec(),
            is_directory: name.ends_with(b"d"),
            size_bytes: 2048,
            modified: Duration::from_secs(1_795_293_667),
        };
        Entries {
            list: names.iter().map(entry).collect(),
            is_cut: false,
        }
    }

    #[test]
    fn names_are_text_and_links_whatever_they_hold() {
        let listed = entries(&[
            b"sub d",
            b"<script>alert('1')</script>\"&",
            b"javascript:x",
            b"a?b#c%41",
            b"\xff",
        ]);
        let html = page(b"x<y/z", &listed, 1 << 20);
        for part in [
            "<title>Index of /x&lt;y/z/</title>",
            "<a href=\"../\">../</a>",
            "<a href=\"./sub%20d/\">sub d/</a><td class=\"n\"><td class=\"n\">2026-11-21 20:41\n",
            "<a href=\"./%3Cscript%3Ealert%28%271%27%29%3C/script%3E%22%26\">&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&quot;&amp;</a><td class=\"n\">2.0 KiB<",
            "<a href=\"./javascript%3Ax\">",
            "<a href=\"./a%3Fb%23c%2541\">a?b#c%41</a>",
            "<a href=\"./%FF\">\u{fffd}</a>",
        ] {
            assert!(html.contains(part), "{part} in {html}");
        }
        assert!(!html.contains("<script") && !html.contains("There is more"));
        assert!(!page(b"", &listed, 1 << 20).contains("../"));
    }

    #[test]
    fn says_when_it_is_cut() {
        let mut listed = entries(&[b"a", b"b", b"c"]);
        assert!(page(b"", &listed, 1).contains("more than the 0 names"));
        listed.is_cut = true;
        assert!(page(b"", &listed, 1 << 20).contains("more than the 3 names"));
    }
}
