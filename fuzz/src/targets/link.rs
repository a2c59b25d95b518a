//! The scheduler of a link under any order of calls, with responses on connections and on streams:
//! no grant is empty or too large, the link is never overbooked, no byte is charged twice, and when
//! those who wait come when called, all they have is sent in the end, even if others do not come.

use arbitrary::Arbitrary;
use sooner_link::{
    Answer, BandChooser, FlowId, LinkConfig, LinkLimits, LinkScheduler, Pacing, ResponseStart, StreamOrder, wire,
};
use sooner_policy::{BAND_COUNT, ClientId, GuardLimits, Path, Payer, PolicyName, Time};
use std::task::Waker;

/// One event; few flows, so that events meet.
#[derive(Arbitrary, Debug)]
pub enum Event {
    Open {
        comes_when_called: bool,
    },
    Start {
        flow: u8,
        said_bytes: Option<u32>,
        real_bytes: u16,
        class: u8,
    },
    OpenStream {
        flow: u8,
        comes_when_called: bool,
        said_bytes: Option<u32>,
        real_bytes: u16,
        class: u8,
        order: u8,
    },
    Urgency {
        flow: u8,
        class: u8,
        order: u8,
    },
    /// A flow asks and writes; a stream hands over.
    Write {
        flow: u8,
        socket_takes_bytes: u16,
    },
    /// A connection writes what its streams handed over, with some frames around it.
    Deliver {
        flow: u8,
        socket_takes_bytes: u16,
        socket_sends: bool,
        frame_bytes: u8,
        flushes: bool,
    },
    /// What lies in a connection's socket leaves it.
    Drain {
        flow: u8,
    },
    Call,
    Close {
        flow: u8,
    },
    Charge {
        wire_bytes: u16,
    },
    Hold {
        for_ns: u32,
    },
    Pass {
        time_ns: u32,
    },
    /// The kernel is asked about the network to the client.
    Observe {
        flow: u8,
        rtt_ns: Option<u32>,
        rate_per_sec: Option<u32>,
    },
}

#[derive(Arbitrary, Debug)]
pub struct Play {
    policy: u8,
    is_guarded: bool,
    has_bands: bool,
    rate_bits_per_sec: u32,
    ahead_us: u16,
    events: Vec<Event>,
}

/// A scheduler with a clock of its own, and the flows on it.
struct World {
    link: LinkScheduler,
    limits: LinkLimits,
    now_ns: u64,
    flows: Vec<Flow>,
    /// Whether everything that is handed over is sent at once.
    delivers: bool,
    /// Everything that went onto the link.
    wire_bytes: u64,
}

#[derive(Default)]
struct Flow {
    id: FlowId,
    comes_when_called: bool,
    has_job: bool,
    left_bytes: u64,
    /// Of a stream.
    connection: Option<FlowId>,
    has_streams: bool,
    /// Of a stream: it handed over everything.
    is_finished: bool,
    /// Handed over by streams and not written.
    handed_over_bytes: u64,
    /// Written and not sent.
    unsent_bytes: u64,
    /// Charged when it was handed over, and not sent.
    prepaid_bytes: u64,
}

/// Tries one input.
pub fn run(play: Play) {
    let policy = PolicyName::ALL[usize::from(play.policy) % PolicyName::ALL.len()];
    // From 1 Mbit/s to 4 Gbit/s, so that what was opened is sent in a few steps.
    let limits = LinkLimits {
        ahead_ns: u64::from(play.ahead_us) * 1_000,
        ..LinkLimits::at_rate(u64::from(play.rate_bits_per_sec).max(1_000_000))
    };
    let limits = if play.has_bands {
        limits.above_bands()
    } else {
        limits
    };
    let guard = play
        .is_guarded
        .then(|| GuardLimits::with_turn(limits.long_grant_wire_bytes()));
    let config = LinkConfig {
        policy: Some(policy),
        by_client: play.policy >= 128,
        pacing: Some(Pacing { limits, guard }),
        bands: play.has_bands.then(|| BandChooser::for_policy(policy)),
        ..LinkConfig::default()
    };
    let mut world = World {
        link: LinkScheduler::new(config, Time::ZERO),
        limits,
        now_ns: 0,
        flows: Vec::new(),
        delivers: false,
        wire_bytes: 0,
    };
    for event in &play.events {
        world.apply(event);
        assert!(
            world.link.wake_at(world.now()).is_some() || world.link.waiting() == 0,
            "who waits is woken"
        );
        assert_eq!(
            world.link.charged_bytes(),
            world.wire_bytes,
            "everything is charged once"
        );
    }
    world.send_everything();
}

impl World {
    fn now(&self) -> Time {
        Time::from_ns(self.now_ns)
    }

