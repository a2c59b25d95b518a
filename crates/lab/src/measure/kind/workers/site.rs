//! Servers with a worker a request that run scripts: Apache prefork with PHP, and PHP-FPM behind
//! nginx, each in a session of its own, as a service manager starts it.

use super::asking;
use crate::counters::processes::usage;
use crate::measure::bench::Bench;
use crate::measure::kind::local::on_core;
use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use sooner_kernel::process_table;
use sooner_testbed::{OwnedChild, nginx, php, port, program};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

const START_WAIT: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(50);
/// Computes for as much processor time as the query says, waits in between where it says so, and has
/// one of the disks that it names for 15 ms alone.
const SCRIPT: &str = r#"<?php
const DISKS = 8;
function used() {
  $u = getrusage();
  return 1e6 * ($u['ru_utime.tv_sec'] + $u['ru_stime.tv_sec']) + $u['ru_utime.tv_usec'] + $u['ru_stime.tv_usec'];
}
$us = (int)($_GET['us'] ?? 0);
$waits = (int)($_GET['waits'] ?? 0);
$begin = used();
for ($part = 1; $part <= $waits + 1; $part++) {
  while (used() - $begin < $us * $part / ($waits + 1)) { for ($i = 0; $i < 500; $i++); }
  if ($part <= $waits) usleep(15000);
}
$disks = (int)($_GET['disks'] ?? 0);
if ($disks > 0) {
  $disk = fopen(__DIR__ . '/disk' . mt_rand(0, min($disks, DISKS) - 1), 'r');
  flock($disk, LOCK_EX);
  usleep(15000);
  flock($disk, LOCK_UN);
}
echo str_repeat('x', 600);
"#;

/// So many paths there are beside the only one.
pub const PATHS_MAX: u8 = 26;

/// The script of a path: a letter, as numbers make no difference.
pub fn script_of(class: u8) -> String {
    format!("class_{}", char::from(b'a' + class))
}

/// What serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Program {
    /// nginx before PHP-FPM.
    PhpFpm,
    /// Apache with a process a request, and PHP in it.
    Apache,
}

/// A process in a session of its own; it ends when this is dropped.
#[derive(Debug)]
pub struct Session {
    _setsid: OwnedChild,
    pid: u32,
}

impl Session {
    /// Starts it on these cores.
    pub fn start(bench: &Bench<'_>, cores: &str, words: &[String]) -> Result<Session> {
        let mut command = on_core(cores, "setsid");
        command.arg("-w").args(words);
        let mut setsid = bench.start(command)?;
        let begin = Instant::now();
        loop {
            // As a leader of its group it begins another process for the session.
            if let Some(pid) = process_table::children(setsid.id())?.first() {
                return Ok(Session {
                    pid: *pid,
                    _setsid: setsid,
                });
            }
            let is_over = setsid.has_ended() || begin.elapsed() > START_WAIT;
            ensure!(!is_over, "{}: {}", words[0], setsid.message());
            bench.pause(LOOK)?;
        }
    }

    /// What it and all it has begun have used of processors, s.
    pub fn cpu_s(&self) -> f64 {
        usage(self.pid).cpu_s
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(pid) = Pid::from_raw(self.pid.cast_signed()) {
            // It may have ended by itself.
            let _ = kill_process(pid, Signal::TERM);
        }
    }
}

/// A server that answers.
#[derive(Debug)]
pub struct Site {
    /// Where.
    pub address: SocketAddr,
    /// Its first process.
    pub pid: u32,
    /// The port of what hands requests on to it.
    pub front_port: Option<u16>,
    sessions: Vec<Session>,
}

