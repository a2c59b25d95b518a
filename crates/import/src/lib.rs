//! A pgbouncer.ini made into a gate.toml, and an nginx.conf into a sooner.toml, that mean the same,
//! as far as they can; what they cannot say is said as a comment where it would stand.
//!
//! An INI crate would not do: what counts are PgBouncer's own rules (comments only at the beginning
//! of a line, `%include`, quotes doubled inside connection strings, a section that begins again and
//! forgets what it said) and the line of every mistake, which rust-ini does not keep. `ini` reads
//! lines, `source` sorts them, one file a topic translates, `document` writes. What narrows who may
//! come is never widened: where a rule cannot be said, all clients that it may have meant are
//! rejected. Files are read through [`Files`], so nothing here does I/O.

mod auth;
mod databases;
mod document;
mod hba;
mod ini;
mod known_keys;
mod limits;
mod listen;
mod nginx;
mod rules;
mod source;
mod tls;
mod translation;
mod users;
mod values;

pub use ini::{At, Files, ImportError};
pub use nginx::{NginxFiles, import_nginx};

use sooner_config::{SourceText, from_command_line};
use sooner_pooler::config::{Config, DatabaseTable};
use source::Source;
use translation::Translation;

/// What came of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The gate.toml or sooner.toml.
    pub text: String,
    /// How many settings are comments in it.
    pub left_out: usize,
    /// Whether passwords stand in it.
    pub has_passwords: bool,
}

impl Imported {
    fn without_passwords(text: String, left_out: usize) -> Self {
        Self {
            text,
            left_out,
            has_passwords: false,
        }
    }
}

/// Reads `file` and all that it includes, and translates it. The first mistake is the error.
pub fn import(file: &str, files: &Files<'_>) -> Result<Imported, ImportError> {
    let source = Source::of(file, ini::read(file, files)?)?;
    let mut translation = Translation::new(source.clone(), files);
    translation.translate(file)?;
    let known = translation.users_with_secrets();
    let (mut text, mut left_out) = translation.document.finish();
    let config = check(&text)?;
    let shut_out = known.map(|known| config.shut_out(|name| known.iter().any(|own| own == name)));
    let shut_out = shut_out.unwrap_or_default();
    if !shut_out.is_empty() {
        // Which rules there are is known only now.
        let mut translation = Translation::new(source, files);
        translation.shut_out = shut_out
            .into_iter()
            .map(|mistake| mistake.message)
            .collect();
        translation.translate(file)?;
        (text, left_out) = translation.document.finish();
        check(&text)?;
    }
    Ok(Imported {
        has_passwords: has_passwords(&text),
        text,
        left_out,
    })
}

/// Whether a gate.toml has a password, be it in what a comment says of a setting.
fn has_passwords(text: &str) -> bool {
    text.lines().any(|line| {
        let is_told = || {
            ["passwd=", "password="]
                .iter()
                .any(|own| line.contains(own))
        };
        line.starts_with("password = ") || (line.starts_with('#') && is_told())
    })
}

/// Whether the gate would read it: if not, the translation is to blame and not the file.
fn check(text: &str) -> Result<Config, ImportError> {
    let source = SourceText {
        name: "gate.toml".into(),
        text: text.into(),
        flags: &[],
    };
    let own = |mistake| ImportError::Own {
        what: source.render(&mistake),
    };
    let mut config = Config::parse(text).map_err(own)?;
    if config.database.is_empty() {
        // A file without databases is one: the output says what has to be added.
        let server = "postgresql://localhost".parse();
        let server = server.map_err(|what| ImportError::Own { what })?;
        config.database = vec![DatabaseTable::all_at(from_command_line(server))];
    }
    config.check().map_err(own)?;
    Ok(config)
}

#[cfg(test)]
mod tests;
