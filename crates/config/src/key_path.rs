//! Which key a place in a TOML document belongs to: `site.redirect.from`.

use std::ops::Range;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

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

/// Removes the entry at `span`, or the one that holds it; whether there was one.
pub(super) fn leave_out(table: &mut DeTable<'_>, span: &Range<usize>) -> bool {
    for (_, value) in table.iter_mut() {
        let was_below = match value.get_mut() {
            DeValue::Table(below) => leave_out(below, span),
            DeValue::Array(items) => leave_out_of_items(items, span),
            _ => false,
        };
        if was_below {
            return true;
        }
    }
    let found = table
        .iter()
        .find(|(key, value)| key.span().contains(&span.start) || value.span() == *span);
    let name = found.map(|(key, _)| key.clone());
    name.is_some_and(|name| table.remove(&name).is_some())
}

fn leave_out_of_items(items: &mut DeArray<'_>, span: &Range<usize>) -> bool {
    let was_below = items.iter_mut().any(|item| match item.get_mut() {
        DeValue::Table(below) => leave_out(below, span),
        _ => false,
    });
    let is_one = |item: &Spanned<DeValue<'_>>| item.span() == *span;
    if was_below || !items.iter().any(is_one) {
        return was_below;
    }
    let mut others = DeArray::new();
    items
        .iter()
        .filter(|item| !is_one(item))
        .for_each(|item| others.push(item.clone()));
    *items = others;
    true
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
