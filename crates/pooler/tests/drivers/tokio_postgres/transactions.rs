//! What lasts as long as a transaction or a command.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt, TryStreamExt, pin_mut, stream};
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Config, IsolationLevel, NoTls};

use super::{Connected, Lines, ask, connect, said, shown, until_sleepers};

pub async fn run(lines: &mut Lines, config: &Config, a: &mut Connected, b: &Client) {
    lines.add("commit and rollback", commit_and_rollback(a, b).await);
    lines.add("savepoints", savepoints(a, b).await);
    lines.add("a failed transaction", a_failed_transaction(a, b).await);
    lines.add("portals", portals(a, b).await);
    lines.add("copied", copied(a, b).await);
    lines.add("copies that fail", copies_that_fail(a, b).await);
    lines.add("cancelled", cancelled(config, b).await);
    lines.add("large objects", large_objects(a, b).await);
}

async fn commit_and_rollback(a: &mut Client, b: &Client) -> Vec<Vec<String>> {
    let read = "SELECT s FROM t WHERE i = 1";
    let transaction = a.transaction().await.unwrap();
    let change = "UPDATE t SET s = $1 WHERE i = 1";
    transaction.execute(change, &[&"committed"]).await.unwrap();
    let outside = ask(b, read, &[]).await;
    transaction.commit().await.unwrap();
    let committed = ask(b, read, &[]).await;
    // What is dropped is rolled back by the driver, when it comes to it.
    let transaction = a.transaction().await.unwrap();
    transaction.execute(change, &[&"never"]).await.unwrap();
    drop(transaction);
    vec![outside, committed, ask(a, read, &[]).await]
}

async fn savepoints(a: &mut Client, b: &Client) -> (Vec<String>, Vec<String>) {
    let mut outer = a
        .build_transaction()
        .isolation_level(IsolationLevel::RepeatableRead)
        .start()
        .await
        .unwrap();
    let change = "UPDATE t SET s = 'outer' WHERE i = 2";
    outer.execute(change, &[]).await.unwrap();
    let inner = outer.savepoint("within").await.unwrap();
    let mut found = vec![
        said(inner.query("SELECT 1/$1::int", &[&0]).await),
        said(inner.query("SELECT 1", &[]).await),
    ];
    inner.rollback().await.unwrap();
    let level = outer.query("SHOW transaction_isolation", &[]).await;
    found.extend(shown(&level.unwrap()));
    outer.commit().await.unwrap();
    (found, ask(b, "SELECT s FROM t WHERE i = 2", &[]).await)
}

async fn a_failed_transaction(a: &Client, b: &Client) -> Vec<String> {
    a.batch_execute("BEGIN").await.unwrap();
    let mut found = vec![
        said(a.batch_execute("SELECT 1/0").await),
        said(a.query("SELECT $1::int", &[&1]).await),
    ];
    found.extend(ask(b, "SELECT 'others work'", &[]).await);
    a.batch_execute("COMMIT").await.unwrap();
    found.extend(ask(a, "SELECT 'again'", &[]).await);
    found
}

async fn portals(a: &mut Client, b: &Client) -> Vec<Vec<String>> {
    let transaction = a.transaction().await.unwrap();
    let sql = "SELECT i FROM t WHERE i < $1 ORDER BY i";
    let portal = transaction.bind(sql, &[&5]).await.unwrap();
    let mut found = Vec::new();
    for _ in 0..3 {
        let rows = transaction.query_portal(&portal, 2).await.unwrap();
        found.extend([shown(&rows), ask(b, "SELECT 'between'", &[]).await]);
    }
    transaction.commit().await.unwrap();
    found
}

/// Sends rows of text; how many were taken.
async fn copy_in(client: &Client, rows: Vec<String>) -> Result<u64, tokio_postgres::Error> {
    let sink = client.copy_in("COPY copied FROM STDIN").await?;
    pin_mut!(sink);
    let rows = rows.into_iter().map(|row| Ok(Bytes::from(row)));
    sink.send_all(&mut stream::iter(rows)).await?;
    sink.finish().await
}

