//! How far a computation is, on standard error while that is a terminal: what takes more than two
//! seconds says so. It is gone when the results are there.

use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;

/// Between two pictures.
const TICK: Duration = Duration::from_millis(200);

/// A bar up to `length`, with `template` in indicatif's words.
pub fn bar(length: u64, template: &str) -> ProgressBar {
    styled(ProgressBar::new(length), template)
}

/// A computation that does not know how much is left: what it does, and for how long.
pub fn spinner(doing: &str) -> ProgressBar {
    let spinner = ProgressBar::new_spinner().with_message(doing.to_owned());
    let spinner = styled(spinner, "{spinner} {msg}, {elapsed}");
    spinner.enable_steady_tick(TICK);
    spinner
}

/// Computes while a spinner turns.
pub fn while_spinning<T>(doing: &str, compute: impl FnOnce() -> T) -> T {
    let spinner = spinner(doing);
    let result = compute();
    spinner.finish_and_clear();
    result
}

fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
