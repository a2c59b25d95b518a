//! All that is said of the queue, computed at the end of a log.

use super::caveats::{assumed, caveats};
use super::collected::Collected;
use super::curve::Curve;
use super::discipline::{self, Discipline};
use super::inside::{States, Visit, alone_ns};
use super::kinds::{Kinds, explained, ranked_rightly};
use super::law::{self, LawFigures};
use super::play::{Known, Played};
use super::tokens::TokenFigures;
use serde::Serialize;
use sooner_admission::Within;
use sooner_stats::order::percentile;

/// Kinds that are told of, those with the most time.
const KINDS_SHOWN: usize = 10;
/// Limits that are tried: as many as are enough, twice that, and so on.
const LIMITS_MAX: usize = 6;
/// A larger limit must be better by so much: a smaller one leaves the order more to decide.
const BETTER: f64 = 0.99;
/// Fewer requests are not played.
const PLAYED_MIN: usize = 100;

/// Which time counts as being inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Timed {
    /// The time at the server, which the log has.
    AtServer,
    /// All that the request took.
    Whole,
}

/// What a log says of the queue before the servers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QueueFigures {
    /// Requests that were inside.
    pub requests: u64,
    /// Requests without a time, or that did not come to a server.
    pub other_requests: u64,
    /// What their time is.
    pub timed: Timed,
    /// Their times.
    pub times: LawFigures,
    /// Times in a queue that there was; `null` where the log has none.
    pub waits: Option<LawFigures>,
    /// How many were inside.
    pub inside: Inside,
    /// What kinds tell of times.
    pub kinds: KindFigures,
    /// Tokens of language models; `null` where the log has none.
    pub tokens: Option<TokenFigures>,
    /// Times until the first token.
    pub first_token: Option<LawFigures>,
    /// Whether the servers share or take requests one after the other.
    pub discipline: Discipline,
    /// What the servers do with so many inside; `null` of too few requests.
    pub curve: Option<Curve>,
    /// Requests of the busiest hours, from which the curve and the orders are.
    pub played_requests: u64,
    /// Requests of quieter hours, because the log has too many.
    pub left_out_requests: u64,
    /// Limits that were tried; empty where the log does not show how many inside are enough.
    pub limits_tried: Vec<Limit>,
    /// As it was, and with the best of these limits under each order; empty likewise.
    pub orders: Vec<Order>,
    /// What is assumed and what the log cannot say, a sentence each.
    pub caveats: Vec<String>,
    /// The verdict, a sentence each.
    pub advice: Vec<String>,
}

/// How many requests were inside at a time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Inside {
    /// In the mean, by Little's law.
    pub mean: f64,
    /// In the mean of the busiest minute.
    pub busiest_minute: f64,
    /// The most at an instant, of the requests that were kept.
    pub peak: u64,
    /// Share of the minutes in which the mean is above 1, 2, 4 and so on: pairs.
    pub minutes_above: Vec<(u64, f64)>,
    /// Share of the time with at least 1, 2, 4 and so on inside, of the requests that were kept.
    pub time_with_at_least: Vec<(u64, f64)>,
    /// Minutes since the first, with the mean.
    pub by_minute: Vec<(f64, f64)>,
}

/// What kinds are and tell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KindFigures {
    /// Kinds among the requests that were kept.
    pub kinds: u64,
    /// Share of the variance of times that lies between kinds; `null` where times do not vary.
    pub explained_share: Option<f64>,
    /// Share of pairs of requests that are ranked correctly by what earlier requests let expect, by
    /// kind, tokens of the prompt and client; 0.5 is chance.
    pub ranked_rightly_share: Option<f64>,
}

/// A limit, and what it gives where the shortest expected goes in first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Limit {
    /// Most inside.
    pub limit: usize,
    /// Mean, ms.
    pub mean_ms: f64,
    /// 99 % are not longer.
    pub p99_ms: f64,
}

/// What requests get.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Order {
    /// `as-it-was`, `fifo`, `shortest`, `boost`, `hrrn` or `nudge` (by what is expected from those
    /// before), or `perfect` (by what it takes).
    pub order: &'static str,
    /// Most inside; `null` as it was.
    pub limit: Option<usize>,
    /// From the arrival at the queue to the departure from the server: mean, ms.
    pub mean_ms: f64,
    /// Half are not longer.
    pub p50_ms: f64,
    /// 99 % are not longer.
    pub p99_ms: f64,
    /// Of the kinds with the most time.
    pub by_kind: Vec<KindOutcome>,
}

