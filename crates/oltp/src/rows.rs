//! Filling an empty database: tables, rows by COPY, keys, all of it or nothing.

use bytes::Bytes;
use futures_util::SinkExt;
use tokio_postgres::Client;

use crate::Unusable;

/// Rows go out in pieces of about this size, bytes.
const PIECE_BYTES: usize = 64 * 1024;

/// Makes the tables, in a transaction that [`end`] ends; refused where one of those that are named
/// is there.
pub async fn begin(client: &Client, names: &[&str], tables: &str) -> Result<(), Unusable> {
    let there = "SELECT count(*) FROM pg_class WHERE relname = ANY($1) AND relnamespace = current_schema()::regnamespace";
    if client.query_one(there, &[&names]).await?.get::<_, i64>(0) > 0 {
        let names = names.join(", ");
        return Err(Unusable(format!(
            "there are tables called {names} already, or some of them; name an empty database"
        )));
    }
    client.batch_execute("BEGIN").await?;
    Ok(client.batch_execute(tables).await?)
}

/// Makes the keys, after the rows, which is quicker, and leaves nothing to do for autovacuum, which
/// would read all of it again beside the first users.
pub async fn end(client: &Client, keys: &str) -> Result<(), Unusable> {
    client.batch_execute(keys).await?;
    client.batch_execute("COMMIT").await?;
    Ok(client.batch_execute("VACUUM (FREEZE, ANALYZE)").await?)
}

/// Rows of one table on their way.
pub struct Copy {
    sink: std::pin::Pin<Box<tokio_postgres::CopyInSink<Bytes>>>,
    piece: String,
}

impl Copy {
    /// Begins to copy into a table.
    pub async fn into(client: &Client, table: &str) -> Result<Self, Unusable> {
        let sink = client.copy_in(&format!("COPY {table} FROM STDIN")).await?;
        Ok(Self {
            sink: Box::pin(sink),
            piece: String::new(),
        })
    }

    /// Copies all of these rows into a table.
    pub async fn all(client: &Client, table: &str, rows: Vec<String>) -> Result<(), Unusable> {
        let mut copy = Self::into(client, table).await?;
        for row in rows {
            copy.row(&row).await?;
        }
        copy.end().await
    }

    /// A row, its fields with tabs between; `\N` is NULL.
    pub async fn row(&mut self, row: &str) -> Result<(), Unusable> {
        self.piece.push_str(row);
        self.piece.push('\n');
        if self.piece.len() >= PIECE_BYTES {
            self.flush().await
        } else {
            Ok(())
        }
    }

    async fn flush(&mut self) -> Result<(), Unusable> {
        let piece = Bytes::from(std::mem::take(&mut self.piece));
        Ok(self.sink.send(piece).await?)
    }

    /// The last row was the last.
    pub async fn end(mut self) -> Result<(), Unusable> {
        self.flush().await?;
        self.sink.as_mut().finish().await?;
        Ok(())
    }
}
