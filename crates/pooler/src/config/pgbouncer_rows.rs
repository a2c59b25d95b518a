//! The configuration in force by PgBouncer's keys, in its words and units: what watches a PgBouncer
//! by SHOW CONFIG finds what it looks for.

use super::rows::names;
use super::{AuthMethod, Config, Encryption};
use sooner_config::Spanned;
use std::path::{Path, PathBuf};

/// A key of PgBouncer.
pub struct PgBouncerRow {
    /// Its name.
    pub key: &'static str,
    /// What the gate's settings make it; `None` is NULL.
    pub value: Option<String>,
    /// PgBouncer's own default.
    pub default: Option<&'static str>,
    /// Whether it follows from a setting of gate.toml that RELOAD changes.
    pub is_changeable: bool,
}

const DEFAULT_QUERY: &str = "SELECT rolname, CASE WHEN rolvaliduntil < now() THEN NULL ELSE rolpassword END FROM pg_authid WHERE rolname=$1 AND rolcanlogin";

/// What no setting of the gate changes: key, value, and PgBouncer's default. The value is what the
/// gate does.
const FIXED: [(&str, &str, &str); 46] = [
    ("application_name_add_host", "0", "0"),
    ("auth_hba_file", "", ""),
    ("autodb_idle_timeout", "0", "3600"),
    ("client_idle_timeout", "0", "0"),
    ("client_tls_ciphers", "fast", "fast"),
    ("client_tls_dheparams", "auto", "auto"),
    ("client_tls_ecdhcurve", "auto", "auto"),
    ("client_tls_protocols", "secure", "secure"),
    ("disable_pqexec", "0", "0"),
    ("dns_max_ttl", "0", "15"),
    ("dns_nxdomain_ttl", "0", "15"),
    ("dns_zone_check_period", "0", "0"),
    ("ignore_startup_parameters", "", ""),
    ("job_name", "sooner", "pgbouncer"),
    ("listen_backlog", "4096", "128"),
    ("log_connections", "0", "1"),
    ("log_disconnections", "0", "1"),
    ("log_pooler_errors", "1", "1"),
    ("log_stats", "0", "1"),
    ("logfile", "", ""),
    ("max_packet_size", "2147483647", "2147483647"),
    ("min_pool_size", "0", "0"),
    ("pidfile", "", ""),
    ("pkt_buf", "4096", "4096"),
    ("query_timeout", "0", "0"),
    ("reserve_pool_size", "0", "0"),
    ("reserve_pool_timeout", "0", "5"),
    ("resolv_conf", "", ""),
    ("sbuf_loopcnt", "0", "5"),
    ("server_check_query", "", "select 1"),
    ("server_fast_close", "0", "0"),
    ("server_login_retry", "0", "15"),
    ("server_reset_query", "DISCARD ALL", "DISCARD ALL"),
    ("server_reset_query_always", "0", "0"),
    ("server_round_robin", "0", "0"),
    ("server_tls_ciphers", "fast", "fast"),
    ("server_tls_protocols", "secure", "secure"),
    ("so_reuseport", "0", "0"),
    ("stats_period", "60", "60"),
    ("suspend_timeout", "0", "10"),
    ("syslog", "0", "0"),
    ("syslog_facility", "daemon", "daemon"),
    ("syslog_ident", "sooner", "pgbouncer"),
    ("unix_socket_group", "", ""),
    ("unix_socket_mode", "511", "0777"),
    ("verbose", "0", ""),
];

/// The same for sockets: as the gate and the system have them.
const FIXED_OF_SOCKETS: [(&str, &str, &str); 7] = [
    ("tcp_defer_accept", "0", "1"),
    ("tcp_keepalive", "1", "1"),
    ("tcp_keepcnt", "0", "0"),
    ("tcp_keepidle", "60", "0"),
    ("tcp_keepintvl", "20", "0"),
    ("tcp_socket_buffer", "0", "0"),
    ("tcp_user_timeout", "0", "0"),
];

impl Config {
    /// All of PgBouncer's keys, by name.
    pub fn as_pgbouncer_rows(&self) -> Vec<PgBouncerRow> {
        let fixed = FIXED.iter().chain(&FIXED_OF_SOCKETS);
        let fixed = fixed.map(|(key, value, default)| PgBouncerRow {
            key,
            value: Some((*value).to_owned()),
            // It has none of this one.
            default: (*key != "verbose").then_some(*default),
            is_changeable: false,
        });
        let mut all: Vec<PgBouncerRow> = fixed.collect();
        all.extend(self.of_listening());
        let followed = [
            self.of_logins(),
            self.of_bounds(),
            self.of_times(),
            self.of_client_tls(),
            self.of_server_tls(),
        ];
        all.extend(followed.into_iter().flatten());
        all.sort_by_key(|row| row.key);
        all
    }

