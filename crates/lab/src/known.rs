//! What experiments there are, for completions and for `lab list` where their folder is not at
//! hand. A test holds it against the folder.

/// An experiment by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// As the command line names it.
    pub name: &'static str,
    /// Rows of the published table, parted by spaces.
    pub rows: &'static str,
    /// What it asks.
    pub question: &'static str,
}

/// All of them, comparisons first, as `lab list` orders them.
pub const KNOWN: &[Known] = &[
    known(
        "attach-web",
        "J1 B1",
        "What does a server gain that runs already and knows nothing of it?",
    ),
    known(
        "beside-cake",
        "J1",
        "What do CAKE, fq_codel, fq and an expert's own bands give, beside shortest first?",
    ),
    known(
        "busy-host",
        "J1",
        "Does a server that orders its responses keep its order on a machine that does other work?",
    ),
    known(
        "by-size",
        "A2",
        "Do today's servers favour short responses?",
    ),
    known(
        "flash-crowd",
        "C6",
        "A crowd comes for one object: what do the others notice, and what do refusals add to the right order?",
    ),
    known(
        "light-tail",
        "A4",
        "When sizes hardly differ and the link is nearly full: is shortest first still a good idea?",
    ),
    known(
        "loads",
        "B2",
        "How much sooner are responses at ordinary loads, open and partly-open, and what does the largest pay?",
    ),
    known(
        "longest-first",
        "",
        "Would the verdicts turn red if the order were wrong?",
    ),
    known(
        "open-closed",
        "I2 I3",
        "The same files at the same mean load from open, partly-open and closed users: how much is the order still worth?",
    ),
    known(
        "overload-setups",
        "C3 C4",
        "What do delay, loss, kept connections, cookies, impatient users and small packets change under W1?",
    ),
    known(
        "persistent-overload",
        "C1",
        "When more is asked for than the link carries, for good: when does a server begin to refuse?",
    ),
    known(
        "saturated",
        "B2 J1",
        "What does the order cost in throughput?",
    ),
    known(
        "swift",
        "D1",
        "Does it help to let clients that are far away go first?",
    ),
    known(
        "then-and-now",
        "C2 B5",
        "What of TCP has changed since the papers, and what does each change do to the gain?",
    ),
    known(
        "transient-overload",
        "C2 C4 C5",
        "When load goes above what the link carries for a while, and comes back: how long does it take, and who pays?",
    ),
    known(
        "two-priorities",
        "B3",
        "How much do two priorities give, cut at the median size?",
    ),
    known(
        "uplink-auto",
        "J1",
        "Can attach find the rate of an uplink that a router limits?",
    ),
    known(
        "user-equivalents",
        "A1",
        "SURGE's users on one link: when does the order matter, and what does letting more into the kernel cost?",
    ),
    known(
        "wan",
        "B4",
        "What do delay and loss between server and clients leave of the gain?",
    ),
    known(
        "why",
        "B5",
        "Why does it work: fewer connections, no lost SYN-ACKs, or something else?",
    ),
    known("advise", "", "How large a log can be asked, and how fast?"),
    known(
        "attacks",
        "",
        "What do others notice of attacks on TLS and HTTP/2?",
    ),
    known(
        "auto-limit",
        "",
        "Does a limit that is looked for give what the best one gives, before servers that compute, batch or have two bottlenecks?",
    ),
    known(
        "beside-nginx",
        "",
        "What does it gain beside nginx? (The first measurements; the experiments loads and longest-first ask it now.)",
    ),
    known(
        "beside-reports",
        "",
        "Do small transactions keep going beside reports that overlap for a quarter of an hour?",
    ),
    known(
        "bookstore",
        "",
        "Does an order help an online bookstore, and does it depend on who triggers requests?",
    ),
    known(
        "classifier",
        "",
        "What do the programs in the kernel cost a packet, with a million connections?",
    ),
    known("cpu", "", "What does a request cost in processor time?"),
    known("demo", "", "Is the demo honest?"),
    known("doubt", "", "Which order bears estimates that are wrong?"),
    known(
        "emulator",
        "",
        "Are the lab's emulated paths what was asked for?",
    ),
    known(
        "every-core",
        "",
        "What do several workers cost, and what do they bring?",
    ),
    known("gate", "", "What does the gate add to a statement?"),
    known(
        "gate-open",
        "",
        "How many at a time does PostgreSQL need where transactions come whatever becomes of the others?",
    ),
    known(
        "gate-overhead",
        "",
        "What do classes, targets and the controller cost?",
    ),
    known(
        "gate-priorities",
        "",
        "What does a class gain that goes first before PostgreSQL, and what does it cost?",
    ),
    known(
        "gate-targets",
        "",
        "Are response-time targets kept before PostgreSQL?",
    ),
    known(
        "gate-users",
        "",
        "What do many users cost at a limit of a few transactions?",
    ),
    known(
        "generator",
        "",
        "Is the generator good enough to measure with?",
    ),
    known(
        "hostile-clients",
        "",
        "What do others notice of hostile clients?",
    ),
    known(
        "inside-postgres",
        "F1",
        "Where does a transaction's time go inside PostgreSQL, and is the explanation right?",
    ),
    known(
        "locks-first",
        "F3 F4 F5 F6",
        "What does a class gain that goes first in lock queues inside PostgreSQL, and what does it cost?",
    ),
    known(
        "outside-inside",
        "G3",
        "When is it worth while to say inside PostgreSQL who goes first, on top of the queue outside?",
    ),
    known(
        "overload",
        "",
        "When the link cannot carry it all for a while, who is given up?",
    ),
    known("page", "", "When can a page be read, when is it whole?"),
    known(
        "principles",
        "",
        "Do the papers' computed figures come out again?",
    ),
    known(
        "processor-first",
        "F2 F3",
        "What does a class gain that the processor goes to first inside PostgreSQL, and what does it cost?",
    ),
    known(
        "proxied",
        "",
        "A backend that computes, behind a reverse proxy",
    ),
    known(
        "ranks",
        "",
        "What does a decision cost with a million jobs waiting?",
    ),
    known(
        "sharing",
        "",
        "Does a page wait behind a client that keeps fifty requests waiting?",
    ),
    known(
        "simulators",
        "",
        "Is the simulator right, and how fast is it?",
    ),
    known(
        "streams",
        "",
        "Twenty files at the same moment over HTTP/2: when are they there?",
    ),
    known(
        "suites",
        "",
        "What do other projects' own tests say through Sooner?",
    ),
    known(
        "tls",
        "",
        "What does it gain over TLS, with HTTP/1.1 and HTTP/2?",
    ),
    known(
        "tls-cpu",
        "",
        "What does TLS cost in processor time and memory?",
    ),
    known(
        "upstream-cost",
        "",
        "What does a request before an upstream cost with everything on?",
    ),
    known(
        "workers-first",
        "E1",
        "What does a server with a worker a request gain when the processor goes first to requests that have used little?",
    ),
    known(
        "wrong-estimates",
        "",
        "What do wrong estimates cost, by chance and on purpose?",
    ),
];

const fn known(name: &'static str, rows: &'static str, question: &'static str) -> Known {
    Known {
        name,
        rows,
        question,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{experiment, measure};
    use std::path::Path;

    #[test]
    fn the_folder_has_these_and_no_others() {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments"));
        let comparisons = experiment::all(folder).unwrap().into_iter();
        let comparisons = comparisons.map(|one| (one.name, one.rows.join(" "), one.question));
        let measurements = measure::all(folder).unwrap().into_iter();
        let measurements = measurements.map(|one| (one.name, one.rows.join(" "), one.question));
        let found: Vec<(String, String, String)> = comparisons.chain(measurements).collect();
        let told = KNOWN.iter();
        let told = told.map(|one| (one.name.into(), one.rows.into(), one.question.into()));
        assert_eq!(told.collect::<Vec<_>>(), found);
    }
}
