//! How a connection that has switched to another protocol ended, for who keeps account of its response.
//!
//! The uplink's account of the response may be closed before the tunnel ends or after it, as the uplink likes. What is written down needs
//! both, so it is written when the later one is there.

use super::counted::Counts;
use std::sync::{Arc, Mutex, PoisonError};

/// How a tunnel ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TunnelEnd {
    /// Bytes that were written to the client after the switch.
    pub to_client_bytes: u64,
    /// Whether both sides ended it, or the upstream did and the client was told.
    pub is_regular: bool,
}

type Listener = Box<dyn FnOnce(TunnelEnd) + Send>;

/// A connection that has switched. Clones are the same.
#[derive(Clone, Default)]
pub struct Switched(Arc<Mutex<State>>);

#[derive(Default)]
enum State {
    #[default]
    Open,
    Awaited(Listener),
    Over(TunnelEnd),
    Told,
}

impl Switched {
    /// A connection that is about to switch, and what tells of its end.
    pub fn begin() -> (Self, Ending) {
        let switched = Self::default();
        let ending = Ending {
            switched: switched.clone(),
            to_client: Arc::default(),
            is_regular: false,
        };
        (switched, ending)
    }

    /// Calls `listener` with the end, when there is one; only the first who asks is called.
    pub fn when_over(&self, listener: impl FnOnce(TunnelEnd) + Send + 'static) {
        let end = {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match &*state {
                State::Over(end) => {
                    let end = *end;
                    *state = State::Told;
                    end
                }
                State::Open => {
                    *state = State::Awaited(Box::new(listener));
                    return;
                }
                State::Awaited(_) | State::Told => return,
            }
        };
        listener(end);
    }

    fn over(&self, end: TunnelEnd) {
        let listener = {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match std::mem::replace(&mut *state, State::Told) {
                State::Awaited(listener) => listener,
                State::Open => {
                    *state = State::Over(end);
                    return;
                }
                State::Over(_) | State::Told => return,
            }
        };
        listener(end);
    }
}

impl std::fmt::Debug for Switched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Switched")
    }
}

/// Tells of the end of a tunnel when dropped, however that comes about.
pub struct Ending {
    switched: Switched,
    to_client: Arc<Counts>,
    is_regular: bool,
}

impl Ending {
    /// What goes to and comes from the client is to be counted here.
    pub fn to_client(&self) -> &Arc<Counts> {
        &self.to_client
    }

    /// It ended as it should, or not.
    pub fn set_regular(&mut self, is_regular: bool) {
        self.is_regular = is_regular;
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.switched.over(TunnelEnd {
            to_client_bytes: self.to_client.written_bytes(),
            is_regular: self.is_regular,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn the_end_is_told_once_whoever_comes_later() {
        for tunnel_first in [true, false] {
            let (switched, mut ending) = Switched::begin();
            ending.set_regular(true);
            let (tell, told) = channel();
            let listen = || switched.when_over(move |end| tell.send(end).unwrap());
            if tunnel_first {
                drop(ending);
                listen();
            } else {
                listen();
                assert!(told.try_recv().is_err());
                drop(ending);
            }
            assert!(told.try_recv().unwrap().is_regular);
        }
    }

    #[test]
    fn a_tunnel_that_is_cut_is_not_regular() {
        let (switched, ending) = Switched::begin();
        drop(ending);
        let (tell, told) = channel();
        switched.when_over(move |end| tell.send(end).unwrap());
        assert_eq!(told.recv().unwrap(), TunnelEnd::default());
    }
}
