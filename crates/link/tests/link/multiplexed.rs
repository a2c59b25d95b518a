//! A scheduler, connections with a model of an HTTP/2 engine and a socket each, streams that have
//! all their bytes at hand.

use crate::{ask, client, paced, paced_by_client, start};
use sooner_link::{Answer, FlowId, LinkLimits, LinkScheduler, StreamOrder, wire};
use sooner_policy::{GuardLimits, PolicyName, Time};
use std::collections::VecDeque;

/// 8 Mbit/s: a byte takes a microsecond.
const RATE: u64 = 8_000_000;
/// Payload of a full segment.
pub const SEGMENT: u64 = wire::SEGMENT_BYTES;
/// Payload that fills a segment with its frame and its record.
pub const GRANT: u64 = SEGMENT - FRAMING;
const FRAMING: u64 = wire::framing_bytes(1);

pub struct World {
    pub link: LinkScheduler,
    pub now: Time,
    /// Names of streams in the order of their grants.
    pub decisions: String,
    limits: LinkLimits,
    connections: Vec<Connection>,
    streams: Vec<Stream>,
    /// Whether engines write as soon as they have something.
    engines_run: bool,
}

struct Connection {
    id: FlowId,
    /// Frames with payload that were handed over and are not written: payload left, all bytes left.
    frames: VecDeque<(u64, u64)>,
    unsent_bytes: u64,
    window_open: bool,
    engine_runs: bool,
    is_open: bool,
}

struct Stream {
    id: FlowId,
    connection: usize,
    left_bytes: u64,
    /// Told to wait and not called since.
    waits: bool,
    comes: bool,
    is_open: bool,
}

impl World {
    pub fn new(policy: PolicyName, guard: Option<GuardLimits>) -> Self {
        let limits = LinkLimits {
            credit_ns: 0,
            ..LinkLimits::at_rate(RATE)
        };
        Self::within(limits, policy, guard)
    }

    pub fn without_rate() -> Self {
        Self::within(LinkLimits::without_rate(), PolicyName::Fair, None)
    }

    /// Where the client goes first that received the least of late.
    pub fn by_client() -> Self {
        let limits = LinkLimits {
            credit_ns: 0,
            ..LinkLimits::at_rate(RATE)
        };
        Self::on(paced_by_client(limits, None), limits)
    }

    fn within(limits: LinkLimits, policy: PolicyName, guard: Option<GuardLimits>) -> Self {
        Self::on(paced(policy, limits, guard), limits)
    }

    fn on(link: LinkScheduler, limits: LinkLimits) -> Self {
        Self {
            link,
            now: Time::ZERO,
            decisions: String::new(),
            limits,
            connections: Vec::new(),
            streams: Vec::new(),
            engines_run: true,
        }
    }

    /// Engines write only when told to.
    pub fn engines_wait(&mut self) {
        self.engines_run = false;
    }

    pub fn connect(&mut self) -> usize {
        let id = self.link.open(self.now);
        self.connections.push(Connection {
            id,
            frames: VecDeque::new(),
            unsent_bytes: 0,
            window_open: true,
            engine_runs: self.engines_run,
            is_open: true,
        });
        self.connections.len() - 1
    }

    /// A stream with a response, which asks at once.
    pub fn stream(
        &mut self,
        connection: usize,
        bytes: u64,
        urgency: u8,
        order: StreamOrder,
    ) -> usize {
        let stream = self.quiet_stream(connection, bytes, urgency, order);
        self.write(stream);
        stream
    }

    /// A stream with a response that does not ask yet.
    pub fn quiet_stream(
        &mut self,
        connection: usize,
        bytes: u64,
        urgency: u8,
        order: StreamOrder,
    ) -> usize {
        self.classed_stream(connection, bytes, 3, (urgency, order))
    }

    /// A stream of a class, which the server chose; it does not ask yet.
    pub fn classed_stream(
        &mut self,
        connection: usize,
        bytes: u64,
        class: u8,
        (urgency, order): (u8, StreamOrder),
    ) -> usize {
        let parent = self.connections[connection].id;
        let id = self.link.open_stream(parent, self.now);
        self.link.set_urgency(id, urgency, order, self.now);
        start(&mut self.link, id, Some(bytes), class, self.now);
        let is_open = self.connections[connection].is_open;
        self.streams.push(Stream {
            id,
            connection,
            left_bytes: if is_open { bytes } else { 0 },
            waits: false,
            comes: true,
            is_open,
        });
        self.streams.len() - 1
    }

