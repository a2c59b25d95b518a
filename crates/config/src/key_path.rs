//! Which key a place in a TOML document belongs to: `site.redirect.from`.

use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The dotted name of the key or value at `span`; empty for the document itself.
pub(super) fn key_at(table: &DeTable<'_>, span: &Range<usize>) -> String {
    in_table(table, span).unwrap_or_default().join(".")
}

fn in_table<'a>(table: &'a DeTable<'_>, span: &Range<usize>) -> Option<Vec<&'a str>> {
    table.iter().find_map(|(key, value)| {
        let below =
            in_value(value, span).or_else(|| key.span().contains(&span.start).then(Vec::new))?;
        let name: &str = key.get_ref();
        Some([vec![name], below].concat())
    })
}

fn in_value<'a>(value: &'a Spanned<DeValue<'_>>, span: &Range<usize>) -> Option<Vec<&'a str>> {
    let below = match value.get_ref() {
        DeValue::Table(table) => in_table(table, span),
        DeValue::Array(array) => array.iter().find_map(|item| in_value(item, span)),
        _ => None,
    };
    below.or_else(|| (value.span() == *span).then(Vec::new))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key_of(text: &str, part: &str) -> String {
        let start = text.find(part).unwrap();
        let table = DeTable::parse(text).unwrap();
        key_at(table.get_ref(), &(start..start + part.len()))
    }

    #[test]
    fn keys_values_and_headers_have_a_name() {
        let text = "listen = [\"a\", \"b\"]\n[uplink]\nrate = \"1mbit\"\n[[site]]\nroot = \"x\"\n\
                    headers = { A = \"1\" }\n[[site.redirect]]\nfrom = \"/a\"\nlog.access = 5\n";
        assert_eq!(key_of(text, "listen"), "listen");
        assert_eq!(key_of(text, "\"b\""), "listen");
        assert_eq!(key_of(text, "[uplink]"), "uplink");
        assert_eq!(key_of(text, "rate"), "uplink.rate");
        assert_eq!(key_of(text, "\"1mbit\""), "uplink.rate");
        assert_eq!(key_of(text, "[[site]]"), "site");
        assert_eq!(key_of(text, "A ="), "site.headers.A");
        assert_eq!(key_of(text, "\"/a\""), "site.redirect.from");
        assert_eq!(key_of(text, "5"), "site.redirect.log.access");
        assert_eq!(key_of(text, "= ["), "");
    }
}
