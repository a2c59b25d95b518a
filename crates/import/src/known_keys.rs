//! What PgBouncer knows: sections, their keys, and what becomes of those that have no counterpart.
//! Up to PgBouncer 1.25.

use crate::document::Group;
use crate::values;
use sooner_pooler::pgbouncer::KEYS;

/// Of the process itself, or below what an operator notices: one remark for all of them.
pub const OF_PROCESS: &str = "autodb_idle_timeout conffile job_name listen_backlog log_connections log_disconnections log_pooler_errors \
    log_stats logfile pidfile pkt_buf sbuf_loopcnt scram_iterations service_name stats_period suspend_timeout syslog syslog_facility \
    syslog_ident tcp_defer_accept tcp_socket_buffer verbose";

/// Keys that have no default, so that a second `[pgbouncer]` leaves them alone.
pub const KEYS_THAT_STAY: [&str; 10] = [
    "auth_dbname",
    "auth_file",
    "auth_ident_file",
    "auth_ldap_options",
    "auth_user",
    "client_tls13_ciphers",
    "conffile",
    "server_tls13_ciphers",
    "user",
    "verbose",
];

/// Keys of `[pgbouncer]` with the same reason why they are not carried over.
pub struct LeftOut {
    /// Where they would stand.
    pub group: Group,
    /// `KEY=DEFAULT`, with blanks between: nothing is said of a value that PgBouncer has by itself.
    /// `|` stands for a blank, and `/` before the default of another version.
    pub keys: &'static str,
    /// Why.
    pub why: &'static str,
}

const fn left_out(group: Group, keys: &'static str, why: &'static str) -> LeftOut {
    LeftOut { group, keys, why }
}

/// All of them.
pub const LEFT_OUT: [LeftOut; 26] = [
    left_out(
        Group::Head,
        "application_name_add_host=0",
        "the gate never changes an application_name",
    ),
    left_out(
        Group::Head,
        "auth_ldap_options=",
        "the gate asks no LDAP server",
    ),
    left_out(
        Group::Head,
        "disable_pqexec=0",
        "the gate lets simple queries through",
    ),
    left_out(
        Group::Head,
        "ignore_startup_parameters= track_extra_parameters=IntervalStyle",
        "not needed, every setting of a client's first packet follows it",
    ),
    left_out(
        Group::Head,
        "stats_users_prefix=",
        "only the PgBouncer of Zalando's image has it; name these users in watchers",
    ),
    left_out(Group::Head, "peer_id=0", "a gate has no peers"),
    left_out(
        Group::Head,
        "so_reuseport=0",
        "each gate has a queue of its own, so two would let in twice as many",
    ),
    left_out(
        Group::Head,
        "tcp_keepalive=1 tcp_keepcnt=0 tcp_keepidle=0 tcp_keepintvl=0 tcp_user_timeout=0",
        "the gate has what the system has",
    ),
    left_out(
        Group::Head,
        "unix_socket_group=",
        "all users of the machine may open the gate's socket file, of whatever group",
    ),
    left_out(
        Group::Limits,
        "cancel_wait_timeout=10",
        "a cancel request is passed on at once",
    ),
    left_out(
        Group::Limits,
        "client_idle_timeout=0",
        "clients may be silent as long as they like",
    ),
    left_out(
        Group::Limits,
        "dns_max_ttl=15 dns_nxdomain_ttl=15 dns_zone_check_period=0 resolv_conf=",
        "the gate asks the system for a server's address whenever it opens a connection",
    ),
    left_out(
        Group::Limits,
        "max_packet_size=2147483647",
        "messages of any size pass in pieces",
    ),
    left_out(
        Group::Limits,
        "min_pool_size=0 reserve_pool_size=0 reserve_pool_timeout=5",
        "the gate has no pools, and server connections are opened when they are needed",
    ),
    left_out(
        Group::Limits,
        "query_timeout=0",
        "the gate ends nothing that has begun; PostgreSQL has statement_timeout",
    ),
    left_out(
        Group::Limits,
        "query_wait_notify=5",
        "the gate tells waiting clients nothing",
    ),
    left_out(
        Group::Limits,
        "server_check_query=<empty>/select|1",
        "the gate asks with an empty query",
    ),
    left_out(
        Group::Limits,
        "server_fast_close=0",
        "in session mode a client keeps its server connection until it leaves",
    ),
    left_out(
        Group::Limits,
        "server_login_retry=15",
        "the gate tries again five times a second, for as long as patience_seconds says",
    ),
    left_out(
        Group::Limits,
        "server_reset_query=DISCARD|ALL server_reset_query_always=0",
        "the gate says DISCARD ALL to a server connection in which something may have been left, and to no other",
    ),
    left_out(
        Group::Limits,
        "server_round_robin=0",
        "the connection that was used last is lent first",
    ),
    left_out(
        Group::Limits,
        "transaction_timeout=0",
        "the gate ends nothing that has begun; PostgreSQL 17 has transaction_timeout",
    ),
    left_out(
        Group::Tls,
        "client_tls13_ciphers= client_tls_ciphers=default/fast client_tls_dheparams=auto client_tls_ecdhcurve=auto",
        "the gate chooses among ciphers and curves that are all good",
    ),
    left_out(
        Group::Database,
        "server_tls13_ciphers= server_tls_ciphers=default/fast",
        "the gate chooses among ciphers that are all good",
    ),
    left_out(
        Group::Database,
        "server_tls_protocols=secure",
        "the gate speaks TLS 1.2 and 1.3 to servers",
    ),
    left_out(
        Group::Rule,
        "auth_ident_file=",
        "the gate knows no other names of users",
    ),
];

