//! Clients and the paths to them, and the kernel bands that follow.

use super::flow::Flow;
use super::{FlowId, LinkScheduler};
use crate::band_chooser::{BandChooser, BandInput};
use crate::path_estimate::PathSample;
use sooner_policy::{ClientId, JobId, Path, Payer, PolicyName, Time};
use std::collections::BTreeMap;

/// Where the names of clients begin that are connections: an address names a client by the first
/// half of an IPv6 address, and 8000::/16 is not assigned.
const NAMELESS_CLIENTS: u64 = 1 << 63;

/// The band of what is owed to a flow. In its own it would not come before the others, which is what
/// is owed to it.
const OWED_BAND: u8 = 0;

impl LinkScheduler {
    /// Whether the policy wants to know the networks to the clients.
    pub fn asks_for_paths(&self) -> bool {
        let orders = self.is_paced || self.bands.is_some();
        orders && self.policy.is_some_and(PolicyName::asks_for_path)
    }

    /// The kernel was asked about the connection: what is known of its path with that counts from
    /// now on.
    pub fn sample_path(&mut self, connection: FlowId, sample: PathSample) {
        let Some(flow) = self.flows.get_mut(&connection) else {
            return;
        };
        // A connection with streams does not wait, they do.
        let takes_turns = self.is_paced && flow.streams.is_none();
        let sample = PathSample {
            own_bytes: flow.account.sent_bytes,
            all_bytes: self.socket_bytes,
            waited_ns: takes_turns.then(|| flow.account.waited_ns_at(0, sample.at)),
            ..sample
        };
        let link_bytes_per_sec = self.rate_bits_per_sec.unwrap_or(u64::MAX) / 8;
        let estimate = flow.path_estimate.get_or_insert_default();
        let path = estimate.add(sample, link_bytes_per_sec);
        self.observe(connection, path, sample.at);
    }

    /// The path to the connection's client is known to be `path`: what it has to write, and what
    /// its streams have, may rank otherwise.
    pub fn observe(&mut self, connection: FlowId, path: Path, now: Time) {
        let Some(flow) = self.flows.get_mut(&connection) else {
            return;
        };
        if std::mem::replace(&mut flow.path, path) == path {
            return;
        }
        self.turns.scheduler.observe(JobId(connection), path, now);
        for stream in self.streams_on(connection) {
            self.turns.scheduler.observe(JobId(stream), path, now);
        }
    }

    /// The kernel band that the connection's next bytes belong in, if it is another than theirs so
    /// far, and that one; with streams, the best of theirs.
    pub fn new_band(&self, connection: FlowId) -> Option<(u8, Option<u8>)> {
        let bands = self.bands.as_ref()?;
        let flow = self.flows.get(&connection)?;
        let band = Self::wanted_band(&self.flows, bands, flow);
        (flow.band != Some(band)).then_some((band, flow.band))
    }

    /// The band that the flow's next bytes belong in, which may be owed to it: of a stream its
    /// connection's; 0 without bands.
    ///
    /// A response that shrinks keeps its band until its packets have left the host, so it waits for
    /// them: else it would never change.
    pub(super) fn band_of(&self, flow: FlowId, is_owed: bool, now: Time) -> u8 {
        let flow = self.connection_of_stream(flow).unwrap_or(flow);
        let Some((bands, flow)) = self.bands.as_ref().zip(self.flows.get(&flow)) else {
            return 0;
        };
        if is_owed {
            return OWED_BAND;
        }
        let wanted = Self::wanted_band(&self.flows, bands, flow);
        let kept = flow.band.filter(|_| now < flow.leaves_at);
        kept.map_or(wanted, |band| band.max(wanted))
    }

    fn wanted_band(flows: &BTreeMap<FlowId, Flow>, bands: &BandChooser, flow: &Flow) -> u8 {
        if flow.is_owed {
            return OWED_BAND;
        }
        let path = flow.path;
        let band_of = |flow: &Flow| bands.band(flow.band_input(path));
        match &flow.streams {
            None => band_of(flow),
            Some(streams) => {
                let present = streams.present.iter();
                let busy = present
                    .filter_map(|stream| flows.get(stream))
                    .filter(|stream| stream.account.has_responses());
                // Frames without a response are as urgent as a response of no size.
                busy.map(band_of).min().unwrap_or_else(|| {
                    bands.band(BandInput {
                        size_bytes: Some(0),
                        path,
                        ..BandInput::default()
                    })
                })
            }
        }
    }

    /// The connection's socket was marked for `band`.
    pub fn set_band(&mut self, connection: FlowId, band: u8) {
        if let Some(flow) = self.flows.get_mut(&connection) {
            flow.band = Some(band);
        }
    }

    /// A response of `size_bytes` starts: the cutoffs between bands are learned from it.
    pub(super) fn record_size(&mut self, flow: FlowId, size_bytes: u64) {
        if self.bands.is_none() {
            return;
        }
        let path = self.path_of(flow);
        if let Some(bands) = &mut self.bands {
            bands.record(size_bytes, path);
        }
    }

    /// The path to the client of a connection, or of a stream's connection.
    fn path_of(&self, flow: FlowId) -> Path {
        self.client_of(flow).1
    }

    /// The client of a connection, or of a stream's connection, and the path there.
    pub(super) fn client_of(&self, flow: FlowId) -> (Payer, Path) {
        let unnamed = |id: FlowId| Payer {
            client: ClientId(NAMELESS_CLIENTS | id),
            network: None,
        };
        let of = |id: FlowId, flow: &Flow| (flow.client.unwrap_or(unnamed(id)), flow.path);
        let nameless = (unnamed(flow), Path::default());
        let Some(record) = self.flows.get(&flow) else {
            return nameless;
        };
        match record.stream.map(|stream| stream.connection) {
            None => of(flow, record),
            Some(id) => self
                .flows
                .get(&id)
                .map_or(nameless, |record| of(id, record)),
        }
    }
}
