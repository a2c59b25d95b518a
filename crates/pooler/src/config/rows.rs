//! The configuration in force as keys and values.

use super::{Config, Limits};
use sooner_admission::Order;
use sooner_config::Spanned;
use sooner_config::classes::{LateName, OrderName};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Keys that count from the next start on.
pub const FIXED_KEYS: [&str; 3] = ["listen", "metrics", "system_user"];

impl Config {
    /// Keys with another value than in `other` that count from the next start on.
    pub fn fixed_keys_changed(&self, other: &Self) -> Vec<&'static str> {
        let (own, others) = (self.values(), other.values());
        let changed = own.into_iter().zip(others);
        changed
            .filter(|((key, own), (_, other))| FIXED_KEYS.contains(key) && own != other)
            .map(|((key, _), _)| key)
            .collect()
    }

    /// Key, value and default of what holds for all clients; passwords are in none of them.
    pub fn as_rows(&self) -> Vec<(String, String, String)> {
        let standard = Config::default();
        let all = self.values().into_iter().zip(standard.values());
        all.map(|((key, value), (_, default))| (key.to_owned(), value, default))
            .collect()
    }

    /// In the words of the file; nothing where nothing is said, and where what is said does not
    /// count.
    fn values(&self) -> Vec<(&'static str, String)> {
        let path = |path: &Option<Spanned<PathBuf>>| {
            text(path, |path: &PathBuf| path.display().to_string())
        };
        let own = [
            ("listen", names(&self.listen)),
            ("auth", self.auth_word()),
            ("users", path(&self.users)),
            ("mode", self.mode.as_str().to_owned()),
            ("admins", names(&self.admins)),
            ("watchers", names(&self.watchers)),
            ("metrics", text(&self.metrics, SocketAddr::to_string)),
            ("priorities", path(&self.priorities)),
            ("system_user", text(&self.system_user, String::clone)),
            ("order", self.order_word()),
            (
                "share_by",
                text(&self.share_by, |by| by.as_str().to_owned()),
            ),
            ("late", self.late_word()),
            ("observe", self.observe.to_string()),
        ];
        let asked = self.auth_query.as_ref();
        let asked = [
            (
                "auth_query.database",
                asked.map_or_else(String::new, |table| text(&table.database, String::clone)),
            ),
            (
                "auth_query.user",
                asked.map_or_else(String::new, |table| table.user.get_ref().clone()),
            ),
            (
                "auth_query.query",
                asked.map_or_else(String::new, |table| table.query.get_ref().clone()),
            ),
        ];
        let limits = self.limits.values();
        own.into_iter().chain(limits).chain(asked).collect()
    }

    /// Rules say it, where there are any.
    fn auth_word(&self) -> String {
        match self.rule.is_empty() {
            true => self.auth.as_str().to_owned(),
            false => String::new(),
        }
    }

    /// Classes with targets or weights set the order, and none can be written beside them.
    fn order_word(&self) -> String {
        if matches!(self.order(), Order::Targets(_) | Order::Shares) {
            return String::new();
        }
        let name = self.order.as_ref().map(|order| *order.get_ref());
        let word = match name.unwrap_or(OrderName::Fifo) {
            OrderName::Fifo => "fifo",
            OrderName::Shortest => "shortest",
            OrderName::Longest => "longest",
            OrderName::Boost => "boost",
            OrderName::Hrrn => "hrrn",
            OrderName::Nudge => "nudge",
            OrderName::Auto => "auto",
        };
        word.to_owned()
    }

    /// It says something beside targets alone.
    fn late_word(&self) -> String {
        let late = self.late.as_ref().map(|late| *late.get_ref());
        let word = match (self.order(), late.unwrap_or_default()) {
            (Order::Targets(_), LateName::ByPriority) => "by-priority",
            (Order::Targets(_), LateName::InProportion) => "in-proportion",
            _ => "",
        };
        word.to_owned()
    }
}

fn text<T>(value: &Option<Spanned<T>>, write: impl Fn(&T) -> String) -> String {
    let value = value.as_ref();
    value.map_or_else(String::new, |value| write(value.get_ref()))
}

pub(super) fn names(names: &[Spanned<String>]) -> String {
    let names: Vec<&str> = names.iter().map(|name| name.get_ref().as_str()).collect();
    names.join(", ")
}

impl Limits {
    fn values(&self) -> Vec<(&'static str, String)> {
        let number =
            |max: Option<NonZeroUsize>| max.map_or_else(String::new, |max| max.to_string());
        vec![
            ("limits.transactions", self.transactions.to_string()),
            (
                "limits.transactions_max",
                self.transactions_max.get_ref().to_string(),
            ),
            (
                "limits.throughput_loss",
                self.throughput_loss.get_ref().to_string(),
            ),
            ("limits.connections", number(self.connections)),
            ("limits.clients", self.clients.get_ref().to_string()),
            (
                "limits.connections_per_address",
                number(self.connections_per_address),
            ),
            (
                "limits.query_wait_seconds",
                self.query_wait_seconds.to_string(),
            ),
            (
                "limits.patience_seconds",
                self.patience_seconds.get_ref().to_string(),
            ),
            (
                "limits.login_seconds",
                self.login_seconds.get_ref().to_string(),
            ),
            (
                "limits.server_idle_seconds",
                self.server_idle_seconds.to_string(),
            ),
            (
                "limits.server_lifetime_seconds",
                self.server_lifetime_seconds.to_string(),
            ),
            (
                "limits.server_check_seconds",
                self.server_check_seconds.to_string(),
            ),
            (
                "limits.idle_in_transaction_seconds",
                self.idle_in_transaction_seconds.to_string(),
            ),
            (
                "limits.kept_idle_seconds",
                self.kept_idle_seconds.to_string(),
            ),
            ("limits.statements", self.statements.to_string()),
            ("limits.grace_seconds", self.grace_seconds.to_string()),
        ]
    }
}
