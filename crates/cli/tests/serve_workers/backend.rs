//! A backend as many are: so many processes, of which each serves one connection until that ends.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// It ends with the process.
#[derive(Clone)]
pub struct Backend {
    pub address: SocketAddr,
    state: Arc<(Mutex<State>, Condvar)>,
}

#[derive(Default)]
struct State {
    inside: usize,
    inside_max: usize,
    connections: usize,
    paths: Vec<String>,
    is_open: bool,
}

impl Backend {
    /// Answers `/held...` when it is let go, and all other paths after 2 ms.
    pub fn start(processes: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let backend = Self {
            address: listener.local_addr().unwrap(),
            state: Arc::default(),
        };
        for _ in 0..processes {
            let (listener, backend) = (listener.try_clone().unwrap(), backend.clone());
            thread::spawn(move || {
                for connection in listener.incoming().flatten() {
                    backend.serve(connection);
                }
            });
        }
        backend
    }

    fn serve(&self, mut connection: TcpStream) {
        let (state, changed) = &*self.state;
        state.lock().unwrap().connections += 1;
        let mut reader = BufReader::new(connection.try_clone().unwrap());
        while let Some(path) = read_path(&mut reader) {
            {
                let mut state = state.lock().unwrap();
                state.inside += 1;
                state.inside_max = state.inside_max.max(state.inside);
                state.paths.push(path.clone());
                if path.contains("held") {
                    let held = changed.wait_while(state, |state| !state.is_open);
                    drop(held.unwrap());
                } else {
                    drop(state);
                    thread::sleep(Duration::from_millis(2));
                }
            }
            // Before the answer, upon which another one may come.
            state.lock().unwrap().inside -= 1;
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nyes\n";
            if connection.write_all(answer).is_err() {
                return;
            }
        }
    }

    /// Lets all go.
    pub fn let_go(&self) {
        self.state.0.lock().unwrap().is_open = true;
        self.state.1.notify_all();
    }

    pub fn inside(&self) -> usize {
        self.state.0.lock().unwrap().inside
    }

    pub fn inside_max(&self) -> usize {
        self.state.0.lock().unwrap().inside_max
    }

    pub fn connections(&self) -> usize {
        self.state.0.lock().unwrap().connections
    }

    /// The paths of all requests, in the order in which they came.
    pub fn paths(&self) -> Vec<String> {
        self.state.0.lock().unwrap().paths.clone()
    }
}

/// The path of the next request, which has no body.
fn read_path(reader: &mut impl BufRead) -> Option<String> {
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let path = first.split(' ').nth(1)?.to_owned();
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
    }
    Some(path)
}
