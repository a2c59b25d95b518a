//! What the responses took, and what FAIR would have made of the same ones: beginnings and ends
//! come in, figures stand there.
//!
//! A response counts from its request's first packet to the acknowledgement of its last byte, as
//! seen on this host's side of the wire. The comparison is the uplink's shadow ([`Shadow`]): a link
//! of the same rate, shared equally by the same responses. Where their length is not known when
//! they begin (TLS), or another one than they had in the end (HTTP/2, answers to HEAD), they enter it
//! only at their end and have no figure of their own.

mod under_way;

use std::collections::VecDeque;

use sooner_kernel::classifier::{Event, EventKind};
use sooner_link::shadow::{JOBS_MAX, Shadow};
use sooner_link::wire::{payload_cost_bytes, payload_within_bytes};
use sooner_link::{SIZE_CLASSES, size_class};
use sooner_policy::Time;
use sooner_processor::Finished;
use under_way::UnderWay;

/// So many of the last responses are played in other orders: it takes some milliseconds.
const LAST_MAX: usize = 1024;
/// With each response that begins at most so many are given up of which no end comes: more than one,
/// so that they become fewer.
const GIVEN_UP_AT_ONCE: usize = 2;

/// What responses of one size class took.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Took {
    /// Responses that ended, of requests that were seen.
    pub responses: u64,
    /// What they took in all, ns.
    pub response_ns: u128,
    /// Those of them that FAIR has done too.
    pub compared: u64,
    /// What these took, ns.
    pub compared_response_ns: u128,
    /// What FAIR would have made of these, ns.
    pub fair_response_ns: u128,
}

/// Follows the responses of one link.
#[derive(Debug)]
pub struct Watch {
    shadow: Shadow,
    /// Whether the link's rate is known, so that FAIR's is.
    has_rate: bool,
    took: [Took; SIZE_CLASSES],
    under_way: UnderWay,
    broken: u64,
    wrong_lengths: u64,
    /// The last responses that ended, and what they took, ns; the rate that their work is at.
    last: VecDeque<(Finished, u64)>,
    rate_bits_per_sec: u64,
}

/// What the last responses took, and what two orders would have made of them on the same link,
/// without clients' round trips.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observed {
    /// How many.
    pub responses: usize,
    /// What they took in the mean, ns.
    pub mean_ns: f64,
    /// The same of a link that is shared equally.
    pub equal_ns: f64,
    /// The same shortest first.
    pub shortest_ns: f64,
}

impl Watch {
    /// Of a link of this rate.
    pub fn new(rate_bits_per_sec: u64) -> Watch {
        Watch {
            shadow: Shadow::new(rate_bits_per_sec, JOBS_MAX),
            has_rate: true,
            took: [Took::default(); SIZE_CLASSES],
            under_way: UnderWay::default(),
            broken: 0,
            wrong_lengths: 0,
            last: VecDeque::new(),
            rate_bits_per_sec,
        }
    }

    /// What the last responses took, and would have taken; none where none has ended, or the rate
    /// is not known.
    pub fn observed(&self) -> Option<Observed> {
        let mut orders = sooner_processor::Shadow::default();
        for (finished, _) in &self.last {
            orders.note(*finished);
        }
        let took_ns: u64 = self.last.iter().map(|(_, took_ns)| took_ns).sum();
        // A link is one server; levels are of no use here.
        let means = orders.means(1.0, [u64::MAX - 1, u64::MAX])?;
        Some(Observed {
            responses: means.requests,
            mean_ns: took_ns as f64 / means.requests as f64,
            equal_ns: means.equal_ns,
            shortest_ns: means.shortest_ns,
        })
    }

    /// The link's rate from now on; none: not known, and what begins is not compared.
    pub fn set_rate(&mut self, rate_bits_per_sec: Option<u64>) {
        self.has_rate = rate_bits_per_sec.is_some();
        if let Some(rate_bits_per_sec) = rate_bits_per_sec {
            self.shadow.set_rate(rate_bits_per_sec);
            self.rate_bits_per_sec = rate_bits_per_sec;
        }
    }

    /// Something happened to a response.
    pub fn note(&mut self, event: &Event) {
        let now = Time::from_ns(event.at_ns);
        match event.kind {
            EventKind::Started => self.started(event, now),
            EventKind::Ended => self.ended(event, now),
            // It is in the comparison at its end, like those of unknown length.
            EventKind::Sized => {}
            EventKind::Broken => {
                self.shadow.abandoned(event.response, now);
                self.broken += u64::from(self.under_way.end(event.response).is_some());
            }
        }
        self.take_figures();
    }

