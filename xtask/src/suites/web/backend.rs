//! A backend that is a script: it prints its port when it listens, and is ended when dropped.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use super::pair;

/// How long it may take to start.
const PATIENCE: Duration = Duration::from_secs(20);

/// A backend that runs.
pub struct Backend {
    pub port: u16,
    child: Child,
}

impl Backend {
    /// Starts it; what it complains of goes to a file in `folder`.
    pub fn start(command: &mut Command, folder: &Path) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(folder.join("backend.said"))?)
            .spawn()
            .context("cannot start the backend")?;
        let (out, (sender, receiver)) = (child.stdout.take(), mpsc::channel());
        thread::spawn(move || {
            let mut line = String::new();
            let _ = out.map(|out| BufReader::new(out).read_line(&mut line));
            let _ = sender.send(line);
        });
        // From here on it is ended whatever happens.
        let mut backend = Self { port: 0, child };
        let line = receiver.recv_timeout(PATIENCE).unwrap_or_default();
        backend.port = line.trim().parse().context("the backend gave no port")?;
        Ok(backend)
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        pair::end(&mut self.child);
    }
}