    /// Hands over until told to wait.
    pub fn write(&mut self, stream: usize) {
        while self.streams[stream].is_open && self.streams[stream].left_bytes > 0 {
            let Some(granted) = self.ask(stream) else {
                return;
            };
            let Stream { id, connection, .. } = self.streams[stream];
            self.link.settle_stream(id, granted, self.now);
            self.streams[stream].left_bytes -= granted;
            self.decisions.push((b'A' + (stream % 26) as u8) as char);
            if self.streams[stream].left_bytes == 0 {
                self.close_stream(stream);
            }
            let connection = &mut self.connections[connection];
            connection.frames.push_back((granted, granted + FRAMING));
            if connection.engine_runs {
                let connection = self.streams[stream].connection;
                self.run_engine(connection, u64::MAX);
            }
        }
    }

    fn ask(&mut self, stream: usize) -> Option<u64> {
        let Stream { id, left_bytes, .. } = self.streams[stream];
        let Answer::Go(granted) = ask(&mut self.link, id, left_bytes, self.now) else {
            self.streams[stream].waits = true;
            return None;
        };
        self.streams[stream].waits = false;
        assert!((1..=left_bytes.min(self.limits.stream_quantum_bytes())).contains(&granted));
        Some(granted)
    }

    pub fn write_if_not_waiting(&mut self, stream: usize) {
        if !self.streams[stream].waits {
            self.write(stream);
        }
    }

    /// Takes a turn and does nothing with it.
    pub fn give_back(&mut self, stream: usize) {
        let it = &self.streams[stream];
        if it.is_open && !it.waits && it.left_bytes > 0 && self.ask(stream).is_some() {
            self.link
                .settle_stream(self.streams[stream].id, 0, self.now);
        }
    }

    /// The engine writes what it has, a frame a write and a flush after each; the socket takes at
    /// most `takes_bytes`.
    pub fn run_engine(&mut self, connection: usize, mut takes_bytes: u64) {
        let it = &mut self.connections[connection];
        if !it.is_open {
            return;
        }
        while let Some((payload_left, left)) = it.frames.front_mut() {
            let Answer::Go(granted) = ask(&mut self.link, it.id, *left, self.now) else {
                panic!("a connection with streams never waits");
            };
            let written = granted.min(takes_bytes);
            takes_bytes -= written;
            *left -= written;
            *payload_left = (*payload_left).min(*left);
            let sent = if it.window_open { written } else { 0 };
            it.unsent_bytes += written - sent;
            let is_written = *left == 0;
            self.link.settle(it.id, written, sent, self.now);
            if is_written {
                it.frames.pop_front();
                self.link.flushed(it.id, self.now);
            } else if written == 0 {
                return;
            }
        }
        self.link.flushed(it.id, self.now);
    }

    /// The connection writes frames that belong to no stream's payload.
    pub fn frames(&mut self, connection: usize, bytes: u64) {
        let id = self.connections[connection].id;
        self.link.settle(id, bytes, bytes, self.now);
        self.link.flushed(id, self.now);
    }

    /// The engine forgets what it has not written, as when streams are reset.
    pub fn drop_handed_over(&mut self, connection: usize) {
        self.connections[connection].frames.clear();
        if self.connections[connection].is_open {
            self.link.flushed(self.connections[connection].id, self.now);
        }
    }

    pub fn shut_window(&mut self, connection: usize) {
        self.connections[connection].window_open = false;
    }

    pub fn open_window(&mut self, connection: usize) {
        let it = &mut self.connections[connection];
        it.window_open = true;
        let unsent_bytes = std::mem::take(&mut it.unsent_bytes);
        if it.is_open && unsent_bytes > 0 {
            self.link.sent(it.id, unsent_bytes, self.now);
        }
    }

    pub fn stop_engine(&mut self, connection: usize) {
        self.connections[connection].engine_runs = false;
    }

    pub fn start_engine(&mut self, connection: usize) {
        self.connections[connection].engine_runs = true;
        self.run_engine(connection, u64::MAX);
    }

    /// The connection is a client's.
    pub fn of_client(&mut self, connection: usize, client: u64) {
        self.link
            .of_client(self.connections[connection].id, self::client(client));
    }

