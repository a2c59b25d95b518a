//! `cargo xtask test`: the one test command. Everything that must hold before a change is merged,
//! cheapest first; every step runs even when one before it failed.

use crate::{
    bpf, fuzz, h2spec, instructions, packages, postgres, process, suites, tally::Tally, tidy,
};
use anyhow::Result;
use std::thread;
use std::time::{Duration, Instant};

/// How long each fuzz target runs here; `cargo xtask fuzz SECONDS` looks longer.
const FUZZ_SMOKE: Duration = Duration::from_secs(15);

/// Where the standard library's harness looks for how many tests are run at once.
const THREADS: &str = "RUST_TEST_THREADS";
/// Tests at once for each core: with one, the tests of servers left two fifths of two cores idle.
const TESTS_PER_CORE: usize = 2;

/// What is run, in this order.
type Step = (&'static str, fn(&mut Tally) -> Result<()>);
const STEPS: &[Step] = &[
    ("packages", install),
    ("tidy", check_tidy),
    ("format", format),
    ("clippy", clippy),
    ("doc", doc),
    ("bpf", bpf::check),
    ("h2spec", h2spec::build),
    ("instructions", instructions::check),
    ("build", build_tests),
    ("test", cargo_test),
    ("postgres", postgres::run),
    ("suites", suites::few),
    ("fuzz", |tally| fuzz::run(FUZZ_SMOKE, None, tally)),
];

/// Runs the steps, all but fuzzing when `quick`; whether nothing failed.
pub fn run(quick: bool) -> bool {
    let mut tally = Tally::default();
    let mut times = Vec::new();
    thread::scope(|scope| {
        for (name, step) in STEPS {
            if quick && *name == "fuzz" {
                tally.skip("fuzz", "left out by --quick");
                continue;
            }
            println!("== {name}");
            // Only the tests leave something of the processors.
            if !quick && *name == "test" {
                scope.spawn(fuzz::build_ahead);
            }
            let started = Instant::now();
            if let Err(error) = step(&mut tally) {
                println!("{name}: {error:#}");
                tally.step(name, false);
            }
            times.push((*name, started.elapsed()));
        }
    });
    report(&tally, &times);
    tally.is_good()
}

fn report(tally: &Tally, times: &[(&str, Duration)]) {
    println!("== summary");
    for (name, time) in times {
        println!("{name:>12} {:6.1} s", time.as_secs_f64());
    }
    let total: Duration = times.iter().map(|(_, time)| *time).sum();
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
    let workspace = process::run(&mut process::cargo(&["fmt", "--all", "--check"]))?;
    let fuzz = process::run(&mut process::cargo(&[
        "fmt",
        "--manifest-path",
        "fuzz/Cargo.toml",
        "--check",
    ]))?;
    tally.step("format", workspace.success && fuzz.success);
    Ok(())
}

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

/// Links between items in the documentation must lead somewhere.
fn doc(tally: &mut Tally) -> Result<()> {
    let mut command = process::cargo(&[
        "doc",
        "--workspace",
        "--no-deps",
        "--document-private-items",
    ]);
    tally.step(
        "doc",
        process::run(command.env("RUSTDOCFLAGS", "-D warnings"))?.success,
    );
    Ok(())
}

fn build_tests(tally: &mut Tally) -> Result<()> {
    let arguments = ["test", "--workspace", "--no-run"];
    tally.step(
        "the build of the tests",
        process::run(&mut process::cargo(&arguments))?.success,
    );
    Ok(())
}

/// `--nocapture`, so that a test that cannot run here can say so (see `tally`).
fn cargo_test(tally: &mut Tally) -> Result<()> {
    let arguments = ["test", "--workspace", "--no-fail-fast", "--", "--nocapture"];
    let mut command = process::cargo(&arguments);
    if std::env::var_os(THREADS).is_none() {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        command.env(THREADS, (TESTS_PER_CORE * cores).to_string());
    }
    let finished = process::run(&mut command)?;
    tally.cargo_test(finished.success, &finished.lines);
    Ok(())
}
