//! Values, statements and their names.

use std::time::{Duration, UNIX_EPOCH};

use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, SimpleQueryMessage};

use super::{Lines, ask, connect, run_prepared, said, try_ask};

pub async fn run(lines: &mut Lines, config: &Config, a: &Client, b: &Client) {
    lines.add("several statements", several_statements(a, b).await);
    lines.add("parameters", parameters(a, b).await);
    lines.add("prepared across transactions", prepared(a, b).await);
    lines.add("one name, two texts", two_texts(config).await);
    lines.add("a changed table", a_changed_table(config, a).await);
    lines.add("side by side", side_by_side(a, b).await);
    lines.add(
        "side by side with errors",
        side_by_side_with_errors(a, b).await,
    );
    lines.add("types that are looked up", types_looked_up(config).await);
    lines.add("large values", large_values(a, b).await);
    lines.add("errors", errors(a).await);
}

async fn several_statements(a: &Client, b: &Client) -> Vec<String> {
    let create = "CREATE TABLE t (i int PRIMARY KEY, s text); INSERT INTO t SELECT i, 's' || i FROM generate_series(0, 99) i";
    a.batch_execute(create).await.unwrap();
    let several = "SELECT 1; UPDATE t SET s = s; SELECT 'two', NULL; VALUES (3), (4)";
    let messages = b.simple_query(several).await.unwrap();
    let shown = messages.iter().map(|message| match message {
        SimpleQueryMessage::Row(row) => format!(
            "{:?}",
            (0..row.len()).map(|at| row.get(at)).collect::<Vec<_>>()
        ),
        SimpleQueryMessage::CommandComplete(count) => format!("{count} rows"),
        SimpleQueryMessage::RowDescription(columns) => format!("{} columns", columns.len()),
        other => format!("{other:?}"),
    });
    shown.collect()
}

async fn parameters(a: &Client, b: &Client) -> (Vec<String>, Vec<String>) {
    let sql = "SELECT $1::int, $2::text, $3::text, $4::int[], $5::timestamptz, $6::bytea, $7::float8, $8::bool, $9::int8";
    let moment = UNIX_EPOCH + Duration::from_secs(1_709_208_000);
    let (array, bytes) = (vec![Some(1), None, Some(3)], vec![0_u8, 255]);
    let nothing: Option<String> = None;
    let values: [&(dyn ToSql + Sync); 9] = [
        &7_i32, &nothing, &"ñ'\\", &array, &moment, &bytes, &1.5_f64, &true, &-1_i64,
    ];
    (ask(a, sql, &values).await, ask(b, sql, &values).await)
}

async fn prepared(a: &Client, b: &Client) -> Vec<String> {
    let by_key = "SELECT s FROM t WHERE i = $1";
    let by_text = "SELECT i FROM t WHERE s = $1";
    let keys = [
        a.prepare(by_key).await.unwrap(),
        b.prepare(by_key).await.unwrap(),
    ];
    let texts = [
        a.prepare(by_text).await.unwrap(),
        b.prepare(by_text).await.unwrap(),
    ];
    let mut found = Vec::new();
    for turn in 0..12 {
        let first = turn as usize % 2;
        let (one, other) = if first == 0 { (a, b) } else { (b, a) };
        one.batch_execute("BEGIN").await.unwrap();
        found.extend(run_prepared(one, &keys[first], &[&turn]).await);
        let text = format!("s{turn}");
        found.extend(run_prepared(other, &texts[1 - first], &[&text]).await);
        found.extend(run_prepared(other, &keys[1 - first], &[&turn]).await);
        one.batch_execute("COMMIT").await.unwrap();
    }
    found
}

/// The driver counts its statements for all connections: what two programs would call the same is
/// called so by SQL.
async fn two_texts(config: &Config) -> Vec<String> {
    let (c, d) = (connect(config).await, connect(config).await);
    c.batch_execute("PREPARE same AS SELECT 'c'").await.unwrap();
    d.batch_execute("PREPARE same AS SELECT 'd'").await.unwrap();
    let mut found = ask(&c, "EXECUTE same", &[]).await;
    found.extend(ask(&d, "EXECUTE same", &[]).await);
    found
}