impl LeftOut {
    /// The keys with their defaults.
    pub fn keys(&self) -> impl Iterator<Item = (&'static str, Vec<String>)> {
        let pairs = self.keys.split(' ').filter_map(|pair| pair.split_once('='));
        pairs.map(|(key, defaults)| {
            let defaults = defaults.split('/').map(|own| own.replace('|', " "));
            (key, defaults.collect())
        })
    }
}

/// Whether a value is a default, however it is written.
pub fn is_default(value: &str, default: &str) -> bool {
    let bare = value.trim().trim_end_matches([';', ' ']);
    let exactly = |text| values::seconds(text).ok().filter(|time| !time.is_rounded);
    let is_same_number = exactly(bare).is_some_and(|time| exactly(default) == Some(time));
    bare.eq_ignore_ascii_case(default) || is_same_number
}

/// What may stand behind a name in `[databases]`.
const OF_DATABASE: &str = "host port dbname user password pool_size max_db_connections max_db_client_connections pool_mode auth_user \
    auth_dbname auth_query min_pool_size reserve_pool reserve_pool_size connect_query client_encoding datestyle timezone application_name \
    server_lifetime load_balance_hosts target_session_attrs client_idle_timeout query_timeout idle_transaction_timeout transaction_timeout";
/// What may stand behind a name in `[users]`.
const OF_USER: &str = "pool_mode max_user_connections max_user_client_connections pool_size min_pool_size reserve_pool_size \
    query_timeout idle_transaction_timeout transaction_timeout client_idle_timeout";
/// What may stand behind a number in `[peers]`.
const OF_PEER: &str = "host port pool_size";

/// The section of this name.
pub fn section(name: &str) -> Result<&'static str, String> {
    match name {
        "pgbouncer" => Ok("pgbouncer"),
        "databases" => Ok("databases"),
        "users" => Ok("users"),
        "peers" => Ok("peers"),
        _ => Err(format!(
            "{name:?} is not a section; there are [databases], [users], [pgbouncer] and [peers]"
        )),
    }
}

/// Whether `[pgbouncer]` has this key.
pub fn check(key: &str) -> Result<(), String> {
    if KEYS.contains(&key) {
        Ok(())
    } else {
        Err(format!(
            "{key} is not a key of [pgbouncer]; look for a slip, or leave it out"
        ))
    }
}

/// Whether an entry of this section may have these parameters.
pub fn check_pairs(section: &str, pairs: &[(String, String)]) -> Result<(), String> {
    let known = match section {
        "databases" => OF_DATABASE,
        "users" => OF_USER,
        _ => OF_PEER,
    };
    let unknown = pairs
        .iter()
        .find(|(key, _)| known.split_whitespace().all(|own| own != key));
    match unknown {
        Some((key, _)) => Err(format!(
            "{key} is not a parameter of [{section}]; there are {known}"
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_with_a_reason_is_one_of_pgbouncers() {
        let left_out = LEFT_OUT.iter().flat_map(LeftOut::keys).map(|(key, _)| key);
        for key in left_out.chain(OF_PROCESS.split_whitespace()) {
            assert_eq!(check(key), Ok(()));
        }
    }
}
