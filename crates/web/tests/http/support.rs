//! A server in a thread and a client that sees every byte.

use sooner_uplink::Uplink;
use sooner_web::config::Config;
use sooner_web::{Means, Server};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;
use tempfile::TempDir;

/// No test waits longer for a byte.
const PATIENCE: Duration = Duration::from_secs(20);

/// Bytes of a file that are read at once.
const CHUNK_BYTES: usize = 64 << 10;

/// A served folder; stops serving when dropped.
pub struct Site {
    folder: TempDir,
    pub address: SocketAddr,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Site {
    /// Serves an empty folder.
    pub fn start() -> Self {
        Self::start_with("")
    }

    /// Serves an empty folder; `config` is more of the configuration, in which FOLDER is the place beside the folder.
    pub fn start_with(config: &str) -> Self {
        Self::run(&format!("root = \"FOLDER/root\"\n{config}"), CHUNK_BYTES)
    }

    /// Serves an empty folder, of whose files so many bytes are read at once.
    pub fn start_with_chunks(config: &str, chunk_bytes: usize) -> Self {
        Self::run(&format!("root = \"FOLDER/root\"\n{config}"), chunk_bytes)
    }

    /// Serves an empty folder as a site with these settings.
    pub fn start_site(settings: &str) -> Self {
        Self::run(
            &format!("[[site]]\nroot = \"FOLDER/root\"\n{settings}"),
            CHUNK_BYTES,
        )
    }

    fn run(config: &str, chunk_bytes: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("root")).unwrap();
        let config = config.replace("FOLDER", folder.path().to_str().unwrap());
        let config = format!("listen = [\"127.0.0.1:0\"]\n{config}");
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let (say_address, address) = channel();
        let thread = std::thread::spawn(move || {
            let config = Config::parse(&config).unwrap();
            let means = Means {
                chunk_bytes,
                descriptors: 4096,
            };
            let server = Server::from_config(&config, means).unwrap();
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let listening = server.start().unwrap();
                say_address.send(listening.addresses()[0]).unwrap();
                listening
                    .run(Uplink::unlimited(), async { _ = stopped.await })
                    .await;
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

    pub fn connect(&self) -> Client {
        Client::connect(self.address)
    }

    /// One request on a connection of its own.
    pub fn get(&self, target: &str, headers: &str) -> Response {
        self.request("GET", target, headers)
    }

    pub fn request(&self, method: &str, target: &str, headers: &str) -> Response {
        let mut client = self.connect();
        client.send(&format!(
            "{method} {target} HTTP/1.1\r\nhost: x\r\n{headers}\r\n"
        ));
        client.response(method)
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
}

impl Drop for Site {
    fn drop(&mut self) {
        self.stop();
    }
}

/// One response as it came.
#[derive(Debug)]
pub struct Response {
    pub version: String,
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

/// One connection.
pub struct Client {
    reader: BufReader<TcpStream>,
}

impl Client {
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self {
            reader: BufReader::new(stream),
        }
    }

    pub fn stream(&self) -> &TcpStream {
        self.reader.get_ref()
    }

    pub fn send(&mut self, text: &str) {
        self.reader.get_mut().write_all(text.as_bytes()).unwrap();
    }

    /// A GET that keeps the connection.
    pub fn send_get(&mut self, target: &str) {
        self.send(&format!("GET {target} HTTP/1.1\r\nhost: x\r\n\r\n"));
    }

    /// The head of the next response, its body still to come.
    pub fn head(&mut self) -> Response {
        let status_line = self.line();
        let mut parts = status_line.splitn(3, ' ');
        let version = parts.next().unwrap().to_owned();
        let status = parts
            .next()
            .unwrap_or_else(|| panic!("no status in {status_line:?}"))
            .parse()
            .unwrap();
        let mut headers = Vec::new();
        loop {
            let line = self.line();
            if line.is_empty() {
                return Response {
                    version,
                    status,
                    headers,
                    body: Vec::new(),
                };
            }
            let (name, value) = line.split_once(": ").unwrap();
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
    }

    /// The next response to a request with `method`.
    pub fn response(&mut self, method: &str) -> Response {
        let mut response = self.head();
        let has_body = method != "HEAD" && response.status != 304;
        if let Some(length) = response.header("content-length").filter(|_| has_body) {
            response.body = vec![0; length.parse().unwrap()];
            self.reader.read_exact(&mut response.body).unwrap();
        }
        response
    }

    /// Everything up to the end of the connection; `Err` when it was reset.
    pub fn rest(&mut self) -> std::io::Result<Vec<u8>> {
        let mut rest = Vec::new();
        self.reader.read_to_end(&mut rest)?;
        Ok(rest)
    }

    pub fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.reader.read(buffer)
    }

    /// Whether the server has ended the connection, and sent nothing before.
    pub fn is_closed(&mut self) -> bool {
        matches!(self.rest(), Ok(rest) if rest.is_empty())
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).unwrap();
        assert!(
            line.ends_with("\r\n"),
            "the connection ended within a head: {line:?}"
        );
        line.trim_end().to_owned()
    }
}
