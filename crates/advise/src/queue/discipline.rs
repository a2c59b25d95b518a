//! In which way the servers work: they share, or they take requests one after the other.
//!
//! Each way gives other times that requests would take alone. In the right one these have nothing
//! to do with how many were inside when a request came, which is what decides here. Servers that
//! take requests one after the other also let no request leave before it can have begun.

use super::inside::{Visit, inside_at_arrival};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Visits that are looked at.
const LOOKED_MAX: usize = 100_000;
/// Fewer say nothing.
const LOOKED_MIN: usize = 200;
/// Servers that are tried one by one; beyond them only those about the likeliest number.
const TRIED: usize = 8;
/// Neighbours of the likeliest number that are tried.
const NEIGHBOURS: usize = 3;
/// Of the requests so many may leave too early: clocks are read late at times.
const EARLY_SHARE: f64 = 0.005;
/// What leaves too early by less than this part of the mean time is chance.
const EARLY_PART: f64 = 0.01;
/// So many deviations of the chi-square are no chance.
const DEVIATIONS: f64 = 4.0;
/// The other way must fit so much better.
const BETTER: f64 = 0.7;
/// More dependence than this, and a way does not explain the times.
const DEPENDENT: f64 = 0.1;
/// Groups of visits by how many they found inside: each has this part of all, or more.
const GROUPS: usize = 10;
/// Classes of visits by what they would take alone.
const CLASSES: usize = 4;

/// How the servers work on the requests inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Discipline {
    /// All inside share.
    Shared,
    /// First come, first served: as many at a time as there are servers, each to its end.
    InTurn,
    /// Sharing is assumed; the log is too short or its clock too coarse to tell.
    Unknown,
    /// Sharing is assumed, but neither explains the times.
    Neither,
}

/// What is found, and what each visit would take alone, ns.
pub struct Found {
    /// The way.
    pub discipline: Discipline,
    /// So many at a time, where they are taken one after the other.
    pub servers: Option<usize>,
    /// Alone, by visit.
    pub alone_ns: Vec<f64>,
}

/// How times alone depend on how many were inside on arrival.
#[derive(Clone, Copy, Debug)]
struct Dependence {
    /// Chi-square over the number of visits.
    share: f64,
    /// Whether it is no chance.
    is_sure: bool,
    /// Above 0 where those who found more inside took longer.
    trend: f64,
}

/// The way that the log shows; `shared_ns` is what each would take alone if they share, and `peak`
/// the most inside.
pub fn found(visits: &[Visit], shared_ns: Vec<f64>, peak: usize, resolution_ns: u64) -> Found {
    let of = |discipline, servers, alone_ns| Found {
        discipline,
        servers,
        alone_ns,
    };
    let looked = &visits[..visits.len().min(LOOKED_MAX)];
    let tolerance_ns = 2.0 * resolution_ns as f64;
    let took_ns = mean(looked.iter().map(Visit::inside_ns));
    if looked.len() < LOOKED_MIN || took_ns <= tolerance_ns || peak < 2 {
        return of(Discipline::Unknown, None, shared_ns);
    }
    let evidence = Evidence {
        order: arrivals(looked, resolution_ns),
        visits: looked,
        inside: inside_at_arrival(looked),
        resolution_ns,
        early_ns: tolerance_ns + EARLY_PART * took_ns,
    };
    let shared = evidence.dependence(&shared_ns[..looked.len()]);
    let in_turn = evidence.servers(peak - 1);
    let fits = in_turn.filter(|(_, turn)| shared.is_sure && turn.share < BETTER * shared.share);
    match fits {
        Some((servers, turn)) if turn.share < DEPENDENT || !turn.is_sure => {
            let order = arrivals(visits, resolution_ns);
            let alone_ns = in_turn_ns(visits, &order, servers).0;
            of(Discipline::InTurn, Some(servers), alone_ns)
        }
        _ if shared.is_sure && shared.share >= DEPENDENT => {
            of(Discipline::Neither, None, shared_ns)
        }
        _ => of(Discipline::Shared, None, shared_ns),
    }
}