/// What the requests of a kind get.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KindOutcome {
    /// The kind.
    pub kind: String,
    /// How many of it were kept.
    pub requests: u64,
    /// What one would take alone in the mean, ms.
    pub alone_ms: f64,
    /// Mean, ms.
    pub mean_ms: f64,
    /// 99 % are not longer, ms.
    pub p99_ms: f64,
}

/// The figures; none where all times are 0.
pub fn figures(
    collected: Collected,
    timed: Timed,
    other_requests: u64,
    kinds: &Kinds,
) -> Option<QueueFigures> {
    let times = law::figures(&collected.times)?;
    // The true times are up to so much later than those in the lines.
    let last_ns = collected.last_ns.saturating_add(collected.resolution_ns);
    let span_ns = (last_ns - collected.first_ns).max(1) as f64;
    let minutes = collected.minutes.figures(collected.first_ns, last_ns);
    let requests = collected.requests();
    let caveats = caveats(&collected, timed);
    let mut figures = QueueFigures {
        requests,
        other_requests,
        timed,
        waits: law::figures(&collected.waits),
        inside: Inside {
            mean: times.mean_ms * 1e6 * requests as f64 / span_ns,
            busiest_minute: minutes.busiest,
            peak: 0,
            minutes_above: minutes.above,
            time_with_at_least: Vec::new(),
            by_minute: minutes.by_minute,
        },
        times,
        kinds: KindFigures {
            kinds: 0,
            explained_share: None,
            ranked_rightly_share: None,
        },
        tokens: collected.tokens.figures(),
        first_token: law::figures(&collected.first_tokens),
        discipline: Discipline::Unknown,
        curve: None,
        played_requests: 0,
        left_out_requests: collected.let_go(),
        limits_tried: Vec::new(),
        orders: Vec::new(),
        caveats,
        advice: Vec::new(),
    };
    let resolution_ns = collected.resolution_ns;
    figures.play(&collected.into_visits(), kinds.names(), resolution_ns);
    let servers = figures.curve.as_ref().and_then(|curve| curve.servers);
    figures
        .caveats
        .insert(0, assumed(figures.discipline, servers));
    figures.advice = super::advice(&figures);
    Some(figures)
}

impl QueueFigures {
    /// Fills in what follows from who was inside together.
    fn play(&mut self, visits: &[Visit], names: &[String], resolution_ns: u64) {
        let states = States::of(visits);
        self.played_requests = visits.len() as u64;
        self.inside.peak = states.peak() as u64;
        self.inside.time_with_at_least = states.at_least();
        self.curve = Curve::of(&states, self.times.c2);
        let (stretch, alone, servers) = self.alone(visits, states.peak(), resolution_ns);
        let shown = most_time(visits, names.len());
        self.kinds = KindFigures {
            kinds: shown.len() as u64,
            explained_share: explained(visits, &alone, names.len()),
            ranked_rightly_share: ranked_rightly(visits, &alone, names),
        };
        let enough = self.curve.as_ref().and_then(|curve| curve.enough);
        let Some(enough) = enough.filter(|_| visits.len() >= PLAYED_MIN) else {
            return;
        };
        let played = Played {
            visits,
            alone_ns: &alone,
            stretch: &stretch,
            servers_in_turn: servers,
            kinds: names,
        };
        let (limit, shortest) = self.try_limits(&played, enough, states.peak());
        let shown = &shown[..shown.len().min(KINDS_SHOWN)];
        let mut add = |order, limit, responses: Vec<f64>| {
            let by_kind = by_kind(&played, &responses, shown);
            let [mean_ms, p50_ms, p99_ms] = summary(&responses);
            self.orders.push(Order {
                order,
                limit,
                mean_ms,
                p50_ms,
                p99_ms,
                by_kind,
            });
        };
        let was = |visit: &Visit| (visit.leave_ns - visit.at_ns) as f64;
        add("as-it-was", None, visits.iter().map(was).collect());
        add("fifo", Some(limit), played.responses(limit, Known::Nothing));
        add("shortest", Some(limit), shortest);
        for within in [Within::Boost, Within::Hrrn, Within::Nudge] {
            let responses = played.responses_in(within, limit, Known::Likes);
            add(within.name(), Some(limit), responses);
        }
        add(
            "perfect",
            Some(limit),
            played.responses(limit, Known::Everything),
        );
    }

