//! `workers`: response times of requests that compute, with `sooner attach cpu` beside their server
//! or without. The server has one core, its clients the other.

pub(super) mod asking;
pub(super) mod site;

use super::local::{CLIENT_CORE, SERVER_CORE};
use super::{Keys, Kind, figures, keys_of};
use crate::measure::bench::Bench;
use crate::measure::{Measure, Record};
use anyhow::{Context, Result, ensure};
use asking::{Arrival, Pages};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};
use serde::Deserialize;
use serde_json::{Map, Value};
use site::{PATHS_MAX, Program, Session, Site};
use sooner_simulator::{Policy, given};
use sooner_testbed::OwnedChild;
use std::time::{Duration, Instant};

/// A request computes at least and at most so long, ms, by a bounded Pareto law of this index.
const LEAST_MS: f64 = 2.3;
const MOST_MS: f64 = 1000.0;
const INDEX: f64 = 1.1;
/// Its mean, ms.
const MEAN_MS: f64 = 11.544;
/// Between the rounds of browsers, and over how much of it they begin where they do not at once.
const ROUND: Duration = Duration::from_millis(2500);
/// Requests that warm the server up.
const WARM_UP: u32 = 200;
/// Requests of each path before a way begins.
const LEARNED: u64 = 4;
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(50);
/// Bounds of the classes of sizes that are shown, ms.
const SIZES_MS: [f64; 4] = [3.0, 10.0, 30.0, 100.0];

/// `workers`.
#[derive(Debug)]
pub struct Workers {
    keys: WorkersKeys,
    ways: Vec<Way>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WorkersKeys {
    server: Program,
    #[serde(default = "fifty")]
    workers: u32,
    /// Where it may run, as taskset reads it.
    cores: Option<String>,
    /// Of its cores, by heavy-tailed requests.
    load: Option<f64>,
    #[serde(default = "twenty_five")]
    seconds: u64,
    /// Paths, each with requests that are about as long; each is asked for some times before a way
    /// begins. 0: all requests have the same one.
    #[serde(default)]
    paths: u8,
    /// Waits of 15 ms in each request, as for a database.
    #[serde(default)]
    waits: u32,
    /// Whether something else computes on its core, in a session of its own.
    #[serde(default)]
    has_hog: bool,
    pages: Option<PagesKeys>,
}

/// Browsers that fetch a text, then an image, by turns.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PagesKeys {
    browsers: u32,
    rounds: u32,
    text_ms: f64,
    image_ms: f64,
    /// Over how long they begin; 0: at once.
    #[serde(default)]
    spread_ms: f64,
    /// Whether both are files, of 1.7 and 44 KB.
    #[serde(default)]
    are_files: bool,
}

fn fifty() -> u32 {
    50
}

fn twenty_five() -> u64 {
    25
}

/// A way: attached with these flags, or not.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Way {
    attach: Option<Vec<String>>,
}

impl Workers {
    /// Its keys.
    pub fn of(keys: &mut Keys) -> Result<Box<dyn Kind>, (String, String)> {
        let own: WorkersKeys = keys.own()?;
        if own.load.is_some() == own.pages.is_some() {
            return Err(("load".into(), "either `load` or `pages`".into()));
        }
        if own.paths > PATHS_MAX {
            return Err(("paths".into(), format!("at most {PATHS_MAX}")));
        }
        Ok(Box::new(Self {
            keys: own,
            ways: keys.ways()?,
        }))
    }

    fn cores(&self) -> &str {
        self.keys.cores.as_deref().unwrap_or(SERVER_CORE)
    }

