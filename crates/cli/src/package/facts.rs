//! What manual pages say that clap does not know: the files of a command, what its exit codes mean,
//! and which pages describe its configuration.

/// A file and what it is.
type File = (&'static str, &'static str);

/// By the beginning of a command's path.
const FILES: &[(&str, &[File])] = &[
    (
        "serve import",
        &[("/etc/nginx/nginx.conf", "The configuration of nginx")],
    ),
    (
        "serve",
        &[
            (
                "/etc/sooner/sooner.toml",
                "The configuration of sooner.service",
            ),
            (
                "/var/log/sooner/access.log",
                "Its access log, renamed by logrotate",
            ),
            (
                "/run/sooner",
                "Queueing disciplines that the kernel's bands replaced, for the next start to restore",
            ),
        ],
    ),
    (
        "gate import",
        &[(
            "/etc/pgbouncer/pgbouncer.ini",
            "The configuration of PgBouncer in Debian's package",
        )],
    ),
    (
        "gate",
        &[
            (
                "/etc/sooner/gate.toml",
                "The configuration of sooner-gate.service",
            ),
            (
                "$XDG_RUNTIME_DIR/sooner-gate",
                "The directory of the socket at which \"sooner gate top\" finds a gate of the same user; \
                 for root and sooner-gate.service it is /run/sooner-gate",
            ),
        ],
    ),
    (
        "attach web",
        &[
            (
                "/etc/sooner/attach-DEVICE.env",
                "ARGUMENTS of sooner-attach@DEVICE.service",
            ),
            ("/run/sooner", ATTACHED),
        ],
    ),
    (
        "attach cpu",
        &[
            (
                "/etc/sooner/attach-cpu.env",
                "ARGUMENTS of sooner-attach-cpu.service",
            ),
            ("/run/sooner", ATTACHED),
        ],
    ),
    (
        "attach postgres",
        &[
            (
                "/etc/sooner/attach-postgres.env",
                "ARGUMENTS of sooner-attach-postgres.service",
            ),
            (
                "/run/sooner-attach",
                "The same as /run/sooner, for that service",
            ),
            ("/run/sooner", ATTACHED),
        ],
    ),
    (
        "attach",
        &[
            ("/run/sooner", ATTACHED),
            (
                "/run/sooner-attach",
                "The same as /run/sooner, for sooner-attach-postgres.service",
            ),
        ],
    ),
    ("demo gate", &[]),
    (
        "demo",
        &[("sooner-demo.html", "The report, in the current directory")],
    ),
    (
        "lab",
        &[(
            "experiments/NAME/runs",
            "Results of experiments, in a clone of the repository",
        )],
    ),
    ("sim", &[MODEL]),
    ("solve model", &[MODEL]),
    ("load model", &[MODEL]),
];

const ATTACHED: &str = "Settings to restore, and the sockets of the attach commands that run";
const MODEL: File = (
    "model.toml",
    "A model: sizes, arrivals, users and policy. docs/model.md describes it",
);

/// What exit code 1 says, by the beginning of a command's path.
const FAILURES: &[(&str, &str)] = &[
    ("demo", "A measurement failed, or is INVALID"),
    ("figures", "A figure does not show what its paper says"),
    (
        "gate check",
        "A target cannot be met, or the gate gave no answer",
    ),
    ("lab run", "A claim does not hold, or a measurement failed"),
    ("load tpcc check", "The data is not consistent"),
    ("load tpcw check", "The data is not consistent"),
    ("load tpcc fill", FAILED),
    ("load tpcw fill", FAILED),
    ("load mkroot", FAILED),
    ("load trace", FAILED),
    (
        "load surge-fit",
        "A drawn quantity differs from the published one",
    ),
    ("load", RUN),
    (
        "serve",
        "The server failed; with --check --observe: a target cannot be met",
    ),
    (
        "sim",
        "Ctrl-C ended the simulation; finished runs are printed",
    ),
];
const RUN: &str = "The run is INVALID or failed, or an expectation is not met";
const FAILED: &str = "The command failed";

/// Commands that read a configuration, and its page in section 5.
const CONFIGURATIONS: &[(&str, &[&str])] = &[
    ("serve", &["sooner.toml"]),
    ("gate", &["gate.toml"]),
    ("attach postgres", &["gate.toml"]),
    ("", &["gate.toml", "sooner.toml"]),
];

/// The files of a command; none where it has none of its own.
pub fn files(path: &[&str]) -> impl Iterator<Item = File> {
    let found = first(FILES, path).copied().unwrap_or_default();
    found.iter().copied()
}

/// Exit codes and their meaning.
pub fn exit_codes(path: &[&str]) -> [(u8, &'static str); 4] {
    let failed = first(FAILURES, path).copied().unwrap_or(FAILED);
    [
        (0, "Success"),
        (1, failed),
        (2, "Bad input; nothing was changed"),
        (141, "The reader of standard output closed it"),
    ]
}

/// The pages about the configuration that a command reads.
pub fn configuration_pages(path: &[&str]) -> &'static [&'static str] {
    first(CONFIGURATIONS, path).copied().unwrap_or_default()
}

/// The first entry of which the name is the path's beginning; the empty name is no beginning.
fn first<'a, T>(table: &'a [(&str, T)], path: &[&str]) -> Option<&'a T> {
    let path = path.join(" ");
    let fits = |name: &str| {
        let rest = path.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || (!name.is_empty() && rest.starts_with(' ')))
    };
    let found = table.iter().find(|(name, _)| fits(name));
    found.map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_entry_counts() {
        assert_eq!(exit_codes(&["load", "replay"])[1].1, RUN);
        assert_eq!(exit_codes(&["load", "tpcc", "fill"])[1].1, FAILED);
        assert_eq!(exit_codes(&["load", "tpcc", "run"])[1].1, RUN);
        assert_eq!(files(&["demo", "gate"]).count(), 0);
        assert_eq!(files(&["demo"]).count(), 1);
        assert_eq!(configuration_pages(&["gate", "top"]), ["gate.toml"]);
        assert_eq!(configuration_pages(&[]), ["gate.toml", "sooner.toml"]);
        assert!(configuration_pages(&["solve"]).is_empty());
    }
}
