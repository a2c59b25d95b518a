//! What lasts as long as a session.

use std::time::Duration;

use tokio_postgres::{Client, Config};

use super::{Lines, ask, connect, said, try_connect};

pub async fn run(lines: &mut Lines, config: &Config, a: &Client, b: &Client) {
    lines.add("notices", notices(config).await);
    lines.add("notifications", notifications(config, b).await);
    lines.add("temporary tables", temporary_tables(config, b).await);
    lines.add("advisory locks", advisory_locks(config, a, b).await);
    lines.add("settings", settings(config, b).await);
    lines.add("everything discarded", discarded(config, b).await);
    lines.add("sessions that end", sessions_that_end(config, a, b).await);
}

async fn heard(list: &std::cell::RefCell<Vec<String>>, count: usize) -> Vec<String> {
    while list.borrow().len() < count {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    list.borrow().clone()
}

async fn notices(config: &Config) -> Vec<String> {
    let c = connect(config).await;
    let raise = "DO $$ BEGIN RAISE NOTICE 'hello'; RAISE WARNING 'beware'; END $$";
    c.batch_execute(raise).await.unwrap();
    heard(&c.heard, 2).await
}

async fn notifications(config: &Config, b: &Client) -> Vec<String> {
    let c = connect(config).await;
    c.batch_execute("LISTEN news").await.unwrap();
    b.batch_execute("BEGIN; NOTIFY news, 'first'")
        .await
        .unwrap();
    ask(b, "SELECT pg_notify('news', $1)", &[&"second"]).await;
    b.batch_execute("COMMIT").await.unwrap();
    heard(&c.heard, 2).await
}

async fn temporary_tables(config: &Config, b: &Client) -> Vec<String> {
    let c = connect(config).await;
    let create = "CREATE TEMP TABLE mine (i int); INSERT INTO mine VALUES (1), (2)";
    c.batch_execute(create).await.unwrap();
    b.batch_execute("BEGIN").await.unwrap();
    let mut found = ask(b, "SELECT to_regclass('mine')::text", &[]).await;
    b.batch_execute("COMMIT").await.unwrap();
    found.extend(ask(&c, "SELECT count(*) FROM mine WHERE i > $1", &[&0]).await);
    found
}

async fn advisory_locks(config: &Config, a: &Client, b: &Client) -> Vec<String> {
    let (c, d) = (connect(config).await, connect(config).await);
    let mut found = ask(&c, "SELECT pg_advisory_lock($1)", &[&7_i64]).await;
    let attempt = "SELECT pg_try_advisory_lock(7)";
    found.extend(ask(&d, attempt, &[]).await);
    found.extend(ask(&c, "SELECT pg_advisory_unlock(7)", &[]).await);
    found.extend(ask(&d, attempt, &[]).await);
    drop((c, d));
    let attempt = "SELECT pg_try_advisory_xact_lock(8)";
    a.batch_execute("BEGIN").await.unwrap();
    found.extend(ask(a, attempt, &[]).await);
    found.extend(ask(b, attempt, &[]).await);
    a.batch_execute("COMMIT").await.unwrap();
    found.extend(ask(b, attempt, &[]).await);
    found
}

const READ: &str =
    "SELECT current_setting('TimeZone'), current_setting('DateStyle'), current_setting('work_mem'),
    current_setting('application_name'), current_setting('search_path')";

async fn settings(config: &Config, b: &Client) -> Vec<Vec<String>> {
    let mut config = config.clone();
    config.application_name("shop");
    config.options("-c work_mem=5MB -c search_path=pg_catalog");
    let c = connect(&config).await;
    c.batch_execute("SET TimeZone TO 'Asia/Tokyo'; SET DateStyle TO German")
        .await
        .unwrap();
    let mut found = Vec::new();
    for turn in 0..4 {
        b.batch_execute("BEGIN").await.unwrap();
        found.extend([ask(&c, READ, &[]).await, ask(b, READ, &[]).await]);
        b.batch_execute("COMMIT").await.unwrap();
        if turn == 2 {
            c.batch_execute("SET work_mem TO '7MB'").await.unwrap();
        }
    }
    found
}

async fn discarded(config: &Config, b: &Client) -> Vec<Vec<String>> {
    let mut config = config.clone();
    config.application_name("shop").options("-c work_mem=5MB");
    let c = connect(&config).await;
    let change =
        "SET TimeZone TO 'Asia/Tokyo'; SET work_mem TO '7MB'; CREATE TEMP TABLE mine (i int)";
    c.batch_execute(change).await.unwrap();
    let mut found = vec![ask(&c, READ, &[]).await];
    c.batch_execute("DISCARD ALL").await.unwrap();
    b.batch_execute("BEGIN").await.unwrap();
    found.push(ask(&c, READ, &[]).await);
    found.push(ask(&c, "SELECT to_regclass('mine')::text", &[]).await);
    b.batch_execute("COMMIT").await.unwrap();
    found
}

async fn sessions_that_end(config: &Config, a: &Client, b: &Client) -> Vec<String> {
    let mut nowhere = config.clone();
    nowhere.dbname("nowhere");
    let mut found = vec![said(try_connect(&nowhere).await.map(|_| ()))];
    let c = connect(config).await;
    let end = "SELECT pg_terminate_backend(pg_backend_pid())";
    found.push(said(c.batch_execute(end).await));
    while !c.is_closed() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    found.extend(ask(a, "SELECT 'alive'", &[]).await);
    found.extend(ask(b, "SELECT 'alive'", &[]).await);
    found
}
