//! Tells the supervisor how it goes: systemd's protocol (sd_notify), one datagram a state, to the
//! socket it names.
//!
//! Without `NOTIFY_SOCKET` it tells nothing. A supervisor that cannot be reached is no reason not to
//! serve: a line says so once.

use crate::{Outlet, say};
use sooner_kernel::clock::monotonic_ns;
use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The environment variable that names the socket; one that begins with `@` is abstract.
const VARIABLE: &str = "NOTIFY_SOCKET";

/// States that may wait for a supervisor that is busy.
const WAITING_STATES_MAX: usize = 64;
/// How long the end waits for it.
const LAST_STATE_WITHIN: Duration = Duration::from_secs(1);

/// The process that started this one and wants to know. A thread tells it, because its socket may
/// be full.
pub struct Supervisor {
    states: Option<Outlet<String>>,
    /// The process that it is to watch.
    main_process: u32,
}

impl Supervisor {
    /// The one the environment names, if it names one.
    pub fn from_environment() -> Self {
        let named = env::var_os(VARIABLE).filter(|name| !name.is_empty());
        let states = named.and_then(|name| {
            let told = connect(&name).and_then(tell);
            told.inspect_err(|error| {
                let name = name.to_string_lossy();
                say(format_args!(
                    "the supervisor at {VARIABLE}={name} cannot be notified: {error}"
                ));
            })
            .ok()
        });
        Self {
            states,
            main_process: std::process::id(),
        }
    }

    /// The same, where the process above this one is to be watched.
    pub fn of_above(mut self) -> Self {
        self.main_process = std::os::unix::process::parent_id();
        self
    }

    /// Connections are taken, with what `status` says.
    pub fn ready(&self, status: &str) {
        let id = self.main_process;
        self.say(&format!("READY=1\nMAINPID={id}\nSTATUS={status}"));
    }

    /// A new configuration is being read; [`Supervisor::ready`] follows.
    pub fn reloading(&self) {
        let now_us = monotonic_ns() / 1000;
        self.say(&format!("RELOADING=1\nMONOTONIC_USEC={now_us}"));
    }

    /// It ends; `status` says what it still does.
    pub fn stopping(&self, status: &str) {
        self.say(&format!("STOPPING=1\nSTATUS={status}"));
    }

    fn say(&self, state: &str) {
        if let Some(states) = &self.states {
            states.give(state.to_owned());
        }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        if let Some(states) = &self.states {
            states.finish(LAST_STATE_WITHIN);
        }
    }
}

fn tell(socket: UnixDatagram) -> io::Result<Outlet<String>> {
    // A supervisor that went away needs no word.
    let send = move |state: String, _| socket.send(state.as_bytes()).map(drop);
    Outlet::start("notify", WAITING_STATES_MAX, send)
}

fn connect(name: &OsStr) -> io::Result<UnixDatagram> {
    let address = match name.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(name)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.connect_addr(&address)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(name: &OsStr, listener: &UnixDatagram) -> String {
        told_of(name, listener, |supervisor| supervisor.ready("serving"))
    }

    fn told_of(name: &OsStr, listener: &UnixDatagram, say: impl FnOnce(&Supervisor)) -> String {
        let supervisor = Supervisor {
            states: Some(connect(name).and_then(tell).unwrap()),
            main_process: std::process::id(),
        };
        say(&supervisor);
        let mut state = [0; 200];
        let length = listener.recv(&mut state).unwrap();
        String::from_utf8_lossy(&state[..length]).into_owned()
    }

    #[test]
    fn sockets_in_the_file_system_and_abstract_ones_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let in_files = UnixDatagram::bind(&path).unwrap();
        let expected = format!("READY=1\nMAINPID={}\nSTATUS=serving", std::process::id());
        assert_eq!(told(path.as_os_str(), &in_files), expected);
        let name = format!("sooner-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let abstract_one = UnixDatagram::bind_addr(&address).unwrap();
        let named = format!("@{name}");
        assert_eq!(told(OsStr::new(&named), &abstract_one), expected);
    }

    #[test]
    fn what_is_still_done_at_the_end_is_in_the_callers_words() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let listener = UnixDatagram::bind(&path).unwrap();
        let words = "putting back what was changed";
        let told = told_of(path.as_os_str(), &listener, |it| it.stopping(words));
        assert_eq!(told, format!("STOPPING=1\nSTATUS={words}"));
    }

    #[test]
    fn without_a_supervisor_nobody_is_told() {
        Supervisor {
            states: None,
            main_process: 1,
        }
        .ready("serving");
    }
}
