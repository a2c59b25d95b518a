//! What the gate's demo found: as JSON (docs/json.md), as a table and as closing sentences, which
//! say what was measured and no more.

use super::Way;
use super::load::Measured;
use super::log::{self, Entry};
use super::others::OTHERS_MAX;
use serde::{Deserialize, Serialize};
use sooner_report::columns::aligned;
use sooner_report::number::{NO_VALUE, count, significant};
use sooner_stats::Verdict;

/// Everything, with what describes the set-up.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GateReport {
    /// Version of this form.
    pub schema: u32,
    /// Unit of the times.
    pub time_unit: String,
    /// This program's.
    pub version: String,
    /// What this program was built from, if that was known.
    pub commit: Option<String>,
    /// Processor, CPUs, kernel.
    pub machine: String,
    /// PostgreSQL and its version.
    pub database: String,
    /// Whether it waits for the disk.
    pub fsync: bool,
    /// Of both classes.
    pub clients: usize,
    /// Those who go first.
    pub high_clients: usize,
    /// In the database at a time, through the gate.
    pub limit_transactions: usize,
    /// Length of each run, s.
    pub seconds: u64,
    /// Of pauses and rows.
    pub seed: u64,
    /// What the database can do when no client pauses.
    pub capacity_transactions_per_sec: f64,
    /// Between two transactions of a client, ms.
    pub mean_pause_ms: f64,
    /// The runs, in the order in which they were made.
    pub ways: Vec<WayRun>,
    /// INVALID where other work shaped the figures.
    pub verdict: Verdict,
    /// Why, in one line; empty where it is VALID.
    pub verdict_reason: String,
}

/// Judges the runs: other work on the processors decides who waits as much as the gate does.
pub(super) fn verdict(ways: &[WayRun]) -> (Verdict, String) {
    let share = |run: &WayRun| run.others_share.unwrap_or(0.0);
    let worst = ways
        .iter()
        .max_by(|one, other| share(one).total_cmp(&share(other)));
    match worst {
        Some(run) if share(run) > OTHERS_MAX => {
            let reason = format!(
                "other work had {:.0} % of the processors ({}, run {}), more than {:.0} %: measure again while nothing else runs",
                100.0 * share(run),
                run.words(),
                run.repetition,
                100.0 * OTHERS_MAX,
            );
            (Verdict::Invalid, reason)
        }
        _ => (Verdict::Valid, String::new()),
    }
}

/// One run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WayRun {
    /// `direct`, `gate-fcfs` or `gate-priority`.
    pub way: String,
    /// From 1.
    pub repetition: u32,
    /// Time in which both classes ran, warm-up left out, s.
    pub measured_s: f64,
    /// Of both classes.
    pub transactions_per_sec: f64,
    /// The share of all processors that other work had meanwhile; `None` where the kernel does not
    /// say.
    pub others_share: Option<f64>,
    /// Those who go first.
    pub high: GroupFigures,
    /// The others.
    pub low: GroupFigures,
}

/// The transactions of a class in a run; times from the first command to the last answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GroupFigures {
    /// That ended in the measured time.
    pub transactions: u64,
    /// Their mean, ms.
    pub mean_ms: Option<f64>,
    /// 95th percentile, ms.
    pub p95_ms: Option<f64>,
    /// 99th percentile, ms.
    pub p99_ms: Option<f64>,
}

impl GroupFigures {
    fn of(log: &[Entry]) -> GroupFigures {
        GroupFigures {
            transactions: log.len() as u64,
            mean_ms: log::mean_ms(log),
            p95_ms: log::percentile_ms(log, 95),
            p99_ms: log::percentile_ms(log, 99),
        }
    }

    fn cells(&self) -> [String; 4] {
        let ms = |figure: Option<f64>| figure.map_or(NO_VALUE.to_owned(), significant);
        [
            count(self.transactions),
            ms(self.mean_ms),
            ms(self.p95_ms),
            ms(self.p99_ms),
        ]
    }
}

impl WayRun {
    /// The figures of a run.
    pub(super) fn new(
        way: Way,
        repetition: u32,
        measured: &Measured,
        others_share: Option<f64>,
    ) -> WayRun {
        let (high, low) = (&measured.high, &measured.low);
        let measured_s = measured.measured.as_secs_f64();
        WayRun {
            way: way.name().into(),
            repetition,
            measured_s,
            transactions_per_sec: (high.len() + low.len()) as f64 / measured_s,
            others_share,
            high: GroupFigures::of(high),
            low: GroupFigures::of(low),
        }
    }

    /// Both means in a line.
    pub(super) fn line(&self) -> String {
        let mean = |class: &GroupFigures| class.mean_ms.map_or(NO_VALUE.to_owned(), significant);
        format!(
            "  mean of high {} ms, of low {} ms",
            mean(&self.high),
            mean(&self.low)
        )
    }

    fn words(&self) -> &str {
        let way = Way::ALL.into_iter().find(|way| way.name() == self.way);
        way.map_or(&self.way, |way| way.words())
    }
}

impl GateReport {
    /// Set-up, table and what one sees.
    pub fn render(&self) -> String {
        let mut rows = vec![
            [
                "response time, ms",
                "class",
                "transactions",
                "mean",
                "p95",
                "p99",
                "all, per second",
            ]
            .map(str::to_owned),
        ];
        for run in &self.ways {
            for (class, figures) in [("high", &run.high), ("low", &run.low)] {
                let (name, rate) = match class {
                    "high" => (run.words(), significant(run.transactions_per_sec)),
                    _ => ("", String::new()),
                };
                let [n, mean, p95, p99] = figures.cells();
                rows.push([name.into(), class.into(), n, mean, p95, p99, rate]);
            }
        }
        let verdict = match self.verdict {
            Verdict::Valid => "VALID".to_owned(),
            Verdict::Invalid => format!("INVALID: {}", self.verdict_reason),
        };
        format!(
            "{}\n{}\n{}\n{verdict}\n",
            self.set_up(),
            aligned(&rows),
            self.closing()
        )
    }

