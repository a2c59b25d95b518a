//! Text that goes into HTML or SVG, made harmless.

/// `text` with the five characters that mean something to HTML replaced by entities; fit for
/// elements and for quoted attributes.
pub fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_becomes_text() {
        assert_eq!(
            html(r#"<a href="x" id='y'>&</a>"#),
            "&lt;a href=&quot;x&quot; id=&#39;y&#39;&gt;&amp;&lt;/a&gt;"
        );
        assert_eq!(html("10 Mbit/s · größer"), "10 Mbit/s · größer");
    }
}
