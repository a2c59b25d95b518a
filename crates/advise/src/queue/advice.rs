//! The verdict on the queue: whether a limit and an order would have given anything.

use super::curve::Curve;
use super::discipline::Discipline;
use super::figures::{Order, QueueFigures};
use sooner_report::number::{count, duration, significant};

/// A mean that is not this many times shorter would not be felt.
const GAIN_LOW: f64 = 1.05;
/// A kind that becomes this many times longer is named.
const LONGER: f64 = 1.05;
/// Kinds that are named.
const NAMED_MAX: usize = 3;
/// Departures that fall to this part with more inside are worth a sentence.
const FALLS: f64 = 0.9;
/// Pairs of which no more are ranked rightly say nothing of times.
const RANKED_LOW: f64 = 0.55;
/// Orders that a queue without knowledge of the future may have, the simplest first.
const ORDERS: [&str; 5] = ["fifo", "shortest", "boost", "hrrn", "nudge"];
/// Fewer are too few for more than a hint.
const REQUESTS_FEW: u64 = 1000;

/// One sentence each.
pub fn advice(figures: &QueueFigures) -> Vec<String> {
    let mut said = verdict(figures);
    if figures.requests < REQUESTS_FEW {
        said.push(format!(
            "Only {} requests have a time taken: a longer log gives a more certain answer.",
            count(figures.requests)
        ));
    }
    said
}

fn verdict(figures: &QueueFigures) -> Vec<String> {
    let peak = figures.inside.peak;
    let Some(curve) = &figures.curve else {
        return vec![format!(
            "The log says nothing of a limit: too few requests were in the servers at a time, {} at most.",
            count(peak)
        )];
    };
    let Some(enough) = curve.enough else {
        return vec![format!(
            "A limit gains nothing at this traffic: with more requests inside, up to {} at a time, more left per second, and the log never shows the servers at their capacity.",
            count(peak)
        )];
    };
    let order = |name: &str| figures.orders.iter().find(|order| order.order == name);
    let all = [order("as-it-was"), order("shortest"), order("perfect")];
    let ([Some(was), Some(shortest), Some(perfect)], Some((best, others))) =
        (all, best(&figures.orders))
    else {
        return vec!["The log says nothing of an order: too few requests.".into()];
    };
    let is_known = figures.discipline != Discipline::Unknown;
    let mut said = if was.mean_ms < GAIN_LOW * best.mean_ms {
        let limit = best.limit.unwrap_or(enough);
        vec![format!(
            "Nothing to gain: with a limit of {limit} the mean would have been {} in the best order, and was {}; with perfect knowledge of every time, {}.",
            duration(best.mean_ms),
            duration(was.mean_ms),
            duration(perfect.mean_ms)
        )]
    } else {
        gained(was, best, &others, perfect, is_known)
    };
    if !is_known {
        said.push("This log does not show whether the servers share or take requests one after the other: it is too short, or its clock too coarse. If they take one after the other, fifo is what they do already, and only another order can make the mean shorter; log milliseconds ($msec) to know.".into());
    }
    let is_in_turn = figures.discipline == Discipline::InTurn;
    said.extend(servers(curve, enough, is_in_turn, is_known));
    said.extend(too_few(figures, enough, was).filter(|_| is_known && !is_in_turn));
    if figures.discipline == Discipline::Neither {
        said.push("The log's times are neither those of servers that share nor those of servers that take requests one after the other: do not rely on this forecast.".into());
    }
    said.extend(ranking(figures, shortest, perfect));
    said
}

/// The simplest of the orders with the shortest mean, or as good as that; and the others worth
/// naming: `fifo` or `shortest`, and those with a shorter mean.
fn best(orders: &[Order]) -> Option<(&Order, Vec<&Order>)> {
    let named = |name: &&str| orders.iter().find(|order| order.order == *name);
    let all: Vec<&Order> = ORDERS.iter().filter_map(named).collect();
    let least_ms = all
        .iter()
        .map(|order| order.mean_ms)
        .fold(f64::INFINITY, f64::min);
    let best = *all
        .iter()
        .find(|order| order.mean_ms <= GAIN_LOW * least_ms)?;
    let first_two = &ORDERS[..2];
    let is_worth = |order: &&Order| {
        order.order != best.order
            && (first_two.contains(&order.order) || order.mean_ms < best.mean_ms)
    };
    Some((best, all.into_iter().filter(is_worth).collect()))
}

/// What the best order would have given, who would have paid, and how to try it.
fn gained(
    was: &Order,
    best: &Order,
    others: &[&Order],
    perfect: &Order,
    is_known: bool,
) -> Vec<String> {
    let limit = best.limit.unwrap_or(0);
    let others: Vec<(bool, String)> = others
        .iter()
        .map(|order| {
            let said = format!("{} {}", order.order, duration(order.mean_ms));
            (order.mean_ms < best.mean_ms, said)
        })
        .collect();
    let join = |is_better: bool| {
        let of = others.iter().filter(|(better, _)| *better == is_better);
        let of: Vec<&str> = of.map(|(_, said)| said.as_str()).collect();
        of.join(", ")
    };
    let better = match join(true) {
        none if none.is_empty() => none,
        some => format!(
            " {some}: too little apart from {} to be told from chance.",
            best.order
        ),
    };
    let worse = match join(false) {
        none if none.is_empty() => none,
        some => format!("{some}, and "),
    };
    let mut said = vec![format!(
        "{} limit of {limit} inside and order = \"{}\" would have made the mean {} times shorter: {} instead of {} (99 % within {} instead of {}). Others would have given: {worse}perfect knowledge of every time {}.{better}",
        if is_known {
            "A"
        } else {
            "If the servers share what is inside, a"
        },
        best.order,
        significant(was.mean_ms / best.mean_ms),
        duration(best.mean_ms),
        duration(was.mean_ms),
        duration(best.p99_ms),
        duration(was.p99_ms),
        duration(perfect.mean_ms)
    )];
    said.extend(longer(was, best));
    said.push(format!(
        "To try it: [[upstream]] with limit = {limit} (divided by the number of servers) or limit = \"auto\", and order = \"{}\", in the configuration of sooner serve.",
        best.order
    ));
    said
}

