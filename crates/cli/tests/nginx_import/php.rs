//! PHP-FPM, and the files that configurations for it include.

use super::place::open_to_all;
use sooner_testbed::{OwnedChild, skip};
use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// What nginx brings along.
const PARAMS: &str = "\
fastcgi_param QUERY_STRING $query_string;
fastcgi_param REQUEST_METHOD $request_method;
fastcgi_param CONTENT_TYPE $content_type;
fastcgi_param CONTENT_LENGTH $content_length;
fastcgi_param SCRIPT_NAME $fastcgi_script_name;
fastcgi_param REQUEST_URI $request_uri;
fastcgi_param DOCUMENT_URI $document_uri;
fastcgi_param DOCUMENT_ROOT $document_root;
fastcgi_param SERVER_PROTOCOL $server_protocol;
fastcgi_param REQUEST_SCHEME $scheme;
fastcgi_param HTTPS $https if_not_empty;
fastcgi_param GATEWAY_INTERFACE CGI/1.1;
fastcgi_param SERVER_SOFTWARE nginx/$nginx_version;
fastcgi_param REMOTE_ADDR $remote_addr;
fastcgi_param REMOTE_PORT $remote_port;
fastcgi_param SERVER_ADDR $server_addr;
fastcgi_param SERVER_PORT $server_port;
fastcgi_param SERVER_NAME $server_name;
fastcgi_param REDIRECT_STATUS 200;
";
/// What Debian brings along.
const SNIPPET: &str = "\
fastcgi_split_path_info ^(.+?\\.php)(/.*)$;
try_files $fastcgi_script_name =404;
set $path_info $fastcgi_path_info;
fastcgi_param PATH_INFO $path_info;
fastcgi_index index.php;
include fastcgi.conf;
";

/// Writes the files that configurations include.
pub fn write_params(folder: &Path) {
    fs::create_dir_all(folder.join("snippets")).unwrap();
    let script = "fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;\n";
    for (name, text) in [
        ("fastcgi_params", PARAMS.to_owned()),
        ("fastcgi.conf", format!("{script}{PARAMS}")),
        ("snippets/fastcgi-php.conf", SNIPPET.to_owned()),
    ] {
        fs::write(folder.join(name), text).unwrap();
    }
}

/// A pool that runs scripts of any folder.
pub struct Php {
    _child: OwnedChild,
    folder: TempDir,
}

impl Php {
    /// Says why not where there is none.
    pub fn start(test: &str) -> Option<Self> {
        let Some(program) = program() else {
            skip(test, "needs the package php-fpm");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        open_to_all(at);
        let shown = at.display();
        let user = match rustix::process::getuid().is_root() {
            true => "user = www-data\ngroup = www-data\n",
            false => "",
        };
        let config = format!(
            "[global]\nerror_log = {shown}/fpm.log\ndaemonize = no\n[www]\n{user}\
             listen = {shown}/fpm.sock\nlisten.mode = 0666\npm = static\npm.max_children = 4\n"
        );
        fs::write(at.join("fpm.conf"), config).unwrap();
        let mut command = Command::new(program);
        command.arg("-F").arg("-y").arg(at.join("fpm.conf"));
        let mut child = OwnedChild::spawn(&mut command).unwrap();
        let begin = Instant::now();
        while UnixStream::connect(at.join("fpm.sock")).is_err() {
            assert!(
                !child.has_ended() && begin.elapsed() < Duration::from_secs(20),
                "{}",
                child.message()
            );
            thread::sleep(Duration::from_millis(10));
        }
        Some(Self {
            _child: child,
            folder,
        })
    }

    /// Where it listens.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("fpm.sock")
    }
}

fn program() -> Option<PathBuf> {
    let names = fs::read_dir("/usr/sbin").ok()?;
    let paths = names.filter_map(|entry| Some(entry.ok()?.path()));
    let is_it = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("php-fpm"))
    };
    paths.filter(is_it).max()
}
