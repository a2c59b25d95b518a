//! What is assumed, and what a log cannot say: one sentence each, only those that matter here.

use super::collected::Collected;
use super::figures::Timed;
use sooner_report::number::{count, duration};

const SECOND_NS: u64 = 1_000_000_000;

/// The sentences.
pub fn caveats(collected: &Collected, timed: Timed) -> Vec<String> {
    let mut said = vec![
        "Assumed: those inside share the servers equally, and a request takes as many times longer as departures a request are fewer; servers that take one request after the other have the same means and other extremes.".to_owned(),
    ];
    if collected.resolution_ns >= SECOND_NS {
        said.push("Times of whole seconds: requests are spread over their second, so who was inside together within it is a guess; log milliseconds ($msec) to know.".to_owned());
    }
    match timed {
        Timed::Whole => said.push(
            "The time taken is all that the request took: it includes sending to slow clients and, where a queue is, waiting; log the server's own time ($upstream_response_time) to leave that out.".to_owned(),
        ),
        Timed::AtServer if collected.waits.count() == 0 => said.push(
            "The time at the server includes waiting inside it, in its backlog too.".to_owned(),
        ),
        Timed::AtServer => {}
    }
    match collected.servers.len() {
        0 => said.push(
            "The log does not say how many servers answered: they are taken for one with one queue."
                .to_owned(),
        ),
        1 => {}
        more => said.push(format!(
            "{} servers answered: they are taken for one, with one queue and the sum of their limits.",
            count(more as u64)
        )),
    }
    if collected.let_go() > 0 {
        said.push(format!(
            "{} requests of quieter hours are in the means by Little's law and in the law of the times, not in what is played.",
            count(collected.let_go())
        ));
    }
    let mean_ms = collected
        .times
        .figures()
        .map_or(0.0, |times| times.mean_bytes)
        / 1e6;
    said.push(format!(
        "A log that has one request in n shows n times fewer inside, and so does one of several proxies; times of less than a few of the clock's steps are rough (the mean is {}).",
        duration(mean_ms)
    ));
    said
}