    fn measure(&self, bench: &Bench<'_>, site: &Site, way: &Way, turn: u32) -> Result<Row> {
        let hog = match self.keys.has_hog {
            true => Some(Session::start(bench, self.cores(), &hog())?),
            false => None,
        };
        let mut attached = match &way.attach {
            Some(flags) => Some(attach(bench, site, flags)?),
            None => None,
        };
        if attached.is_some() {
            self.learn(bench, site)?;
        }
        let begin = Instant::now();
        let hog_before_s = hog.as_ref().map_or(0.0, Session::cpu_s);
        let mut row = match (&self.keys.load, &self.keys.pages) {
            (Some(load), _) => self.open(bench, site, *load, turn)?,
            (_, Some(pages)) => self.pages(bench, site, pages, turn)?,
            _ => Row::new(),
        };
        if let Some(hog) = &hog {
            let share = (hog.cpu_s() - hog_before_s) / begin.elapsed().as_secs_f64();
            row.insert("hog_share".into(), share.into());
        }
        if let Some(child) = &mut attached {
            let status = bench.output(bench.sooner(&["attach", "status", "--json"]))?;
            let status: Vec<Value> = serde_json::from_str(&status)?;
            let own = status.into_iter().find(|one| one["server_pid"] == site.pid);
            row.insert("attached".into(), own.unwrap_or_default());
            let status = child.end();
            let has_ended_well = status.is_some_and(|status| status.success());
            ensure!(has_ended_well, "attach cpu: {}", child.message());
        }
        Ok(row)
    }

    /// Each path is asked for some times, one request after the other.
    fn learn(&self, bench: &Bench<'_>, site: &Site) -> Result<()> {
        let times = bench.seconds(LEARNED, 1);
        for class in 0..self.keys.paths {
            let ms = middle_of_class(class, self.keys.paths);
            let arrival = Arrival {
                at_s: 0.0,
                ms,
                class: Some(class),
            };
            let path = arrival.path(0);
            for _ in 0..times {
                let answer = async { Ok(asking::get(site.address, &path).await) };
                let answer = bench.block_on_work(answer)?;
                answer.context("the server gives no answer")?;
            }
        }
        Ok(())
    }

    /// Heavy-tailed requests at a load.
    fn open(&self, bench: &Bench<'_>, site: &Site, load: f64, seed: u32) -> Result<Row> {
        let cores = self.cores().split(',').count() as f64;
        let seconds = bench.seconds(self.keys.seconds, 4) as f64;
        let arrivals = arrivals(seed, load * cores, seconds, self.keys.paths);
        let before_s = site.cpu_s();
        let responses = asking::open(site.address, CLIENT_CORE, &arrivals, self.keys.waits)?;
        let answered: Vec<(f64, f64)> = arrivals
            .iter()
            .zip(&responses)
            .filter_map(|(arrival, response)| Some((arrival.ms, (*response)?)))
            .collect();
        let errors = arrivals.len() - answered.len();
        // What a request costs beyond what it computes.
        let sizes_ms: f64 = arrivals.iter().map(|arrival| arrival.ms).sum();
        let overhead_ms = 1000.0 * (site.cpu_s() - before_s) - sizes_ms;
        let overhead_ms = (overhead_ms / arrivals.len().max(1) as f64).max(0.0);
        let mut row = spread("", answered.iter().map(|one| one.1).collect());
        row.insert("errors".into(), errors.into());
        row.insert("overhead_ms".into(), overhead_ms.into());
        for (name, low, high) in classes_of_sizes() {
            let of_class = answered.iter().filter(|one| (low..high).contains(&one.0));
            let times: Vec<f64> = of_class.map(|one| one.1).collect();
            row.insert(name, mean(&times).into());
        }
        row.extend(ideals(&arrivals, overhead_ms, cores as u32));
        Ok(row)
    }

    fn pages(&self, bench: &Bench<'_>, site: &Site, keys: &PagesKeys, seed: u32) -> Result<Row> {
        let path = |ms: f64| format!("/w.php?us={}", (1000.0 * ms).round());
        let [text, image] = match keys.are_files {
            true => ["/text.html".to_owned(), "/image.jpg".to_owned()],
            false => [path(keys.text_ms), path(keys.image_ms)],
        };
        let rounds = match bench.seconds(1, 0) {
            0 => 2,
            _ => keys.rounds,
        };
        let pages = Pages {
            text,
            image,
            browsers: keys.browsers,
            rounds,
            period: ROUND,
            spread: Duration::from_secs_f64(keys.spread_ms / 1000.0),
        };
        let (text, image) = asking::pages(site.address, CLIENT_CORE, &pages, seed)?;
        let wanted = (keys.browsers * rounds) as usize;
        ensure!(
            text.len() == wanted && image.len() == wanted,
            "a page failed"
        );
        let mut row = spread("text_", text);
        row.extend(spread("image_", image));
        Ok(row)
    }
}

