//! What `sooner load tpcc run` and its like have in common: who triggers transactions, which
//! classes there are, what is printed.

use crate::output;
use std::ops::RangeInclusive;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use sooner_oltp::run::{Class, Group, Measured, Model, Options, Report};
use sooner_oltp::{Check, DatabaseUrl, Isolation, Kit, Statements};
use sooner_report::columns::aligned;
use sooner_report::number;

use crate::seconds;

/// Sessions where the command line does not say how many.
const SESSIONS: u32 = 200;
/// Rates, a second: the longest pauses between two are a year then, and time goes on between them.
const RATES: RangeInclusive<f64> = 1e-6..=1e6;
/// PostgreSQL cuts longer names of applications off.
const CLASS_NAME_MAX: usize = 63;
/// The class of who is in none.
const REST: &str = "rest";

/// What `check` takes.
#[derive(Args)]
pub struct CheckArgs {
    /// Database to check
    #[arg(long)]
    pub url: DatabaseUrl,
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct RunArgs {
    /// Database, or a gate in front of it
    #[arg(long)]
    pub url: DatabaseUrl,
    /// What triggers a transaction
    #[arg(long, value_enum, default_value = "closed")]
    model: ModelName,
    /// Closed: number of users
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    users: Option<u32>,
    /// Open: transactions per second; partly-open: visits per second
    #[arg(long, value_name = "N")]
    rate: Option<f64>,
    /// Partly-open: mean number of transactions in a visit
    #[arg(long, value_name = "N")]
    visit: Option<f64>,
    /// Mean pause between an answer and the next transaction, such as 1s or 500ms [default: no
    /// pause]
    #[arg(long, value_name = "TIME", value_parser = seconds::any)]
    think: Option<Duration>,
    /// Open and partly-open: most transactions at a time; further ones wait, and the wait is part
    /// of their response time [default: 200]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    sessions: Option<u32>,
    /// Class of a random share of the transactions, such as high=0.1, or of some kinds, such as
    /// buys=KIND,KIND; its connections have its name as application_name. Other transactions are in
    /// `rest`. Repeatable
    #[arg(long = "class", value_name = "NAME=SHARE|KINDS", value_parser = class)]
    classes: Vec<Class>,
    /// Isolation level of the transactions
    #[arg(long, value_enum, default_value = "read-committed")]
    isolation: IsolationName,
    /// How statements are sent: prepared by name, or parsed each time for a pooler that does not
    /// support names
    #[arg(long, value_enum, default_value = "prepared")]
    statements: StatementsName,
    /// Begin each transaction with a comment that contains its class and its kind
    #[arg(long)]
    remarks: bool,
    /// Measured part of the run, such as 60s or 5min
    #[arg(long = "for", value_name = "TIME", value_parser = seconds::run)]
    duration: Duration,
    /// Time before the measurement starts [default: a fifth of the run]
    #[arg(long, value_name = "TIME", value_parser = seconds::any)]
    warm_up: Option<Duration>,
    /// Seed of all random numbers
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print JSON instead of tables
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ModelName {
    /// A fixed number of users, each of whom continues after the answer
    Closed,
    /// The clock: transactions at random times
    Open,
    /// Both: visits at random times, of several transactions each
    PartlyOpen,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum IsolationName {
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum StatementsName {
    Prepared,
    Unnamed,
}

fn class(text: &str) -> Result<Class, String> {
    let wrong = || format!("`{text}`: write high=0.1, or buys=payment,new_order");
    let (name, rest) = text.split_once('=').ok_or_else(wrong)?;
    if name.is_empty() || rest.is_empty() {
        return Err(wrong());
    }
    // It goes into comments and rows of figures as it is.
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
    if name.len() > CLASS_NAME_MAX || !name.chars().all(is_plain) {
        return Err(format!(
            "`{text}`: the name of a class has at most {CLASS_NAME_MAX} letters, digits, `_`, `-` and `.`"
        ));
    }
    let (share, kinds) = match rest.parse::<f64>() {
        Ok(share) if share > 0.0 && share <= 1.0 => (share, Vec::new()),
        Ok(_) => {
            return Err(format!(
                "`{text}` is out of range; a share is above 0 and at most 1"
            ));
        }
        Err(_) => (0.0, rest.split(',').map(str::to_owned).collect()),
    };
    Ok(Class {
        name: name.to_owned(),
        share,
        kinds,
    })
}

impl RunArgs {
    /// What is to be run, of transactions of these kinds.
    pub fn options(&self, kinds: &[&str]) -> Result<Options> {
        Ok(Options {
            model: self.model()?,
            classes: self.classes(kinds)?,
            isolation: match self.isolation {
                IsolationName::ReadCommitted => Isolation::ReadCommitted,
                IsolationName::RepeatableRead => Isolation::RepeatableRead,
                IsolationName::Serializable => Isolation::Serializable,
            },
            statements: match self.statements {
                StatementsName::Prepared => Statements::Prepared,
                StatementsName::Unnamed => Statements::Unnamed,
            },
            warm_up: self.warm_up.unwrap_or(self.duration / 5),
            measured: self.duration,
            seed: self.seed,
            remarks: self.remarks,
        })
    }

    fn classes(&self, kinds: &[&str]) -> Result<Vec<Class>> {
        let mut classes: Vec<Class> = Vec::new();
        for class in &self.classes {
            if class.name == REST || classes.iter().any(|other| other.name == class.name) {
                bail!(
                    "--class: {} is given twice; give each class once",
                    class.name
                );
            }
            let is_known = |kind: &&String| kinds.contains(&kind.as_str());
            if let Some(unknown) = class.kinds.iter().find(|kind| !is_known(kind)) {
                let known = kinds.join(", ");
                bail!("--class: there is no kind {unknown}; there are {known}");
            }
            classes.push(class.clone());
        }
        let shares: f64 = classes.iter().map(|class| class.share).sum();
        if shares > 1.0 + 1e-9 {
            bail!("--class: the shares add up to {shares}; give at most 1 together");
        }
        classes.push(Class {
            name: REST.into(),
            share: 0.0,
            kinds: Vec::new(),
        });
        Ok(classes)
    }

    /// Refuses what has no meaning in this model.
    fn only_what_counts(&self) -> Result<()> {
        let is = |model: ModelName| self.model == model;
        let (closed, partly) = (is(ModelName::Closed), is(ModelName::PartlyOpen));
        let flags = [
            ("--users", self.users.is_some(), closed, "closed"),
            (
                "--rate",
                self.rate.is_some(),
                !closed,
                "open and partly-open",
            ),
            (
                "--sessions",
                self.sessions.is_some(),
                !closed,
                "open and partly-open",
            ),
            ("--visit", self.visit.is_some(), partly, "partly-open"),
            (
                "--think",
                self.think.is_some(),
                closed || partly,
                "closed and partly-open",
            ),
        ];
        for (flag, is_said, counts, models) in flags {
            if is_said && !counts {
                bail!("{flag} needs --model {models}");
            }
        }
        Ok(())
    }

    fn model(&self) -> Result<Model> {
        self.only_what_counts()?;
        let think = self.think.unwrap_or_default();
        let sessions = self.sessions.unwrap_or(SESSIONS);
        let rate = || match self.rate {
            Some(rate) if RATES.contains(&rate) => Ok(rate),
            Some(rate) => bail!("--rate {rate} is out of range; give 0.000001 to 1000000"),
            None => {
                bail!(
                    "--rate is missing: give how many arrive per second, or --model closed with --users"
                )
            }
        };
        Ok(match self.model {
            ModelName::Closed => {
                let Some(users) = self.users else {
                    bail!(
                        "--users is missing: give how many users the closed system has, or another --model"
                    );
                };
                Model::Closed { users, think }
            }
            ModelName::Open => Model::Open {
                rate_per_sec: rate()?,
                sessions,
            },
            ModelName::PartlyOpen => {
                let transactions = self.visit.unwrap_or(1.0);
                if transactions < 1.0 || !transactions.is_finite() {
                    bail!("--visit {transactions} is out of range; give 1 or more");
                }
                Model::PartlyOpen {
                    rate_per_sec: rate()?,
                    transactions,
                    think,
                    sessions,
                }
            }
        })
    }
}

/// Prints a run; its exit code says whether it is valid.
pub fn print(
    measured: &Measured,
    options: &Options,
    kit: &impl Kit,
    is_json: bool,
) -> Result<ExitCode> {
    let classes: Vec<&str> = options
        .classes
        .iter()
        .map(|class| class.name.as_str())
        .collect();
    let report = Report::new(measured, &classes, kit.kinds());
    if is_json {
        output::json(&report)?;
    } else {
        print_tables(&report)?;
    }
    Ok(match report.verdict {
        "VALID" => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

fn print_tables(report: &Report) -> Result<()> {
    let head = [
        "", "n", "mean", "+-", "p50", "p95", "p99", "max", "C2", "again",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let groups = [&report.all].into_iter();
    let groups = groups.chain(&report.classes).chain(&report.kinds);
    rows.extend(groups.filter(|group| group.n > 0).map(cells));
    output::print(&aligned(&rows))?;
    output::line(format_args!(
        "{} transactions a second for {} s",
        number::significant(report.throughput_per_sec),
        report.measured_seconds
    ))?;
    if report.incompletes > 0 {
        let at_least_ms = report.all.mean_response_at_least_ms;
        output::line(format_args!(
            "{} incomplete, {} of them not begun; with them the mean is at least {}",
            report.incompletes,
            report.not_begun,
            at_least_ms.map_or("-".into(), number::duration)
        ))?;
    }
    for (code, count) in &report.errors {
        output::line(format_args!("{count} failed with {code}"))?;
    }
    match report.verdict_reason.as_str() {
        "" => output::line(report.verdict)?,
        why => output::line(format_args!("{}: {why}", report.verdict))?,
    }
    Ok(())
}

fn cells(group: &Group) -> Vec<String> {
    let time = number::duration;
    vec![
        group.name.clone(),
        group.n.to_string(),
        time(group.mean_response_ms),
        group.mean_response_half_width_ms.map_or("-".into(), time),
        time(group.p50_response_ms),
        time(group.p95_response_ms),
        time(group.p99_response_ms),
        time(group.max_response_ms),
        number::significant(group.response_c2),
        group.retries.to_string(),
    ]
}

/// Prints what was checked; its exit code says whether all is as it must be.
pub fn print_checks(checks: &[Check], is_json: bool) -> Result<ExitCode> {
    let is_clean = checks.iter().all(|check| check.violations == 0);
    if is_json {
        let row =
            |check: &Check| serde_json::json!({"what": check.what, "violations": check.violations});
        output::json(&checks.iter().map(row).collect::<Vec<_>>())?;
    } else {
        let said = |check: &Check| match check.violations {
            0 => "ok".to_owned(),
            violations => format!("WRONG in {violations} places"),
        };
        let rows: Vec<_> = checks
            .iter()
            .map(|check| vec![said(check), check.what.to_owned()])
            .collect();
        output::print(&aligned(&rows))?;
    }
    Ok(if is_clean {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Progress.
pub fn say(line: &str) {
    output::say(line);
}
