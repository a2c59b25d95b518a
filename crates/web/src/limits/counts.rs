//! How many connections there are, in total and from each client.
//!
//! Pure; holds one entry for each client that has a connection, so no more than there are
//! connections.

use sooner_config::ClientNetwork;
use std::collections::HashMap;

/// Connections now, and how many there may be.
#[derive(Debug)]
pub struct ConnectionCounts {
    total: usize,
    total_max: usize,
    of_client: HashMap<ClientNetwork, u32>,
    of_client_max: Option<u32>,
}

impl ConnectionCounts {
    /// No connections yet; at most `total_max` at once, and `of_client_max` from one client.
    pub fn new(total_max: usize, of_client_max: Option<u32>) -> Self {
        Self {
            total: 0,
            total_max,
            of_client: HashMap::new(),
            of_client_max,
        }
    }

    /// Other bounds, for the connections to come.
    pub fn set_bounds(&mut self, total_max: usize, of_client_max: Option<u32>) {
        (self.total_max, self.of_client_max) = (total_max, of_client_max);
    }

    /// Connections now.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Whether one more would be too many.
    pub fn is_full(&self) -> bool {
        self.total >= self.total_max
    }

    /// A connection is there.
    pub fn enter(&mut self) {
        self.total += 1;
    }

    /// A connection is gone; `client` if it was counted for one.
    pub fn leave(&mut self, client: Option<ClientNetwork>) {
        self.total = self.total.saturating_sub(1);
        let Some(client) = client else { return };
        if let Some(count) = self.of_client.get_mut(&client) {
            *count -= 1;
            if *count == 0 {
                self.of_client.remove(&client);
            }
        }
    }

    /// Counts a connection that is there for its client; false if that has as many as it may, and
    /// then it is not counted.
    pub fn admit(&mut self, client: ClientNetwork) -> bool {
        let count = self.of_client.get(&client).copied().unwrap_or(0);
        if self.of_client_max.is_some_and(|most| count >= most) {
            return false;
        }
        self.of_client.insert(client, count + 1);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn client(last: u8) -> ClientNetwork {
        ClientNetwork::V4(Ipv4Addr::new(192, 0, 2, last))
    }

    #[test]
    fn one_client_is_bounded_and_others_are_not() {
        let mut counts = ConnectionCounts::new(10, Some(2));
        for _ in 0..4 {
            counts.enter();
        }
        assert_eq!(
            [1, 1, 1, 2].map(|last| counts.admit(client(last))),
            [true, true, false, true]
        );
        counts.leave(None);
        counts.leave(Some(client(1)));
        assert!(counts.admit(client(1)));
        assert_eq!(counts.total(), 2);
    }

    #[test]
    fn nothing_stays_of_those_who_left() {
        let mut counts = ConnectionCounts::new(2, None);
        counts.enter();
        assert!(counts.admit(client(1)) && !counts.is_full());
        counts.enter();
        assert!(counts.is_full());
        counts.leave(Some(client(1)));
        counts.leave(None);
        assert!(counts.of_client.is_empty());
        assert_eq!(counts.total(), 0);
    }
}