    fn apply(&mut self, event: &Event) {
        let index = |flow: &u8| usize::from(*flow) % self.flows.len().max(1);
        match event {
            Event::Open { comes_when_called } => self.open(*comes_when_called),
            Event::Charge { wire_bytes } => {
                self.link.charge(u64::from(*wire_bytes), self.now());
                self.wire_bytes += u64::from(*wire_bytes);
            }
            Event::Hold { for_ns } => {
                if let Some(next) = self.link.next_grant(self.now()) {
                    let until = self.now().after(u64::from(*for_ns));
                    self.link.hold_until(next, until);
                }
            }
            Event::Pass { time_ns } => self.now_ns += u64::from(*time_ns),
            Event::Call => {
                self.link.wake_next(self.now());
            }
            _ if self.flows.is_empty() => {}
            Event::Start {
                flow,
                said_bytes,
                real_bytes,
                class,
            } => {
                self.start(
                    index(flow),
                    said_bytes.map(u64::from),
                    u64::from(*real_bytes),
                    *class,
                );
            }
            Event::Write {
                flow,
                socket_takes_bytes,
            } => {
                self.write(index(flow), u64::from(*socket_takes_bytes));
            }
            Event::OpenStream { .. } => self.apply_open_stream(event),
            Event::Urgency { flow, class, order } => {
                let (now, id) = (self.now(), self.flows[index(flow)].id);
                self.link.set_urgency(id, *class, order_of(*order), now);
            }
            Event::Deliver {
                flow,
                socket_takes_bytes,
                socket_sends,
                frame_bytes,
                flushes,
            } => {
                let index = index(flow);
                let takes_bytes = u64::from(*socket_takes_bytes);
                self.deliver(index, takes_bytes, u64::from(*frame_bytes), *socket_sends);
                if *flushes {
                    self.link.flushed(self.flows[index].id, self.now());
                }
            }
            Event::Observe { .. } => self.apply_observe(event),
            Event::Drain { flow } => self.drain(index(flow)),
            Event::Close { flow } => {
                let flow = self.flows.swap_remove(index(flow));
                self.link.close(flow.id, self.now());
                self.flows
                    .retain(|stream| stream.connection != Some(flow.id));
            }
        }
    }

    fn apply_open_stream(&mut self, event: &Event) {
        let Event::OpenStream {
            flow,
            comes_when_called,
            said_bytes,
            real_bytes,
            class,
            order,
        } = event
        else {
            return;
        };
        let index = usize::from(*flow) % self.flows.len();
        if self.open_stream(index, *comes_when_called, order_of(*order)) {
            let stream = self.flows.len() - 1;
            let said_bytes = said_bytes.map(u64::from);
            self.start(stream, said_bytes, u64::from(*real_bytes), *class);
        }
    }

    fn apply_observe(&mut self, event: &Event) {
        let Event::Observe {
            flow,
            rtt_ns,
            rate_per_sec,
        } = event
        else {
            return;
        };
        let path = Path {
            rtt_ns: rtt_ns.map(u64::from),
            rate_per_sec: rate_per_sec.map(u64::from),
        };
        let (now, index) = (self.now(), usize::from(*flow) % self.flows.len());
        self.link.observe(self.flows[index].id, path, now);
    }

    fn open(&mut self, comes_when_called: bool) {
        let id = self.link.open(self.now());
        let client = Payer {
            client: ClientId(id % 5),
            network: Some(ClientId(id % 2)),
        };
        self.link.of_client(id, client);
        self.flows.push(Flow {
            id,
            comes_when_called,
            ..Flow::default()
        });
        self.wire_bytes += wire::CONNECTION_BYTES;
    }

    /// Whether the flow can carry streams: it is a connection without responses of its own.
    fn open_stream(&mut self, index: usize, comes_when_called: bool, order: StreamOrder) -> bool {
        let now = self.now();
        let connection = &mut self.flows[index];
        if connection.has_job || connection.connection.is_some() {
            return false;
        }
        connection.has_streams = true;
        let connection = connection.id;
        let id = self.link.open_stream(connection, now);
        self.link.set_urgency(id, 0, order, now);
        self.flows.push(Flow {
            id,
            comes_when_called,
            connection: Some(connection),
            ..Flow::default()
        });
        true
    }

    fn start(&mut self, index: usize, said_bytes: Option<u64>, real_bytes: u64, class: u8) {
        let (now, flow) = (self.now(), &mut self.flows[index]);
        if flow.has_streams || flow.is_finished {
            return;
        }
        let response = ResponseStart {
            body_bytes: said_bytes,
            class,
            ..ResponseStart::default()
        };
        self.link.body_done(flow.id);
        let started = self.link.start(flow.id, response, Box::new(|_| {}), now);
        assert!(started.is_ok());
        flow.has_job = true;
        flow.left_bytes += real_bytes;
    }

