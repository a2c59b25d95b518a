//! What was measured, as tables.

use super::*;
use crate::config::LockWait;
use crate::console::table::bare;
use sooner_postgres::preemption::Preempt;

/// Microseconds a transaction, PgBouncer's way: whole ones.
fn mean(sum: u64, count: u64) -> u64 {
    sum.checked_div(count).unwrap_or(0)
}

/// Sums of one database in PgBouncer's order.
fn sums(sums: &Sums) -> [Field; 11] {
    [
        sums.turns.into(),
        sums.transactions.into(),
        sums.queries.into(),
        sums.received_bytes.into(),
        sums.sent_bytes.into(),
        sums.inside_us.into(),
        sums.busy_us.into(),
        // PgBouncer's waiting ends when there is a server connection.
        (sums.outside_us + sums.opening_us).into(),
        sums.statements.by_clients.into(),
        sums.statements.at_servers.into(),
        sums.statements.bound.into(),
    ]
}

/// Averages of a minute: a second, or a transaction.
fn of_minute(minute: &Sums) -> [Field; 11] {
    let a_second = |sum: u64| Field::from(sum / 60);
    [
        a_second(minute.turns),
        a_second(minute.transactions),
        a_second(minute.queries),
        a_second(minute.received_bytes),
        a_second(minute.sent_bytes),
        mean(minute.inside_us, minute.turns).into(),
        mean(minute.busy_us, minute.queries).into(),
        mean(minute.outside_us + minute.opening_us, minute.turns).into(),
        a_second(minute.statements.by_clients),
        a_second(minute.statements.at_servers),
        a_second(minute.statements.bound),
    ]
}

pub fn stats(pooler: &Pooler) -> Table {
    let mut table = Table::new(&[
        "database",
        "total_server_assignment_count numeric",
        "total_xact_count numeric",
        "total_query_count numeric",
        "total_received numeric",
        "total_sent numeric",
        "total_xact_time numeric",
        "total_query_time numeric",
        "total_wait_time numeric",
        "total_client_parse_count numeric",
        "total_server_parse_count numeric",
        "total_bind_count numeric",
        "avg_server_assignment_count numeric",
        "avg_xact_count numeric",
        "avg_query_count numeric",
        "avg_recv numeric",
        "avg_sent numeric",
        "avg_xact_time numeric",
        "avg_query_time numeric",
        "avg_wait_time numeric",
        "avg_client_parse_count numeric",
        "avg_server_parse_count numeric",
        "avg_bind_count numeric",
    ]);
    for (name, tally) in pooler.statistics.borrow().databases.iter() {
        let figures = sums(&tally.sums)
            .into_iter()
            .chain(of_minute(&tally.minute));
        table.row([Field::from(name)].into_iter().chain(figures));
    }
    let figures = sums(&of_console(pooler)).into_iter();
    let figures = figures.chain(of_minute(&Sums::default()));
    table.row([Field::from(PGBOUNCER)].into_iter().chain(figures));
    table
}

/// Commands to the gate itself, which PgBouncer counts as transactions of a database.
fn of_console(pooler: &Pooler) -> Sums {
    let commands = pooler.console_commands.get();
    Sums {
        transactions: commands,
        queries: commands,
        ..Sums::default()
    }
}

const COUNTS: [&str; 12] = [
    "database",
    "server_assignment_count numeric",
    "xact_count numeric",
    "query_count numeric",
    "bytes_received numeric",
    "bytes_sent numeric",
    "xact_time numeric",
    "query_time numeric",
    "wait_time numeric",
    "client_parse_count numeric",
    "server_parse_count numeric",
    "bind_count numeric",
];

pub fn totals_by_database(pooler: &Pooler) -> Table {
    let mut table = Table::new(&COUNTS);
    for (name, tally) in pooler.statistics.borrow().databases.iter() {
        table.row([Field::from(name)].into_iter().chain(sums(&tally.sums)));
    }
    let own = sums(&of_console(pooler));
    table.row([Field::from(PGBOUNCER)].into_iter().chain(own));
    table
}

pub fn averages(pooler: &Pooler) -> Table {
    let mut table = Table::new(&COUNTS);
    for (name, tally) in pooler.statistics.borrow().databases.iter() {
        table.row(
            [Field::from(name)]
                .into_iter()
                .chain(of_minute(&tally.minute)),
        );
    }
    let own = of_minute(&Sums::default());
    table.row([Field::from(PGBOUNCER)].into_iter().chain(own));
    table
}

