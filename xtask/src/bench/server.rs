//! The servers that are compared, as a user would run them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};

use super::link::{Link, Running, SERVER_ADDRESS, Shaper};
use crate::certificate::Certificate;
use crate::process;

/// Where clear text is served.
pub const CLEAR_PORT: u16 = 8080;
/// Where TLS is served, with HTTP/1.1 and HTTP/2.
pub const TLS_PORT: u16 = 8443;

/// A server under test.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Server {
    /// nginx with sendfile, tcp_nopush and open_file_cache.
    Nginx,
    /// `sooner serve` as nobody, without any capability.
    UserSpace,
    /// `sooner serve` as root: grants above, bands below.
    Bands,
}

impl Server {
    /// As it is reported.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::UserSpace => "sooner, user space",
            Self::Bands => "sooner, with bands",
        }
    }

    /// A short name for namespaces.
    pub fn tag(self) -> &'static str {
        match self {
            Self::Nginx => "n",
            Self::UserSpace => "u",
            Self::Bands => "b",
        }
    }

    /// Who limits the link this server stands on.
    pub fn shaper(self) -> Shaper {
        if self == Self::Bands {
            Shaper::Server
        } else {
            Shaper::Host
        }
    }

    /// Starts it on the server's host of `link`, serving `root` on port 8080.
    pub fn start(self, link: &Link, root: &Path, rate_mbit: u64) -> anyhow::Result<Running> {
        let mut command = match self {
            Self::Nginx => {
                let mut command = link.on_server("nginx");
                command
                    .arg("-c")
                    .arg(nginx_config(root, &NginxOptions::default())?);
                command
            }
            _ => {
                let mut command = self.ours(link, root)?;
                command.arg("serve").arg(root).args([
                    "--listen",
                    &format!("{SERVER_ADDRESS}:{CLEAR_PORT}"),
                    "--uplink",
                    &format!("{rate_mbit}mbit"),
                    "--quiet",
                    "--mechanism",
                    self.mechanism(),
                    "--policy",
                    "srpt",
                ]);
                command
            }
        };
        spawn(&mut command, link, CLEAR_PORT)
    }

    /// Starts it with TLS, HTTP/1.1 and HTTP/2 on port 8443; ours with these `uplink` lines as well.
    pub fn start_secured(
        self,
        link: &Link,
        root: &Path,
        rate_mbit: u64,
        certificate: &Certificate,
        uplink: &str,
    ) -> anyhow::Result<Running> {
        let listen = format!("{SERVER_ADDRESS}:{TLS_PORT}");
        let mut command = match self {
            Self::Nginx => {
                let options = NginxOptions {
                    listen,
                    certificate: Some(certificate.clone()),
                    ..NginxOptions::default()
                };
                let mut command = link.on_server("nginx");
                command.arg("-c").arg(nginx_config(root, &options)?);
                command
            }
            _ => {
                let uplink = format!(
                    "rate = \"{rate_mbit}mbit\"\nmechanism = \"{}\"\npolicy = \"{}\"\n{uplink}",
                    self.mechanism(),
                    "srpt"
                );
                let config = config_file(root, &listen, certificate, &uplink)?;
                let mut command = self.ours(link, root)?;
                command.args(["serve", "--quiet", "--config"]).arg(config);
                command
            }
        };
        spawn(&mut command, link, TLS_PORT)
    }

    /// `sooner` on the server's host, as nobody where no privilege is wanted.
    fn ours(self, link: &Link, root: &Path) -> anyhow::Result<Command> {
        if self != Self::UserSpace {
            return Ok(link.on_server(&sooner()));
        }
        let mut command = link.on_server("setpriv");
        command.args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "--bounding-set=-all",
            "--inh-caps=-all",
            &readable_copy(root)?,
        ]);
        Ok(command)
    }

    fn mechanism(self) -> &'static str {
        match self {
            Self::Bands => "both",
            _ => "user-space",
        }
    }
}

/// A configuration of `sooner serve` with TLS on `listen` beside `root`; `uplink` is what stands in that table.
pub fn config_file(
    root: &Path,
    listen: &str,
    certificate: &Certificate,
    uplink: &str,
) -> anyhow::Result<PathBuf> {
    let text = format!(
        "listen_tls = [\"{listen}\"]\nroot = \"{}\"\n\n[uplink]\n{uplink}\n{}",
        root.display(),
        certificate.table()
    );
    let path = root.with_file_name(format!("sooner-{}.toml", listen.replace([':', '.'], "-")));
    fs::write(&path, text)?;
    Ok(path)
}

fn spawn(command: &mut Command, link: &Link, port: u16) -> anyhow::Result<Running> {
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .context("cannot start the server")?;
    let mut running = Running(child);
    await_listening(link, &mut running, port)?;
    Ok(running)
}

/// The release binary.
pub fn sooner() -> String {
    process::root()
        .join("target/release/sooner")
        .display()
        .to_string()
}

