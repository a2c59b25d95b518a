//! What a reload cannot change, because it was done once, at the start: addresses, user, workers,
//! log, uplink.

use super::Config;

impl Config {
    /// The keys in which `new` differs and that take effect at the next start only.
    pub fn fixed_keys_changed(&self, new: &Self) -> Vec<&'static str> {
        let uplinks = (&self.uplink, &new.uplink);
        let different = [
            ("listen", self.clear_addresses() != new.clear_addresses()),
            ("listen_tls", self.tls_addresses() != new.tls_addresses()),
            ("user", self.user != new.user),
            ("workers", self.worker_count() != new.worker_count()),
            ("admin.listen", self.admin.listen != new.admin.listen),
            ("admin.hosts", self.admin.hosts != new.admin.hosts),
            (
                "log.access",
                self.log.destination() != new.log.destination(),
            ),
            ("log.format", self.log.format != new.log.format),
            (
                "limits.stall_seconds",
                self.limits.stall_seconds != new.limits.stall_seconds,
            ),
            ("uplink.rate", uplinks.0.rate != uplinks.1.rate),
            ("uplink.policy", uplinks.0.policy() != uplinks.1.policy()),
            ("uplink.share_by", uplinks.0.share_by != uplinks.1.share_by),
            (
                "uplink.mechanism",
                uplinks.0.mechanism() != uplinks.1.mechanism(),
            ),
            ("uplink.bands", uplinks.0.bands() != uplinks.1.bands()),
            ("uplink.ahead", uplinks.0.ahead() != uplinks.1.ahead()),
            ("uplink.device", uplinks.0.device != uplinks.1.device),
            ("uplink.streams", uplinks.0.streams != uplinks.1.streams),
            (
                "uplink.replace_qdisc",
                uplinks.0.replace_qdisc != uplinks.1.replace_qdisc,
            ),
        ];
        different
            .into_iter()
            .filter_map(|(key, is_different)| is_different.then_some(key))
            .collect()
    }
}
