//! Apache 2.4 with one of its two ways to work on many requests: threads that are given back while
//! a response waits to be written (event), or one process a connection (prefork). All workers are
//! there from the start, so that no run measures their making.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use super::{PORT, Setting, TLS_PORT, program};
use crate::hosts::{Hosts, SERVER_ADDRESS};

/// Its names in Debian and elsewhere.
const PROGRAMS: [&str; 2] = ["apache2", "httpd"];
/// Where its modules are in Debian and elsewhere.
const MODULES: [&str; 3] = [
    "/usr/lib/apache2/modules",
    "/usr/lib64/httpd/modules",
    "/usr/lib/httpd/modules",
];
/// Enough that a link of 10 Mbit/s is the bottleneck even when every response waits for it.
const THREADS: u32 = 1024;
/// As many as fit into the memory of a small machine.
const PROCESSES: u32 = 512;
/// Threads of one process; more of them share one listener's turns.
const THREADS_PER_PROCESS_MAX: u32 = 64;

/// How it works on many requests at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mpm {
    /// Threads, and one that watches the connections that wait.
    Event,
    /// Processes.
    Prefork,
}

impl Mpm {
    fn name(self) -> &'static str {
        match self {
            Mpm::Event => "event",
            Mpm::Prefork => "prefork",
        }
    }

    /// The directives that give it `workers`, or the default.
    fn size(self, workers: Option<u32>) -> String {
        match self {
            Mpm::Event => {
                let asked = workers.unwrap_or(THREADS).max(1);
                let threads = threads_per_process(asked);
                let processes = asked.div_ceil(threads);
                let workers = processes * threads;
                format!(
                    "ServerLimit {processes}\nStartServers {processes}\nThreadLimit {threads}\nThreadsPerChild {threads}\n\
                     MaxRequestWorkers {workers}\nMinSpareThreads {workers}\nMaxSpareThreads {}\n",
                    workers + threads
                )
            }
            Mpm::Prefork => {
                let workers = workers.unwrap_or(PROCESSES).max(1);
                format!(
                    "ServerLimit {workers}\nStartServers {workers}\nMaxRequestWorkers {workers}\n\
                     MinSpareServers 1\nMaxSpareServers {}\n",
                    workers + 1
                )
            }
        }
    }
}

/// The most threads that divide the workers evenly; where none does, the last process has some to
/// spare.
fn threads_per_process(workers: u32) -> u32 {
    let most = THREADS_PER_PROCESS_MAX.min(workers);
    (most.min(16)..=most)
        .rev()
        .find(|threads| workers.is_multiple_of(*threads))
        .unwrap_or(most.min(25))
}

/// Whether the program or its modules are not there.
pub fn is_missing() -> bool {
    program::missing(&PROGRAMS) || modules().is_none()
}

fn modules() -> Option<&'static str> {
    MODULES
        .into_iter()
        .find(|folder| Path::new(folder).join("mod_authz_core.so").exists())
}

/// The configuration.
pub fn config(setting: &Setting<'_>, mpm: Mpm) -> String {
    let (at, root) = (setting.folder.display(), setting.root.display());
    let modules = modules().unwrap_or(MODULES[0]);
    let (name, size) = (mpm.name(), mpm.size(setting.options.workers));
    let backlog = setting.options.backlog;
    let keep_alive = if setting.options.keep_alive {
        "On"
    } else {
        "Off"
    };
    let tls = setting.options.tls.as_ref().map_or(String::new(), |tls| {
        let (certificate, key) = (tls.certificate.display(), tls.key.display());
        format!(
            "LoadModule ssl_module {modules}/mod_ssl.so
SSLSessionCache none
Listen {SERVER_ADDRESS}:{TLS_PORT} https
<VirtualHost {SERVER_ADDRESS}:{TLS_PORT}>
  DocumentRoot \"{root}\"
  SSLEngine on
  SSLCertificateFile {certificate}
  SSLCertificateKeyFile {key}
</VirtualHost>
"
        )
    });
    format!(
        "LoadModule mpm_{name}_module {modules}/mod_mpm_{name}.so
LoadModule authz_core_module {modules}/mod_authz_core.so
LoadModule mime_module {modules}/mod_mime.so
ServerRoot \"{at}\"
DefaultRuntimeDir \"{at}\"
PidFile \"{at}/pid\"
ServerName {SERVER_ADDRESS}
Listen {SERVER_ADDRESS}:{PORT}
ListenBackLog {backlog}
User #65534
Group #65534
{size}KeepAlive {keep_alive}
MaxKeepAliveRequests 0
KeepAliveTimeout 65
Timeout 300
HostnameLookups Off
EnableSendfile On
ErrorLog \"{at}/error.log\"
LogFormat \"%h %l %u %t \\\"%r\\\" %>s %b\" common
CustomLog \"{at}/access.log\" common
TypesConfig /dev/null
AddType text/html .html
AddType text/css .css
AddType image/bmp .bmp
DocumentRoot \"{root}\"
<Directory \"{root}\">
  AllowOverride None
  Options FollowSymLinks
  Require all granted
</Directory>
{tls}"
    )
}

/// The command that runs it in the foreground.
pub fn command(hosts: &Hosts, setting: &Setting<'_>, mpm: Mpm) -> io::Result<Command> {
    let path = setting.folder.join("apache.conf");
    fs::write(&path, config(setting, mpm))?;
    let mut command = hosts.on_server(program::find(&PROGRAMS).unwrap_or(PROGRAMS[0].into()));
    command.args(["-D", "FOREGROUND", "-f"]).arg(path);
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_divide_the_workers() {
        assert_eq!(threads_per_process(350), 50);
        assert_eq!(threads_per_process(1024), 64);
        assert_eq!(threads_per_process(10), 10);
        assert_eq!(threads_per_process(353), 25);
    }

    #[test]
    fn all_workers_start_at_once() {
        let event = Mpm::Event.size(Some(350));
        assert!(event.contains("MaxRequestWorkers 350\n"), "{event}");
        assert!(event.contains("StartServers 7\n"), "{event}");
        let prefork = Mpm::Prefork.size(Some(350));
        assert!(prefork.contains("ServerLimit 350\nStartServers 350\n"));
        assert!(Mpm::Event.size(None).contains("MaxRequestWorkers 1024\n"));
    }
}
