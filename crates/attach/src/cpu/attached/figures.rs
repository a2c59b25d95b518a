//! All that is known, as values.

use sooner_kernel::process::cpu_time_ns;
use sooner_processor::Rule;

use super::Attached;
use crate::cpu::snapshot::Snapshot;
use crate::cpu::source::Source;

impl Attached<'_> {
    /// All figures.
    pub fn snapshot(&self, now_ns: u64) -> Snapshot {
        let uptime_s = now_ns.saturating_sub(self.began_ns).max(1) as f64 / 1e9;
        let (levels, active) = self.order.standing();
        let bounds = self.order.bounds();
        let ms = |ns: u64| ns as f64 / 1e6;
        let means = self
            .order
            .shadow()
            .means(self.processors, bounds.bounds_ns());
        let behind = self.source.behind();
        let behind_others_share = behind.and_then(|behind| {
            let all_ns = behind.others_ns + behind.own_ns;
            (all_ns > 0).then(|| behind.others_ns as f64 / all_ns as f64)
        });
        let history = self.order.history().unwrap_or_default();
        let own_ns = cpu_time_ns().saturating_sub(self.own_began_ns);
        Snapshot {
            pid: std::process::id(),
            server_pid: self.record.server.pid,
            program: self.program.clone(),
            is_waiting: false,
            uptime_s,
            observes: self.options.observes,
            has_programs: matches!(self.source, Source::Programs(_)),
            lacks: self.lacks.clone(),
            rule: rule_in_words(self.order.rule()),
            trials: self.trials.to_vec(),
            weights: self
                .record
                .weights
                .iter()
                .map(ToString::to_string)
                .collect(),
            nice: self.record.values.nice,
            real_time: self.record.values.real_time,
            workers: self.watched.len(),
            levels,
            active,
            is_suspended: self.order.is_suspended(),
            counts_sleeps: self.order.counts_sleeps(),
            requests: self.order.requests(),
            used_p50_ms: bounds.quantile_ns(0.5).map(ms),
            used_p95_ms: bounds.quantile_ns(0.95).map(ms),
            bounds_ms: bounds.ends_ns().map(|ends| ends.map(ms)),
            waited_s: behind.map(|_| self.waited_ns as f64 / 1e9),
            behind_others_share,
            equal_ms: means.map(|means| means.equal_ns / 1e6),
            by_levels_ms: means.map(|means| means.levels_ns / 1e6),
            by_history_ms: means.map(|means| means.history_ns / 1e6),
            shortest_ms: means.map(|means| means.shortest_ns / 1e6),
            kinds: history.kinds,
            requests_by_history: history.by_history,
            requests_by_used: match self.order.rule() {
                Rule::History(_) => history.by_used,
                _ => self.order.requests(),
            },
            is_history_left_out: history.is_left_out,
            ranked_rightly_share: history.ranked_rightly,
            changes: self.changes,
            refused: self.refused,
            favours: self.order.favours(),
            looks: self.looks,
            own_share: own_ns as f64 / 1e9 / uptime_s,
        }
    }
}

fn rule_in_words(rule: &Rule) -> String {
    match rule {
        Rule::Used => "by processor time used since the request began".into(),
        Rule::History(_) => {
            "by what requests of the same path used, and by processor time used".into()
        }
        Rule::RunWait(rule) => {
            let (changes, long_ns) = rule.now();
            format!(
                "by changes since a long wait: RW {changes}, SLP {} ms",
                long_ns / 1_000_000
            )
        }
    }
}
