//! A page of stacked bars: what several things are made of, in parts.

use crate::escape::html as text;
use crate::html::{STYLE, unbroken};
use crate::number::significant;

/// A page.
pub struct Page {
    /// Its title.
    pub title: String,
    /// Under the title, a paragraph each.
    pub summary: Vec<String>,
    /// What parts are called, in the order of the bars' shares.
    pub parts: Vec<String>,
    /// One below the other.
    pub figures: Vec<Figure>,
}

/// Bars below one heading.
pub struct Figure {
    /// Above it.
    pub heading: String,
    /// What is to be seen.
    pub caption: String,
    /// From the top.
    pub bars: Vec<Bar>,
}

/// One bar, as wide as all others.
pub struct Bar {
    /// Before it.
    pub name: String,
    /// Behind it: what all of it is.
    pub whole: String,
    /// Of each part, in any unit.
    pub amounts: Vec<f64>,
}

/// Colours, in the order of the parts: for light pages, then for dark ones.
const COLOURS: [(&str, &str); 13] = [
    ("#0072b2", "#5db8f0"),
    ("#7cb9dd", "#2c6e9b"),
    ("#d55e00", "#f0894b"),
    ("#e89a5b", "#b55f1c"),
    ("#f2c49b", "#8a4a17"),
    ("#b0518b", "#e08fc0"),
    ("#d79fc1", "#a05a86"),
    ("#8a6d00", "#e0c04a"),
    ("#00815d", "#2fc79b"),
    ("#6fc3a8", "#1d7d62"),
    ("#a7d9c8", "#135746"),
    ("#9aa6b2", "#5b6673"),
    ("#d9dee4", "#3a444e"),
];

/// The whole file, which needs no network.
pub fn render(page: &Page) -> String {
    let title = text(&page.title);
    let summary: String = page
        .summary
        .iter()
        .map(|words| format!("<p>{}</p>\n", unbroken(&text(words))))
        .collect();
    let figures: String = page
        .figures
        .iter()
        .map(|figure| section(figure, &page.parts))
        .collect();
    let (style, legend) = (style(), legend(page));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title} - Sooner</title>\n<style>\n{STYLE}{style}</style>\n</head>\n<body>\n<main>\n\
         <h1>{title}</h1>\n{summary}{legend}{figures}</main>\n</body>\n</html>\n"
    )
}

fn style() -> String {
    let each = |dark: bool| -> String {
        let rules = COLOURS.iter().enumerate().map(|(at, (light, night))| {
            let colour = if dark { night } else { light };
            format!(".s{at}{{--c:{colour}}}")
        });
        rules.collect()
    };
    format!(
        ".stack{{display:flex;width:100%;min-width:160px;height:18px;border-radius:3px;overflow:hidden}}\n\
         .stack i{{background:var(--c);display:block;height:100%}}\n\
         td.stacked{{width:70%;padding-left:18px}}\n\
         {}\n@media (prefers-color-scheme: dark){{{}}}\n@media print{{.stack i{{print-color-adjust:exact}}}}\n",
        each(false),
        each(true)
    )
}

/// Only of parts that some bar has.
fn legend(page: &Page) -> String {
    let has = |at: usize| {
        let mut bars = page.figures.iter().flat_map(|figure| &figure.bars);
        bars.any(|bar| bar.amounts.get(at).is_some_and(|amount| *amount > 0.0))
    };
    let parts = page.parts.iter().enumerate().filter(|(at, _)| has(*at));
    let items: String = parts
        .map(|(at, name)| {
            let colour = at % COLOURS.len();
            format!(
                "<li><span class=\"dot s{colour}\"></span>{}</li>",
                text(name)
            )
        })
        .collect();
    format!("<ul class=\"legend\">{items}</ul>\n")
}

fn section(figure: &Figure, parts: &[String]) -> String {
    let bars: String = figure.bars.iter().map(|one| bar(one, parts)).collect();
    let (heading, caption) = (text(&figure.heading), text(&figure.caption));
    format!(
        "<h2>{heading}</h2>\n<p class=\"note\">{caption}</p>\n<div class=\"scroll\"><table><tbody>\n{bars}</tbody></table></div>\n"
    )
}

fn bar(bar: &Bar, parts: &[String]) -> String {
    let sum: f64 = bar.amounts.iter().sum();
    let pieces: String = bar
        .amounts
        .iter()
        .enumerate()
        .filter(|(_, amount)| **amount > 0.0)
        .map(|(at, amount)| {
            let percent = 100.0 * amount / sum;
            let name = parts.get(at).map_or("", String::as_str);
            let words = text(&format!("{name}: {} %", significant(percent)));
            let colour = at % COLOURS.len();
            format!("<i class=\"s{colour}\" style=\"width:{percent:.2}%\" title=\"{words}\"></i>")
        })
        .collect();
    let (name, whole) = (text(&bar.name), text(&bar.whole));
    format!(
        "<tr><th scope=\"row\">{name}</th><td class=\"stacked\"><span class=\"stack\" role=\"img\" aria-label=\"{name}\">{pieces}</span></td><td>{}</td></tr>\n",
        unbroken(&whole)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_has_its_parts_and_the_legend_only_those() {
        let page = Page {
            title: "Where <time> goes".into(),
            summary: vec!["All & more.".into()],
            parts: ["processor", "locks", "disk"].map(String::from).to_vec(),
            figures: vec![Figure {
                heading: "By class".into(),
                caption: String::new(),
                bars: vec![Bar {
                    name: "high".into(),
                    whole: "4 ms".into(),
                    amounts: vec![1.0, 3.0, 0.0],
                }],
            }],
        };
        let html = render(&page);
        for words in [
            "Where &lt;time&gt; goes",
            "title=\"locks: 75.0 %\"",
            "width:25.00%",
            "4\u{a0}ms",
        ] {
            assert!(html.contains(words), "{words} is not in {html}");
        }
        assert!(!html.contains("disk"));
    }
}
