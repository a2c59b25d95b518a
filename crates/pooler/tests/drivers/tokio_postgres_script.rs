//! What tokio-postgres sees of a PostgreSQL, one line a step.
//!
//! Two connections, `a` and `b`, take turns, so that behind a gate neither stays with one server
//! connection. What ties a client to its server connection has a connection of its own, which is
//! closed behind it.

use std::cell::RefCell;
use std::future::poll_fn;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;
use std::time::Duration;

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Config, Error, NoTls, Row, Statement};

use super::place::ScriptTarget;

mod sessions;
mod statements;
mod transactions;

/// Runs all steps.
pub fn run(place: &ScriptTarget<'_>) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut config = Config::new();
    config.host_path(place.folder).port(place.port);
    config.user("postgres").dbname("postgres");
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        let (mut a, b) = (connect(&config).await, connect(&config).await);
        let mut lines = Lines(String::new());
        let all = async {
            statements::run(&mut lines, &config, &a, &b).await;
            transactions::run(&mut lines, &config, &mut a, &b).await;
            sessions::run(&mut lines, &config, &a, &b).await;
        };
        // One that hangs is a failure, not a test without end.
        let ended = tokio::time::timeout(Duration::from_secs(100), all).await;
        assert!(ended.is_ok(), "it hangs behind {}", lines.0);
        lines.0
    })
}

/// What was found, a line a step.
struct Lines(String);

impl Lines {
    fn add(&mut self, step: &str, found: impl std::fmt::Debug) {
        self.0 += &format!("{step}: {found:?}\n");
    }
}

/// A connection and what it has heard beside its answers.
struct Connected {
    client: Client,
    heard: Rc<RefCell<Vec<String>>>,
}

impl Deref for Connected {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl DerefMut for Connected {
    fn deref_mut(&mut self) -> &mut Client {
        &mut self.client
    }
}

async fn connect(config: &Config) -> Connected {
    try_connect(config).await.unwrap()
}

async fn try_connect(config: &Config) -> Result<Connected, Error> {
    let (client, mut connection) = config.connect(NoTls).await?;
    let heard = Rc::<RefCell<Vec<String>>>::default();
    let hears = heard.clone();
    tokio::task::spawn_local(async move {
        while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
            hears.borrow_mut().push(match message {
                AsyncMessage::Notice(notice) => format!("{}", notice),
                AsyncMessage::Notification(one) => format!("{} {}", one.channel(), one.payload()),
                other => format!("{other:?}"),
            });
        }
    });
    Ok(Connected { client, heard })
}

/// The values of all rows.
async fn ask(client: &Client, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Vec<String> {
    try_ask(client, sql, values).await.unwrap()
}

async fn try_ask(
    client: &Client,
    sql: &str,
    values: &[&(dyn ToSql + Sync)],
) -> Result<Vec<String>, Error> {
    Ok(shown(&client.query(sql, values).await?))
}

/// The same of a statement that was prepared before.
async fn run_prepared(
    client: &Client,
    statement: &Statement,
    values: &[&(dyn ToSql + Sync)],
) -> Vec<String> {
    shown(&client.query(statement, values).await.unwrap())
}

fn shown(rows: &[Row]) -> Vec<String> {
    let one = |row: &Row| -> Vec<String> {
        let columns = row.columns().iter().enumerate();
        columns
            .map(|(at, column)| match *column.type_() {
                Type::INT4 => format!("{:?}", row.get::<_, Option<i32>>(at)),
                Type::INT8 => format!("{:?}", row.get::<_, Option<i64>>(at)),
                Type::OID => "an oid".into(),
                Type::FLOAT8 => format!("{:?}", row.get::<_, Option<f64>>(at)),
                Type::BOOL => format!("{:?}", row.get::<_, Option<bool>>(at)),
                Type::BYTEA => format!("{:?}", row.get::<_, Option<Vec<u8>>>(at)),
                Type::INT4_ARRAY => format!("{:?}", row.get::<_, Option<Vec<Option<i32>>>>(at)),
                Type::TIMESTAMPTZ => {
                    format!("{:?}", row.get::<_, Option<std::time::SystemTime>>(at))
                }
                Type::VOID => "void".into(),
                _ => format!("{:?}", row.get::<_, Option<String>>(at)),
            })
            .collect()
    };
    rows.iter().flat_map(one).collect()
}

/// What is said of what must fail.
fn said<T>(result: Result<T, Error>) -> String {
    let Err(error) = result else {
        panic!("no error")
    };
    match error.as_db_error() {
        Some(database) => format!("{} {}", database.code().code(), database.message()),
        None => error.to_string(),
    }
}

/// Waits until a client sleeps, or none.
async fn until_sleepers(other: &Client, count: usize) {
    let sql = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
    while ask(other, sql, &[]).await.len() != count {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
