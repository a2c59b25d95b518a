//! The page itself, from top to bottom.

use super::palette::Palette;
use super::{Case, Page, cases, claims, clients, figures, host, overview, words};
use crate::escape::html as text;
use crate::html::{STYLE, unbroken};

const OWN_STYLE: &str = include_str!("style.css");
const WORDS: &str = include_str!("words.html");

/// The whole file: no network, no script.
pub fn render(page: &Page) -> String {
    let palette = Palette::of(page);
    let title = text(&page.question);
    let parts = [
        format!("<p class=\"by\">{}</p>\n", by_line(page)),
        format!(
            "<p><strong>Published:</strong> {}</p>\n",
            text(&page.published)
        ),
        lead(page, &palette),
        claims::table(page),
        overview::table(page),
        figures::overall(page, &palette),
        sections(page, &palette),
        about(page),
    ];
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title} - Sooner</title>\n<style>\n{STYLE}{OWN_STYLE}</style>\n</head>\n<body>\n<main class=\"lab\">\n\
         <h1>{title}</h1>\n{}{WORDS}</main>\n</body>\n</html>\n",
        parts.concat()
    )
}

fn by_line(page: &Page) -> String {
    let name = text(&page.name);
    match page.rows.len() {
        0 => format!("Experiment {name}"),
        1 => format!("Experiment {name}, row {}", text(&page.rows[0])),
        _ => format!("Experiment {name}, rows {}", text(&page.rows.join(", "))),
    }
}

/// What is seen, the peer the page is about first.
fn lead(page: &Page, palette: &Palette) -> String {
    let headline = words::headline(page);
    if headline.is_empty() {
        return "<p class=\"lead\">There are no two servers to compare yet.</p>\n".to_owned();
    }
    let paragraph = |words: &String| format!("<p class=\"lead\">{}</p>\n", unbroken(&text(words)));
    let headline: String = headline.iter().map(paragraph).collect();
    let item = |words: &String| format!("<li>{}</li>\n", unbroken(&text(words)));
    let others: String = words::others(page, palette).iter().map(item).collect();
    if others.is_empty() {
        headline
    } else {
        format!(
            "{headline}<details><summary>The other servers in words</summary>\n<ul>\n{others}</ul></details>\n"
        )
    }
}

fn sections(page: &Page, palette: &Palette) -> String {
    let sections = page.cases.iter().enumerate();
    sections
        .map(|(index, case)| section(page, case, index, palette))
        .collect()
}

fn section(page: &Page, case: &Case, index: usize, palette: &Palette) -> String {
    let name = text(&case.name);
    let published = case.published.as_ref().map_or(String::new(), |words| {
        format!("<p><strong>Published:</strong> {}</p>\n", text(words))
    });
    let setup = details("Set-up", &definitions(&case.setup));
    if !case.is_measured() {
        return format!("<h2>{name}</h2>\n{published}<p class=\"note\">Not measured.</p>\n{setup}");
    }
    let (table, clients) = (cases::table(page, case, palette), clients::table(case));
    let host = host::table(case);
    let figures = figures::of_case(page, case, index, palette);
    format!("<h2>{name}</h2>\n{published}{table}{clients}{figures}{host}{setup}")
}

fn about(page: &Page) -> String {
    let configurations = page
        .configurations
        .iter()
        .map(|(name, config)| details(name, &format!("<pre>{}</pre>\n", text(config))));
    let configurations: String = configurations.collect();
    let heading = if configurations.is_empty() {
        ""
    } else {
        "<h2>Configurations</h2>\n"
    };
    let how = definitions(&page.about);
    format!("{heading}{configurations}<h2>How it was measured</h2>\n{how}")
}

fn details(summary: &str, inside: &str) -> String {
    format!(
        "<details><summary>{}</summary>\n{inside}</details>\n",
        text(summary)
    )
}

/// Names and values; what is to be typed is set as such.
fn definitions(pairs: &[(String, String)]) -> String {
    let row = |(name, value): &(String, String)| {
        let code = matches!(name.as_str(), "Command" | "Commit" | "Commits");
        let (name, value) = (text(name), text(value));
        if code {
            format!("<dt>{name}</dt><dd><code>{value}</code></dd>\n")
        } else {
            format!("<dt>{name}</dt><dd>{value}</dd>\n")
        }
    };
    let rows: String = pairs.iter().map(row).collect();
    format!("<dl>\n{rows}</dl>\n")
}
