//! Under which heading `--help` shows an option. What no table names stays under "Options", and so
//! does every option of a command with few.

use super::each_subcommand;
use clap::Command;

/// With fewer options headings only part what can be seen at once.
const FEW: usize = 7;

/// Options of one command, by their heading.
type Table = &'static [(&'static str, &'static [&'static str])];

/// Of any command.
const ANYWHERE: Table = &[(
    "Output",
    &[
        "label",
        "by-size",
        "json",
        "csv",
        "html",
        "report",
        "samples",
        "prometheus",
    ],
)];

const SYSTEM: Table = &[
    (
        "Arrivals",
        &["load", "schedule", "gaps", "users", "stay", "think"],
    ),
    (
        "Server",
        &[
            "policy",
            "uplink",
            "servers",
            "mpl",
            "smallest-first",
            "first",
            "turn",
            "guard",
        ],
    ),
    ("Estimated sizes", &["error", "right-pairs", "calibrated"]),
    ("Simulation", &["jobs", "replications", "seed", "threads"]),
];

const REPLAYED: Table = &[
    (
        "Load",
        &[
            "model",
            "rho",
            "schedule",
            "poisson",
            "crowd",
            "stay",
            "requests-per-visit",
            "think",
            "users",
            "embedded",
            "active-off",
            "inactive-off",
            "files",
        ],
    ),
    (
        "Connections",
        &[
            "insecure",
            "ca",
            "resume",
            "http2",
            "streams",
            "requests-per-connection",
            "from",
            "congestion-control",
            "mss",
        ],
    ),
    ("Users who give up", &["patience", "reloads"]),
    (
        "Measurement",
        &["warm-up", "drain", "plan-head", "expect-refusals", "seed"],
    ),
];

const REQUESTS: Table = &[
    (
        "Requests",
        &["url", "urls", "method", "header", "data", "all-methods"],
    ),
    ("Load", &["rate", "stage", "constant", "speed"]),
    (
        "Connections",
        &[
            "insecure",
            "ca",
            "resume",
            "http1",
            "http2",
            "streams",
            "connections",
            "no-keep-alive",
            "from",
            "congestion-control",
        ],
    ),
    ("Measurement", &["for", "timeout", "warm-up", "seed"]),
    ("Output", &["expect", "hgrm", "timeline"]),
];

const TRANSACTIONS: Table = &[
    (
        "Load",
        &[
            "mix", "model", "users", "rate", "visit", "think", "sessions", "class",
        ],
    ),
    ("Statements", &["isolation", "statements", "remarks"]),
    ("Measurement", &["for", "warm-up", "seed"]),
];

/// By the path of the command.
const TABLES: &[(&str, Table)] = &[
    (
        "serve",
        &[
            (
                "Check without serving",
                &["check", "check-reload", "observe", "json"],
            ),
            ("TLS", &["listen-tls", "certificate", "key"]),
            (
                "Order of responses",
                &[
                    "uplink",
                    "policy",
                    "share-by",
                    "mechanism",
                    "bands",
                    "ahead",
                    "uplink-device",
                    "replace-qdisc",
                ],
            ),
            (
                "Logs and metrics",
                &["access-log", "log-format", "admin", "quiet"],
            ),
        ],
    ),
    (
        "gate",
        &[
            ("Check without serving", &["check", "check-reload"]),
            ("Admission", &["limit", "mode", "clients-max", "patience"]),
            ("Users", &["auth", "users", "admin", "watcher"]),
        ],
    ),
    (
        "attach web",
        &[
            ("Which responses", &["port", "cgroup", "pid", "forward"]),
            (
                "Order of responses",
                &[
                    "share",
                    "no-shape",
                    "flows",
                    "no-tls-lengths",
                    "no-socket-lengths",
                ],
            ),
        ],
    ),
    (
        "attach cpu",
        &[
            ("Which processes", &["pid", "cgroup", "port", "front-port"]),
            (
                "Order of workers",
                &[
                    "share", "rule", "rw", "slp", "bounds", "wait-max", "realtime", "no-bpf",
                ],
            ),
            (
                "Watch without changing",
                &["observe", "explain", "for", "json"],
            ),
        ],
    ),
    (
        "attach postgres",
        &[
            ("Which server", &["url", "pid", "data", "user"]),
            (
                "Watch without changing",
                &["explain", "for", "json", "html"],
            ),
            (
                "Order of sessions",
                &["config", "inherit", "lower", "mechanism"],
            ),
            (
                "Priorities from a gate",
                &["gate", "gate-user", "gate-group"],
            ),
        ],
    ),
    ("load replay", REPLAYED),
    ("load model", REPLAYED),
    ("load surge", REPLAYED),
    ("load rate", REQUESTS),
    ("load closed", REQUESTS),
    ("load tpcc run", TRANSACTIONS),
    ("load tpcw run", TRANSACTIONS),
    (
        "lab run",
        &[(
            "What to run",
            &[
                "quick",
                "case",
                "trace",
                "without-missing",
                "jobs",
                "attempts",
                "guest",
                "guest-kernel",
            ],
        )],
    ),
    ("sim", SYSTEM),
    ("solve model", SYSTEM),
];

