//! A server in a thread.

use sooner_uplink::{Mechanism, StreamRule, Uplink, UplinkConfig};
use sooner_web::config::{Config, StreamOrder};
use sooner_web::{Means, Server};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use tempfile::TempDir;

/// Slow enough for a few hundred kilobytes to be a queue, fast enough for a test.
const RATE_BITS_PER_SEC: u64 = 20_000_000;

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

    /// The same with more configuration.
    pub fn start_with(config: &str) -> Self {
        Self::run(config, |_| Uplink::unlimited())
    }

    /// Serves an empty folder through a link that is soon busy.
    pub fn start_ordered() -> Self {
        Self::start_ordered_with("")
    }

    /// The same with more keys of the table `[uplink]`.
    pub fn start_ordered_with(keys: &str) -> Self {
        let config = format!("[uplink]\nrate = \"20mbit\"\n{keys}");
        Self::run(&config, |config| {
            let mut uplink = UplinkConfig::new(RATE_BITS_PER_SEC, config.uplink.policy());
            uplink.mechanism = Mechanism::UserSpace;
            uplink.streams = match config.uplink.streams {
                StreamOrder::Standard => StreamRule::Standard,
                StreamOrder::Size => StreamRule::Size,
            };
            Uplink::start(&uplink).unwrap()
        })
    }

    fn run(config: &str, uplink: impl FnOnce(&Config) -> Uplink + Send + 'static) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        std::fs::create_dir(&root).unwrap();
        let config = format!(
            "listen = [\"127.0.0.1:0\"]\nroot = {:?}\n{config}",
            root.display().to_string()
        );
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let (say_address, address) = channel();
        let thread = std::thread::spawn(move || {
            let config = Config::parse(&config).unwrap();
            let means = Means {
                chunk_bytes: 64 << 10,
                descriptors: 1024,
            };
            let server = Server::from_config(&config, means).unwrap();
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let listening = server.start().unwrap();
                say_address.send(listening.addresses()[0]).unwrap();
                let stop = async { _ = stopped.await };
                listening.run(uplink(&config), stop).await;
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

    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(path), content).unwrap();
    }

    /// Asks the server to stop, without waiting for it.
    pub fn ask_to_stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.ask_to_stop();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}
