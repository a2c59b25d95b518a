//! `gate.toml`: which databases there are, who may come from where and how they prove it, who goes
//! first, and every bound.
//!
//! Reading is pure, and so is every decision that follows from it: which database a name means,
//! which rule counts for a client, which class it is in. Files that are named here are read by
//! [`Configuration::load`](crate::Configuration::load).

mod class;
mod console_users;
mod database;
mod databases;
mod explanations;
mod limits;
mod lock_wait;
mod paths;
mod pgbouncer_rows;
mod priorities;
mod rows;
mod rule;
mod server;
mod user;

pub use class::{ClassSubject, ClassTable};
pub use database::{DatabaseTable, Mode};
pub use limits::{Limits, SECONDS_MAX};
pub use lock_wait::{LockWait, PreemptName, VictimName};
pub use pgbouncer_rows::PgBouncerRow;
pub use rows::FIXED_KEYS;
pub use rule::{AuthMethod, LoginAttempt, RuleTable, Transport, required_auth};
pub use server::{Encryption, Endpoint, ServerAddress};
pub use user::{AuthQueryTable, UserTable};

use serde::Deserialize;
use sooner_admission::{Goal, Order};
use sooner_config::classes::{self, ClassAims, LateName, OrderName};
use sooner_config::{Limit, Misconfigured, Spanned, check_listening};
use sooner_tls::TlsConfig;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Everything the file can say.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Where clients come in: addresses with a port, or paths of socket files; default:
    /// `127.0.0.1:6432`.
    pub listen: Vec<Spanned<String>>,
    /// How clients prove who they are where no rule says something else; default: `scram`.
    pub auth: AuthMethod,
    /// A file of users and their secrets, as PgBouncer's userlist.txt.
    pub users: Option<Spanned<PathBuf>>,
    /// How long a client keeps a server connection; default: for a transaction.
    pub mode: Mode,
    /// Users who may do everything in the database `sooner` (or `pgbouncer`).
    pub admins: Vec<Spanned<String>>,
    /// Users who may look there.
    pub watchers: Vec<Spanned<String>>,
    /// Where Prometheus finds metrics, and a browser the live page; default: nowhere.
    pub metrics: Option<Spanned<SocketAddr>>,
    /// The socket file of a `sooner attach postgres` beside the only server, which is told the
    /// priority of each transaction; default: none is told.
    pub priorities: Option<Spanned<PathBuf>>,
    /// The system user that root becomes once it listens; default: it stays root. Not `user`, which
    /// is of single users of databases.
    pub system_user: Option<Spanned<String>>,
    /// Every bound.
    pub limits: Limits,
    /// Certificates for clients; without any, clients cannot encrypt.
    pub tls: Vec<TlsConfig>,
    /// Where databases are; the first with a name that fits counts.
    pub database: Vec<DatabaseTable>,
    /// What holds for single users.
    pub user: Vec<UserTable>,
    /// Who may come from where; the first that fits counts, and who fits none may not. Without any,
    /// every client may by `auth`.
    pub rule: Vec<RuleTable>,
    /// Whether nothing is held back, and it is only found out what would be; default: no.
    pub observe: bool,
    /// Who goes first; the first that fits counts.
    pub class: Vec<ClassTable>,
    /// In which order those of one class go in; default: first come, first served.
    pub order: Option<Spanned<OrderName>>,
    /// Who is charged for what transactions take: of one class goes first who had the least of
    /// late.
    pub share_by: Option<Spanned<ShareBy>>,
    /// Which classes are late where there is more load than targets allow; default: the less
    /// important ones.
    pub late: Option<Spanned<LateName>>,
    /// Where secrets are looked up that stand in no file.
    pub auth_query: Option<AuthQueryTable>,
}

/// Names of the database that is the gate itself.
pub const OWN_DATABASES: [&str; 2] = ["sooner", "pgbouncer"];

/// Who is charged for what transactions take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShareBy {
    /// The address that a client comes from; through a socket file its user.
    Client,
    /// The user.
    User,
    /// The database, as the client calls it.
    Database,
    /// What the client calls itself.
    ApplicationName,
}

impl ShareBy {
    /// As the file has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::User => "user",
            Self::Database => "database",
            Self::ApplicationName => "application_name",
        }
    }
}

impl Config {
    /// Reads the file's text, without a look at anything else; the first mistake is the error.
    pub fn parse(text: &str) -> Result<Self, Misconfigured> {
        sooner_config::read(text).map_err(explanations::explain)
    }

    /// The same with all mistakes that can be told at once.
    pub fn parse_all(text: &str) -> Result<Self, Vec<Misconfigured>> {
        sooner_config::read(text).map_err(|_| {
            let mistakes = sooner_config::mistakes::<Self>(text);
            mistakes.into_iter().map(explanations::explain).collect()
        })
    }

    /// What can only be wrong together; the first mistake is the error.
    pub fn check(&self) -> Result<(), Misconfigured> {
        let first = self.mistakes().into_iter().next();
        first.map_or(Ok(()), Err)
    }