impl Kind for Workers {
    fn run(&self, bench: &Bench<'_>, measure: &Measure, record: &mut Record) -> Result<()> {
        bench.need(&["taskset", "setsid"])?;
        let site = Site::start(bench, self.keys.server, self.keys.workers, self.cores())?;
        bench.all_by_turns(measure, record, |_, way, turn| {
            let way = keys_of(measure.place_of_way(way), &self.ways).context("a way")?;
            self.measure(bench, &site, way, turn)
        })
    }
}

type Row = Map<String, Value>;

/// Computes until it is ended, ten minutes at most.
fn hog() -> Vec<String> {
    let words = ["timeout", "600", "sh", "-c", "while :; do :; done"];
    words.map(str::to_owned).to_vec()
}

/// `sooner attach cpu` that is ready.
fn attach(bench: &Bench<'_>, site: &Site, flags: &[String]) -> Result<OwnedChild> {
    let pid = site.pid.to_string();
    let mut command = bench.sooner(&["attach", "cpu", "--pid", &pid]);
    if let Some(port) = site.front_port {
        command.arg("--front-port").arg(port.to_string());
    }
    command.args(flags);
    let mut child = bench.start(command)?;
    let begin = Instant::now();
    loop {
        match child.next_line(LOOK) {
            Ok(line) if line.starts_with("ready") => return Ok(child),
            _ => {
                let is_over = child.has_ended() || begin.elapsed() > PATIENCE;
                ensure!(!is_over, "attach cpu is not ready: {}", child.message());
                bench.pause(Duration::ZERO)?;
            }
        }
    }
}

