//! Claims held against figures.

/// Claims and whether they held, in the order they were made.
#[derive(Default)]
pub struct Checks {
    lines: Vec<(bool, String)>,
}

impl Checks {
    /// Holds `what`: a figure of at most `limit`.
    pub fn at_most(&mut self, what: &str, figure: f64, limit: f64) {
        self.claim(
            figure <= limit,
            format!("{what}: {figure:.3}, at most {limit:.3}"),
        );
    }

    /// Holds `what`: a figure of at least `limit`.
    pub fn at_least(&mut self, what: &str, figure: f64, limit: f64) {
        self.claim(
            figure >= limit,
            format!("{what}: {figure:.3}, at least {limit:.3}"),
        );
    }

    /// Holds a claim.
    pub fn claim(&mut self, held: bool, text: String) {
        eprintln!("{} {text}", verdict(held));
        self.lines.push((held, text));
    }

    /// Whether every claim held.
    pub fn all_passed(&self) -> bool {
        self.lines.iter().all(|(held, _)| *held)
    }

    /// All claims, one a line, as Markdown.
    pub fn table(&self) -> String {
        self.lines
            .iter()
            .map(|(held, text)| format!("- {} {text}\n", verdict(*held)))
            .collect()
    }

    /// The claims once more, together.
    pub fn print(&self) {
        println!("{}", self.table());
    }

    /// Takes over the claims of one part.
    pub fn extend(&mut self, other: Checks) {
        self.lines.extend(other.lines);
    }
}

fn verdict(held: bool) -> &'static str {
    if held { "PASS" } else { "FAIL" }
}

/// The middle of the figures; NaN without any.
pub fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => sorted[odd / 2],
        even => (sorted[even / 2 - 1] + sorted[even / 2]) / 2.0,
    }
}

/// Median and range, for a table.
pub fn spread(figures: &[f64], decimals: usize) -> String {
    let (low, high) = figures.iter().fold(
        (f64::INFINITY, f64::NEG_INFINITY),
        |(low, high), &figure| (low.min(figure), high.max(figure)),
    );
    format!(
        "{:.decimals$} ({low:.decimals$}-{high:.decimals$})",
        median(figures)
    )
}
