//! `sooner gate top`: what a gate that runs is doing, every second.

use anyhow::{Result, bail};
use clap::Args;
use serde::Serialize;
use sooner_postgres::config::Place;
use sooner_postgres::net::{Answer, Console};
use sooner_report::columns::aligned;
use sooner_report::number;
use std::collections::BTreeMap;
use std::env;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Watches a gate that runs: servers and classes, who waits, how long transactions take.
///
/// A password is taken from PGPASSWORD.
#[derive(Args)]
pub struct TopArgs {
    /// The gate: an address with a port, or the path of its socket file.
    #[arg(long, value_name = "ADDRESS|PATH", default_value = "127.0.0.1:6432")]
    gate: String,
    /// One of its admins or watchers; `sooner` through a socket file is whoever runs it.
    #[arg(long, default_value = "sooner")]
    user: String,
    /// Between two looks.
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    every: u64,
    /// Looks; 0 goes on until it is ended.
    #[arg(long, value_name = "N", default_value_t = 0)]
    count: u64,
    /// A line of JSON a look instead of tables.
    #[arg(long)]
    json: bool,
}

/// One look.
#[derive(Serialize)]
struct Look {
    state: String,
    servers: Vec<Server>,
    classes: Vec<Class>,
}

#[derive(Serialize)]
struct Server {
    address: String,
    limit_transactions: u64,
    inside_transactions: u64,
    waiting_transactions: u64,
    connections: u64,
}

#[derive(Serialize)]
struct Class {
    name: String,
    priority: Option<u64>,
    clients: u64,
    waiting_clients: u64,
    transactions: u64,
    /// Since the last look.
    transactions_per_sec: Option<f64>,
    outside_p50_us: Option<u64>,
    outside_p95_us: Option<u64>,
    inside_p50_us: Option<u64>,
    inside_p95_us: Option<u64>,
    total_p95_us: Option<u64>,
    total_p99_us: Option<u64>,
}

/// Prints tables until it is ended.
pub fn run(args: &TopArgs) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    match runtime.block_on(watch(args)) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        // Whoever read it has seen enough.
        Err(error) if is_closed_pipe(&error) => Ok(ExitCode::SUCCESS),
        Err(error) => Err(error),
    }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let cause = error.downcast_ref::<io::Error>();
    cause.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

async fn watch(args: &TopArgs) -> Result<()> {
    let place = place(&args.gate)?;
    let password = env::var("PGPASSWORD").ok();
    let opened = Console::open(&place, &args.user, password).await;
    let mut console = opened.map_err(anyhow::Error::msg)?;
    let mut before: Option<(Instant, BTreeMap<String, u64>)> = None;
    let mut looks = 0;
    loop {
        let mut look = look(&mut console, &place).await?;
        let now = Instant::now();
        if let Some((then, counts)) = &before {
            look.compare(counts, now.duration_since(*then));
        }
        before = Some((now, look.counts()));
        print(&look, args)?;
        looks += 1;
        if looks == args.count {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_secs(args.every)).await;
    }
}

fn place(text: &str) -> Result<Place> {
    let is_path = text.starts_with(['/', '.']);
    let parts = match is_path {
        true => text.rsplit_once("/.s.PGSQL."),
        false => text.rsplit_once(':'),
    };
    let Some((at, port)) = parts.and_then(|(at, port)| Some((at, port.parse().ok()?))) else {
        bail!(
            "--gate {text}: neither an address with a port, like 127.0.0.1:6432, nor the path of a socket file, like /run/sooner/.s.PGSQL.6432"
        );
    };
    Ok(match is_path {
        true => Place::Unix(PathBuf::from(at), port),
        false => Place::Tcp(at.trim_matches(['[', ']']).to_owned(), port),
    })
}

async fn look(console: &mut Console, place: &Place) -> Result<Look> {
    let mut answers = Vec::new();
    for command in ["SHOW STATE", "SHOW GATES", "SHOW CLASSES"] {
        let answer = console.ask(place, command).await;
        answers.push(answer.map_err(anyhow::Error::msg)?);
    }
    let [state, gates, classes] = &answers[..] else {
        bail!("the gate has answered too little");
    };
    let is_so = |row: &&Vec<Option<String>>| state.field(row, "value") == "yes";
    let states = state.rows.iter().filter(is_so);
    let states: Vec<&str> = states.map(|row| state.field(row, "key")).collect();
    Ok(Look {
        state: states.join(", "),
        servers: gates
            .rows
            .iter()
            .map(|row| Server::read(gates, row))
            .collect(),
        classes: classes
            .rows
            .iter()
            .map(|row| Class::read(classes, row))
            .collect(),
    })
}

