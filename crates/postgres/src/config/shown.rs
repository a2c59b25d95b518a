//! The configuration in force as keys and values.

use sooner_config::Spanned;

use super::Config;

impl Config {
    /// Key, value and default of what holds for everybody; passwords are in none of them.
    pub fn as_rows(&self) -> Vec<(String, String, String)> {
        let standard = Config::default();
        let all = self.values().into_iter().zip(standard.values());
        all.map(|((key, value), (_, default))| (key.to_owned(), value, default))
            .collect()
    }

    fn values(&self) -> Vec<(&'static str, String)> {
        let limits = &self.limits;
        let names = |names: &[Spanned<String>]| {
            let names: Vec<&str> = names.iter().map(|name| name.get_ref().as_str()).collect();
            names.join(", ")
        };
        let users = self.users.as_ref();
        let metrics = self.metrics.as_ref();
        vec![
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
            ("order", format!("{:?}", self.order())),
            ("limits.transactions", limits.transactions.to_string()),
            (
                "limits.transactions_max",
                limits.transactions_max.get_ref().to_string(),
            ),
            (
                "limits.throughput_loss",
                limits.throughput_loss.get_ref().to_string(),
            ),
            ("limits.clients", limits.clients.get_ref().to_string()),
            (
                "limits.query_wait_seconds",
                limits.query_wait_seconds.to_string(),
            ),
            (
                "limits.patience_seconds",
                limits.patience_seconds.get_ref().to_string(),
            ),
            (
                "limits.login_seconds",
                limits.login_seconds.get_ref().to_string(),
            ),
            (
                "limits.server_idle_seconds",
                limits.server_idle_seconds.to_string(),
            ),
            (
                "limits.server_lifetime_seconds",
                limits.server_lifetime_seconds.to_string(),
            ),
            (
                "limits.server_check_seconds",
                limits.server_check_seconds.to_string(),
            ),
            ("limits.statements", limits.statements.to_string()),
            ("limits.grace_seconds", limits.grace_seconds.to_string()),
        ]
    }
}