    fn set_up(&self) -> String {
        format!(
            "{}, private, fsync {}; {}.\n{} clients, {} of them high, with a pause of {} ms in the mean between transactions; the database can do {} a second.\n\
             Through the gate at most {} transactions at a time. Seed {}, {} s a run, the first tenth not counted.\n",
            self.database,
            if self.fsync { "on" } else { "off" },
            self.machine,
            self.clients,
            self.high_clients,
            significant(self.mean_pause_ms),
            significant(self.capacity_transactions_per_sec),
            self.limit_transactions,
            self.seed,
            self.seconds,
        )
    }

    fn closing(&self) -> String {
        let high = |way| self.mean(way, |run| run.high.mean_ms);
        let low = |way| self.mean(way, |run| run.low.mean_ms);
        let rate = |way| self.mean(way, |run| Some(run.transactions_per_sec));
        let (first, direct, fcfs) = (Way::ClassPriority, Way::Direct, Way::FirstComeFirstServed);
        let ratio = |way| low(way) / high(way);
        let percent = |way| format!("{:.0} %", rate(way) / rate(direct) * 100.0);
        format!(
            "With class priority a low transaction takes {} times as long as a high one ({} and {} ms); directly {} times.\n\
             Beside directly, high ones take {} and low ones {} of the time.\n\
             Throughput through the gate is {} of what it is directly, {} with class priority.",
            significant(ratio(first)),
            significant(low(first)),
            significant(high(first)),
            significant(ratio(direct)),
            part(high(first), high(direct)),
            part(low(first), low(direct)),
            percent(fcfs),
            percent(first),
        )
    }

    /// Mean of a figure over the repetitions; not a number where there is none.
    fn mean(&self, way: Way, figure: impl Fn(&WayRun) -> Option<f64>) -> f64 {
        let runs = self.ways.iter().filter(|run| run.way == way.name());
        let figures: Vec<f64> = runs.filter_map(figure).collect();
        figures.iter().sum::<f64>() / figures.len() as f64
    }
}

fn part(one: f64, whole: f64) -> String {
    format!("{:.0} %", one / whole * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(way: Way, high_ms: f64, low_ms: f64, transactions_per_sec: f64) -> WayRun {
        let figures = |mean_ms| GroupFigures {
            transactions: 1234,
            mean_ms: Some(mean_ms),
            p95_ms: Some(2.0 * mean_ms),
            p99_ms: None,
        };
        WayRun {
            way: way.name().into(),
            repetition: 1,
            measured_s: 9.0,
            transactions_per_sec,
            others_share: Some(0.02),
            high: figures(high_ms),
            low: figures(low_ms),
        }
    }

    fn report() -> GateReport {
        GateReport {
            schema: 1,
            time_unit: "ms".into(),
            version: "0.1.0".into(),
            commit: None,
            machine: "2 CPUs".into(),
            database: "PostgreSQL 15.9".into(),
            fsync: false,
            clients: 50,
            high_clients: 5,
            limit_transactions: 5,
            seconds: 10,
            seed: 1,
            capacity_transactions_per_sec: 1000.0,
            mean_pause_ms: 25.0,
            ways: vec![
                run(Way::Direct, 20.0, 20.0, 1000.0),
                run(Way::FirstComeFirstServed, 21.0, 21.0, 990.0),
                run(Way::ClassPriority, 4.0, 24.0, 980.0),
            ],
            verdict: Verdict::Valid,
            verdict_reason: String::new(),
        }
    }

    #[test]
    fn the_closing_says_who_gains_and_who_pays() {
        assert_eq!(
            report().closing(),
            "With class priority a low transaction takes 6.00 times as long as a high one (24.0 and 4.00 ms); directly 1.00 times.\n\
             Beside directly, high ones take 20 % and low ones 120 % of the time.\n\
             Throughput through the gate is 99 % of what it is directly, 98 % with class priority."
        );
    }

    #[test]
    fn other_work_makes_it_invalid() {
        let mut report = report();
        assert_eq!(verdict(&report.ways).0, Verdict::Valid);
        report.ways[1].others_share = Some(0.314);
        (report.verdict, report.verdict_reason) = verdict(&report.ways);
        assert_eq!(report.verdict, Verdict::Invalid);
        let last = "INVALID: other work had 31 % of the processors (gate, first come first served, run 1), more than 10 %: measure again while nothing else runs\n";
        assert!(report.render().ends_with(last), "{}", report.render());
    }

    #[test]
    fn the_table_has_both_classes_of_each_way_and_says_that_nothing_is_kept() {
        let text = report().render();
        assert!(
            text.contains("PostgreSQL 15.9, private, fsync off"),
            "{text}"
        );
        let rows = |class: &str| {
            let is_row = |line: &&str| {
                line.contains("1,234") && line.split_whitespace().any(|word| word == class)
            };
            text.lines().filter(is_row).count()
        };
        assert_eq!((rows("high"), rows("low")), (3, 3), "{text}");
        assert!(text.contains("gate, class priority"), "{text}");
    }
}