pub fn totals(pooler: &Pooler) -> Table {
    let mut table = Table::new(&["name", "value numeric"]);
    let measured = pooler.statistics.borrow();
    let (mut all, mut minute) = (Sums::default(), Sums::default());
    for (_, tally) in measured.databases.iter() {
        all = all.with(&tally.sums);
        minute = minute.with(&tally.minute);
    }
    let names = &COUNTS[1..];
    for (prefix, fields) in [("total", sums(&all)), ("avg", of_minute(&minute))] {
        for (name, value) in names.iter().zip(fields) {
            // PgBouncer has other names for these two in this table.
            let name = match bare(name) {
                "bytes_received" => "client_bytes",
                "bytes_sent" => "server_bytes",
                name => name,
            };
            let name = format!("{prefix}_{name}");
            table.row([name.into(), value]);
        }
    }
    table
}

const SHARES: [(Phase, f64); 6] = [
    (Phase::Outside, 0.5),
    (Phase::Outside, 0.95),
    (Phase::Inside, 0.5),
    (Phase::Inside, 0.95),
    (Phase::Total, 0.95),
    (Phase::Total, 0.99),
];

fn quantiles(tally: &Tally) -> impl Iterator<Item = Field> {
    SHARES
        .iter()
        .map(|(which, share)| tally.quantile_us(*which, *share).into())
}

/// How many had to log in first, and how long it took to have a server connection.
fn opening(tally: &Tally) -> [Field; 3] {
    let all = tally.sums;
    [
        all.logins.into(),
        mean(all.opening_us, all.turns).into(),
        tally.quantile_us(Phase::Opening, 0.95).into(),
    ]
}

pub fn percentiles(pooler: &Pooler) -> Table {
    let mut table = Table::new(&[
        "kind",
        "name",
        "transactions int8",
        "mean_outside_us int8",
        "mean_inside_us int8",
        "outside_p50_us int8",
        "outside_p95_us int8",
        "inside_p50_us int8",
        "inside_p95_us int8",
        "total_p95_us int8",
        "total_p99_us int8",
        "logins int8",
        "mean_opening_us int8",
        "opening_p95_us int8",
    ]);
    let measured = pooler.statistics.borrow();
    for (kind, tallies) in [
        ("database", &measured.databases),
        ("user", &measured.users),
        ("class", &measured.classes),
    ] {
        for (name, tally) in tallies.iter() {
            let all = tally.sums;
            let head: [Field; 5] = [
                kind.into(),
                name.into(),
                all.transactions.into(),
                mean(all.outside_us, all.turns).into(),
                mean(all.inside_us, all.turns).into(),
            ];
            let all = head.into_iter().chain(quantiles(tally));
            table.row(all.chain(opening(tally)));
        }
    }
    table
}

const CLASS_COLUMNS: [&str; 29] = [
    "class",
    "priority int8",
    "clients int8",
    "waiting int8",
    "inside int8",
    "transactions int8",
    "mean_outside_us int8",
    "mean_inside_us int8",
    "outside_p50_us int8",
    "outside_p95_us int8",
    "inside_p50_us int8",
    "inside_p95_us int8",
    "total_p95_us int8",
    "total_p99_us int8",
    "outside_sum_us int8",
    "inside_sum_us int8",
    "turns int8",
    "logins int8",
    "mean_opening_us int8",
    "opening_p95_us int8",
    "opening_sum_us int8",
    "conflicts int8",
    "transactions_max int8",
    "longest_us int8",
    "overlong int8",
    "cancelled int8",
    "would_wait int8",
    "mean_would_wait_us int8",
    "would_wait_max_us int8",
];

pub fn classes(pooler: &Pooler) -> Table {
    let mut table = Table::new(&CLASS_COLUMNS);
    let measured = pooler.statistics.borrow();
    let empty = Tally::default();
    let us = |ns: u64| ns / 1000;
    for class in readings::classes(pooler, &measured) {
        let tally = class.tally.unwrap_or(&empty);
        let (all, present, would) = (tally.sums, class.present, class.would_wait);
        let head: [Field; 8] = [
            class.name.into(),
            class.priority.map(u64::from).into(),
            present.clients.into(),
            present.waiting.into(),
            present.active.into(),
            all.transactions.into(),
            mean(all.outside_us, all.turns).into(),
            mean(all.inside_us, all.turns).into(),
        ];
        let sums = [all.outside_us, all.inside_us, all.turns].map(Field::from);
        let longest = class.longest.map(|longest| longest.as_micros() as u64);
        let last: [Field; 9] = [
            all.opening_us.into(),
            all.conflicts.into(),
            class.inside_max.into(),
            longest.into(),
            class.overlong.into(),
            class.cancelled.into(),
            would.map(|would| would.waited).into(),
            would.and_then(|would| would.mean_ns()).map(us).into(),
            would.map(|would| us(would.wait_max_ns)).into(),
        ];
        let known = head.into_iter().chain(quantiles(tally)).chain(sums);
        table.row(known.chain(opening(tally)).chain(last));
    }
    table
}