/// Poisson arrivals for so many seconds at a load of so many cores; the same for the same seed.
fn arrivals(seed: u32, load: f64, seconds: f64, paths: u8) -> Vec<Arrival> {
    let mut random = Pcg64Mcg::seed_from_u64(seed.into());
    let mut uniform = move || ((random.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    let mut at_s = 0.0;
    let mut arrivals = Vec::new();
    loop {
        at_s -= MEAN_MS / 1000.0 / load * uniform().ln();
        if at_s > seconds {
            return arrivals;
        }
        let cut = 1.0 - (LEAST_MS / MOST_MS).powf(INDEX);
        let ms = LEAST_MS / (1.0 - uniform() * cut).powf(1.0 / INDEX);
        let class = (paths > 0).then(|| class_of(ms, paths));
        arrivals.push(Arrival { at_s, ms, class });
    }
}

/// Of so many classes of sizes, each as wide as the others on a logarithmic scale: twenty are each
/// within a fifth.
fn class_of(ms: f64, paths: u8) -> u8 {
    let place = (ms / LEAST_MS).ln() / (MOST_MS / LEAST_MS).ln();
    ((place * f64::from(paths)) as u8).min(paths - 1)
}

/// What a request in the middle of a class computes, ms.
fn middle_of_class(class: u8, paths: u8) -> f64 {
    let place = (f64::from(class) + 0.5) / f64::from(paths);
    LEAST_MS * (MOST_MS / LEAST_MS).powf(place)
}

/// What the same arrivals would have taken on as many cores without overheads of ordering; on
/// several under least attained service alone.
fn ideals(arrivals: &[Arrival], overhead_ms: f64, cores: u32) -> Row {
    let job = |arrival: &Arrival| {
        let work_ns = (1e6 * (arrival.ms + overhead_ms)) as u64;
        ((1e9 * arrival.at_s) as u64, work_ns)
    };
    let jobs: Vec<given::Job> = arrivals.iter().map(job).collect();
    let mean_ms = |responses: Vec<u64>| {
        responses.iter().sum::<u64>() as f64 / 1e6 / responses.len().max(1) as f64
    };
    if cores > 1 {
        let las_ms = mean_ms(given::responses_of_several(cores, &jobs));
        return figures([("ideal_las_ms", las_ms)]);
    }
    let mean_of = |policy| mean_ms(given::responses(policy, &jobs));
    figures([
        ("ideal_ps_ms", mean_of(Policy::FAIR)),
        ("ideal_las_ms", mean_of(Policy::LAS)),
        ("ideal_srpt_ms", mean_of(Policy::SRPT)),
    ])
}

/// Names and bounds of the classes of sizes.
fn classes_of_sizes() -> Vec<(String, f64, f64)> {
    let lows = [0.0].into_iter().chain(SIZES_MS);
    let highs = SIZES_MS.into_iter().chain([f64::INFINITY]);
    let name = |at: usize| format!("size_{at}_ms");
    lows.zip(highs)
        .enumerate()
        .map(|(at, (low, high))| (name(at), low, high))
        .collect()
}

fn mean(times: &[f64]) -> f64 {
    times.iter().sum::<f64>() / times.len().max(1) as f64
}

/// Mean, quantiles and the largest, ms.
pub(super) fn spread(prefix: &str, mut times: Vec<f64>) -> Row {
    times.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let place = (share * times.len() as f64) as usize;
        times
            .get(place.min(times.len().saturating_sub(1)))
            .copied()
            .unwrap_or(0.0)
    };
    let all = [
        ("n", times.len() as f64),
        ("mean_ms", mean(&times)),
        ("p50_ms", at(0.5)),
        ("p90_ms", at(0.9)),
        ("p99_ms", at(0.99)),
        ("max_ms", at(1.0)),
    ];
    let named = |(name, value): (&str, f64)| (format!("{prefix}{name}"), value.into());
    all.into_iter().map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_have_the_load_and_are_the_same_for_a_seed() {
        let all = arrivals(1, 0.8, 20_000.0, 0);
        assert_eq!(all[..50], arrivals(1, 0.8, 20_000.0, 0)[..50]);
        let load = all.iter().map(|one| one.ms).sum::<f64>() / 1000.0 / 20_000.0;
        assert!((load / 0.8 - 1.0).abs() < 0.03, "{load}");
        assert!(all.iter().all(|one| (LEAST_MS..=MOST_MS).contains(&one.ms)));
    }

    #[test]
    fn a_path_has_requests_that_are_about_as_long() {
        let plain = arrivals(1, 0.8, 2_000.0, 0);
        let all = arrivals(1, 0.8, 2_000.0, 20);
        for (one, same) in all.iter().zip(&plain) {
            assert_eq!((one.at_s, one.ms), (same.at_s, same.ms));
            let class = one.class.unwrap();
            let ratio = one.ms / middle_of_class(class, 20);
            assert!((0.8..1.2).contains(&ratio), "{ratio}");
        }
        let of_class = |class| all.iter().filter(|one| one.class == Some(class)).count();
        assert!(of_class(0) > of_class(5) && of_class(5) > of_class(12));
        assert_eq!(
            all[0].path(0),
            format!(
                "/{}.php?us={}&waits=0",
                site::script_of(class_of(all[0].ms, 20)),
                (1000.0 * all[0].ms).round()
            )
        );
    }

    #[test]
    fn no_order_is_better_than_the_shortest_first() {
        let row = ideals(&arrivals(2, 0.8, 60.0, 0), 0.5, 1);
        let of = |name: &str| row[name].as_f64().unwrap();
        assert!(of("ideal_srpt_ms") < of("ideal_las_ms"));
        assert!(of("ideal_las_ms") < of("ideal_ps_ms"));
        // Two cores with twice as much to do keep a long one from holding up all others.
        let on_two = ideals(&arrivals(2, 1.6, 60.0, 0), 0.5, 2);
        let las_ms = on_two["ideal_las_ms"].as_f64().unwrap();
        assert!(las_ms < of("ideal_las_ms"), "{las_ms}");
    }

    #[test]
    fn a_spread_is_ordered() {
        let row = spread("x_", vec![3.0, 1.0, 2.0, 10.0]);
        let of = |name: &str| row[name].as_f64().unwrap();
        assert_eq!(
            [of("x_mean_ms"), of("x_p50_ms"), of("x_max_ms")],
            [4.0, 3.0, 10.0]
        );
        assert_eq!(spread("", vec![])["mean_ms"], 0.0);
    }
}
