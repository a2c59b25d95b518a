//! `gzip` and `brotli`: what is compressed on its way, and how.

use super::globals::Globals;
use super::scope::Scope;
use super::tree::Directive;
use super::values;
use crate::document::Group;

/// The least that nginx compresses and a page may have, bytes.
const MINIMUM_MAX: u64 = 1 << 30;

/// The types by which Sooner sends files, and those that nginx and its users have for the same.
const SAME: [(&str, &[&str]); 5] = [
    (
        "text/javascript",
        &["application/javascript", "application/x-javascript"],
    ),
    ("application/xml", &["text/xml"]),
    ("image/x-icon", &["image/vnd.microsoft.icon"]),
    (
        "font/ttf",
        &["application/x-font-ttf", "application/x-font-truetype"],
    ),
    (
        "font/otf",
        &["application/x-font-opentype", "font/opentype"],
    ),
];

/// Whether answers of a scope are compressed.
pub fn is_on(scope: &Scope<'_>) -> bool {
    let says_so = |name: &str| scope.one(name).is_some_and(|own| own.first() == "on");
    says_so("gzip") || says_so("brotli")
}

/// The directive of a block that says whether its answers are compressed.
pub fn own<'a>(scope: &Scope<'a>) -> Option<&'a Directive> {
    scope.own_one("gzip").or_else(|| scope.own_one("brotli"))
}

impl<'a> Globals<'_, 'a> {
    /// All directives of this name, where answers are compressed.
    fn said(&self, name: &str) -> Vec<&'a Directive> {
        let scopes = self.servers.iter().map(|own| &own.scope);
        let mut all: Vec<&'a Directive> = Vec::new();
        for scope in [&self.http].into_iter().chain(scopes) {
            super::globals::deep(scope.own(), name, &mut |own| {
                if !all.iter().any(|other| std::ptr::eq(*other, own)) {
                    all.push(own);
                }
            });
        }
        all
    }

    /// `compress` of all sites.
    pub fn compress(&mut self) {
        if is_on(&self.http) {
            self.document.value(Group::Head, "compress", true);
        }
    }

    /// The table that says how.
    pub fn compression(&mut self) {
        let coded = |name: &str| self.said(name).iter().any(|own| own.first() == "on");
        if !coded("gzip") && !coded("brotli") {
            return;
        }
        let mut lines = Vec::new();
        let mut types = self.types();
        let has_all = types.iter().any(|own| own == "*");
        if !types.is_empty() && !has_all {
            types.insert(0, "text/html".into());
            types.dedup();
            lines.push(("types", crate::document::listed(&types)));
        }
        let least = self.number(&["gzip_min_length", "brotli_min_length"]);
        let least = least.into_iter().min().filter(|own| *own <= MINIMUM_MAX);
        lines.extend(least.map(|own| ("minimum_bytes", own.to_string())));
        for (name, key, most) in [
            ("gzip_comp_level", "gzip_level", 9),
            ("brotli_comp_level", "br_level", 11),
        ] {
            let level = self.number(&[name]).into_iter().max();
            lines.extend(level.map(|own| (key, own.clamp(1, most).to_string())));
        }
        let group = Group::Compression;
        let mut words = Vec::new();
        if types.is_empty() || has_all {
            words.push("without a list of types nginx compresses text/html alone, Sooner text, JSON, XML and the like");
        }
        if least.is_none() {
            words.push("nginx compresses from 20 bytes on, Sooner from 1024");
        }
        for word in words {
            self.document.comment(group, &format!("{word}."));
        }
        if lines.is_empty() {
            return;
        }
        self.document.table(group, "[compression]");
        for (key, value) in lines {
            self.document.value(group, key, value);
        }
    }

    fn types(&self) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for name in ["gzip_types", "brotli_types"] {
            for own in self.said(name) {
                for kind in &own.args {
                    let kind = kind.to_ascii_lowercase();
                    let parts: Vec<&str> = kind.split('/').collect();
                    let is_type = parts.len() == 2 && parts.iter().all(|part| is_token(part));
                    let is_one = kind == "*" || is_type;
                    if is_one && !all.contains(&kind) && kind != "text/html" {
                        all.push(kind);
                    }
                }
            }
        }
        // Upstreams may send either.
        for (own, others) in SAME {
            let is_said = all.iter().any(|kind| others.contains(&kind.as_str()));
            if is_said && !all.iter().any(|kind| kind == own) {
                all.push(own.to_owned());
            }
        }
        all
    }

    fn number(&self, names: &[&str]) -> Vec<u64> {
        let all = names.iter().flat_map(|name| self.said(name));
        all.filter_map(|own| values::bytes(own.first())).collect()
    }
}

fn is_token(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte);
    !text.is_empty() && text.bytes().all(allowed)
}
