//! A connection that says something of the link, where its rate is to be found.

use super::GatedStream;

impl GatedStream {
    /// Its client, first heard of by its handshake; none where the rate was given.
    pub(crate) fn measure_first(&mut self) {
        let Some(auto_rate) = &self.shared.auto_rate else {
            return;
        };
        if let Ok(address) = self.io.peer_addr() {
            auto_rate.came(address.ip(), &self.io);
            self.measured_client = Some(address.ip());
        }
    }

    /// It sends.
    pub(super) fn measure_on(&mut self) {
        if let (Some(auto_rate), Some(client)) = (&self.shared.auto_rate, self.measured_client) {
            auto_rate.sends(self.flow, client, &self.io);
        }
    }

    /// It is about to be closed.
    pub(super) fn measure_last(&mut self) {
        if let Some(auto_rate) = &self.shared.auto_rate {
            auto_rate.goes(self.flow);
        }
    }
}
