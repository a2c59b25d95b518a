//! Processor sharing, exactly.

use super::{Incoming, Server};
use sooner_policy::{JobId, VirtualTime};

/// All jobs present get equal shares, though none more than one server.
#[derive(Default)]
pub struct Sharing {
    clock: VirtualTime,
    servers: u64,
}

impl Sharing {
    /// `servers` servers, each of that part of the whole speed.
    pub fn new(servers: u32) -> Self {
        Self {
            clock: VirtualTime::default(),
            servers: u64::from(servers.max(1)),
        }
    }

    /// Servers at work.
    fn busy(&self) -> u64 {
        self.servers.min(self.clock.len() as u64)
    }
}

impl Server for Sharing {
    fn arrive(&mut self, job: Incoming, _now: u64) {
        let size = job.size.saturating_mul(self.servers);
        self.clock.arrive(JobId(u64::from(job.slot)), size);
    }

    fn until_event(&mut self) -> Option<u64> {
        let (work, _) = self.clock.next_finish()?;
        Some(work.div_ceil(self.busy().max(1)))
    }

    fn advance(&mut self, time: u64, _now: u64, done: &mut impl FnMut(u32)) {
        let work = time * self.busy();
        self.clock.advance_finishing(work, |job| done(job.0 as u32));
    }
}