/// The visits that are looked at.
struct Evidence<'a> {
    visits: &'a [Visit],
    order: Vec<u32>,
    inside: Vec<usize>,
    resolution_ns: u64,
    early_ns: f64,
}

impl Evidence<'_> {
    /// The number of servers, up to `most`, under which times alone depend the least on how many
    /// were inside; none where requests would have left before they began.
    fn servers(&self, most: usize) -> Option<(usize, Dependence)> {
        let of = |servers: usize| {
            let (alone_ns, earliest_ns) = in_turn_ns(self.visits, &self.order, servers);
            let early = earliest_ns.iter().filter(|ns| **ns < -self.early_ns);
            let early_share = early.count() as f64 / self.visits.len() as f64;
            (early_share, self.dependence(&alone_ns))
        };
        // Too few servers leave too much to the wait, too many leave the wait in the times.
        let (mut low, mut high) = (1, most);
        while low < high {
            let middle = low.midpoint(high);
            if of(middle).1.trend < 0.0 {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let near = low.saturating_sub(NEIGHBOURS).max(1)..=(low + NEIGHBOURS).min(most);
        let tried = (1..=TRIED.min(most)).chain(near.filter(|servers| *servers > TRIED));
        tried
            .map(|servers| (servers, of(servers)))
            .filter(|(_, (early_share, _))| *early_share <= EARLY_SHARE)
            .map(|(servers, (_, dependence))| (servers, dependence))
            .min_by(|one, other| one.1.share.total_cmp(&other.1.share))
    }

    /// Chi-square of the classes of times by the groups of those inside on arrival.
    fn dependence(&self, alone_ns: &[f64]) -> Dependence {
        let none = Dependence {
            share: 0.0,
            is_sure: false,
            trend: 0.0,
        };
        let all = alone_ns.len() as f64;
        let mean_ns = mean(alone_ns.iter().copied());
        let variance = mean(alone_ns.iter().map(|ns| (ns - mean_ns).powi(2)));
        if variance.sqrt() < 2.0 * self.resolution_ns as f64 {
            // What differs is the clock.
            return none;
        }
        let groups = groups(&self.inside);
        let classes = classes(alone_ns);
        let last = groups.iter().max().map_or(0, |last| last + 1);
        let mut counts = vec![[0.0; CLASSES]; last];
        for (group, class) in groups.iter().zip(&classes) {
            counts[*group][*class] += 1.0;
        }
        let by_class = |class: usize| counts.iter().map(|row| row[class]).sum::<f64>();
        let columns: [f64; CLASSES] = std::array::from_fn(by_class);
        let filled = columns.iter().filter(|column| **column > 0.0).count();
        let mut chi2 = 0.0;
        for row in &counts {
            let sum: f64 = row.iter().sum();
            for (seen, column) in row.iter().zip(columns) {
                let expected = sum * column / all;
                if expected > 0.0 {
                    chi2 += (seen - expected).powi(2) / expected;
                }
            }
        }
        let freedom = (last.saturating_sub(1) * filled.saturating_sub(1)) as f64;
        let (mean_group, mean_class) = (
            mean(groups.iter().map(|group| *group as f64)),
            mean(classes.iter().map(|class| *class as f64)),
        );
        let products = groups
            .iter()
            .zip(&classes)
            .map(|(group, class)| (*group as f64 - mean_group) * (*class as f64 - mean_class));
        Dependence {
            share: chi2 / all,
            is_sure: chi2 > freedom + DEVIATIONS * (2.0 * freedom).sqrt(),
            trend: mean(products),
        }
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (n, sum) = values.fold((0_u64, 0.0), |(n, sum), value| (n + 1, sum + value));
    sum / n.max(1) as f64
}

/// Places of the visits by when they went in. Where the clock leaves open which of two was first,
/// the one that left first is.
fn arrivals(visits: &[Visit], resolution_ns: u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..visits.len() as u32).collect();
    let of = |place: u32| &visits[place as usize];
    order.sort_by_key(|place| (of(*place).enter_ns, of(*place).leave_ns));
    for at in 1..order.len() {
        let mut place = at;
        while place > 0 {
            let (before, after) = (of(order[place - 1]), of(order[place]));
            let is_open = after.enter_ns < before.enter_ns.saturating_add(2 * resolution_ns);
            if !is_open || before.leave_ns <= after.leave_ns {
                break;
            }
            order.swap(place - 1, place);
            place -= 1;
        }
    }
    order
}

/// What each visit would take alone if so many servers take one after the other in this order: from
/// the later of its arrival and of a server's being free to its departure, ns. Also the same where
/// it is below 0, because it left before it can have begun.
fn in_turn_ns(visits: &[Visit], order: &[u32], servers: usize) -> (Vec<f64>, Vec<f64>) {
    let mut busy_until: BinaryHeap<Reverse<u64>> = BinaryHeap::with_capacity(servers + 1);
    let (mut alone_ns, mut signed_ns) = (vec![0.0; visits.len()], vec![0.0; visits.len()]);
    for place in order {
        let visit = &visits[*place as usize];
        let mut begin_ns = visit.enter_ns;
        if busy_until.len() >= servers
            && let Some(Reverse(free_ns)) = busy_until.pop()
        {
            begin_ns = begin_ns.max(free_ns);
            busy_until.push(Reverse(free_ns.max(visit.leave_ns)));
        } else {
            busy_until.push(Reverse(visit.leave_ns));
        }
        let took_ns = visit.leave_ns as f64 - begin_ns as f64;
        signed_ns[*place as usize] = took_ns;
        // What takes no time by the log's clock takes some.
        alone_ns[*place as usize] = took_ns.max(1.0);
    }
    (alone_ns, signed_ns)
}

/// The group of each: neighbours in number are put together until a group is large enough.
fn groups(inside: &[usize]) -> Vec<usize> {
    let most = inside.iter().max().map_or(0, |most| most + 1);
    let mut counts = vec![0_usize; most];
    inside.iter().for_each(|number| counts[*number] += 1);
    let (mut group, mut sum) = (0, 0);
    let mut of_number = vec![0; most];
    for (number, count) in counts.iter().enumerate() {
        of_number[number] = group;
        sum += count;
        if sum >= inside.len().div_ceil(GROUPS) {
            (group, sum) = (group + 1, 0);
        }
    }
    inside.iter().map(|number| of_number[*number]).collect()
}

/// The class of each: its quarter.
fn classes(alone_ns: &[f64]) -> Vec<usize> {
    let mut sorted = alone_ns.to_vec();
    sorted.sort_by(f64::total_cmp);
    let borders: [f64; CLASSES - 1] =
        std::array::from_fn(|border| sorted[(border + 1) * sorted.len() / CLASSES]);
    let class = |ns: &f64| borders.iter().filter(|border| ns > border).count();
    alone_ns.iter().map(class).collect()
}

#[cfg(test)]
mod tests {
    use super::super::inside::tests::visit;
    use super::*;

    fn alone(visits: &[Visit], servers: usize) -> Vec<f64> {
        in_turn_ns(visits, &arrivals(visits, 1), servers).0
    }

    #[test]
    fn who_waited_begins_when_a_server_is_free() {
        let visits = [visit(0, 40), visit(10, 60), visit(20, 90), visit(100, 107)];
        assert_eq!(alone(&visits, 1), [40.0, 20.0, 30.0, 7.0]);
        assert_eq!(alone(&visits, 2), [40.0, 50.0, 50.0, 7.0]);
        assert_eq!(alone(&visits, 3), [40.0, 50.0, 70.0, 7.0]);
    }

    #[test]
    fn who_was_first_within_the_clock_is_who_left_first() {
        let visits = [visit(0, 50), visit(1, 30), visit(9, 60)];
        assert_eq!(arrivals(&visits, 1), [1, 0, 2]);
        assert_eq!(arrivals(&[visit(0, 50), visit(2, 30)], 1), [0, 1]);
    }

    #[test]
    fn few_visits_say_nothing() {
        let visits: Vec<Visit> = (0..50).map(|at| visit(at * 10, at * 10 + 30)).collect();
        let found = found(&visits, vec![1.0; 50], 3, 1);
        assert_eq!(
            (found.discipline, found.servers),
            (Discipline::Unknown, None)
        );
    }
}
