//! The gate that a command looks at: the one that is named, else the one that this user runs.

use super::own_socket::{self, NAME_BEGIN};
use anyhow::{Result, bail};
use sooner_pooler::ConsoleClient;
use sooner_pooler::config::Endpoint;
use std::env;
use std::path::{Path, PathBuf};

/// Where gates and PgBouncer listen by default.
const DEFAULT_PORT: u16 = 6432;

/// A gate's place.
pub struct Place {
    pub endpoint: Endpoint,
    choice: Choice,
}

/// How it was chosen.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Choice {
    Named,
    /// By its socket file.
    Found,
    /// No gate was found: another user's may listen there, or another program.
    Default,
}

impl Place {
    /// Where the gate is that is named, or the one that this user runs, or the default place.
    pub async fn of(gate: Option<&str>) -> Result<Self> {
        if let Some(text) = gate {
            let (endpoint, choice) = (named(text)?, Choice::Named);
            return Ok(Self { endpoint, choice });
        }
        match &own_socket::running().await[..] {
            [] => Ok(Self {
                endpoint: Endpoint::Tcp("127.0.0.1".into(), DEFAULT_PORT),
                choice: Choice::Default,
            }),
            [path] => Ok(Self {
                endpoint: named(&path.display().to_string())?,
                choice: Choice::Found,
            }),
            several => {
                let paths = several.iter().map(|path| path.display().to_string());
                let paths: Vec<String> = paths.collect();
                bail!(
                    "{} gates run: {}; choose one with --gate PATH",
                    paths.len(),
                    paths.join(", ")
                )
            }
        }
    }

    /// Logs in to its console, with the password in PGPASSWORD.
    pub async fn open(&self, user: &str) -> Result<ConsoleClient> {
        let password = env::var("PGPASSWORD").ok();
        let opened = ConsoleClient::open(&self.endpoint, user, password).await;
        opened.map_err(|error| anyhow::Error::msg(self.explained(&error)))
    }

    /// What went wrong, and what to do.
    fn explained(&self, error: &str) -> String {
        let at = &self.endpoint;
        let is_unasked = error.contains(": it wants user ") && env::var_os("PGPASSWORD").is_none();
        let is_about_user = ["authentication failed", "may not enter", "no rule lets"]
            .iter()
            .any(|words| error.contains(words));
        let is_by_network = matches!(at, Endpoint::Tcp(..));
        let words = match is_unasked {
            true => format!("what listens at {at} wants a password for this user; set PGPASSWORD"),
            false if is_about_user && is_by_network => format!(
                "{error}; give --user NAME with PGPASSWORD, for one of its admins or watchers (sooner gate --admin NAME), or --gate PATH of its socket file as the user who runs it"
            ),
            false => error.to_owned(),
        };
        match self.choice {
            Choice::Default => format!(
                "no gate of this user was found by its socket file; {words}; choose another place with --gate"
            ),
            Choice::Named | Choice::Found => words,
        }
    }
}

/// An address with a port, or the path of a socket file: all that has a slash, and a file's name.
fn named(text: &str) -> Result<Endpoint> {
    let is_path = text.contains('/') || text.starts_with('.');
    let parts = if is_path {
        let path = Path::new(text);
        let name = path.file_name().and_then(|name| name.to_str());
        let port = name.and_then(|name| name.strip_prefix(NAME_BEGIN));
        let folder = path.parent().filter(|folder| *folder != Path::new(""));
        let folder = folder.map_or_else(|| PathBuf::from("."), Path::to_path_buf);
        port.and_then(|port| Some(Endpoint::Unix(folder, port.parse().ok()?)))
    } else {
        text.rsplit_once(':').and_then(|(at, port)| {
            let at = at.trim_matches(['[', ']']).to_owned();
            Some(Endpoint::Tcp(at, port.parse().ok()?))
        })
    };
    match parts {
        Some(endpoint) => Ok(endpoint),
        None => bail!(
            "--gate {text}: neither an address with a port, like 127.0.0.1:6432, nor the path of a socket file, like /run/sooner/.s.PGSQL.6432"
        ),
    }
}
