//! Statements of `sooner load tpcc` and `tpcw` stay as cheap as they were when the tables have
//! grown: no plan reads the whole of one.
//!
//! In runs of minutes tables become many times as long. A plan that changes then is a database that
//! is slower from one moment to the next, whatever is held against what.

use std::process::Command;

use sooner_testbed::postgres::{Database, said};

fn load(kit: &str, arguments: &[&str]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sooner"));
    let output = command.args(["load", kit]).args(arguments).output();
    let output = output.unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    // Another program on this machine may have held the generator up.
    let is_fine = output.status.success() || printed.contains("ms late");
    assert!(is_fine, "{printed}{}", said(&output));
}

/// A database with the data of a kit, grown by `growth`, and how often each of the tables was read
/// as a whole while users were there.
fn whole_reads(
    test: &str,
    kit: &str,
    data: &[&str],
    growth: &str,
    tables: &[&str],
) -> Option<String> {
    let database = Database::start(test)?;
    let folder = database.folder().display();
    let url = format!("postgresql:///postgres?host={folder}&user=postgres");
    load(kit, &[&["fill", "--url", &url], data].concat());
    database.ask(growth);
    database.ask("ANALYZE");
    let counts = || {
        let names = tables.join("', '");
        database.ask(&format!(
            "SELECT relname, seq_scan FROM pg_stat_user_tables WHERE relname IN ('{names}') ORDER BY 1"
        ))
    };
    let before = counts();
    let users = ["run", "--url", &url, "--users", "2", "--for", "4"];
    load(kit, &users);
    let after = counts();
    Some(if before == after {
        String::new()
    } else {
        format!("before: {before}\nafter: {after}")
    })
}

#[test]
fn the_stock_is_not_read_as_a_whole_for_the_last_orders() {
    let test = "the_stock_is_not_read_as_a_whole";
    let data = [
        "--warehouses",
        "1",
        "--customers",
        "300",
        "--items",
        "50000",
    ];
    // A ninth of a district's lines, looked up one by one, is believed to cost one and a half times
    // what reading the stock does; 200 a third of it.
    let growth = "INSERT INTO order_line SELECT 1, district, -number, line, 1 + (number * 7919 + line * 104729) % 50000, 1, now(), 5, 1, 'long ago'
        FROM generate_series(1, 10) AS district, generate_series(1, 10000) AS number, generate_series(1, 10) AS line";
    let Some(read) = whole_reads(test, "tpcc", &data, growth, &["order_line", "stock"]) else {
        return;
    };
    assert_eq!(read, "");
}

#[test]
fn lines_of_old_orders_are_not_read_for_best_sellers() {
    let test = "lines_of_old_orders_are_not_read";
    let data = ["--items", "1000", "--customers", "1000"];
    let growth = "INSERT INTO order_line SELECT -number, line, 1 + (number * 3 + line) % 1000, 2, 10, 'long ago'
        FROM generate_series(1, 100000) AS number, generate_series(1, 3) AS line";
    let Some(read) = whole_reads(test, "tpcw", &data, growth, &["order_line"]) else {
        return;
    };
    assert_eq!(read, "");
}