/// What came of waits for locks: of those that may wait for so long only, and of those that made
/// room. With `track`, which is also what `observe` makes of the others, nothing was done, and it is
/// counted what would have been.
pub fn lock_waits(pooler: &Pooler) -> Table {
    let mut table = Table::new(&[
        "class",
        "wait_target_us int8",
        "preempt",
        "late int8",
        "again int8",
        "cancelled int8",
        "rolled_back int8",
        "made_room int8",
        "made_room_inside_us int8",
        "repeats int8",
        "looks int8",
        "looks_us int8",
    ]);
    let configuration = pooler.configuration();
    let measured = pooler.statistics.borrow();
    let (looks, looks_took) = pooler.lock_waits.looks.get();
    let names = configuration.config.class.iter();
    let known = names.map(|class| (class.name.get_ref().as_str(), class.lock_wait()));
    for (name, wait) in known.chain([("", None)]) {
        let found = measured.classes.iter().find(|(known, _)| *known == name);
        let sums = found.map_or(Sums::default(), |(_, tally)| tally.sums);
        let counts = pooler.lock_waits.counts_of(name);
        let only_counts = |wait: &LockWait| wait.only_tracks || configuration.config.observe;
        let preempt = wait.map(|wait| match (only_counts(&wait), wait.preempt.0) {
            (true, _) => "track",
            (_, Preempt::Waiting) => "waiting",
            (_, Preempt::Always) => "always",
        });
        table.row([
            name.into(),
            wait.map(|wait| wait.target.as_micros() as u64).into(),
            preempt.map_or(Field::Null, Field::from),
            counts.late.into(),
            counts.again.into(),
            counts.cancelled.into(),
            counts.rolled_back.into(),
            sums.preempted.into(),
            sums.preempted_us.into(),
            sums.repeats.into(),
            looks.into(),
            (looks_took.as_micros() as u64).into(),
        ]);
    }
    table
}

pub fn statements(pooler: &Pooler) -> Table {
    let mut table = Table::new(&[
        "kind",
        "transactions int8",
        "avg_outside_us int8",
        "avg_inside_us int8",
        "inside_p50_us int8",
        "inside_p95_us int8",
        "statement",
    ]);
    let measured = pooler.statistics.borrow();
    for (kind, shape, tally) in measured.kinds.iter() {
        let all = tally.sums;
        let inside = |share| Field::from(tally.quantile_us(Phase::Inside, share));
        table.row([
            kind.into(),
            all.transactions.into(),
            mean(all.outside_us, all.turns).into(),
            mean(all.inside_us, all.turns).into(),
            inside(0.5),
            inside(0.95),
            shape.unwrap_or_default().into(),
        ]);
    }
    table
}

/// Parts in a hundred of its target that a class has achieved: above 100 it is late (the
/// performance index of z/OS, times 100).
fn index_percent(target_ns: u64, achieved_ns: u64) -> u64 {
    achieved_ns.saturating_mul(100) / target_ns.max(1)
}

pub fn targets(pooler: &Pooler) -> Table {
    let mut table = Table::new(&[
        "server",
        "class",
        "target",
        "target_us int8",
        "achieved_us int8",
        "achieved_percent int8",
        "inside_us int8",
        "present int8",
    ]);
    let us = |ns: u64| ns / 1000;
    for target in readings::targets(pooler) {
        let percent = |ns| index_percent(target.target_ns, ns);
        table.row([
            target.server.into(),
            target.class.into(),
            target.target.into(),
            us(target.target_ns).into(),
            target.achieved_ns.map(us).into(),
            target.achieved_ns.map(percent).into(),
            target.inside_ns.map(us).into(),
            target.present.into(),
        ]);
    }
    table
}