    /// Lets FAIR's link work on until `now_ns`.
    pub fn advance(&mut self, now_ns: u64) {
        self.shadow.advance_to(Time::from_ns(now_ns));
        self.take_figures();
    }

    /// By size class.
    pub fn took(&self) -> &[Took; SIZE_CLASSES] {
        &self.took
    }

    /// Responses that were seen to begin and not to end, unless they were given up.
    pub fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// Responses on connections that were reset.
    pub fn broken(&self) -> u64 {
        self.broken
    }

    /// Responses that ended and did not have the length that was known of them.
    pub fn wrong_lengths(&self) -> u64 {
        self.wrong_lengths
    }

    fn started(&mut self, event: &Event, now: Time) {
        for _ in 0..GIVEN_UP_AT_ONCE {
            if let Some(response) = self.under_way.give_up(event.at_ns) {
                self.shadow.abandoned(response, now);
            }
        }
        let size_bytes = event.flow.size_bytes.filter(|_| self.has_rate);
        self.under_way
            .begin(event.response, event.at_ns, size_bytes);
        self.shadow
            .started(event.response, size_bytes.map(payload_cost_bytes), now);
    }

    fn ended(&mut self, event: &Event, now: Time) {
        let began_with = self.under_way.end(event.response).flatten();
        let sent_bytes = event.flow.sent_bytes;
        if event
            .flow
            .size_bytes
            .is_some_and(|size| !is_length(size, sent_bytes))
        {
            self.wrong_lengths += 1;
        }
        let Some(request_ns) = event.flow.request_ns else {
            // It began before we looked, so how long it took is unknown.
            self.shadow.abandoned(event.response, now);
            return;
        };
        if began_with.is_some_and(|size| !is_length(size, sent_bytes)) {
            // FAIR had another one to do, which says nothing of this one.
            self.shadow.abandoned(event.response, now);
            self.shadow.started(event.response, None, now);
        }
        let response_ns = event.at_ns.saturating_sub(request_ns);
        let took = &mut self.took[size_class(sent_bytes)];
        took.responses += 1;
        took.response_ns += u128::from(response_ns);
        let wire_bytes = payload_cost_bytes(sent_bytes);
        if self.has_rate {
            let work_ns = u128::from(wire_bytes) * 8_000_000_000;
            let work_ns = work_ns / u128::from(self.rate_bits_per_sec.max(1));
            let finished = Finished {
                began_ns: request_ns,
                used_ns: u64::try_from(work_ns).unwrap_or(u64::MAX),
            };
            if self.last.len() == LAST_MAX {
                self.last.pop_front();
            }
            self.last.push_back((finished, response_ns));
        }
        self.shadow
            .completed(event.response, wire_bytes, response_ns, now);
    }

    fn take_figures(&mut self) {
        for figure in self.shadow.take_figures() {
            let size_bytes = payload_within_bytes(figure.wire_bytes);
            let took = &mut self.took[size_class(size_bytes)];
            took.compared += 1;
            took.compared_response_ns += u128::from(figure.response_ns);
            took.fair_response_ns += u128::from(figure.fair_response_ns);
        }
    }
}

/// Whether a response of so many bytes had this length, which under TLS is not known to a byte.
fn is_length(size_bytes: u64, sent_bytes: u64) -> bool {
    sent_bytes.abs_diff(size_bytes) <= size_bytes / 32 + 256
}

#[cfg(test)]
mod tests {
    use super::*;
    use sooner_kernel::classifier::{Flow, FlowKey, Protocol};

    /// A byte a nanosecond.
    const RATE_BITS_PER_SEC: u64 = 8_000_000_000;

    fn event(kind: EventKind, response: u64, at_ns: u64, sent_bytes: u64) -> Event {
        let address = "10.0.0.1:80".parse().unwrap();
        Event {
            key: FlowKey {
                server: address,
                client: address,
                protocol: Protocol::Tcp,
            },
            kind,
            at_ns,
            response,
            flow: Flow {
                sent_bytes,
                size_bytes: Some(900),
                request_ns: Some(1000),
                band: 0,
            },
        }
    }

