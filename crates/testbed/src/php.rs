//! PHP: the workers of PHP-FPM, and Apache with PHP in its processes. Where root starts them, they
//! run as www-data, so folders with scripts must be open to all.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::process::geteuid;

use crate::child::OwnedChild;

/// Where Debian has the modules of Apache.
const MODULES: &str = "/usr/lib/apache2/modules";
/// How long it may take until a pool listens.
const START_WAIT: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(10);

/// PHP-FPM's program: the newest, because each version has a name of its own.
pub fn fpm() -> Option<PathBuf> {
    newest("/usr/sbin", "php-fpm")
}

/// Apache's module that runs scripts, the newest.
pub fn apache_module() -> Option<PathBuf> {
    newest(MODULES, "libphp")
}

fn newest(folder: &str, beginning: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let is_it = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(beginning))
    };
    paths.filter(is_it).max()
}

/// Lets workers of another user into a folder.
pub fn open_to_all(folder: &Path) -> io::Result<()> {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755))
}

/// Writes `FOLDER/fpm.conf`: so many workers at `FOLDER/fpm.sock`, with `more` in their pool. Its
/// path.
pub fn write_pool(folder: &Path, workers: u32, more: &str) -> io::Result<PathBuf> {
    let at = folder.display();
    let user = match geteuid().is_root() {
        true => "user = www-data\ngroup = www-data\n",
        false => "",
    };
    let text = format!(
        "[global]\nerror_log = {at}/fpm.log\ndaemonize = no\n[www]\n{user}\
         listen = {at}/fpm.sock\nlisten.mode = 0666\npm = static\n\
         pm.max_children = {workers}\n{more}"
    );
    let path = folder.join("fpm.conf");
    fs::write(&path, text)?;
    Ok(path)
}

/// Writes `FOLDER/apache.conf`: a process a request, so many, which run the scripts of
/// `FOLDER/root`. `more` stands before the modules, and `of_root` in the section of that folder. Its
/// path, or none where PHP's module is not installed.
pub fn write_apache(
    folder: &Path,
    address: SocketAddr,
    workers: u32,
    [more, of_root]: [&str; 2],
) -> io::Result<Option<PathBuf>> {
    let Some(php) = apache_module() else {
        return Ok(None);
    };
    let at = folder.display();
    let text = format!(
        "ServerRoot {at}\nServerName localhost\nPidFile {at}/pid\nErrorLog {at}/error.log\n\
         Listen {address}\nUser www-data\nGroup www-data\n{more}\
         LoadModule mpm_prefork_module {MODULES}/mod_mpm_prefork.so\n\
         LoadModule authz_core_module {MODULES}/mod_authz_core.so\n\
         LoadModule dir_module {MODULES}/mod_dir.so\nLoadModule php_module {}\n\
         <FilesMatch \"\\.php$\">\n  SetHandler application/x-httpd-php\n</FilesMatch>\n\
         DocumentRoot {at}/root\n<Directory {at}/root>\n  Require all granted\n{of_root}\
         </Directory>\nStartServers {workers}\nMinSpareServers {workers}\n\
         MaxSpareServers {workers}\nServerLimit {workers}\nMaxRequestWorkers {workers}\n\
         MaxConnectionsPerChild 0\n",
        php.display()
    );
    let path = folder.join("apache.conf");
    fs::write(&path, text)?;
    Ok(Some(path))
}

/// Running workers of PHP-FPM; they end when this is dropped.
#[derive(Debug)]
pub struct Pool {
    _process: OwnedChild,
    /// Where they listen.
    pub socket: PathBuf,
}

impl Pool {
    /// Starts four, with their files in `folder` and `more` in their pool, and waits until they
    /// listen.
    pub fn start(folder: &Path, more: &str) -> Result<Pool> {
        let program = fpm().context("needs the package php-fpm")?;
        open_to_all(folder)?;
        let config = write_pool(folder, 4, more)?;
        let mut command = Command::new(program);
        command.arg("-F").arg("-y").arg(config);
        let mut process = OwnedChild::spawn(&mut command).context("cannot start php-fpm")?;
        let socket = folder.join("fpm.sock");
        let begin = Instant::now();
        while UnixStream::connect(&socket).is_err() {
            let is_over = process.has_ended() || begin.elapsed() > START_WAIT;
            ensure!(!is_over, "php-fpm does not listen: {}", process.message());
            thread::sleep(PAUSE);
        }
        Ok(Pool {
            _process: process,
            socket,
        })
    }
}
