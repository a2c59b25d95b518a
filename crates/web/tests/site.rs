//! A server in a thread, for all tests that look at it from outside.

use sooner_uplink::Uplink;
use sooner_web::config::Config;
use sooner_web::{Means, Server};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;
use tempfile::TempDir;

/// No test waits longer for a byte.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Bytes of a file that are read at once.
pub const CHUNK_BYTES: usize = 64 << 10;

/// A served folder; stops serving when dropped.
pub struct Site {
    folder: TempDir,
    pub address: SocketAddr,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Site {
    /// Serves an empty folder as fast as it can.
    pub fn start() -> Self {
        Self::start_with("")
    }

    /// The same with more configuration, in which FOLDER is the place beside the folder.
    pub fn start_with(config: &str) -> Self {
        Self::run(&rooted(config), CHUNK_BYTES, |_| Uplink::unlimited())
    }

    /// Serves as `config` says on an address of its own, through the uplink that `uplink` makes
    /// within the server's runtime.
    pub fn run(
        config: &str,
        chunk_bytes: usize,
        uplink: impl FnOnce(&Config) -> Uplink + Send + 'static,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("root")).unwrap();
        let config = config.replace("FOLDER", folder.path().to_str().unwrap());
        let config = format!("listen = [\"127.0.0.1:0\"]\n{}{config}", workers(&config));
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let (say_address, address) = channel();
        let thread = std::thread::spawn(move || {
            let config = Config::parse(&config).unwrap();
            let means = Means {
                chunk_bytes,
                record_bytes: 16 << 10,
                descriptors: 4096,
                workers: config.worker_count(),
            };
            let server = Server::from_config(&config, means).unwrap();
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let mut listening = server.start().unwrap();
                say_address.send(listening.addresses()[0]).unwrap();
                let stop = async { _ = stopped.await };
                let uplink = uplink(&config);
                listening.start_workers(&uplink).unwrap();
                listening.run(uplink, stop).await;
            });
        });
        Self {
            address: address.recv().unwrap(),
            folder,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// Where `path` of the served folder is.
    pub fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join("root").join(path)
    }

    /// A place beside the served folder.
    pub fn outside(&self) -> &Path {
        self.folder.path()
    }

    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Asks the server to stop, without waiting for it.
    pub fn ask_to_stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
    }

    pub fn has_stopped(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Stops the server and waits until it has ended.
    pub fn stop(&mut self) {
        self.ask_to_stop();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }

    /// Stops the server; the lines of its access log, which is to be at FOLDER/log.
    pub fn log_lines(&mut self) -> Vec<serde_json::Value> {
        self.stop();
        let text = std::fs::read_to_string(self.outside().join("log")).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The workers that SOONER_TEST_WORKERS names, where a configuration names none.
fn workers(config: &str) -> String {
    let count = std::env::var("SOONER_TEST_WORKERS").ok();
    let count = count.filter(|_| !config.contains("workers"));
    count.map_or_else(String::new, |count| format!("workers = {count}\n"))
}

/// `config` of a server with the served folder as its root.
pub fn rooted(config: &str) -> String {
    format!("root = \"FOLDER/root\"\n{config}")
}
