//! The uplink's gate under any order of calls: no grant is empty or too large, the link is never overbooked, and when
//! those who wait come when called, all they have is sent in the end, whoever else does not come.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use sooner_policy::{GuardLimits, PolicyName, Time};
use sooner_uplink::gate::{Answer, FlowId, Gate, GateLimits};
use sooner_uplink::wire;

/// One event; few flows, so that events meet.
#[derive(Arbitrary, Debug)]
enum Event {
    Open {
        comes_when_called: bool,
    },
    Start {
        flow: u8,
        said_bytes: Option<u32>,
        real_bytes: u16,
        class: u8,
    },
    Write {
        flow: u8,
        socket_takes_bytes: u16,
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
}

#[derive(Arbitrary, Debug)]
struct Play {
    policy: u8,
    is_guarded: bool,
    rate_bits_per_sec: u32,
    events: Vec<Event>,
}

/// A gate with a clock of its own, and the flows on it.
struct World {
    gate: Gate,
    limits: GateLimits,
    now_ns: u64,
    flows: Vec<Flow>,
    /// Everything that went onto the link.
    wire_bytes: u64,
}

struct Flow {
    id: FlowId,
    comes_when_called: bool,
    has_job: bool,
    left_bytes: u64,
}

fuzz_target!(|play: Play| {
    let policy = PolicyName::ALL[usize::from(play.policy) % PolicyName::ALL.len()];
    // From 1 Mbit/s to 4 Gbit/s, so that what was opened is sent in a few steps.
    let limits = GateLimits::at_rate(u64::from(play.rate_bits_per_sec).max(1_000_000));
    let guard = play
        .is_guarded
        .then(|| GuardLimits::with_turn(limits.quantum_wire_bytes()));
    let gate = Gate::new(limits, policy.scheduler(limits.quantum_wire_bytes(), guard));
    let mut world = World {
        gate,
        limits,
        now_ns: 0,
        flows: Vec::new(),
        wire_bytes: 0,
    };
    for event in &play.events {
        world.apply(event);
        assert_eq!(
            world.gate.wake_at().is_some(),
            world.gate.waiting() > 0,
            "who waits is woken"
        );
    }
    world.send_everything();
});

impl World {
    fn now(&self) -> Time {
        Time::from_ns(self.now_ns)
    }

    fn apply(&mut self, event: &Event) {
        let index = |flow: &u8| usize::from(*flow) % self.flows.len().max(1);
        match event {
            Event::Open { comes_when_called } => self.open(*comes_when_called),
            Event::Charge { wire_bytes } => {
                self.gate.charge(u64::from(*wire_bytes), self.now());
                self.wire_bytes += u64::from(*wire_bytes);
            }
            Event::Hold { for_ns } => self.gate.hold_until(self.now().after(u64::from(*for_ns))),
            Event::Pass { time_ns } => self.now_ns += u64::from(*time_ns),
            Event::Call => {
                self.gate.call(self.now());
            }
            Event::Start { .. } | Event::Write { .. } | Event::Close { .. }
                if self.flows.is_empty() => {}
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
            Event::Close { flow } => {
                let flow = self.flows.swap_remove(index(flow));
                self.gate.close(flow.id, self.now());
            }
        }
    }

    fn open(&mut self, comes_when_called: bool) {
        let id = self.gate.open(self.now());
        self.flows.push(Flow {
            id,
            comes_when_called,
            has_job: false,
            left_bytes: 0,
        });
        self.wire_bytes += wire::CONNECTION_BYTES;
    }

    fn start(&mut self, index: usize, said_bytes: Option<u64>, real_bytes: u64, class: u8) {
        let (now, flow) = (self.now(), &mut self.flows[index]);
        self.gate.start(flow.id, said_bytes, class, now);
        flow.has_job = true;
        flow.left_bytes += real_bytes;
    }

    /// Asks once; whether the flow was granted a turn.
    fn write(&mut self, index: usize, socket_takes_bytes: u64) -> bool {
        let (now, flow) = (self.now(), &mut self.flows[index]);
        if !flow.has_job || flow.left_bytes == 0 {
            return false;
        }
        let Answer::Go(granted) = self.gate.ask(flow.id, flow.left_bytes, now) else {
            return false;
        };
        assert!((1..=flow.left_bytes.min(self.limits.quantum_bytes)).contains(&granted));
        let sent_ns =
            u128::from(self.wire_bytes) * 8_000_000_000 / u128::from(self.limits.rate_bits_per_sec);
        let booked_ns = u128::from(self.now_ns + self.limits.ahead_ns + 1);
        assert!(
            sent_ns <= booked_ns,
            "{sent_ns} ns of the link by {booked_ns}"
        );
        let written = granted.min(socket_takes_bytes);
        self.gate.settle(flow.id, written, written, now);
        flow.left_bytes -= written;
        self.wire_bytes += wire::payload_cost_bytes(written);
        if flow.left_bytes == 0 {
            self.gate.finish(flow.id, now);
            flow.has_job = false;
        }
        true
    }

    /// Those who come when called ask now, and write whenever they are called.
    fn send_everything(&mut self) {
        for index in 0..self.flows.len() {
            while self.flows[index].comes_when_called && self.write(index, u64::MAX) {}
        }
        let steps =
            10 * (self.flows.len() as u64 + self.left_bytes() / self.limits.quantum_bytes + 1);
        for _ in 0..steps {
            let Some(at) = self.gate.wake_at() else { break };
            self.now_ns = self.now_ns.max(at.as_ns());
            if let Some(called) = self.gate.call(self.now()) {
                let index = self.flows.iter().position(|flow| flow.id == called);
                let index = index.expect("only open flows are called");
                while self.flows[index].comes_when_called && self.write(index, u64::MAX) {}
            }
        }
        assert_eq!(self.left_bytes(), 0, "the link idles while somebody waits");
    }

    fn left_bytes(&self) -> u64 {
        let awake = self.flows.iter().filter(|flow| flow.comes_when_called);
        awake.map(|flow| flow.left_bytes).sum()
    }
}
