//! How long packets wait beyond this host, by what each client's have ever taken.
//!
//! A client's excess is its least delay of the last moments less the least it ever had. Clients
//! with next to nothing under way (light ones) cannot wait in a queue of their own, so what they
//! wait for they share; the others may wait before their own narrow links.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};

/// Addresses remembered at most; the one not heard of for longest gives way.
const ADDRESSES_MAX: usize = 4096;
/// Delays of so long ago count, ns.
const WINDOW_NS: u64 = 200_000_000;
/// Those of light clients, which have few.
const LIGHT_WINDOW_NS: u64 = 400_000_000;
/// For so long they are kept, ns.
const KEPT_NS: u64 = 1_000_000_000;
/// A client that had more under way is not light for so long, ns.
const HEAVY_NS: u64 = 3_000_000_000;
/// What a client's least delay is, is not known before, ns.
const NEW_NS: u64 = 1_000_000_000;
/// A client is there when it was heard of within so long, ns.
const THERE_NS: u64 = 5_000_000_000;
/// While so little waits the least delays follow what is seen, ms.
const QUIET_MS: f64 = 2.5;
/// By this share of the excess, where that is at most so much, ms.
const FOLLOW: f64 = 0.05;
const FOLLOW_MS: f64 = 5.0;
/// The share by which they settle each step: a tenth of the way in a second.
const SETTLE: f64 = 0.01;
/// Delays kept at most.
const DELAYS_MAX: usize = 65_536;

/// What the clients wait for together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Waits {
    /// What all wait for, by the votes of those who can say, ms.
    pub common_ms: f64,
    /// The median of all clients, ms.
    pub median_ms: f64,
    /// Clients heard of just now.
    pub clients: usize,
    /// Light ones among them.
    pub lights: usize,
}

/// Clients that are asked by a trial.
#[derive(Debug)]
pub struct Asked {
    least_ms: HashMap<u128, f64>,
    /// Whether they are light; else they are all, of whom each may have a queue of its own.
    pub are_lights: bool,
}

impl Asked {
    /// How many they are.
    pub fn count(&self) -> usize {
        self.least_ms.len()
    }
}

#[derive(Debug, Clone, Copy)]
struct Known {
    least_ms: f64,
    first_ns: u64,
    last_ns: u64,
    /// When it last had much under way.
    heavy_ns: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Delay {
    client: u128,
    at_ns: u64,
    /// When the packet left.
    left_ns: u64,
    ms: f64,
    is_light: bool,
}

/// The clients by address.
#[derive(Debug, Default)]
pub struct Addresses {
    known: HashMap<u128, Known>,
    delays: VecDeque<Delay>,
    common_ms: f64,
    /// When light clients last voted.
    voted_ns: Option<u64>,
}

impl Addresses {
    /// A packet's delay, told at `at_ns`.
    pub fn note(&mut self, client: IpAddr, at_ns: u64, delay_ns: u64, is_light: bool) {
        let client = number(client);
        let ms = delay_ns as f64 / 1e6;
        if !self.known.contains_key(&client) {
            self.make_room();
            // Where a queue stands its least delay is less, if it is known for how much all wait.
            let is_said = self
                .voted_ns
                .is_some_and(|voted_ns| at_ns < voted_ns + NEW_NS / 2);
            let waits_ms = if is_said { 0.8 * self.common_ms } else { 0.0 };
            let fresh = Known {
                least_ms: (ms - waits_ms).max(0.0),
                first_ns: at_ns,
                last_ns: at_ns,
                heavy_ns: None,
            };
            self.known.insert(client, fresh);
        }
        let Some(known) = self.known.get_mut(&client) else {
            return;
        };
        known.last_ns = at_ns;
        known.least_ms = known.least_ms.min(ms);
        if !is_light {
            known.heavy_ns = Some(at_ns);
        }
        let is_light = is_light
            && known
                .heavy_ns
                .is_none_or(|heavy_ns| at_ns.saturating_sub(heavy_ns) > HEAVY_NS);
        if self.delays.len() == DELAYS_MAX {
            self.delays.pop_front();
        }
        self.delays.push_back(Delay {
            client,
            at_ns,
            left_ns: at_ns.saturating_sub(delay_ns),
            ms,
            is_light,
        });
    }

    /// What they wait for at `now_ns`, by packets that left at `since_ns` or later.
    pub fn waits(&mut self, now_ns: u64, since_ns: u64) -> Waits {
        let oldest_ns = now_ns.saturating_sub(KEPT_NS);
        while self
            .delays
            .front()
            .is_some_and(|delay| delay.at_ns < oldest_ns)
        {
            self.delays.pop_front();
        }
        let delays = || self.delays.iter().filter(|delay| delay.left_ns >= since_ns);
        let is_recent = |delay: &&Delay| delay.at_ns + WINDOW_NS >= now_ns;
        let of_all = self.excesses(delays().filter(is_recent));
        let of_lights = delays().filter(|delay| delay.is_light);
        let of_lights = of_lights.filter(|delay| delay.at_ns + LIGHT_WINDOW_NS >= now_ns);
        let of_lights = self.excesses(of_lights);
        let old = |excesses: &HashMap<u128, f64>| {
            let is_old = |client: &u128| {
                let known = self.known.get(client);
                known.is_some_and(|known| known.first_ns + NEW_NS < now_ns)
            };
            let old = excesses.iter().filter(|(client, _)| is_old(client));
            sorted(old.map(|(_, excess)| *excess))
        };
        let (mut all, lights) = (old(&of_all), old(&of_lights));
        if all.len() < 2 {
            all = sorted(of_all.values().copied());
        }
        if self.common_ms < QUIET_MS {
            self.follow(&of_all);
        }
        self.common_ms = match lights.len() {
            0 | 1 => at(&all, 0.2),
            2 => lights[0],
            count => lights[count / 3],
        };
        if lights.len() >= 2 {
            self.voted_ns = Some(now_ns);
        }
        Waits {
            common_ms: self.common_ms,
            median_ms: at(&all, 0.5),
            clients: all.len(),
            lights: lights.len(),
        }
    }

