//! What is assumed, and what a log cannot say: one sentence each, only those that matter here.

use super::collected::Collected;
use super::discipline::Discipline;
use super::figures::Timed;
use sooner_report::number::{count, duration};

const SECOND_NS: u64 = 1_000_000_000;

/// How the servers are taken to work.
pub fn assumed(discipline: Discipline, servers: Option<usize>) -> String {
    let shared = "Assumed: requests in the servers share them equally, so a request slows down as the departures per request fall";
    match discipline {
        Discipline::InTurn => format!(
            "The servers take requests one after the other, first come, first served, {} at a time: arrivals and departures show it. From them follows what each request took alone.",
            count(servers.unwrap_or(1) as u64)
        ),
        Discipline::Shared => format!("{shared}; the times in the log agree with that."),
        Discipline::Unknown => format!(
            "{shared}. The log is too short or its clock too coarse to tell whether the servers take one request after the other instead; a limit would then give other means than those here."
        ),
        Discipline::Neither => format!(
            "{shared}, but the times in the log do not agree with that, nor with servers that take requests one after the other: do not rely on the means under a limit."
        ),
    }
}

/// The sentences.
pub fn caveats(collected: &Collected, timed: Timed) -> Vec<String> {
    let mut said = Vec::new();
    if collected.resolution_ns >= SECOND_NS {
        said.push("The log has whole seconds: requests are spread over their second, so which of them overlapped within it is a guess; log milliseconds ($msec) to know.".to_owned());
    }
    match timed {
        Timed::Whole => said.push(
            "The time taken is that of the whole request: it includes sending to slow clients and waiting in a queue; log the server's own time ($upstream_response_time) to exclude them.".to_owned(),
        ),
        Timed::AtServer if collected.waits.count() == 0 => said.push(
            "The time at the server includes waiting in it and in its backlog; in logs of a Sooner without `upstream_wait_ns` also the wait in Sooner's own queue.".to_owned(),
        ),
        Timed::AtServer => {}
    }
    if matches!(timed, Timed::AtServer) && collected.has_sending {
        said.push("The time at the server goes on until the last byte was sent, because a server that streams works until then: large responses to slow clients count as inside for longer than the server worked.".to_owned());
    }
    match collected.servers.len() {
        0 => said.push(
            "The log does not name the servers: they count as one server with one queue."
                .to_owned(),
        ),
        1 => {}
        more => said.push(format!(
            "{} servers answered: they count as one server, with one queue and the sum of their limits.",
            count(more as u64)
        )),
    }
    if collected.let_go() > 0 {
        said.push(format!(
            "{} requests of quieter hours count in the means and in the distribution of times, but are not simulated.",
            count(collected.let_go())
        ));
    }
    let mean_ms = collected
        .times
        .figures()
        .map_or(0.0, |times| times.mean_bytes)
        / 1e6;
    said.push(format!(
        "If the log has only one request in n, or is that of one of several proxies, it shows fewer requests inside than there were; times near the resolution of the clock are rough (the mean is {}).",
        duration(mean_ms)
    ));
    said
}
