//! A live page: one file that needs nothing else. Its script asks for `/status.json` once a second
//! and shows what it gets; without JavaScript there is a plain page instead, made here, that is
//! loaded anew every five seconds.
//!
//! What all pages share is the frame, the style and the first part of the script (`live.js`).

use std::hash::{BuildHasher, RandomState};

const FRAME: &str = include_str!("frame.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("live.js");

/// A page and what it shows at the moment.
pub struct Page<'a> {
    /// Its name.
    pub title: &'a str,
    /// HTML that the script fills.
    pub live: &'a str,
    /// CSS, behind what all pages have.
    pub style: &'a str,
    /// JavaScript, behind what all pages have.
    pub script: &'a str,
    /// HTML for a browser without JavaScript. It holds what strangers sent: `text::html` first.
    pub plain: String,
}

impl Page<'_> {
    /// The page, and the policy under which a browser may run it: only what carries this page's
    /// nonce, so that no name that a stranger chose can ever become a script.
    pub fn render(&self) -> (String, String) {
        let nonce = nonce();
        let page = FRAME
            .replace("@title@", self.title)
            .replace("@style@", STYLE)
            .replace("@own-style@", self.style)
            .replace("@live@", self.live)
            .replace("@script@", SCRIPT)
            .replace("@own-script@", self.script)
            .replace("@nonce@", &nonce)
            // Last, because it holds what strangers sent.
            .replace("@plain@", &self.plain);
        let policy = format!(
            "default-src 'none'; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; connect-src 'self'; img-src data:; base-uri 'none'; \
             form-action 'none'; frame-ancestors 'none'"
        );
        (page, policy)
    }
}

/// 128 bits that no attacker can guess: std seeds its hashers from the system's random numbers.
fn nonce() -> String {
    let half = || RandomState::new().hash_one(0_u8);
    format!("{:016x}{:016x}", half(), half())
}

/// A table; cells are HTML already.
pub fn table(caption: &str, columns: &[&str], rows: &[Vec<String>]) -> String {
    let head: String = columns
        .iter()
        .map(|column| format!("<th scope=\"col\">{column}</th>"))
        .collect();
    let row = |cells: &Vec<String>| {
        let (first, rest) = cells
            .split_first()
            .map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
        let rest: String = rest.iter().map(|cell| format!("<td>{cell}</td>")).collect();
        format!("<tr><th scope=\"row\">{first}</th>{rest}</tr>\n")
    };
    let body: String = rows.iter().map(row).collect();
    format!(
        "<h2>{caption}</h2>\n<div class=\"scroll\"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table></div>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(plain: &str) -> Page<'_> {
        Page {
            title: "Name",
            live: "<p id=\"one\"></p>",
            style: ".own { color: red }",
            script: "own();",
            plain: plain.to_owned(),
        }
    }

    #[test]
    fn only_what_has_the_nonce_may_run_and_it_is_another_each_time() {
        let (text, policy) = page("<h1>Now</h1>").render();
        let nonce = policy.split("'nonce-").nth(1).unwrap();
        let nonce = nonce.split('\'').next().unwrap();
        assert_eq!(text.matches(&format!("nonce=\"{nonce}\"")).count(), 2);
        assert_ne!(page("").render().1, policy);
        for part in [
            "<title>Name</title>",
            "id=\"one\"",
            ".own {",
            "own();",
            "<h1>Now",
        ] {
            assert!(text.contains(part), "{part}");
        }
    }

    #[test]
    fn nothing_is_put_into_what_strangers_sent() {
        let (text, policy) = page("@nonce@ @own-script@ @live@").render();
        assert!(text.contains("@nonce@ @own-script@ @live@"));
        assert!(!policy.contains('@'));
        let (text, _) = page("").render();
        for place in [
            "title",
            "style",
            "own-style",
            "live",
            "script",
            "own-script",
            "nonce",
            "plain",
        ] {
            assert!(!text.contains(&format!("@{place}@")), "{place}");
        }
    }
}