/// What the servers do, and with how many inside.
fn servers(curve: &Curve, enough: usize, is_in_turn: bool, is_known: bool) -> Vec<String> {
    let mut said = vec![format!(
        "{enough} requests inside are enough for {} departures per second, at least 95 % of the most{}.",
        significant(curve.per_sec(enough as f64)),
        match curve.servers {
            Some(1) if is_in_turn => ": one server takes one request after the other",
            Some(_) if is_in_turn => ": so many servers take one request after the other",
            Some(1) => ": as one server that shares would do",
            Some(_) => ": as that many servers that share would do",
            None => "",
        }
    )];
    // A coarse clock spreads departures over their second, and so hides how fast they were.
    if is_known && curve.last_per_sec < FALLS * curve.most_per_sec {
        said.push(format!(
            "With more requests inside the servers get slower: {} departures per second with the most inside, {} at best.",
            significant(curve.last_per_sec),
            significant(curve.most_per_sec)
        ));
    }
    said
}

/// What the fewest that are enough would have cost.
fn too_few(figures: &QueueFigures, enough: usize, was: &Order) -> Option<String> {
    let fewest = figures.limits_tried.first()?;
    (fewest.mean_ms > was.mean_ms * GAIN_LOW).then(|| {
        format!(
            "No more than {enough} inside would have made the mean {} instead of {}: times vary (C² {}), and with more inside, short requests overtake long ones even where nothing tells them apart.",
            duration(fewest.mean_ms),
            duration(was.mean_ms),
            significant(figures.times.c2)
        )
    })
}

/// Which kinds pay.
fn longer(was: &Order, best: &Order) -> Option<String> {
    let pairs = was.by_kind.iter().zip(&best.by_kind);
    let longer: Vec<String> = pairs
        .filter(|(was, now)| now.mean_ms > LONGER * was.mean_ms)
        .map(|(was, now)| {
            let times = significant(now.mean_ms / was.mean_ms);
            format!("{} ({times} times)", was.kind)
        })
        .collect();
    let more = longer.len().saturating_sub(NAMED_MAX);
    match longer.len() {
        0 => None,
        _ => Some(format!(
            "These would have taken longer in the mean: {}{}.",
            longer[..longer.len() - more].join(", "),
            if more > 0 {
                format!(" and {more} more kinds")
            } else {
                String::new()
            }
        )),
    }
}

/// Why an order by what is expected gives less than one by times.
fn ranking(figures: &QueueFigures, shortest: &Order, perfect: &Order) -> Option<String> {
    let ranked = figures.kinds.ranked_rightly_share?;
    let is_far = shortest.mean_ms > GAIN_LOW * perfect.mean_ms;
    (is_far && ranked < RANKED_LOW).then(|| {
        format!(
            "What is known of a request before it runs tells little of its time here: it ranks {} % of pairs correctly, and chance ranks 50 %.",
            significant(100.0 * ranked)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(order: &'static str, mean_ms: f64) -> Order {
        Order {
            order,
            limit: Some(4),
            mean_ms,
            p50_ms: mean_ms,
            p99_ms: mean_ms,
            by_kind: Vec::new(),
        }
    }

    fn chosen(means: [f64; 5]) -> (&'static str, String) {
        let names = ["fifo", "shortest", "boost", "hrrn", "nudge"];
        let mut orders = vec![order("as-it-was", 2000.0)];
        let named = names.into_iter().zip(means);
        orders.extend(named.map(|(name, mean_ms)| order(name, mean_ms)));
        orders.push(order("perfect", 100.0));
        let (best, others) = best(&orders).expect("orders");
        (
            best.order,
            gained(
                &orders[0],
                best,
                &others,
                orders.last().expect("some"),
                true,
            )[0]
            .clone(),
        )
    }

    #[test]
    fn the_order_that_is_named_is_the_best_one_or_says_why_not() {
        let (best, said) = chosen([491.0, 900.0, 469.0, 467.0, 600.0]);
        assert_eq!(best, "boost");
        assert!(said.contains("hrrn 467 ms"), "{said}");
        let (best, said) = chosen([480.0, 900.0, 469.0, 467.0, 600.0]);
        assert_eq!(best, "fifo");
        assert!(said.contains("too little apart"), "{said}");
        assert!(said.contains("boost 469 ms, hrrn 467 ms"), "{said}");
        assert_eq!(chosen([900.0, 400.0, 469.0, 467.0, 600.0]).0, "shortest");
    }
}