    /// What packets waited that left from `from_ns` to `until_ns`, ms, and of how many clients they
    /// are known; none: of none.
    pub fn waited(&self, from_ns: u64, until_ns: u64) -> Option<(f64, usize)> {
        let left = |delay: &&Delay| (from_ns..until_ns).contains(&delay.left_ns);
        let excesses = self.excesses(self.delays.iter().filter(left));
        let all = sorted(excesses.into_values());
        (!all.is_empty()).then(|| (at(&all, 0.2), all.len()))
    }

    /// What all ever had says nothing any more: what they had in the last second does.
    pub fn forget(&mut self) {
        let least_ms = self.least_since(0);
        self.known
            .retain(|client, known| match least_ms.get(client) {
                Some(least) => {
                    known.least_ms = *least;
                    true
                }
                None => false,
            });
    }

    /// Nothing waits, whatever it looks like: the least delays come closer to it slowly.
    pub fn settle(&mut self, now_ns: u64) {
        let recent = self
            .delays
            .iter()
            .filter(|delay| delay.at_ns + WINDOW_NS >= now_ns);
        for (client, excess) in self.excesses(recent) {
            if let Some(known) = self.known.get_mut(&client)
                && excess > 0.0
            {
                known.least_ms += SETTLE * excess;
            }
        }
    }

    /// How many were heard of lately.
    pub fn heard(&self, now_ns: u64) -> usize {
        let known = self.known.values();
        known
            .filter(|known| known.last_ns + THERE_NS > now_ns)
            .count()
    }

    /// What a trial is held against: the least delays of the last second, of those who are asked.
    pub fn asked(&self, now_ns: u64) -> Asked {
        let is_light = |client: &u128| {
            let heavy_ns = self.known.get(client).and_then(|known| known.heavy_ns);
            heavy_ns.is_none_or(|at_ns| at_ns + HEAVY_NS <= now_ns)
        };
        let mut least_ms = self.least_since(0);
        let are_lights = least_ms.keys().filter(|client| is_light(client)).count() >= 2;
        least_ms.retain(|client, _| !are_lights || is_light(client));
        Asked {
            least_ms,
            are_lights,
        }
    }

    /// What packets took in the last second, in the median, ms.
    pub fn typical_ms(&self) -> f64 {
        at(&sorted(self.delays.iter().map(|delay| delay.ms)), 0.5)
    }

    /// Of these, how many were heard of since `since_ns`, and how many of those were on their way
    /// for less time, by more than `by_ms`.
    pub fn fallen(&self, before: &Asked, since_ns: u64, by_ms: f64) -> (usize, usize) {
        let least_ms = self.least_since(since_ns);
        let now = before.least_ms.iter().filter_map(|(client, before_ms)| {
            let now_ms = least_ms.get(client)?;
            Some(before_ms - now_ms > by_ms)
        });
        now.fold((0, 0), |(heard, fallen), has_fallen| {
            (heard + 1, fallen + usize::from(has_fallen))
        })
    }

    /// Whether light clients have said within the last `within_ns` what they wait for.
    pub fn have_lights_voted(&self, now_ns: u64, within_ns: u64) -> bool {
        self.voted_ns
            .is_some_and(|voted_ns| voted_ns + within_ns > now_ns)
    }

    /// The least delay of each client since `since_ns`, of the last second at most, ms.
    fn least_since(&self, since_ns: u64) -> HashMap<u128, f64> {
        let mut least_ms = HashMap::new();
        for delay in self.delays.iter().filter(|delay| delay.at_ns >= since_ns) {
            let least = least_ms.entry(delay.client).or_insert(delay.ms);
            *least = delay.ms.min(*least);
        }
        least_ms
    }

    fn excesses<'a>(&self, delays: impl Iterator<Item = &'a Delay>) -> HashMap<u128, f64> {
        let mut least = HashMap::new();
        for delay in delays {
            let Some(known) = self.known.get(&delay.client) else {
                continue;
            };
            let excess = delay.ms - known.least_ms;
            let of_client = least.entry(delay.client).or_insert(excess);
            *of_client = excess.min(*of_client);
        }
        least
    }

    /// Otherwise a path that became longer would look like a queue from then on.
    fn follow(&mut self, excesses: &HashMap<u128, f64>) {
        for (client, excess) in excesses {
            if let Some(known) = self.known.get_mut(client)
                && *excess > 0.0
                && *excess < FOLLOW_MS
            {
                known.least_ms += FOLLOW * excess;
            }
        }
    }

    fn make_room(&mut self) {
        if self.known.len() < ADDRESSES_MAX {
            return;
        }
        // A quarter at once, so that a stream of new ones does not look for the oldest each time.
        let mut heard: Vec<u64> = self.known.values().map(|known| known.last_ns).collect();
        let (_, limit_ns, _) = heard.select_nth_unstable(ADDRESSES_MAX / 4);
        let limit_ns = *limit_ns;
        self.known.retain(|_, known| known.last_ns > limit_ns);
    }
}

/// One client: an address of IPv4, or the 64 bits of IPv6 that one has.
fn number(address: IpAddr) -> u128 {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => Ipv6Addr::to_bits(address) >> 64 << 64,
    }
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

fn at(sorted: &[f64], share: f64) -> f64 {
    let index = (sorted.len() as f64 * share) as usize;
    sorted.get(index).copied().unwrap_or(0.0)
}
