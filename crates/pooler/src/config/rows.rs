//! The configuration in force as keys and values.

use super::{Config, Limits};
use sooner_config::Spanned;
use std::num::NonZeroUsize;

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

    fn values(&self) -> Vec<(&'static str, String)> {
        let names = |names: &[Spanned<String>]| {
            let names: Vec<&str> = names.iter().map(|name| name.get_ref().as_str()).collect();
            names.join(", ")
        };
        let users = self.users.as_ref();
        let metrics = self.metrics.as_ref();
        let own = [
            ("listen", names(&self.listen)),
            ("auth", format!("{:?}", self.auth).to_lowercase()),
            (
                "users",
                users.map_or_else(String::new, |path| path.get_ref().display().to_string()),
            ),
            ("mode", format!("{:?}", self.mode).to_lowercase()),
            ("admins", names(&self.admins)),
            ("watchers", names(&self.watchers)),
            (
                "metrics",
                metrics.map_or_else(String::new, |at| at.get_ref().to_string()),
            ),
            (
                "priorities",
                (self.priorities.as_ref())
                    .map_or_else(String::new, |path| path.get_ref().display().to_string()),
            ),
            (
                "system_user",
                (self.system_user.as_ref()).map_or_else(String::new, |user| user.get_ref().clone()),
            ),
            ("order", format!("{:?}", self.order())),
            (
                "share_by",
                (self.share_by.as_ref())
                    .map_or_else(String::new, |by| by.get_ref().as_str().to_owned()),
            ),
            ("observe", self.observe.to_string()),
        ];
        own.into_iter().chain(self.limits.values()).collect()
    }
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
            ("limits.statements", self.statements.to_string()),
            ("limits.grace_seconds", self.grace_seconds.to_string()),
        ]
    }
}