impl Site {
    /// Starts it with so many workers on these cores, and warms it up.
    pub fn start(bench: &Bench<'_>, wanted: Program, workers: u32, cores: &str) -> Result<Site> {
        let folder = bench.folder("site")?;
        let root = folder.join("root");
        fs::create_dir(&root)?;
        fs::write(root.join("w.php"), SCRIPT)?;
        for class in 0..PATHS_MAX {
            fs::write(root.join(format!("{}.php", script_of(class))), SCRIPT)?;
        }
        for disk in 0..8 {
            fs::write(root.join(format!("disk{disk}")), "")?;
        }
        fs::write(root.join("text.html"), vec![b'x'; 1770])?;
        fs::write(root.join("image.jpg"), vec![b'x'; 43_770])?;
        let address = port::free()?;
        let site = match wanted {
            Program::PhpFpm => php_fpm(bench, &folder, address, (workers, cores))?,
            Program::Apache => apache(bench, &folder, address, (workers, cores))?,
        };
        let begin = Instant::now();
        while bench
            .block_on_work(async { Ok(asking::get(address, "/w.php").await) })?
            .is_none()
        {
            ensure!(begin.elapsed() < START_WAIT, "the server does not answer");
            bench.pause(LOOK)?;
        }
        // Each worker has run the script once or more.
        site.ask(bench, super::WARM_UP)?;
        Ok(site)
    }

    /// What all of it has used of processors, s.
    pub fn cpu_s(&self) -> f64 {
        self.sessions.iter().map(Session::cpu_s).sum()
    }

    fn ask(&self, bench: &Bench<'_>, count: u32) -> Result<()> {
        bench.block_on_work(async {
            for _ in 0..count {
                let answer = asking::get(self.address, "/w.php?us=0").await;
                answer.context("the server gives no answer")?;
            }
            Ok(())
        })
    }
}

fn words<const COUNT: usize>(words: [&str; COUNT]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

fn php_fpm(
    bench: &Bench<'_>,
    folder: &Path,
    address: SocketAddr,
    (workers, cores): (u32, &str),
) -> Result<Site> {
    let fpm = php::fpm().context("needs the package php-fpm")?;
    let at = folder.display();
    let config = php::write_pool(folder, workers, "listen.backlog = 4096\n")?;
    let (fpm, config) = (fpm.display().to_string(), config.display().to_string());
    let fpm = Session::start(bench, cores, &words([&fpm, "-F", "-y", &config]))?;
    let http = format!(
        "  access_log off;\n  server {{\n    listen {address} backlog=4096;\n    root {at}/root;\n    location ~ \\.php$ {{\n      \
         include /etc/nginx/fastcgi_params;\n      fastcgi_param SCRIPT_FILENAME \
         $document_root$fastcgi_script_name;\n      fastcgi_read_timeout 120;\n      fastcgi_pass unix:{at}/fpm.sock;\n    }}\n  }}\n"
    );
    let config = nginx::write_config(folder, 4096, &http)?;
    let program = program::find(&["nginx"]).context("needs the package nginx")?;
    let (program, config) = (program.display().to_string(), config.display().to_string());
    let log = format!("{at}/error.log");
    let front = Session::start(bench, cores, &words([&program, "-e", &log, "-c", &config]))?;
    Ok(Site {
        address,
        pid: fpm.pid,
        front_port: Some(address.port()),
        sessions: vec![fpm, front],
    })
}

fn apache(
    bench: &Bench<'_>,
    folder: &Path,
    address: SocketAddr,
    (workers, cores): (u32, &str),
) -> Result<Site> {
    let more = ["ListenBacklog 4096\n", ""];
    let config = php::write_apache(folder, address, workers, more)?;
    let config = config.context("needs the package libapache2-mod-php")?;
    let config = config.display().to_string();
    let program = program::find(&["apache2", "httpd"]).context("needs the package apache2")?;
    let program = program.display().to_string();
    let line = words([&program, "-D", "FOREGROUND", "-f", &config]);
    let server = Session::start(bench, cores, &line)?;
    Ok(Site {
        address,
        pid: server.pid,
        front_port: None,
        sessions: vec![server],
    })
}
