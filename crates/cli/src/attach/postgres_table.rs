//! What `attach status` and `attach top` print of an attachment to a PostgreSQL server.

use sooner_attach::postgres::snapshot::Snapshot;
use sooner_report::columns::aligned;
use sooner_report::number::{NO_VALUE, duration, significant};

/// One line: which server, by which means, since when.
pub fn status_line(snapshot: &Snapshot) -> String {
    let raised = snapshot.classes.iter().filter(|(_, level)| *level > 0);
    let names: Vec<&str> = raised.map(|(name, _)| name.as_str()).collect();
    let waiting = match snapshot.is_waiting {
        true => ", which is gone and waited for",
        false => "",
    };
    format!(
        "PostgreSQL {} (process {}){waiting}: the processor goes first to {}, by {}, for {} s, process {}\n",
        snapshot.version,
        snapshot.server_pid,
        names.join(", "),
        snapshot.mechanism,
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
    let late = snapshot.late_ms.map_or(NO_VALUE.into(), duration);
    let rows = [
        ("raised now", snapshot.raised.to_string()),
        ("holders raised", inherits),
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
