//! From a played script to what is reported of it.

use super::offer::Offer;
use super::{Replay, ReplayOptions};
use crate::counters::TcpCounters;
use crate::measured::{Measured, Planned, measured_ns};
use crate::outcome;
use crate::play::Played;
use crate::probe::Costs;
use crate::verdict::{self, Evidence};
use sooner_stats::{Run, RunFacts, by_client};

/// Everything that is known of a run.
pub struct Facts<'run> {
    /// What the caller requested.
    pub options: &'run ReplayOptions,
    /// What was planned; none in a closed system.
    pub offer: Option<&'run Offer>,
    /// What happened.
    pub played: &'run Played,
    /// What responses cost beside their bodies.
    pub costs: Costs,
    /// What the kernel counted meanwhile, where it says so.
    pub counters: Option<TcpCounters>,
    /// Requests that were sent again.
    pub resent: u64,
}

impl Facts<'_> {
    /// The figures of the run, with its verdict.
    pub fn report(&self) -> Replay {
        let Facts {
            options,
            played,
            costs,
            ..
        } = self;
        let samples = outcome::samples(played, costs, options.rate);
        let measured = Measured::new(
            self.planned(),
            played,
            &samples,
            options.warm_up.as_nanos() as u64,
            options.duration.as_nanos() as u64,
            options.rate,
        );
        let mut run = Run::new(self.run_facts(&measured), measured.samples());
        run.model = Some(options.model.name().into());
        run.interarrivals = measured.interarrivals();
        run.first_errors = outcome::first_errors(measured.records(), played.start_ns);
        run.protocol = Some(protocol(costs).into());
        run.opening_bytes = Some(costs.wire.opening_bytes);
        run.head_bytes = Some(costs.head_bytes);
        run.segment_bytes = Some(costs.wire.segment_bytes);
        if !options.sources.is_empty() {
            let addresses: Vec<String> = options.sources.iter().map(ToString::to_string).collect();
            run.by_client = by_client(&measured.samples(), &addresses, options.rate.bits_per_sec());
        }
        Replay {
            run,
            measured: measured.flags(),
            asked_load: self.offer.map(|offer| offer.asked_load),
            passed_over: self.offer.map_or(0, |offer| offer.plan.passed_over),
            samples,
            costs: self.costs,
            resent: self.resent,
        }
    }

    fn planned(&self) -> Option<Planned<'_>> {
        let process = self.options.model.offered()?.process;
        self.offer.map(|offer| Planned {
            plan: &offer.plan,
            process,
        })
    }

    fn run_facts(&self, measured: &Measured<'_>) -> RunFacts {
        let options = self.options;
        let evidence = Evidence {
            chosen_load: self
                .offer
                .map(|offer| (offer.chosen_load, offer.asked_load)),
            ..measured.evidence(options.expects_refusals)
        };
        let (verdict, verdict_reason) = verdict::judge(&evidence);
        let is_one_host = options.target.endpoint.address.ip().is_loopback();
        RunFacts {
            policy: options.label.clone(),
            verdict,
            verdict_reason,
            seed: options.seed,
            offered_load: measured
                .offered_load()
                .unwrap_or_else(|| measured.realised_load()),
            rate_bits_per_sec: options.rate.bits_per_sec(),
            measured_ns: measured_ns(
                self.played,
                options.warm_up.as_nanos() as u64,
                options.duration.as_nanos() as u64,
            ),
            syn_drops: self
                .counters
                .filter(|_| is_one_host)
                .map(|counters| counters.listen_drops),
            syn_retransmissions: self.counters.map(|counters| counters.syn_retransmissions),
        }
    }
}

fn protocol(costs: &Costs) -> &'static str {
    match (costs.wire.http2, costs.wire.tls) {
        (false, false) => "HTTP/1.1",
        (false, true) => "HTTP/1.1 over TLS",
        (true, false) => "HTTP/2",
        (true, true) => "HTTP/2 over TLS",
    }
}
