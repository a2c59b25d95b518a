//! Tasks that listen to gates.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::sleep;

use super::daemon::{DaemonError, GateAt};
use super::told::{Gate, GateSocket, Told};

/// What gates told and was not looked at; a gate that tells more waits.
const TOLD_MAX: usize = 1024;
/// While descriptors are short.
const PAUSE: Duration = Duration::from_secs(1);

/// What comes from gates, by number.
#[derive(Debug, PartialEq, Eq)]
pub enum FromGate {
    /// One has come, of this process.
    Came(u64, Option<u32>),
    /// It tells.
    Told(u64, Vec<Told>),
    /// It is gone.
    Gone(u64),
    /// There is no socket.
    Nothing,
}

/// All of them.
pub struct GateTasks {
    told: mpsc::Receiver<FromGate>,
    /// Keeps the channel open where there is no socket.
    _sender: mpsc::Sender<FromGate>,
    connections: Connections,
}

type Connections = Rc<RefCell<Vec<AbortHandle>>>;

impl GateTasks {
    /// Listens where the operator said.
    pub fn start(at: Option<&GateAt>) -> Result<GateTasks, DaemonError> {
        let (sender, told) = mpsc::channel(TOLD_MAX);
        let connections = Connections::default();
        if let Some(GateAt { path, guests }) = at {
            let socket =
                GateSocket::listen(path, *guests).map_err(|source| DaemonError::GateSocket {
                    path: path.clone(),
                    source,
                })?;
            let accepting = accept(socket, sender.clone(), connections.clone());
            tokio::task::spawn_local(accepting);
        }
        Ok(GateTasks {
            told,
            _sender: sender,
            connections,
        })
    }

    /// What one tells next.
    pub async fn next(&mut self) -> FromGate {
        self.told.recv().await.unwrap_or(FromGate::Nothing)
    }

    /// Ends all connections: gates come back, and tell anew. What they told is forgotten.
    pub fn close_all(&mut self) {
        for connection in self.connections.borrow_mut().drain(..) {
            connection.abort();
        }
        while self.told.try_recv().is_ok() {}
    }
}

async fn accept(socket: GateSocket, sender: mpsc::Sender<FromGate>, connections: Connections) {
    let last = Rc::new(Cell::new(0_u64));
    loop {
        let Ok((gate, pid)) = socket.accept().await else {
            // Descriptors are short; they may come back.
            sleep(PAUSE).await;
            continue;
        };
        last.set(last.get() + 1);
        let task = tokio::task::spawn_local(listen(gate, last.get(), pid, sender.clone()));
        let mut connections = connections.borrow_mut();
        connections.retain(|connection| !connection.is_finished());
        connections.push(task.abort_handle());
    }
}

async fn listen(mut gate: Gate, number: u64, pid: Option<u32>, sender: mpsc::Sender<FromGate>) {
    let mut is_open = sender.send(FromGate::Came(number, pid)).await.is_ok();
    while is_open {
        match gate.told().await {
            Some(told) => is_open = sender.send(FromGate::Told(number, told)).await.is_ok(),
            None => break,
        }
    }
    let _ = sender.send(FromGate::Gone(number)).await;
}

#[cfg(test)]
mod tests {
    use super::super::told::Guests;
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixStream;

    #[test]
    fn gates_are_sent_away_when_a_session_ends() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let folder = tempfile::tempdir().unwrap();
        let at = GateAt {
            path: folder.path().join("gate.sock"),
            guests: Guests::default(),
        };
        let local = tokio::task::LocalSet::new();
        local.block_on(&runtime, async {
            let mut gates = GateTasks::start(Some(&at)).unwrap();
            let mut gate = UnixStream::connect(&at.path).await.unwrap();
            let one = Told {
                process_id: 7,
                priority: 1,
            };
            gate.write_all(&one.frame()).await.unwrap();
            let own = Some(std::process::id());
            assert_eq!(gates.next().await, FromGate::Came(1, own));
            assert_eq!(gates.next().await, FromGate::Told(1, vec![one]));
            gates.close_all();
            // It sees the end, and may come again.
            assert_eq!(gate.read(&mut [0; 8]).await.unwrap(), 0);
            let _again = UnixStream::connect(&at.path).await.unwrap();
            assert_eq!(gates.next().await, FromGate::Came(2, own));
        });
    }
}
