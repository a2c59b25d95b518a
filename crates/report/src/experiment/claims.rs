//! Every claim in every case it is made for, with its verdict.

use super::{Claim, Page, Standing, spread};
use crate::escape::html as text;
use crate::number::{NO_VALUE, significant};

/// The table of claims; empty where nothing is claimed.
pub fn table(page: &Page) -> String {
    if page.claims.is_empty() {
        return String::new();
    }
    let bodies: String = page.claims.iter().map(body).collect();
    format!(
        "<h2>Claims</h2>\n<div class=\"scroll\"><table>\n<thead><tr><th scope=\"col\">Case</th><th scope=\"col\">Verdict</th>\
         <th scope=\"col\">Ours</th><th scope=\"col\">Limit</th><th scope=\"col\">Repetitions</th></tr></thead>\n\
         {bodies}</table></div>\n<p class=\"note\">Ours is the median over the seeds, with the least and the most. \
         Thin: one seed, or fewer than asked for.</p>\n"
    )
}

fn body(claim: &Claim) -> String {
    let rows: String = claim.standings.iter().map(|one| row(claim, one)).collect();
    format!(
        "<tbody>\n<tr><th scope=\"rowgroup\" colspan=\"5\">{}</th></tr>\n{rows}</tbody>\n",
        text(&claim.text)
    )
}

fn row(claim: &Claim, standing: &Standing) -> String {
    let (case, limit) = (text(&standing.case), text(&claim.limit));
    let ours = spread::cell(standing.value, significant);
    let count = standing
        .value
        .map_or(NO_VALUE.to_owned(), |value| value.n.to_string());
    let class = match (standing.value.is_some(), standing.holds) {
        (true, false) => "bad",
        (true, true) => "good",
        (false, _) => "note",
    };
    let verdict = standing.verdict();
    format!(
        "<tr><th scope=\"row\">{case}</th><td><span class=\"{class}\">{verdict}</span></td><td>{ours}</td>\
         <td>{limit}</td><td>{count}</td></tr>\n"
    )
}
