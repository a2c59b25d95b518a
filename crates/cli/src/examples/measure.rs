//! Examples of what measures: load, lab, demo.

use super::Entry;

/// By path; `""` is `sooner` itself.
pub const TABLE: &[Entry] = &[
    (
        "demo",
        &[
            (
                "sooner demo",
                "Replay a trace on a 10 Mbit/s link under FAIR and under SRPT, with a report",
            ),
            (
                "sooner demo --schedule 0.2,1.2,10,10 --policies fair,srpt,las",
                "Compare three policies under a load that goes above the link's rate",
            ),
        ],
    ),
    (
        "demo gate",
        &[
            (
                "sooner demo gate",
                "Run one load on a private PostgreSQL, without and with the gate",
            ),
            (
                "sooner demo gate --clients 200 --limit 8 --json",
                "Use 200 clients and 8 transactions at a time, and print JSON",
            ),
        ],
    ),
    (
        "lab",
        &[
            ("sooner lab list", "List the experiments"),
            (
                "sudo sooner lab run C2 --quick",
                "Test in minutes that an experiment works",
            ),
        ],
    ),
    (
        "lab list",
        &[
            (
                "sooner lab list",
                "List the experiments with the time they take",
            ),
            ("sooner lab list --json", "List the experiments as JSON"),
        ],
    ),
    (
        "lab run",
        &[
            (
                "sudo sooner lab run C2 --quick",
                "Test in minutes that an experiment works",
            ),
            (
                "sudo sooner lab run attach-web --without-missing --out runs",
                "Use only the servers that are installed, and keep the results in ./runs",
            ),
        ],
    ),
    (
        "lab report",
        &[
            (
                "sooner lab report",
                "Write the pages of all comparisons that were run",
            ),
            (
                "sooner lab report attach-web",
                "Write the page of one of them",
            ),
        ],
    ),
    (
        "load",
        &[
            (
                "sooner load rate http://127.0.0.1:8080/ --rate 500 --for 30s",
                "Send 500 requests per second",
            ),
            (
                "sooner load replay epa --url http://127.0.0.1:8080 --uplink 10mbit --rho 0.8 --for 2min",
                "Replay a trace at 80 % of the link's rate",
            ),
        ],
    ),
    (
        "load rate",
        &[
            (
                "sooner load rate http://127.0.0.1:8080/ --rate 500 --for 30s",
                "Send 500 requests per second",
            ),
            (
                "sooner load rate http://127.0.0.1:8080/ --rate 100..1000 --for 5min --expect 'p99<200ms'",
                "Raise the rate, and exit with 1 if more than 1 % of responses take 200 ms",
            ),
        ],
    ),
    (
        "load trace",
        &[
            (
                "sooner load trace access.log -o mine",
                "Convert a log to mine.csv.gz",
            ),
            (
                "sooner load trace access.log access.log.1.gz -o monday",
                "Convert two logs to one trace",
            ),
        ],
    ),
    (
        "load replay",
        &[
            (
                "sooner load replay epa --url http://127.0.0.1:8080 --uplink 10mbit --rho 0.8 --for 2min --poisson",
                "Replay a trace at 80 % of the link's rate, with Poisson arrivals",
            ),
            (
                "sooner load replay surge:1 --url http://127.0.0.1:8080 --uplink 10mbit --model closed --users 20 --think 1s --for 5min",
                "Let twenty users wait for each answer and think for a second",
            ),
        ],
    ),
    (
        "load model",
        &[
            (
                "sooner load model model.toml --url http://127.0.0.1:8080 --for 60s",
                "Measure the system of a model file, and compare it with the formulas",
            ),
            (
                "sooner load model model.toml --url http://127.0.0.1:8080 --for 5min --seed 2 --json",
                "Measure it again with other requests, as JSON",
            ),
        ],
    ),
    (
        "load closed",
        &[
            (
                "sooner load closed --url http://127.0.0.1:8080/index.html --connections 50 --for 30s",
                "Request one file on fifty connections for 30 s",
            ),
            (
                "sooner load closed --url https://127.0.0.1:8443/ --insecure --http2 --streams 10 --connections 5 --for 30s",
                "Use HTTP/2, with ten requests at a time on each connection",
            ),
        ],
    ),
    (
        "load mkroot",
        &[
            (
                "sooner load mkroot epa /tmp/epa",
                "Write the files of a trace",
            ),
            (
                "sooner load mkroot model.toml /tmp/root",
                "Write files with the sizes of a model file",
            ),
        ],
    ),
    (
        "load surge",
        &[
            (
                "sooner load surge --users 50 --url http://127.0.0.1:8080 --uplink 10mbit --for 5min",
                "Let fifty users read pages with their embedded files",
            ),
            (
                "sooner load surge --users 50 --url http://127.0.0.1:8080 --uplink 10mbit --for 5min --samples surge.jsonl.gz",
                "Write a line of JSON for each request",
            ),
        ],
    ),
    (
        "load tpcc",
        &[
            (
                "sooner load tpcc fill --url postgresql://ann@127.0.0.1/shop",
                "Fill an empty database",
            ),
            (
                "sooner load tpcc run --url postgresql://ann@127.0.0.1/shop --users 50 --for 60s",
                "Run the transactions of fifty users for a minute",
            ),
        ],
    ),
    (
        "load tpcc fill",
        &[
            (
                "sooner load tpcc fill --url postgresql://ann@127.0.0.1/shop",
                "Fill an empty database with four warehouses",
            ),
            (
                "sooner load tpcc fill --url 'postgresql:///shop?host=/run/postgresql&user=ann' --warehouses 1",
                "Fill a small database through PostgreSQL's socket",
            ),
        ],
    ),
    (
        "load tpcc run",
        &[
            (
                "sooner load tpcc run --url postgresql://ann@127.0.0.1:6432/shop --users 100 --for 60s --class high=0.1",
                "Run a hundred users, with a tenth of the transactions in the class high",
            ),
            (
                "sooner load tpcc run --url postgresql://ann@127.0.0.1/shop --model open --rate 50 --for 60s",
                "Begin fifty transactions per second",
            ),
        ],
    ),
    (
        "load tpcc check",
        &[
            (
                "sooner load tpcc check --url postgresql://ann@127.0.0.1/shop",
                "Check whether the data is consistent after a run",
            ),
            (
                "sooner load tpcc check --url postgresql://ann@127.0.0.1/shop --json",
                "Check it, and print JSON",
            ),
        ],
    ),
    (
        "load tpcw",
        &[
            (
                "sooner load tpcw fill --url postgresql://ann@127.0.0.1/books",
                "Fill an empty database",
            ),
            (
                "sooner load tpcw run --url postgresql://ann@127.0.0.1/books --users 50 --for 60s",
                "Let fifty users visit the bookstore for a minute",
            ),
        ],
    ),
    (
        "load tpcw fill",
        &[
            (
                "sooner load tpcw fill --url postgresql://ann@127.0.0.1/books",
                "Fill an empty database with 10 000 books",
            ),
            (
                "sooner load tpcw fill --url postgresql://ann@127.0.0.1/books --items 1000 --customers 2880",
                "Fill a small database",
            ),
        ],
    ),
    (
        "load tpcw run",
        &[
            (
                "sooner load tpcw run --url postgresql://ann@127.0.0.1/books --users 50 --for 60s",
                "Let fifty users visit the bookstore for a minute",
            ),
            (
                "sooner load tpcw run --url postgresql://ann@127.0.0.1/books --mix ordering --users 50 --for 60s",
                "Let them buy more",
            ),
        ],
    ),
    (
        "load tpcw check",
        &[
            (
                "sooner load tpcw check --url postgresql://ann@127.0.0.1/books",
                "Check whether the data is consistent after a run",
            ),
            (
                "sooner load tpcw check --url postgresql://ann@127.0.0.1/books --json",
                "Check it, and print JSON",
            ),
        ],
    ),
    (
        "load surge-fit",
        &[
            (
                "sooner load surge-fit",
                "Compare the drawn quantities with the published ones",
            ),
            (
                "sooner load surge-fit --draws 1000000 --seed 2 --json",
                "Draw more, from another seed, as JSON",
            ),
        ],
    ),
];