    /// Asks once; whether the flow was granted a turn.
    fn write(&mut self, index: usize, socket_takes_bytes: u64) -> bool {
        let (now, flow) = (self.now(), &mut self.flows[index]);
        if !flow.has_job || flow.left_bytes == 0 {
            return false;
        }
        let Answer::Go(granted) = self.link.ask(flow.id, flow.left_bytes, Waker::noop(), now)
        else {
            return false;
        };
        assert!((1..=flow.left_bytes.min(self.limits.long_grant_bytes)).contains(&granted));
        let time_ns =
            |bytes: u64| u128::from(bytes) * 8_000_000_000 / u128::from(self.limits.rate_bits_per_sec);
        let sent_ns = time_ns(self.wire_bytes);
        // Each band may have its own ahead, behind those before.
        let ahead_ns = if self.link.chooses_bands() {
            let grant_ns = time_ns(self.limits.long_grant_wire_bytes()) + 1;
            let band_ns = grant_ns + grant_ns.max(self.limits.ahead_ns.into());
            band_ns * BAND_COUNT as u128
        } else {
            self.limits.ahead_ns.into()
        };
        let booked_ns = u128::from(self.now_ns) + ahead_ns + 1;
        if let Some((band, _)) = self.link.new_band(flow.connection.unwrap_or(flow.id)) {
            self.link
                .set_band(flow.connection.unwrap_or(flow.id), band);
        }
        assert!(
            sent_ns <= booked_ns,
            "{sent_ns} ns of the link by {booked_ns}"
        );
        let written = granted.min(socket_takes_bytes);
        flow.left_bytes -= written;
        self.wire_bytes += wire::payload_cost_bytes(written);
        match flow.connection {
            None => self.link.settle(flow.id, written, written, now),
            Some(connection) => {
                assert!(granted <= self.limits.stream_quantum_bytes());
                self.link.settle_stream(flow.id, written, now);
                self.hand_over(connection, written);
            }
        }
        let flow = &mut self.flows[index];
        if flow.left_bytes == 0 {
            flow.has_job = false;
            if flow.connection.is_some() {
                flow.is_finished = true;
                self.link.finish_stream(flow.id, now);
            } else {
                self.link.body_done(flow.id);
                self.link.flushed(flow.id, now);
            }
        }
        true
    }

    fn hand_over(&mut self, connection: FlowId, written: u64) {
        let index = self.flows.iter().position(|flow| flow.id == connection);
        let index = index.expect("streams go with their connection");
        let flow = &mut self.flows[index];
        flow.handed_over_bytes += written;
        flow.prepaid_bytes += wire::payload_cost_bytes(written);
        if self.delivers {
            self.deliver(index, u64::MAX, 0, true);
            self.link.flushed(connection, self.now());
        }
    }

    /// A connection writes without waiting.
    fn deliver(&mut self, index: usize, takes_bytes: u64, frame_bytes: u64, sends: bool) {
        let (now, flow) = (self.now(), &mut self.flows[index]);
        if flow.connection.is_some() || flow.has_job {
            return;
        }
        let written = (flow.handed_over_bytes + frame_bytes).min(takes_bytes);
        if written > 0 {
            assert_ne!(
                self.link.ask(flow.id, written, Waker::noop(), now),
                Answer::Wait
            );
        }
        flow.handed_over_bytes -= written.saturating_sub(frame_bytes);
        let sent = if sends { written } else { 0 };
        flow.unsent_bytes += written - sent;
        self.link.settle(flow.id, written, sent, now);
        self.wire_bytes += flow.cost_beyond_prepaid(sent);
    }

    fn drain(&mut self, index: usize) {
        let (now, flow) = (self.now(), &mut self.flows[index]);
        let sent = std::mem::take(&mut flow.unsent_bytes);
        self.link.sent(flow.id, sent, now);
        self.wire_bytes += flow.cost_beyond_prepaid(sent);
    }

    /// Those who come when called ask now, and write whenever they are called.
    fn send_everything(&mut self) {
        self.delivers = true;
        for index in 0..self.flows.len() {
            self.drain(index);
            self.deliver(index, u64::MAX, 0, true);
            self.link.flushed(self.flows[index].id, self.now());
        }
        for index in 0..self.flows.len() {
            while self.flows[index].comes_when_called && self.write(index, u64::MAX) {}
        }
        let turns = self.left_bytes() / self.limits.stream_quantum_bytes() + 1;
        let steps = 10 * (self.flows.len() as u64 + turns);
        for _ in 0..steps {
            let Some(at) = self.link.wake_at(self.now()) else { break };
            self.now_ns = self.now_ns.max(at.as_ns());
            if let Some(called) = self.link.wake_next(self.now()) {
                let index = self.flows.iter().position(|flow| flow.id == called);
                let index = index.expect("only open flows are called");
                while self.flows[index].comes_when_called && self.write(index, u64::MAX) {}
            }
        }
        assert_eq!(self.left_bytes(), 0, "the link idles while a flow waits");
        assert_eq!(self.link.wake_at(self.now()), None, "it wakes and no flow waits");
    }

    fn left_bytes(&self) -> u64 {
        let awake = self.flows.iter().filter(|flow| flow.comes_when_called);
        awake.map(|flow| flow.left_bytes).sum()
    }
}

impl Flow {
    fn cost_beyond_prepaid(&mut self, sent: u64) -> u64 {
        let cost = wire::payload_cost_bytes(sent);
        let covered = cost.min(self.prepaid_bytes);
        self.prepaid_bytes -= covered;
        cost - covered
    }
}

fn order_of(number: u8) -> StreamOrder {
    let orders = [
        StreamOrder::BySize,
        StreamOrder::InSequence,
        StreamOrder::Shared,
    ];
    orders[usize::from(number) % orders.len()]
}