async fn a_changed_table(config: &Config, a: &Client) -> (String, Vec<String>, Vec<String>) {
    let (c, d) = (connect(config).await, connect(config).await);
    let create = "CREATE TABLE changing (i int); INSERT INTO changing VALUES (1)";
    a.batch_execute(create).await.unwrap();
    let sql = "SELECT * FROM changing";
    let (of_c, of_d) = (c.prepare(sql).await.unwrap(), d.prepare(sql).await.unwrap());
    // Side by side, so that whatever runs it afterwards has it prepared.
    c.batch_execute("BEGIN").await.unwrap();
    d.batch_execute("BEGIN").await.unwrap();
    run_prepared(&c, &of_c, &[]).await;
    run_prepared(&d, &of_d, &[]).await;
    c.batch_execute("COMMIT").await.unwrap();
    d.batch_execute("COMMIT").await.unwrap();
    let alter = "ALTER TABLE changing ADD s text DEFAULT 'new'";
    a.batch_execute(alter).await.unwrap();
    let failed = said(c.query(&of_c, &[]).await);
    (failed, ask(&c, sql, &[]).await, ask(&d, sql, &[]).await)
}

type Values<'a> = [&'a (dyn ToSql + Sync); 1];

async fn side_by_side(a: &Client, b: &Client) -> Vec<Vec<String>> {
    let (one, other) = ("SELECT $1::int * 2", "SELECT $1::text");
    let mut found = Vec::new();
    for turn in 0..10 {
        let text = turn.to_string();
        let (number, text): (Values<'_>, Values<'_>) = ([&turn], [&text]);
        let (w, x, y, z) = tokio::join!(
            ask(a, one, &number),
            ask(b, one, &number),
            ask(a, other, &text),
            ask(b, other, &text),
        );
        found.extend([w, x, y, z]);
    }
    found
}

async fn side_by_side_with_errors(a: &Client, b: &Client) -> Vec<String> {
    let divide = a.prepare("SELECT 10 / $1::int").await.unwrap();
    let values: [Values<'_>; 3] = [[&1], [&0], [&2]];
    let (ten, failed, five, simple, other) = tokio::join!(
        a.query(&divide, &values[0]),
        a.query(&divide, &values[1]),
        a.query(&divide, &values[2]),
        a.batch_execute("SELECT 1/0"),
        try_ask(b, "SELECT 'b'", &[]),
    );
    let mut found = super::shown(&ten.unwrap());
    found.extend([said(failed), said(simple)]);
    found.extend(super::shown(&five.unwrap()));
    found.extend(other.unwrap());
    found
}

/// It asks the catalogue about them first, by statements of its own.
async fn types_looked_up(config: &Config) -> Vec<String> {
    let c = connect(config).await;
    let create = "CREATE TYPE mood AS ENUM ('good', 'bad'); CREATE TYPE pair AS (x int, y mood); CREATE DOMAIN small AS int";
    c.batch_execute(create).await.unwrap();
    let sql = "SELECT $1::mood, $2::pair[], $3::small";
    let statement = c.prepare(sql).await.unwrap();
    let names = statement.params().iter().map(|of| of.to_string());
    let kinds = statement
        .params()
        .iter()
        .map(|of| format!("{:?}", of.kind()).chars().take(6).collect());
    names.chain(kinds).collect()
}

async fn large_values(a: &Client, b: &Client) -> (Vec<String>, bool, bool) {
    let large = "0123456789".repeat(300_000);
    let hash = ask(a, "SELECT md5($1)", &[&large]).await;
    let same: String = b
        .query_one("SELECT $1::text", &[&large])
        .await
        .unwrap()
        .get(0);
    let bytes: Vec<u8> = a
        .query_one("SELECT decode(repeat('00ff', 1500000), 'hex')", &[])
        .await
        .unwrap()
        .get(0);
    (hash, same == large, bytes == [0, 255].repeat(1_500_000))
}

async fn errors(a: &Client) -> Vec<String> {
    let mut all = Vec::new();
    for sql in [
        "SELEC 1",
        "SELECT * FROM nowhere",
        "INSERT INTO t VALUES (1, 'again')",
        "SELECT 'x'::int",
        "SELECT 1; SELECT 2",
    ] {
        all.push(said(a.query(sql, &[]).await));
    }
    all.push(said(
        a.batch_execute("SELECT 1; SELECT 1/0; SELECT 2").await,
    ));
    all
}