    /// The first mistake of each part.
    pub fn mistakes(&self) -> Vec<Misconfigured> {
        let words =
            "there is no database; write [[database]] with name and server, or give --backend";
        if self.database.is_empty() {
            return vec![Misconfigured::without_place("database", words)];
        }
        let databases = self.database.iter().map(|table| &table.name);
        let mut checks = vec![
            unique("database.name", databases),
            unique("user.name", self.user.iter().map(|table| &table.name)),
        ];
        checks.extend(self.database.iter().map(DatabaseTable::check));
        checks.push(self.check_listening());
        checks.push(self.check_priorities());
        checks.extend(self.class_checks());
        checks.extend(self.cap_checks());
        if checks.iter().all(Result::is_ok) {
            let order = self.order.as_ref();
            checks.push(classes::check_order(&self.class_aims(), order, "order"));
            checks.push(classes::check_late(&self.class_aims(), self.late.as_ref()));
            let share_by = self.share_by.as_ref();
            checks.push(classes::check_share_by(
                &self.class_aims(),
                share_by,
                "share_by",
            ));
        }
        checks.extend(self.auth_query.iter().map(|table| table.check(self)));
        let has_tls = !self.tls.is_empty();
        checks.extend(
            self.rule
                .iter()
                .map(|table| table.check(has_tls, &self.tls)),
        );
        checks.push(self.limits.check());
        checks.into_iter().filter_map(Result::err).collect()
    }

    /// That all addresses can be listened on, the files among them aside.
    fn check_listening(&self) -> Result<(), Misconfigured> {
        let listen = self.listen.iter().filter_map(|place| {
            let address = place.get_ref().parse().ok()?;
            Some(("listen", place.span(), address))
        });
        let metrics = self.metrics.iter();
        let metrics = metrics.map(|place| ("metrics", place.span(), *place.get_ref()));
        check_listening(&listen.chain(metrics).collect::<Vec<_>>())
    }

    /// What is wrong with the classes, whatever else there is.
    pub fn class_mistakes(&self) -> Vec<Misconfigured> {
        self.class_checks()
            .into_iter()
            .filter_map(Result::err)
            .collect()
    }

    fn class_checks(&self) -> Vec<Result<(), Misconfigured>> {
        let names = self.class.iter().map(|table| &table.name);
        let mut checks = vec![classes::check_names(names)];
        checks.extend(self.class.iter().map(ClassTable::check));
        checks.extend(self.class.iter().map(|class| self.check_databases(class)));
        let all = self.class.iter();
        let conditions: Vec<_> = all.map(|class| (&class.name, class.conditions())).collect();
        checks.push(classes::check_reach(&conditions, "client"));
        checks
    }

    /// That no class may have more inside than all together.
    fn cap_checks(&self) -> impl Iterator<Item = Result<(), Misconfigured>> {
        let most = self.limits.transactions_most();
        let limit_key = match self.limits.transactions {
            Limit::Fixed(_) => "limits.transactions",
            Limit::Auto => "limits.transactions_max",
        };
        let check = move |class: &ClassTable| {
            let bounds = class.bounds();
            bounds.check_cap("class.transactions", most, limit_key)
        };
        self.class.iter().map(check)
    }

    fn class_aims(&self) -> Vec<ClassAims<'_>> {
        self.class.iter().map(ClassTable::aims).collect()
    }

    /// In which order those who wait go in.
    pub fn order(&self) -> Order {
        let name = self.order.as_ref().map(|order| *order.get_ref());
        let otherwise = name.unwrap_or(OrderName::Fifo);
        let is_shared = self.share_by.is_some();
        let late = self.late.as_ref().map(|late| *late.get_ref());
        classes::order(
            &self.class_aims(),
            otherwise,
            late.unwrap_or_default(),
            is_shared,
        )
    }

    /// What each class is to get, by number; who is in none has the number behind the last, and
    /// goes last.
    pub fn goals(&self) -> Vec<Goal> {
        classes::goals(&self.class_aims())
    }

    /// The same for what holds transactions back: where that is only observed, no class has a cap.
    pub fn held_goals(&self) -> Vec<Goal> {
        match self.observe {
            true => self.uncapped_goals(),
            false => self.goals(),
        }
    }

    /// The same without caps.
    pub fn uncapped_goals(&self) -> Vec<Goal> {
        let uncapped = |goal| Goal {
            inside_max: None,
            ..goal
        };
        self.goals().into_iter().map(uncapped).collect()
    }

    /// Whether it matters what transactions say of themselves: for their class, or for how long
    /// they are expected to take.
    pub fn needs_hints(&self) -> bool {
        self.class.iter().any(ClassTable::needs_hints) || self.order().asks_for_times()
    }

    /// The entry for a database of this name; none for the gate's own, which no server ever sees.
    pub fn database(&self, name: &str) -> Option<&DatabaseTable> {
        let mut tables = self.database.iter();
        tables.find(|table| !OWN_DATABASES.contains(&name) && table.is_for(name))
    }
}

fn unique<'a>(
    key: &str,
    names: impl Iterator<Item = &'a Spanned<String>>,
) -> Result<(), Misconfigured> {
    let mut seen = std::collections::BTreeSet::new();
    for name in names {
        if !seen.insert(name.get_ref()) {
            let words = format!("{:?} is given twice; keep one of them", name.get_ref());
            return Err(Misconfigured::at(name, key, words));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
