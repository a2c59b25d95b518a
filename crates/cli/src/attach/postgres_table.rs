//! What `attach status` and `attach top` print of an attachment to a PostgreSQL server.

use sooner_attach::postgres::snapshot::{Snapshot, order_in_words};
use sooner_report::columns::aligned;
use sooner_report::number::{NO_VALUE, duration, significant};

/// One line: which server, by which means, since when.
pub fn status_line(snapshot: &Snapshot) -> String {
    let waiting = match snapshot.is_waiting {
        true => ", which is gone and waited for",
        false => "",
    };
    format!(
        "PostgreSQL {} (process {}){waiting}: the processor {}, for {} s, process {}\n",
        snapshot.version,
        snapshot.server_pid,
        order_in_words(&snapshot.classes, snapshot.mechanism, snapshot.lowering),
        snapshot.uptime_s.round(),
        snapshot.pid,
    )
}

/// A page: who is raised, who tells, what it costs.
pub fn page(snapshot: &Snapshot) -> String {
    let inherits = if snapshot.inherits {
        format!(
            "{} only for a waiter now, {} questions",
            snapshot.inheriting, snapshot.inherit_looks
        )
    } else {
        "off; --inherit".into()
    };
    let lowered = match snapshot.lowering {
        Some(_) => format!(
            "{} now, {} not as another one waits for them",
            snapshot.lowered, snapshot.spared
        ),
        None => "off; --lower".into(),
    };
    let late = snapshot.late_ms.map_or(NO_VALUE.into(), duration);
    let rows = [
        ("raised now", snapshot.raised.to_string()),
        ("holders raised", inherits),
        ("lowered", lowered),
        (
            "changes",
            format!("{}, {} refused", snapshot.changes, snapshot.refused),
        ),
        (
            "gates",
            format!("{}, which told {} times", snapshot.gates, snapshot.told),
        ),
        ("looks", format!("{}, late by {late}", snapshot.looks)),
        (
            "cost",
            format!(
                "{} % of the machine's processors",
                significant(100.0 * snapshot.cost_share)
            ),
        ),
    ];
    let mut rows: Vec<[String; 2]> = rows.map(|(name, value)| [name.into(), value]).to_vec();
    for (name, level) in &snapshot.classes {
        rows.push([format!("class {name}"), format!("level {level}")]);
    }
    for trial in &snapshot.trials {
        rows.push(["test".into(), trial.to_string()]);
    }
    status_line(snapshot) + &aligned(&rows)
}