/// Puts the options of each command under their headings.
pub fn with_headings(command: Command, path: &[&str]) -> Command {
    let options = command.get_arguments();
    let options = options.filter(|arg| arg.get_long().is_some() && !arg.is_hide_set());
    let is_long = options.count() >= FEW;
    let name = path.join(" ");
    let own = TABLES.iter().filter(|(command, _)| *command == name);
    let own: Vec<Table> = own.map(|(_, table)| *table).chain([ANYWHERE]).collect();
    let command = command.mut_args(|arg| match arg.get_long() {
        Some(long) if is_long => match heading(&own, long) {
            Some(heading) => arg.help_heading(heading),
            None => arg,
        },
        _ => arg,
    });
    each_subcommand(command, path, with_headings)
}

fn heading(tables: &[Table], option: &str) -> Option<&'static str> {
    let rows = tables.iter().flat_map(|table| table.iter());
    let mut holding = rows.filter(|(_, options)| options.contains(&option));
    holding.next().map(|(heading, _)| *heading)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cli;
    use clap::CommandFactory;

    /// Options that several commands share a table for.
    fn all_options(command: &Command, into: &mut Vec<String>) {
        let longs = command.get_arguments().filter_map(clap::Arg::get_long);
        into.extend(longs.map(str::to_owned));
        command
            .get_subcommands()
            .for_each(|inner| all_options(inner, into));
    }

    #[test]
    fn every_command_and_option_of_the_tables_exists() {
        let command = Cli::command();
        let mut options = Vec::new();
        all_options(&command, &mut options);
        for (path, table) in TABLES {
            let found = path
                .split(' ')
                .try_fold(&command, |inner, name| inner.find_subcommand(name));
            assert!(found.is_some(), "{path}");
            for option in table.iter().flat_map(|(_, options)| options.iter()) {
                assert!(options.iter().any(|own| own == option), "{path} --{option}");
            }
        }
    }

    #[test]
    fn long_lists_of_options_have_headings() {
        fn check(command: &Command, path: &str) {
            let shown = command.get_arguments();
            let shown = shown.filter(|arg| arg.get_long().is_some() && !arg.is_hide_set());
            let (mut count, mut under) = (0, 0);
            for arg in shown {
                count += 1;
                under += usize::from(arg.get_help_heading().is_some());
            }
            assert!(
                count < 10 || under * 2 > count,
                "{path}: {under} of {count}"
            );
            for inner in command
                .get_subcommands()
                .filter(|inner| !inner.is_hide_set())
            {
                check(inner, &format!("{path} {}", inner.get_name()));
            }
        }
        check(&with_headings(Cli::command(), &[]), "sooner");
    }
}
