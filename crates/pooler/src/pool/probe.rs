//! A look at the servers of a configuration before a client wants one: whether they answer, and
//! whether they allow as many connections as the limits need. What it finds is no reason not to
//! start: a server may come later.

use crate::config::{AuthMethod, DatabaseTable, Limits, ServerAddress};
use crate::configuration::Configuration;
use crate::pool::capacity::{self, Capacity};
use crate::pool::lease::in_time;
use crate::pool::server_session::{self, LoginError, LoginSecret};
use sooner_postgres::auth::Secret;
use std::collections::BTreeSet;
use std::time::Duration;

/// A server that takes longer is one that does not answer.
const LOOK_WITHIN: Duration = Duration::from_secs(2);
/// Where nothing names a user or a database: every server has both.
const USUAL: &str = "postgres";

/// What the operator should know of the servers, a line each.
pub async fn probe_servers(configuration: &Configuration) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut lines = Vec::new();
    for table in &configuration.config.database {
        let address = table.server.get_ref();
        if seen.insert(address) {
            lines.extend(look(configuration, table, address).await);
        }
    }
    lines
}

async fn look(
    configuration: &Configuration,
    table: &DatabaseTable,
    address: &ServerAddress,
) -> Option<String> {
    let connector = configuration.connector(address);
    let connecting = server_session::connect(address, connector.as_deref());
    let stream = match in_time(LOOK_WITHIN, connecting).await {
        Ok(stream) => stream,
        Err(error) => {
            return Some(format!(
                "the database at {address} does not answer: {error}; clients will wait for it"
            ));
        }
    };
    let (user, secret) = any_user(configuration, table)?;
    let name = table.name_there.as_deref().unwrap_or_else(|| table.known());
    let capacity = async {
        let mut session = server_session::log_in(stream, &user, name, secret.as_ref()).await?;
        let capacity = capacity::ask(&mut session).await?;
        session.end().await;
        Ok(capacity)
    };
    match in_time(LOOK_WITHIN, capacity).await {
        Ok(capacity) => too_many(address, capacity?, &configuration.config.limits),
        Err(LoginError::Full) => Some(format!(
            "the database at {address} has no connection left (53300); clients will wait for one"
        )),
        // It may let in those who come, and will tell them otherwise.
        Err(_) => None,
    }
}

impl DatabaseTable {
    /// A database that its server has for sure, or should.
    fn known(&self) -> &str {
        match self.name.get_ref().as_str() {
            "*" => USUAL,
            name => name,
        }
    }
}

/// A user as whom the gate can log in by itself, if one is known.
fn any_user(
    configuration: &Configuration,
    table: &DatabaseTable,
) -> Option<(String, Option<LoginSecret>)> {
    let config = &configuration.config;
    if let Some(user) = &table.user {
        let own = configuration.logins.get(table.name.get_ref());
        let secret = own.or_else(|| configuration.users.get(user));
        return Some((user.clone(), secret.cloned().map(LoginSecret::Kept)));
    }
    if let Some(changes) = &config.auth_query {
        let user = changes.user.get_ref();
        let secret = configuration.users.get(user).cloned();
        return Some((user.clone(), secret.map(LoginSecret::Kept)));
    }
    let proves = |secret: &Secret| !matches!(secret, Secret::Scram(_));
    let mut users = configuration.users.iter();
    if let Some((user, secret)) = users.find(|(_, secret)| proves(secret)) {
        let secret = LoginSecret::Kept(secret.clone());
        return Some((user.clone(), Some(secret)));
    }
    let trusts = config.auth == AuthMethod::Trust && config.rule.is_empty();
    trusts.then(|| (USUAL.to_owned(), None))
}

/// Whether the limits need more connections than the server allows.
fn too_many(address: &ServerAddress, capacity: Capacity, limits: &Limits) -> Option<String> {
    let Capacity { max, reserved } = capacity;
    let free = capacity.free();
    let wants = [
        ("limits.transactions", limits.transactions_most()),
        (
            "limits.connections",
            limits.connections.map_or(0, |max| max.get()),
        ),
    ];
    let (key, wanted) = wants.into_iter().find(|(_, wanted)| *wanted > free)?;
    Some(format!(
        "the database at {address} allows {free} connections (max_connections {max}, of which {reserved} are reserved), \
         and {key} is {wanted}: no more transactions than that go in at a time"
    ))
}