fn number_of(answer: &Answer, row: &[Option<String>], column: &str) -> Option<u64> {
    answer.field(row, column).parse().ok()
}

impl Server {
    fn read(answer: &Answer, row: &[Option<String>]) -> Self {
        let number = |column| number_of(answer, row, column).unwrap_or(0);
        Self {
            address: answer.field(row, "server").to_owned(),
            limit_transactions: number("limit"),
            inside_transactions: number("inside"),
            waiting_transactions: number("waiting"),
            connections: number("connections"),
        }
    }
}

impl Class {
    fn read(answer: &Answer, row: &[Option<String>]) -> Self {
        let number = |column| number_of(answer, row, column);
        Self {
            name: answer.field(row, "class").to_owned(),
            priority: number("priority"),
            clients: number("clients").unwrap_or(0),
            waiting_clients: number("waiting").unwrap_or(0),
            transactions: number("transactions").unwrap_or(0),
            transactions_per_sec: None,
            outside_p50_us: number("outside_p50_us"),
            outside_p95_us: number("outside_p95_us"),
            inside_p50_us: number("inside_p50_us"),
            inside_p95_us: number("inside_p95_us"),
            total_p95_us: number("total_p95_us"),
            total_p99_us: number("total_p99_us"),
        }
    }

    fn cells(&self) -> Vec<String> {
        let time = |us: Option<u64>| match us {
            Some(us) => number::duration(us as f64 / 1e3),
            None => "-".into(),
        };
        let name = if self.name.is_empty() {
            "(none)"
        } else {
            &self.name
        };
        vec![
            name.to_owned(),
            self.priority
                .map_or("-".into(), |priority| priority.to_string()),
            self.clients.to_string(),
            self.waiting_clients.to_string(),
            self.transactions_per_sec
                .map_or("-".into(), number::significant),
            time(self.outside_p50_us),
            time(self.outside_p95_us),
            time(self.inside_p50_us),
            time(self.inside_p95_us),
            time(self.total_p99_us),
        ]
    }
}

impl Look {
    fn counts(&self) -> BTreeMap<String, u64> {
        let count = |class: &Class| (class.name.clone(), class.transactions);
        self.classes.iter().map(count).collect()
    }

    fn compare(&mut self, before: &BTreeMap<String, u64>, passed: Duration) {
        for class in &mut self.classes {
            let then = before.get(&class.name).copied().unwrap_or(0);
            let more = class.transactions.saturating_sub(then);
            class.transactions_per_sec = Some(more as f64 / passed.as_secs_f64());
        }
    }
}

fn print(look: &Look, args: &TopArgs) -> Result<()> {
    let mut out = io::stdout().lock();
    if args.json {
        serde_json::to_writer(&mut out, look).map_err(io::Error::from)?;
        writeln!(out)?;
        return Ok(out.flush()?);
    }
    if out.is_terminal() && args.count != 1 {
        // From the upper left corner, on a screen that is empty.
        write!(out, "\x1b[H\x1b[2J")?;
    }
    writeln!(out, "{} is {}\n", args.gate, look.state)?;
    let head = ["server", "limit", "inside", "waiting", "connections"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for server in &look.servers {
        rows.push(vec![
            server.address.clone(),
            server.limit_transactions.to_string(),
            server.inside_transactions.to_string(),
            server.waiting_transactions.to_string(),
            server.connections.to_string(),
        ]);
    }
    writeln!(out, "{}", aligned(&rows))?;
    let head = [
        "class",
        "priority",
        "clients",
        "waiting",
        "a second",
        "outside p50",
        "p95",
        "inside p50",
        "p95",
        "total p99",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(look.classes.iter().map(Class::cells));
    writeln!(out, "{}", aligned(&rows))?;
    Ok(out.flush()?)
}