/// A copy of the binary that nobody may run too, wherever the workspace lies.
fn readable_copy(root: &Path) -> anyhow::Result<String> {
    let copy = root.with_file_name("sooner");
    if !copy.exists() {
        fs::copy(sooner(), &copy)?;
    }
    Ok(copy.display().to_string())
}

/// What of nginx's configuration varies.
pub struct NginxOptions {
    /// Address and port.
    pub listen: String,
    /// Whether a response waits to fill its packets.
    pub tcp_nopush: bool,
    /// Whether descriptors are kept open.
    pub open_file_cache: bool,
    /// Where requests are logged; `None`: nowhere.
    pub access_log: Option<PathBuf>,
    /// TLS, with HTTP/2 for those who ask for it; `None`: clear text.
    pub certificate: Option<Certificate>,
}

impl Default for NginxOptions {
    fn default() -> Self {
        Self {
            listen: format!("{SERVER_ADDRESS}:{CLEAR_PORT}"),
            tcp_nopush: true,
            open_file_cache: true,
            access_log: None,
            certificate: None,
        }
    }
}

/// Writes a configuration of one worker into a scratch folder beside `root`; returns its path.
pub fn nginx_config(root: &Path, options: &NginxOptions) -> anyhow::Result<PathBuf> {
    let scratch = root.with_extension(format!("nginx-{}", options.listen.replace([':', '.'], "-")));
    fs::create_dir_all(&scratch)?;
    let at = scratch.display();
    let log = options.access_log.as_ref().map_or("off".into(), |file| {
        format!("{} as_ours buffer=64k flush=1s", file.display())
    });
    let nopush = if options.tcp_nopush { "on" } else { "off" };
    let cache = if options.open_file_cache {
        "max=10000 inactive=60s"
    } else {
        "off"
    };
    let (ssl, certificate) = match &options.certificate {
        Some(certificate) => (" ssl http2", certificate.nginx()),
        None => ("", String::new()),
    };
    let temporary = nginx_temporary(&scratch);
    // The fields both servers can know, in the form ours has; waiting and rank exist in ours alone.
    let log_format = r#"log_format as_ours escape=json '{"time":"$time_iso8601","remote":"$remote_addr:$remote_port","method":"$request_method","target":"$request_uri","user_agent":"$http_user_agent","referer":"$http_referer","status":$status,"size_bytes":$body_bytes_sent,"service_s":$request_time}'"#;
    let text = format!(
        "daemon off;\nworker_processes 1;\nworker_rlimit_nofile 65536;\npid {at}/pid;\nerror_log {at}/error.log;\n\
         events {{ worker_connections 16384; }}\nhttp {{\n{temporary}  {log_format};\n  access_log {log};\n  sendfile on;\n  tcp_nopush {nopush};\n  \
         keepalive_requests 100000000;\n  open_file_cache {cache};\n  open_file_cache_valid 60s;\n  \
         types {{ text/html html; text/css css; image/bmp bmp; }}\n{certificate}\n  server {{ listen {} backlog=4096{ssl}; root {}; }}\n}}\n",
        options.listen,
        root.display()
    );
    let path = scratch.join("nginx.conf");
    fs::write(&path, text)?;
    Ok(path)
}

/// The directives that keep nginx's own files in `scratch`.
pub fn nginx_temporary(scratch: &Path) -> String {
    let at = scratch.display();
    ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("  {kind}_temp_path {at}/{kind};\n"))
        .concat()
}

fn await_listening(link: &Link, running: &mut Running, port: u16) -> anyhow::Result<()> {
    for _ in 0..200 {
        if let Some(status) = running.0.try_wait()? {
            bail!("the server ended at once: {status}");
        }
        let listening = link
            .on_server("ss")
            .args(["-Hltn", &format!("sport = :{port}")])
            .output()?;
        if !listening.stdout.is_empty() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    bail!("the server does not listen after 10 s")
}

/// A document root for the runs of one part; removed with it.
pub struct Root {
    folder: PathBuf,
    scratch: tempfile::TempDir,
}

impl Root {
    /// Writes the files of `trace`.
    pub fn of(trace: &str) -> anyhow::Result<Self> {
        let root = Self::empty()?;
        let mut mkroot = Command::new(sooner());
        mkroot.args(["load", "mkroot", trace]).arg(root.path());
        anyhow::ensure!(
            process::run(&mut mkroot)?.success,
            "cannot write the files of {trace}"
        );
        Ok(root)
    }

    /// An empty folder that everybody may read.
    pub fn empty() -> anyhow::Result<Self> {
        let everybody = fs::Permissions::from_mode(0o755);
        let scratch = tempfile::Builder::new().permissions(everybody).tempdir()?;
        let folder = scratch.path().join("root");
        fs::create_dir(&folder)?;
        Ok(Self { folder, scratch })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// The folder it is in, for what servers need beside it.
    pub fn scratch(&self) -> &Path {
        self.scratch.path()
    }
}