    /// Those that count from the start on.
    fn of_listening(&self) -> Vec<PgBouncerRow> {
        let mut hosts = Vec::new();
        let (mut port, mut folder) = (None, String::new());
        for place in &self.listen {
            let place = place.get_ref();
            if place.contains('/') {
                if folder.is_empty() {
                    let own = Path::new(place).parent();
                    folder = own.map_or_else(String::new, |own| own.display().to_string());
                }
                port = port.or_else(|| place.rsplit_once('.').map(|(_, port)| port));
            } else if let Some((host, own)) = place.rsplit_once(':') {
                hosts.push(host.trim_start_matches('[').trim_end_matches(']'));
                port = Some(port.unwrap_or(own));
            }
        }
        let user = self.system_user.as_ref().map(|user| user.get_ref().clone());
        let rows = [
            // A file beside the program, or none.
            ("conffile", None, None),
            ("listen_addr", Some(hosts.join(",")), Some("")),
            (
                "listen_port",
                Some(port.unwrap_or("6432").to_owned()),
                Some("6432"),
            ),
            ("unix_socket_dir", Some(folder), Some("/tmp")),
            ("user", user, None),
        ];
        let fixed = |(key, value, default)| PgBouncerRow {
            key,
            value,
            default,
            is_changeable: false,
        };
        rows.into_iter().map(fixed).collect()
    }

    fn of_logins(&self) -> Vec<PgBouncerRow> {
        let method = match self.auth {
            _ if !self.rule.is_empty() => "hba",
            AuthMethod::Scram => "scram-sha-256",
            AuthMethod::Password => "plain",
            AuthMethod::Certificate => "cert",
            method => method.as_str(),
        };
        let asked = self.auth_query.as_ref();
        let query = asked.map_or(DEFAULT_QUERY, |table| table.query.get_ref().as_str());
        let user = asked.map(|table| table.user.get_ref().clone());
        vec![
            follows("admin_users", names(&self.admins), ""),
            follows("stats_users", names(&self.watchers), ""),
            follows("auth_type", method, "md5"),
            follows("auth_query", query, DEFAULT_QUERY),
            follows_or_null("auth_user", user),
            follows_or_null("auth_file", self.users.as_ref().map(path)),
            follows("pool_mode", self.mode.as_str(), "session"),
        ]
    }

    fn of_bounds(&self) -> Vec<PgBouncerRow> {
        let limits = &self.limits;
        let connections = limits.connections.map_or(0, |number| number.get());
        vec![
            follows("max_client_conn", limits.clients.get_ref(), "100"),
            follows("default_pool_size", limits.transactions_most(), "20"),
            follows("max_db_connections", connections, "0"),
            // Each user has a bound of its own, or none.
            follows("max_user_connections", 0, "0"),
            follows("max_prepared_statements", limits.statements, "200"),
        ]
    }

    fn of_times(&self) -> Vec<PgBouncerRow> {
        let limits = &self.limits;
        let (login, patience) = (&limits.login_seconds, &limits.patience_seconds);
        let (idle, lifetime) = (limits.server_idle_seconds, limits.server_lifetime_seconds);
        let in_transaction = limits.idle_in_transaction_seconds;
        vec![
            follows("client_login_timeout", login.get_ref(), "60"),
            follows("idle_transaction_timeout", in_transaction, "0"),
            follows("query_wait_timeout", limits.query_wait_seconds, "120"),
            follows("server_check_delay", limits.server_check_seconds, "30"),
            follows("server_connect_timeout", patience.get_ref(), "15"),
            follows("server_idle_timeout", idle, "600"),
            follows("server_lifetime", lifetime, "3600"),
        ]
    }

    /// By the first of the certificates.
    fn of_client_tls(&self) -> Vec<PgBouncerRow> {
        let first = self.tls.first();
        let authority = self.tls.iter().find_map(|table| table.client_ca.as_ref());
        // Clear text is refused by rules alone.
        let mode = first.map_or("disable", |_| "prefer");
        let text = |file: Option<&Spanned<PathBuf>>| file.map(path).unwrap_or_default();
        vec![
            follows("client_tls_sslmode", mode, "disable"),
            follows("client_tls_ca_file", text(authority), ""),
            follows(
                "client_tls_cert_file",
                text(first.map(|table| &table.certificate)),
                "",
            ),
            follows(
                "client_tls_key_file",
                text(first.map(|table| &table.key)),
                "",
            ),
        ]
    }

    /// By the first of the databases.
    fn of_server_tls(&self) -> Vec<PgBouncerRow> {
        let first = self.database.first().map(|table| table.server.get_ref());
        let mode = match first.map(|server| server.encryption) {
            None | Some(Encryption::Disable) => "disable",
            Some(Encryption::Prefer) => "prefer",
            Some(Encryption::Require) => "require",
            Some(Encryption::VerifyCa) => "verify-ca",
            Some(Encryption::VerifyFull) => "verify-full",
        };
        let text = |file: Option<&PathBuf>| {
            file.map_or_else(String::new, |file| file.display().to_string())
        };
        let own = first.and_then(|server| server.certificate.as_ref());
        let authorities = first.and_then(|server| server.authorities.as_ref());
        vec![
            follows("server_tls_sslmode", mode, "disable"),
            follows("server_tls_ca_file", text(authorities), ""),
            follows("server_tls_cert_file", text(own.map(|(own, _)| own)), ""),
            follows("server_tls_key_file", text(own.map(|(_, key)| key)), ""),
        ]
    }
}

fn path(file: &Spanned<PathBuf>) -> String {
    file.get_ref().display().to_string()
}

fn follows(key: &'static str, value: impl ToString, default: &'static str) -> PgBouncerRow {
    PgBouncerRow {
        key,
        value: Some(value.to_string()),
        default: Some(default),
        is_changeable: true,
    }
}

fn follows_or_null(key: &'static str, value: Option<String>) -> PgBouncerRow {
    PgBouncerRow {
        key,
        value,
        default: None,
        is_changeable: true,
    }
}
