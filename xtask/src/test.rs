//! `cargo xtask test`: the one test command. Everything that must hold before a change is merged,
//! cheapest first; every step runs even when one before it failed.

use crate::programs::Part;
use crate::tally::Tally;
use crate::{
    book, bpf, extension, fuzz, h2spec, instructions, package, packages, portable, postgres,
    process, programs, runner, suites, tidy,
};
use anyhow::{Context, Result};
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long each fuzz target runs here; `cargo xtask fuzz SECONDS` looks longer.
const FUZZ_SMOKE: Duration = Duration::from_secs(1);

/// What is run, in this order.
type Step = (&'static str, fn(&mut Tally) -> Result<()>);
const STEPS: [Step; 16] = [
    ("packages", install),
    ("tidy", check_tidy),
    ("format", format),
    ("clippy", clippy),
    ("doc", doc),
    ("book", book::check),
    ("portable", portable::check),
    ("bpf", bpf::check),
    ("h2spec", h2spec::build),
    ("extension", extension::check),
    ("build", build_tests),
    ("package", package::check),
    ("instructions", instructions::check),
    ("test", run_tests),
    ("suites", suites::few),
    ("fuzz", |tally| fuzz::run(FUZZ_SMOKE, None, tally)),
];

/// What waits more than it computes is done beside what computes, and what only computes takes what
/// that leaves of the processors: the first beside the second.
const BESIDE: [(&str, &str); 4] = [
    ("extension", "clippy"),
    ("package", "test"),
    ("doc", "test"),
    ("book", "test"),
];

/// Runs one step; whether nothing failed.
pub fn run_step(name: &str) -> Result<bool> {
    let found = STEPS.iter().find(|(step, _)| *step == name);
    let names = || STEPS.map(|(step, _)| step).join(" ");
    let (_, step) = found.with_context(|| format!("no step {name}; there are: {}", names()))?;
    let mut tally = Tally::default();
    step(&mut tally)?;
    tally.print();
    Ok(tally.is_good())
}

/// Runs the steps, all but fuzzing when `quick`; whether nothing failed.
pub fn run(quick: bool) -> bool {
    let started = Instant::now();
    let mut tally = Tally::default();
    let mut times = Vec::new();
    for step in STEPS.iter().filter(|step| !is_beside(step)) {
        let name = step.0;
        if quick && name == "fuzz" {
            tally.skip("fuzz", "left out by --quick");
            continue;
        }
        let ended = thread::scope(|scope| {
            // Only the tests leave something of the processors.
            if !quick && name == "test" {
                scope.spawn(fuzz::build_ahead);
            }
            let others = STEPS
                .iter()
                .filter(|other| BESIDE.contains(&(other.0, name)))
                .map(|other| scope.spawn(|| end(other)));
            let others: Vec<_> = others.collect();
            let mut ended = vec![end(step)];
            ended.extend(others.into_iter().filter_map(|other| other.join().ok()));
            ended
        });
        for (name, of_step, time) in ended {
            tally.add(of_step);
            times.push((name, time));
        }
    }
    report(&tally, &times, started.elapsed());
    tally.is_good()
}

fn is_beside(step: &Step) -> bool {
    BESIDE.iter().any(|(name, _)| *name == step.0)
}

/// Runs a step to its end: what it counted, and how long it took.
fn end((name, step): &Step) -> (&'static str, Tally, Duration) {
    println!("== {name}");
    let (mut tally, started) = (Tally::default(), Instant::now());
    let failed = panic::catch_unwind(AssertUnwindSafe(|| step(&mut tally)));
    let failed = match failed {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(format!("{error:#}")),
        Err(_) => Some("it panicked".into()),
    };
    if let Some(error) = failed {
        println!("{name}: {error}");
        tally.step(name, false);
    }
    (name, tally, started.elapsed())
}

fn report(tally: &Tally, times: &[(&str, Duration)], total: Duration) {
    println!("== summary");
    for (name, time) in times {
        let beside = BESIDE.iter().find(|(own, _)| own == name);
        let beside = beside.map_or(String::new(), |(_, other)| format!(", beside {other}"));
        println!("{name:>12} {:6.1} s{beside}", time.as_secs_f64());
    }
    println!("{:>12} {:6.1} s", "all", total.as_secs_f64());
    tally.print();
}

fn install(_: &mut Tally) -> Result<()> {
    packages::install(packages::FOR_TESTS);
    packages::unpack_node_postgres();
    Ok(())
}

fn check_tidy(tally: &mut Tally) -> Result<()> {
    tally.step("tidy", tidy::run()?);
    Ok(())
}

fn format(tally: &mut Tally) -> Result<()> {
    let finished = process::run(&mut process::cargo(&["fmt", "--all", "--check"]))?;
    tally.step("format", finished.success);
    Ok(())
}

/// What clippy's own driver is told, as `cargo clippy` hands it on; it must be the same wherever
/// crates are checked once for two steps.
const CLIPPY_ARGS: &str = "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__";

fn clippy(tally: &mut Tally) -> Result<()> {
    let arguments = [
        "clippy",
        "--keep-going",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ];
    tally.step(
        "clippy",
        process::run(&mut process::cargo(&arguments))?.success,
    );
    Ok(())
}

/// Links between items in the documentation must lead somewhere. Only what tests leave of the
/// processors is used, and what the step `clippy` has checked is not checked once more: the same
/// program reads the crates, and an example brings the features that the tests' dependencies have.
fn doc(tally: &mut Tally) -> Result<()> {
    let mut command = process::cargo(&[
        "doc",
        "--workspace",
        "--no-deps",
        "--document-private-items",
        "--lib",
        "--bins",
        "--example",
        "play",
    ]);
    let driver = Path::new(command.get_program()).with_file_name("clippy-driver");
    if driver.exists() {
        command.env("RUSTC_WORKSPACE_WRAPPER", driver);
        command.env("CLIPPY_ARGS", CLIPPY_ARGS);
    }
    tally.step(
        "doc",
        process::run(&mut process::at_idle(
            command.env("RUSTDOCFLAGS", "-D warnings"),
        ))?
        .success,
    );
    Ok(())
}

/// What the step `build` has built, for the step `test`: Cargo may be busy with what is done beside
/// the tests, and would let them wait.
static BUILT: Mutex<Option<Vec<Part>>> = Mutex::new(None);

/// The build by itself, so that its time is.
fn build_tests(tally: &mut Tally) -> Result<()> {
    let parts = programs::build()?;
    tally.step("the build of the tests", parts.is_some());
    *BUILT.lock().unwrap_or_else(PoisonError::into_inner) = parts;
    Ok(())
}

/// All tests, before PostgreSQL 16 and 18 as well, and the fuzz targets are built meanwhile.
fn run_tests(tally: &mut Tally) -> Result<()> {
    let built = BUILT.lock().unwrap_or_else(PoisonError::into_inner).take();
    let built = match built {
        Some(parts) => Some(parts),
        None => programs::build()?,
    };
    let Some(mut parts) = built else {
        return Ok(());
    };
    let versions = postgres::add(&mut parts, tally);
    runner::run(parts, tally);
    drop(versions);
    Ok(())
}
