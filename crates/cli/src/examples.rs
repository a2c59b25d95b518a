//! Two examples for each command: manual pages and `--help` show the same ones. The tests have the
//! command line read every one of them.

/// A command line and what it does.
pub type Example = (&'static str, &'static str);

/// The examples of a command by its path without `sooner`, like `["load", "replay"]`; none for a
/// command that is hidden or unknown.
pub fn examples(command_path: &[&str]) -> &'static [Example] {
    let path = command_path.join(" ");
    let found = TABLE.iter().find(|(name, _)| *name == path);
    found.map_or(&[], |(_, examples)| examples)
}

/// By path; `""` is `sooner` itself.
const TABLE: &[(&str, &[Example])] = &[
    (
        "",
        &[
            (
                "sooner advise /var/log/nginx/access.log",
                "Tell what ordering would do for the traffic of a log",
            ),
            (
                "sooner demo",
                "Measure the same requests on a 10 Mbit/s link, without and with an order",
            ),
        ],
    ),
    (
        "advise",
        &[
            (
                "sooner advise /var/log/nginx/access.log* --uplink 100mbit",
                "Forecast what each order gives the responses of these logs on this uplink",
            ),
            (
                "sooner advise litellm.jsonl --html advice.html",
                "Forecast the queue before a language model, and draw it",
            ),
        ],
    ),
    (
        "attach",
        &[
            (
                "sudo sooner attach web --dev eth0 --uplink auto --observe",
                "Look at a web server's responses, and change nothing",
            ),
            (
                "sudo sooner attach remove",
                "End all that is attached, and put back what was there before",
            ),
        ],
    ),
    (
        "attach web",
        &[
            (
                "sudo sooner attach web --dev eth0 --uplink 95mbit",
                "Send short responses first on a line of 100 Mbit/s",
            ),
            (
                "sudo sooner attach web --dev eth0 --uplink auto --cgroup nginx.service",
                "Find the uplink's rate while traffic flows; only responses of nginx",
            ),
        ],
    ),
    (
        "attach postgres",
        &[
            (
                "sudo -u postgres sooner attach postgres --explain --for 60s",
                "Say where transactions spend their time and what an order could gain",
            ),
            (
                "sudo -u postgres sooner attach postgres --config gate.toml --inherit",
                "Give the processor first to the classes that go first in gate.toml",
            ),
        ],
    ),
    (
        "attach cpu",
        &[
            (
                "sudo sooner attach cpu --cgroup php8.2-fpm.service --explain",
                "Look at PHP's workers for 30 s, and say what an order would give",
            ),
            (
                "sudo sooner attach cpu --port 8000 --share 80",
                "Give the processor first to short requests of the server on port 8000",
            ),
        ],
    ),
    (
        "attach status",
        &[
            ("sudo sooner attach status", "Say what is attached"),
            (
                "sudo sooner attach status --dev eth0 --json",
                "Print the same of one device for a program",
            ),
        ],
    ),
    (
        "attach top",
        &[
            (
                "sudo sooner attach top --dev eth0",
                "Watch the responses of a device until Ctrl-C",
            ),
            (
                "sudo sooner attach top --prometheus",
                "Print the figures once, as Prometheus reads them",
            ),
        ],
    ),
    (
        "attach remove",
        &[
            (
                "sudo sooner attach remove",
                "End all that is attached, and put back what was there before",
            ),
            (
                "sudo sooner attach remove --dev eth0",
                "End what is attached to one device",
            ),
        ],
    ),
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
                "Run one load on a private PostgreSQL, without the gate and with it",
            ),
            (
                "sooner demo gate --clients 200 --limit 8 --json",
                "Do it with 200 clients and 8 transactions at a time, as JSON",
            ),
        ],
    ),
    (
        "figures",
        &[
            (
                "sooner figures 13.3 --html figures.html",
                "Compute one figure, and draw it into a page",
            ),
            (
                "sooner figures --jobs 100000 --json",
                "Compute all of them with fewer jobs, as JSON",
            ),
        ],
    ),
    (
        "gate",
        &[
            (
                "sooner gate --backend 'postgresql:///?host=/run/postgresql' --users users.txt --limit 10",
                "Let ten transactions at a time into the database of this machine",
            ),
            (
                "sooner gate --config /etc/sooner/gate.toml --check",
                "Look whether a gate would start with this configuration",
            ),
        ],
    ),
    (
        "gate check",
        &[
            (
                "sooner gate check gate.toml --observe 5min",
                "Watch a gate for five minutes, and say which targets it can meet",
            ),
            (
                "sooner gate check gate.toml --gate 127.0.0.1:6432 --user monitor --json",
                "Ask the gate at this address, and print JSON",
            ),
        ],
    ),
    (
        "gate import",
        &[
            (
                "sooner gate import /etc/pgbouncer/pgbouncer.ini > gate.toml",
                "Make a gate.toml that does the same",
            ),
            (
                "sooner gate import pgbouncer.ini | less",
                "Read what is carried over and, in comments, what is not",
            ),
        ],
    ),
    (
        "gate top",
        &[
            (
                "sooner gate top",
                "Watch the gate of this machine until Ctrl-C",
            ),
            (
                "sooner gate top --gate 127.0.0.1:6432 --user monitor --count 1 --json",
                "Print what one gate does now as a line of JSON",
            ),
        ],
    ),
    (
        "lab",
        &[
            ("sooner lab list", "List the experiments"),
            (
                "sudo sooner lab run C2 --quick",
                "See within minutes that an experiment works",
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
            ("sooner lab list --json", "Print the list for a program"),
        ],
    ),
    (
        "lab run",
        &[
            (
                "sudo sooner lab run C2 --quick",
                "See within minutes that an experiment works",
            ),
            (
                "sudo sooner lab run attach-web --without-missing --out runs",
                "Measure with the servers that are installed, and keep the runs here",
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
                "sooner load closed --url http://127.0.0.1:8080/ --connections 50 --for 30s",
                "Ask as fast as the server answers: throughput",
            ),
            (
                "sooner load replay epa --url http://127.0.0.1:8080 --uplink 10mbit --rho 0.8 --for 2m",
                "Replay a trace at four fifths of the link: response times",
            ),
        ],
    ),
    (
        "load replay",
        &[
            (
                "sooner load replay epa --url http://127.0.0.1:8080 --uplink 10mbit --rho 0.8 --for 2m --poisson",
                "Replay a trace at four fifths of the link, whatever the server does",
            ),
            (
                "sooner load replay surge:1 --url http://127.0.0.1:8080 --model closed --users 20 --think 1s --for 5m",
                "Have twenty users wait for each answer and think for a second",
            ),
        ],
    ),
    (
        "load model",
        &[
            (
                "sooner load model model.toml --url http://127.0.0.1:8080 --for 60s",
                "Measure the system of a model file, beside what the formulas give",
            ),
            (
                "sooner load model model.toml --url http://127.0.0.1:8080 --for 5m --seed 2 --json",
                "Measure it again with other requests, as JSON",
            ),
        ],
    ),
    (
        "load closed",
        &[
            (
                "sooner load closed --url http://127.0.0.1:8080/index.html --connections 50 --for 30s",
                "Ask for one file on fifty connections for 30 s",
            ),
            (
                "sooner load closed --url https://127.0.0.1:8443/ --insecure --http2 --streams 10 --connections 5 --for 30s",
                "Do it over HTTP/2 with ten requests at a time on each connection",
            ),
        ],
    ),
    (
        "load mkroot",
        &[
            (
                "sooner load mkroot epa /tmp/epa",
                "Write the files that the trace asks for",
            ),
            (
                "sooner load mkroot model.toml /tmp/root",
                "Write files of the sizes of a model file",
            ),
        ],
    ),
    (
        "load surge",
        &[
            (
                "sooner load surge --users 50 --url http://127.0.0.1:8080 --uplink 10mbit --for 5m",
                "Let fifty users read pages with their embedded files",
            ),
            (
                "sooner load surge --users 50 --url http://127.0.0.1:8080 --for 5m --samples surge.jsonl.gz",
                "Keep a line of JSON for each request",
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
                "Carry out transactions of fifty users for a minute",
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
                "Fill a small one through PostgreSQL's socket",
            ),
        ],
    ),
    (
        "load tpcc run",
        &[
            (
                "sooner load tpcc run --url postgresql://ann@127.0.0.1:6432/shop --users 100 --for 60s --class high=0.1",
                "Have a hundred users, a tenth of them in the class high",
            ),
            (
                "sooner load tpcc run --url postgresql://ann@127.0.0.1/shop --model open --rate 50 --for 60s",
                "Begin fifty transactions a second, whatever the database does",
            ),
        ],
    ),
    (
        "load tpcc check",
        &[
            (
                "sooner load tpcc check --url postgresql://ann@127.0.0.1/shop",
                "Look whether the data is consistent after a run",
            ),
            (
                "sooner load tpcc check --url postgresql://ann@127.0.0.1/shop --json",
                "Print the same as JSON",
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
                "Have fifty users visit the bookstore for a minute",
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
                "Fill a small one",
            ),
        ],
    ),
    (
        "load tpcw run",
        &[
            (
                "sooner load tpcw run --url postgresql://ann@127.0.0.1/books --users 50 --for 60s",
                "Have fifty users visit the bookstore for a minute",
            ),
            (
                "sooner load tpcw run --url postgresql://ann@127.0.0.1/books --mix ordering --users 50 --for 60s",
                "Have them buy more",
            ),
        ],
    ),
    (
        "load tpcw check",
        &[
            (
                "sooner load tpcw check --url postgresql://ann@127.0.0.1/books",
                "Look whether the data is consistent after a run",
            ),
            (
                "sooner load tpcw check --url postgresql://ann@127.0.0.1/books --json",
                "Print the same as JSON",
            ),
        ],
    ),
    (
        "load surge-fit",
        &[
            (
                "sooner load surge-fit",
                "Compare what is drawn with what was published",
            ),
            (
                "sooner load surge-fit --draws 1000000 --seed 2 --json",
                "Draw more, by another seed, as JSON",
            ),
        ],
    ),
    (
        "serve",
        &[
            (
                "sooner serve /srv/www --listen 0.0.0.0:8080 --uplink 95mbit",
                "Serve a folder, and order the responses on a line of 100 Mbit/s",
            ),
            (
                "sooner serve --config /etc/sooner/sooner.toml --check",
                "Look whether a server would start with this configuration",
            ),
        ],
    ),
    (
        "sim",
        &[
            (
                "sooner sim --sizes h2:mean=1,c2=16 --load 0.5,0.8,0.9 --policy fair,srpt,las",
                "Simulate three policies under three loads",
            ),
            (
                "sooner sim model.toml --html response.html",
                "Simulate the system of a model file, and draw its mean response times",
            ),
        ],
    ),
    (
        "solve",
        &[
            (
                "sooner solve mg1 --sizes trace:epa --load 0.8",
                "Compute one server under each policy",
            ),
            (
                "sooner solve mva --demands 20ms,5ms --think 1s --users 1,10,100",
                "Compute a closed network of two stations",
            ),
        ],
    ),
    (
        "solve mg1",
        &[
            (
                "sooner solve mg1 --sizes trace:epa --load 0.8",
                "Compute mean response time and slowdown under each policy",
            ),
            (
                "sooner solve mg1 --sizes h2:mean=1,c2=16 --load 0.9 --policy srpt,las --json",
                "Compute two policies, as JSON",
            ),
        ],
    ),
    (
        "solve mva",
        &[
            (
                "sooner solve mva --demands 20ms,5ms --think 1s --users 1,10,100",
                "Compute throughput and response by the number of users",
            ),
            (
                "sooner solve mva --demands 20ms,5ms --share 0.95",
                "Find the fewest users with 95 per cent of the highest throughput",
            ),
        ],
    ),
    (
        "solve mpl",
        &[
            (
                "sooner solve mpl --sizes h2:mean=1,c2=16 --load 0.9",
                "Compute response times by how many jobs share the processor",
            ),
            (
                "sooner solve mpl --sizes exp:mean=1 --load 0.8 --mpl 1,4,16 --json",
                "Compute three limits, as JSON",
            ),
        ],
    ),
    (
        "solve overload",
        &[
            (
                "sooner solve overload --sizes bpareto:k=1,p=1e4,alpha=1.1 --schedule 0.4,1.3,82000,41000",
                "Compute sharing and SRPT under a load that is above 1 for a while",
            ),
            (
                "sooner solve overload --sizes trace:epa --schedule 0.6,1.2,1e8,5e7 --json",
                "Compute it for the sizes of a trace, as JSON",
            ),
        ],
    ),
    (
        "solve model",
        &[
            (
                "sooner solve model model.toml",
                "Compute the system of a model file",
            ),
            (
                "sooner solve model --sizes trace:epa --load 0.8 --policy fair,srpt",
                "Compute a system that is told by flags",
            ),
        ],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use std::ffi::OsString;

    /// Every command that help shows, by its path.
    fn paths(command: &clap::Command, path: &[&str], into: &mut Vec<String>) {
        into.push(path.join(" "));
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
            paths(sub, &[path, &[sub.get_name()]].concat(), into);
        }
    }

    /// The words of a line as a shell gives them to `sooner`, without what is the shell's and sudo's.
    fn words(line: &str) -> Vec<OsString> {
        let line = line.split(['>', '|']).next().expect("a first part");
        let from = line.find("sooner ").expect("the program");
        let mut words = vec![String::new()];
        let mut is_quoted = false;
        for letter in line[from..].trim_end().chars() {
            match letter {
                '\'' => is_quoted = !is_quoted,
                ' ' if !is_quoted => words.push(String::new()),
                other => words.last_mut().expect("a word").push(other),
            }
        }
        words.into_iter().map(OsString::from).collect()
    }

    #[test]
    fn every_command_has_two_examples_and_each_is_read() {
        let mut found = Vec::new();
        paths(&crate::Cli::command(), &[], &mut found);
        assert!(found.len() > 30, "{found:?}");
        for path in &found {
            let parts: Vec<&str> = path.split_whitespace().collect();
            let examples = examples(&parts);
            assert_eq!(examples.len(), 2, "sooner {path}");
            for (line, what) in examples {
                if let Err(error) = crate::parse(&words(line)) {
                    panic!("{line}: {error}");
                }
                assert!(line.contains(&format!("sooner {path}")), "{path}: {line}");
                assert!(line.len() <= 110 && what.len() <= 80, "too long: {line}");
            }
        }
        let known: Vec<&str> = TABLE.iter().map(|(path, _)| *path).collect();
        for path in known {
            assert!(found.iter().any(|one| one == path), "no command {path}");
        }
    }
}