async fn copied(a: &Client, b: &Client) -> (u64, u64, Vec<String>, Vec<String>) {
    let create = "CREATE TABLE copied (i int, s text)";
    a.batch_execute(create).await.unwrap();
    let rows = (0..20_000).map(|i| format!("{i}\tx\n")).collect();
    let count = copy_in(a, rows).await.unwrap();
    let sink = b.copy_in("COPY copied FROM STDIN (FORMAT binary)").await;
    let writer = BinaryCopyInWriter::new(sink.unwrap(), &[Type::INT4, Type::TEXT]);
    pin_mut!(writer);
    for i in 0..1000_i32 {
        let nothing: Option<String> = None;
        writer.as_mut().write(&[&i, &nothing]).await.unwrap();
    }
    let in_binary = writer.finish().await.unwrap();
    let out = a.copy_out("COPY (SELECT * FROM copied WHERE i < 2 ORDER BY i, s) TO STDOUT");
    let pieces: Vec<Bytes> = out.await.unwrap().try_collect().await.unwrap();
    let pieces = pieces
        .iter()
        .map(|piece| String::from_utf8_lossy(piece).into());
    let sums = "SELECT count(*), count(s), sum(i) FROM copied";
    (count, in_binary, pieces.collect(), ask(b, sums, &[]).await)
}

async fn copies_that_fail(a: &Client, b: &Client) -> Vec<String> {
    let mut rows: Vec<String> = (0..20_000).map(|i| format!("{i}\tx\n")).collect();
    rows.insert(10_000, "no number\tx\n".into());
    let mut found = vec![said(copy_in(a, rows).await)];
    // One that is dropped half way.
    let sink = b
        .copy_in::<_, Bytes>("COPY copied FROM STDIN")
        .await
        .unwrap();
    let mut sink = Box::pin(sink);
    sink.send(Bytes::from("1\tx\n")).await.unwrap();
    drop(sink);
    let sql = "COPY (SELECT 1/(5000-i) FROM generate_series(1, 9000) i) TO STDOUT";
    let out = a.copy_out(sql).await.unwrap();
    found.push(said(out.try_collect::<Vec<Bytes>>().await));
    // And one that is not read to its end.
    let out = a.copy_out("COPY (SELECT generate_series(1, 100000)) TO STDOUT");
    let mut out = Box::pin(out.await.unwrap());
    found.push(format!("{:?}", out.next().await.unwrap().unwrap()));
    drop(out);
    let count = "SELECT count(*) FROM copied";
    found.extend(ask(a, count, &[]).await);
    found.extend(ask(b, count, &[]).await);
    found
}

async fn cancelled(config: &Config, b: &Client) -> Vec<String> {
    let c = connect(config).await;
    let token = c.cancel_token();
    let (failed, ()) = tokio::join!(c.batch_execute("SELECT pg_sleep(50)"), async {
        until_sleepers(b, 1).await;

        token.cancel_query(NoTls).await.unwrap();
    });

    let mut found = vec![said(failed)];
    found.extend(ask(b, "SELECT 'unharmed'", &[]).await);
    // One that comes when nothing runs does no harm.

    token.cancel_query(NoTls).await.unwrap();

    // The driver does not wait until it has arrived, and what is asked before that is meant.
    tokio::time::sleep(Duration::from_millis(500)).await;
    found.extend(ask(&c, "SELECT 'again'", &[]).await);

    found
}

async fn large_objects(a: &mut Client, b: &Client) -> Vec<String> {
    let transaction = a.transaction().await.unwrap();

    let bytes = b"0123456789".to_vec();

    let make = "SELECT lo_from_bytea(0, $1)";

    let made = transaction.query_one(make, &[&bytes]).await;

    let oid: u32 = made.unwrap().get(0);

    let open = "SELECT lo_open($1, 393216)";

    let opened = transaction.query_one(open, &[&oid]).await;

    let file: i32 = opened.unwrap().get(0);

    let write = "SELECT lo_lseek($1, 4, 0), lowrite($1, 'xy')";

    transaction.query(write, &[&file]).await.unwrap();

    transaction.commit().await.unwrap();

    let mut found = ask(b, "SELECT convert_from(lo_get($1), 'UTF8')", &[&oid]).await;

    found.extend(ask(a, "SELECT lo_unlink($1)", &[&oid]).await);

    found
}