    pub fn set_urgency(&mut self, stream: usize, urgency: u8, order: StreamOrder) {
        self.link
            .set_urgency(self.streams[stream].id, urgency, order, self.now);
    }

    pub fn ignore_calls(&mut self, stream: usize) {
        self.streams[stream].comes = false;
    }

    pub fn close_stream(&mut self, stream: usize) {
        let it = &mut self.streams[stream];
        it.is_open = false;
        it.waits = false;
        it.left_bytes = 0;
        self.link.close(it.id, self.now);
    }

    pub fn close(&mut self, connection: usize) {
        let it = &mut self.connections[connection];
        it.is_open = false;
        it.frames.clear();
        it.unsent_bytes = 0;
        self.link.close(it.id, self.now);
        for stream in &mut self.streams {
            if stream.connection == connection {
                stream.is_open = false;
                stream.waits = false;
                stream.left_bytes = 0;
            }
        }
    }

    /// Wakes the stream that may go next; it writes, unless it ignores that. Whether one was woken.
    pub fn call(&mut self) -> bool {
        let Some(called) = self.link.wake_next(self.now) else {
            return false;
        };
        let stream = self.streams.iter().position(|stream| stream.id == called);
        let stream = stream.expect("only streams wait here");
        assert!(self.streams[stream].is_open, "closed streams are forgotten");
        self.streams[stream].waits = false;
        if self.streams[stream].comes {
            self.write(stream);
        }
        true
    }

    /// Jumps to the next wake-up before `until`; whether there was one.
    fn step(&mut self, until: Time) -> bool {
        let Some(at) = self.link.wake_at(self.now).filter(|at| *at <= until) else {
            self.now = self.now.max(until);
            return false;
        };
        self.now = self.now.max(at);
        self.call();
        true
    }

    pub fn run_until(&mut self, ns: u64) {
        while self.step(Time::from_ns(ns)) {}
    }

    /// Until no stream waits that could go.
    pub fn run_to_the_end(&mut self) {
        let steps = 100 + 10 * (self.left_bytes() / GRANT + self.streams.len() as u64);
        for _ in 0..steps {
            if self.link.waiting() == 0 {
                return;
            }
            self.step(Time::from_ns(u64::MAX));
        }
        panic!("the link idles while a stream waits");
    }

    /// All engines and windows open, all streams come when called, and those that were not told to
    /// wait ask.
    pub fn open_everything(&mut self) {
        self.engines_run = true;
        for stream in &mut self.streams {
            stream.comes = true;
        }
        for connection in 0..self.connections.len() {
            self.open_window(connection);
            self.start_engine(connection);
        }
        for stream in 0..self.streams.len() {
            self.write_if_not_waiting(stream);
        }
    }

    /// Connections with a stream that was told to wait and not called, and with nothing that keeps
    /// it from being called.
    pub fn connections_that_could_go(&self) -> usize {
        let could_go = |index: &usize| {
            let it = &self.connections[*index];
            let waits = self
                .streams
                .iter()
                .any(|stream| stream.connection == *index && stream.waits);
            waits && it.unsent_bytes == 0 && it.handed_over_bytes() <= self.limits.quantum_bytes
        };
        (0..self.connections.len()).filter(could_go).count()
    }

    pub fn handed_over_bytes(&self, connection: usize) -> u64 {
        self.connections[connection].handed_over_bytes()
    }

    pub fn most_handed_over_bytes(&self) -> u64 {
        let handed_over = self.connections.iter().map(Connection::handed_over_bytes);
        handed_over.max().unwrap_or(0)
    }

    pub fn left_bytes(&self) -> u64 {
        self.streams.iter().map(|stream| stream.left_bytes).sum()
    }

    pub fn quantum_bytes(&self) -> u64 {
        self.limits.quantum_bytes
    }

    pub fn connection_count(&self) -> usize {
        self.connections.len()
    }

    pub fn stream_count(&self) -> usize {
        self.streams.len()
    }

    pub fn connection_id(&self, connection: usize) -> FlowId {
        self.connections[connection].id
    }

    pub fn stream_id(&self, stream: usize) -> FlowId {
        self.streams[stream].id
    }
}

impl Connection {
    fn handed_over_bytes(&self) -> u64 {
        self.frames
            .iter()
            .map(|(payload_left, _)| payload_left)
            .sum()
    }
}