    #[test]
    fn a_response_stands_beside_what_fair_would_have_made_of_it() {
        let mut watch = Watch::new(RATE_BITS_PER_SEC);
        watch.note(&event(EventKind::Started, 1, 1000, 0));
        watch.note(&event(EventKind::Started, 2, 1000, 0));
        assert_eq!(watch.under_way(), 2);
        watch.note(&event(EventKind::Ended, 1, 2000, 900));
        watch.note(&event(EventKind::Ended, 2, 3000, 900));
        watch.advance(10_000);
        let took = watch.took()[0];
        assert_eq!((took.responses, took.response_ns), (2, 3000));
        // 966 bytes on the wire each, shared by two: both are done after twice that.
        assert_eq!((took.compared, took.fair_response_ns), (2, 2 * 1932));
        assert_eq!((watch.under_way(), watch.broken()), (0, 0));
        let observed = watch.observed().unwrap();
        assert_eq!((observed.responses, observed.mean_ns), (2, 1500.0));
        // Shared they end together, by turns one does after the other.
        let of = [observed.equal_ns, observed.shortest_ns].map(|mean| mean.round());
        assert_eq!(of, [1932.0, 1449.0]);
    }

    /// As of HTTP/2, of which the first packet is that of the settings.
    #[test]
    fn what_had_another_length_in_the_end_is_not_compared() {
        let mut watch = Watch::new(RATE_BITS_PER_SEC);
        watch.note(&event(EventKind::Started, 1, 1000, 0));
        let mut grown = event(EventKind::Ended, 1, 500_000, 200_000);
        grown.flow.size_bytes = Some(200_000);
        watch.note(&grown);
        watch.advance(10_000_000);
        let compared = watch.took().iter().map(|took| took.compared).sum::<u64>();
        let responses = watch.took().iter().map(|took| took.responses).sum::<u64>();
        assert_eq!((responses, compared, watch.under_way()), (1, 0, 0));
    }

    /// As of QUIC, of which no end is seen.
    #[test]
    fn responses_without_an_end_stop_no_comparison() {
        let mut watch = Watch::new(RATE_BITS_PER_SEC);
        for response in 0..JOBS_MAX as u64 {
            watch.note(&event(EventKind::Started, response, 1000, 0));
        }
        assert_eq!(watch.under_way(), JOBS_MAX);
        let began_ns = 1_000_000_000;
        watch.note(&event(EventKind::Started, u64::MAX, began_ns, 0));
        let mut ended = event(EventKind::Ended, u64::MAX, began_ns + 2000, 900);
        ended.flow.request_ns = Some(began_ns);
        watch.note(&ended);
        let took = watch.took()[0];
        assert_eq!((took.responses, took.compared), (1, 1));
        assert_eq!(
            (took.compared_response_ns, took.fair_response_ns),
            (2000, 966)
        );
        assert!(watch.under_way() < JOBS_MAX);
    }

    #[test]
    fn after_an_hour_no_end_is_waited_for() {
        let mut watch = Watch::new(RATE_BITS_PER_SEC);
        let hour_ns = 3_600_000_000_000;
        (1..=5).for_each(|response| watch.note(&event(EventKind::Started, response, 1000, 0)));
        watch.note(&event(EventKind::Started, 6, 1000 + hour_ns, 0));
        assert_eq!(watch.under_way(), 6);
        watch.note(&event(EventKind::Started, 7, 2000 + hour_ns, 0));
        assert_eq!(watch.under_way(), 5, "two at once are given up");
        // What comes late ends nothing, and is counted once.
        watch.note(&event(EventKind::Ended, 1, 3000 + hour_ns, 900));
        watch.note(&event(EventKind::Broken, 2, 3000 + hour_ns, 900));
        assert_eq!((watch.under_way(), watch.broken()), (5, 0));
        assert_eq!(
            (watch.took()[0].responses, watch.took()[0].compared),
            (1, 0)
        );
    }

    #[test]
    fn what_breaks_or_began_before_has_no_figure() {
        let mut watch = Watch::new(RATE_BITS_PER_SEC);
        watch.note(&event(EventKind::Started, 1, 1000, 0));
        watch.note(&event(EventKind::Broken, 1, 1500, 100));
        let mut old = event(EventKind::Ended, 7, 2000, 900);
        old.flow.request_ns = None;
        watch.note(&old);
        watch.advance(10_000);
        assert_eq!(watch.took()[0], Took::default());
        assert_eq!(watch.broken(), 1);
    }
}
