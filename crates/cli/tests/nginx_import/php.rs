//! PHP-FPM, and the files that configurations for it include.

use sooner_testbed::php::{Pool, fpm};
use sooner_testbed::skip;
use std::fs;
use std::path::{Path, PathBuf};
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
    pool: Pool,
    _folder: TempDir,
}

impl Php {
    /// Says why not where there is none.
    pub fn start(test: &str) -> Option<Self> {
        if fpm().is_none() {
            skip(test, "needs the package php-fpm");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let pool = Pool::start(folder.path(), "").unwrap();
        Some(Self {
            pool,
            _folder: folder,
        })
    }

    /// Where it listens.
    pub fn socket(&self) -> PathBuf {
        self.pool.socket.clone()
    }
}
