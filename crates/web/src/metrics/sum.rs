//! What all workers of a process have counted together.

use super::Metrics;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

impl Metrics {
    /// What `all` have counted together until now; what belongs to the process is the first one's.
    pub fn sum(all: &[Arc<Self>]) -> Self {
        let none = || Self::new(UNIX_EPOCH);
        let sum = all.first().map_or_else(none, |first| first.of_process());
        all.iter().for_each(|metrics| sum.add_all(metrics));
        sum
    }

    /// Nothing counted, of the same process.
    fn of_process(&self) -> Self {
        let new = Self {
            started_at_unix_seconds: self.started_at_unix_seconds,
            ..Self::new(UNIX_EPOCH)
        };
        for (count, of_process) in [
            (&new.reloads, &self.reloads),
            (&new.reloads_failed, &self.reloads_failed),
            (
                &new.configured_at_unix_seconds,
                &self.configured_at_unix_seconds,
            ),
            (&new.config_hash, &self.config_hash),
            (&new.stops, &self.stops),
        ] {
            count.set(of_process.get());
        }
        if let Some(shadow) = self.shadow.get() {
            new.compare_with(shadow.clone());
        }
        new
    }

    /// Adds what `other` has counted, except what belongs to the process.
    fn add_all(&self, other: &Self) {
        // All fields by name: the compiler then asks what becomes of a new one.
        let Self {
            started_at_unix_seconds: _,
            responses,
            waits,
            compared,
            fair,
            aborted,
            connections_opened,
            connections_closed,
            handshakes,
            handshakes_failed,
            reloads: _,
            reloads_failed: _,
            configured_at_unix_seconds: _,
            config_hash: _,
            compression,
            refused,
            stops: _,
            sites,
            slowest,
            shadow: _,
        } = other;
        for (sums, histograms) in [
            (&self.responses, responses),
            (&self.waits, waits),
            (&self.compared, compared),
            (&self.fair, fair),
        ] {
            for (sum, histogram) in sums.iter().zip(histograms) {
                sum.add_all(histogram);
            }
        }
        for (sum, count) in [
            (&self.aborted, aborted),
            // Before the opened ones, which count on: no more are closed than were opened.
            (&self.connections_closed, connections_closed),
            (&self.connections_opened, connections_opened),
            (&self.handshakes, handshakes),
            (&self.handshakes_failed, handshakes_failed),
        ]
        .into_iter()
        .chain(self.refused.iter().zip(refused))
        {
            sum.add(count.get());
        }
        self.compression.add_all(compression);
        self.sites.add_all(sites);
        self.slowest.add_all(slowest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::tests::report;
    use crate::metrics::{Histogram, Refusal, RequestFacts, SizeClass};
    use hyper::Request;
    use sooner_http::negotiation::Coding;
    use sooner_link::shadow::Compared;
    use sooner_uplink::FairShadow;
    use std::time::Duration;

    /// What a worker has counted that knows `sites` and has sent `size_bytes` of the last.
    fn counted(sites: [&str; 2], size_bytes: u64, wait_ns: u64) -> Arc<Metrics> {
        let metrics = Metrics::new(UNIX_EPOCH + Duration::from_secs(wait_ns));
        let [_, site] = sites.map(|site| metrics.site(site));
        let mut facts = RequestFacts::new(&Request::new(()));
        facts.site = site;
        facts.answered(200, 0, Some(size_bytes));
        metrics.request_done(&facts, &report(size_bytes, wait_ns, 1));
        let mut aborted = report(1, wait_ns, 2);
        aborted.completed = false;
        metrics.request_done(&facts, &aborted);
        metrics.compared(&Compared {
            wire_bytes: size_bytes,
            response_ns: 3,
            fair_response_ns: 4,
        });
        metrics.connection_opened();
        metrics.connection_opened();
        metrics.connection_closed();
        metrics.connection_refused(Refusal::Memory);
        metrics.handshake(true);
        metrics.handshake(false);
        metrics.compression.compressed(Coding::ALL[0], 50, 5);
        metrics.compression.was_left();
        Arc::new(metrics)
    }

    fn two() -> [Arc<Metrics>; 2] {
        [counted(["a", "b"], 5000, 10), counted(["b", "a"], 5000, 20)]
    }

    #[test]
    fn what_workers_count_adds_up() {
        let all = two();
        let sum = Metrics::sum(&all);
        let class = SizeClass::of(5000).index();
        let times = |sums: &[Histogram]| (sums[class].count(), sums[class].sum_ns());
        assert_eq!(times(&sum.responses), (2, 32));
        assert_eq!(times(&sum.waits), (2, 30));
        assert_eq!(times(&sum.compared), (2, 6));
        assert_eq!(times(&sum.fair), (2, 8));
        assert_eq!(sum.aborted.get(), 2);
        assert_eq!(sum.connections_opened.get(), 4);
        assert_eq!(sum.connections_closed.get(), 2);
        assert_eq!(
            Refusal::ALL.map(|reason| sum.refused(reason)),
            [0, 0, 2, 0, 0]
        );
        assert_eq!((sum.handshakes.get(), sum.handshakes_failed.get()), (2, 2));
        let compression = sum.compression.read()[0];
        assert_eq!((compression.in_bytes, compression.out_bytes), (100, 10));
        assert_eq!(sum.compression.left(), 2);
        let sites = sum.sites();
        let names = sites
            .iter()
            .map(|site| (site.name.as_str(), site.response_bytes));
        assert_eq!(
            names.collect::<Vec<_>>(),
            [("other", 0), ("a", 5001), ("b", 5001)]
        );
        let waits = sum
            .slowest()
            .iter()
            .map(|slow| slow.wait_ns)
            .collect::<Vec<_>>();
        assert_eq!(waits, [20, 20, 10, 10]);
        assert_eq!(
            all[0].connections_opened.get(),
            2,
            "a sum changes none of them"
        );
    }

    #[test]
    fn what_belongs_to_the_process_is_the_first_ones() {
        let all = two();
        for (worker, hash) in all.iter().zip([7, 8]) {
            worker.reloaded(hash, UNIX_EPOCH + Duration::from_secs(hash));
            worker.reload_failed();
        }
        assert!(Metrics::sum(&all).shadow().is_none());
        all[0].compare_with(Arc::new(FairShadow::new(1_000_000)));
        all[1].stops();
        let sum = Metrics::sum(&all);
        assert_eq!(sum.started_at_unix_seconds, 10.0);
        assert_eq!((sum.reloads.get(), sum.reloads_failed.get()), (1, 1));
        assert_eq!(
            (sum.config_hash.get(), sum.configured_at_unix_seconds.get()),
            (7, 7)
        );
        assert!(!sum.is_stopping());
        assert!(sum.shadow().is_some());
        all[0].stops();
        assert!(Metrics::sum(&all).is_stopping());
    }

    #[test]
    fn nothing_adds_up_to_nothing() {
        let sum = Metrics::sum(&[]);
        assert_eq!((sum.sites().len(), sum.connections_opened.get()), (1, 0));
    }
}