    /// How many times as long as alone a request takes with so many inside, what each takes alone,
    /// ns, and how many servers take one after the other, if they do.
    fn alone(
        &mut self,
        visits: &[Visit],
        peak: usize,
        resolution_ns: u64,
    ) -> (Vec<f64>, Vec<f64>, Option<usize>) {
        let Some(curve) = &mut self.curve else {
            let stretch = vec![1.0];
            let alone = alone_ns(visits, &stretch);
            return (stretch, alone, None);
        };
        let stretch = curve.stretch(peak);
        let shared_ns = alone_ns(visits, &stretch);
        let found = discipline::found(visits, shared_ns, peak, resolution_ns);
        self.discipline = found.discipline;
        let Some(servers) = found.servers else {
            return (stretch, found.alone_ns, None);
        };
        curve.in_turn(servers);
        let times = |inside: usize| (inside as f64 / servers as f64).max(1.0);
        (
            (0..=peak).map(times).collect(),
            found.alone_ns,
            Some(servers),
        )
    }

    /// The limit under which the mean is shortest, and the response times then, ns. Where times
    /// vary much it is larger than what is enough: those inside overtake each other by sharing.
    fn try_limits(&mut self, played: &Played<'_>, enough: usize, peak: usize) -> (usize, Vec<f64>) {
        let mut best = (enough, f64::INFINITY, Vec::new());
        // Where one is taken after the other, more inside would leave the order less to decide.
        let most = played.servers_in_turn.map_or(peak, |_| enough);
        let doubled = |limit: &usize| Some(limit * 2).filter(|limit| *limit < most);
        for limit in std::iter::successors(Some(enough), doubled).take(LIMITS_MAX) {
            let responses = played.responses(limit, Known::Likes);
            let [mean_ms, _, p99_ms] = summary(&responses);
            self.limits_tried.push(Limit {
                limit,
                mean_ms,
                p99_ms,
            });
            if mean_ms < BETTER * best.1 {
                best = (limit, mean_ms, responses);
            }
        }
        (best.0, best.2)
    }
}

/// Numbers of the kinds that are there, those with the most time inside first.
fn most_time(visits: &[Visit], kinds: usize) -> Vec<u32> {
    let mut sums = vec![0.0; kinds];
    for visit in visits {
        sums[visit.kind as usize] += (visit.leave_ns - visit.enter_ns) as f64;
    }
    let mut numbers: Vec<u32> = (0..kinds as u32).collect();
    numbers.retain(|number| sums[*number as usize] > 0.0);
    numbers.sort_by(|one, other| sums[*other as usize].total_cmp(&sums[*one as usize]));
    numbers
}

fn by_kind(played: &Played<'_>, responses: &[f64], shown: &[u32]) -> Vec<KindOutcome> {
    let of = |number: &u32| {
        let places = (0..responses.len()).filter(|place| played.visits[*place].kind == *number);
        let (mut times, mut alone) = (Vec::new(), 0.0);
        for place in places {
            times.push(responses[place]);
            alone += played.alone_ns[place] / 1e6;
        }
        let requests = times.len() as u64;
        let [mean_ms, _, p99_ms] = summary(&times);
        KindOutcome {
            kind: played.kinds[*number as usize].clone(),
            requests,
            alone_ms: alone / requests.max(1) as f64,
            mean_ms,
            p99_ms,
        }
    };
    shown.iter().map(of).collect()
}

/// Mean, median and 99 %, ms.
fn summary(times_ns: &[f64]) -> [f64; 3] {
    let mean = times_ns.iter().sum::<f64>() / times_ns.len().max(1) as f64;
    let mut sorted: Vec<u64> = times_ns.iter().map(|ns| ns.round() as u64).collect();
    sorted.sort_unstable();
    let at = |per_mille| percentile(&sorted, per_mille).unwrap_or(0) as f64;
    [mean, at(500), at(990)].map(|ns| ns / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_nearest_rank() {
        let times =
            |count: u32| -> Vec<f64> { (1..=count).rev().map(|ms| f64::from(ms) * 1e6).collect() };
        assert_eq!(summary(&times(100)), [50.5, 50.0, 99.0]);
        assert_eq!(summary(&times(3)), [2.0, 2.0, 3.0]);
        assert_eq!(summary(&times(2)), [1.5, 1.0, 2.0]);
        assert_eq!(summary(&[]), [0.0; 3]);
    }
}
