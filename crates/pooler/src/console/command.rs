//! What can be said to the gate itself: PgBouncer's commands, and a few of its own.

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// A table.
    Show(String),
    /// Read the configuration again.
    Reload,
    /// Transactions wait from now on; done when none is under way. In one database, or in all.
    Pause(Option<String>),
    /// And no longer.
    Resume(Option<String>),
    /// Replace server connections by new ones.
    Reconnect(Option<String>),
    /// Send new clients of a database away.
    Disable(String),
    /// And no longer.
    Enable(String),
    /// End the clients of a database at once, and pause it.
    Kill(String),
    /// End one client at once, by its number.
    KillClient(u64),
    /// Wait until no server connection is in use.
    WaitClose(Option<String>),
    /// End.
    Shutdown(Stop),
    /// A setting of the session, by its name in lower case: clients set some at their beginning.
    Set(String),
}

/// How the gate ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// At once.
    Now,
    /// Clients leave when their transactions are over.
    WhenIdle,
    /// Clients leave when they like.
    WhenTheyLike,
}

/// What is not understood, and what would be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// Nothing that is known.
    #[error("invalid command {0:?}; SHOW HELP lists those that there are")]
    Command(String),
    /// PgBouncer has it, and the gate has not.
    #[error("{0} is a command of PgBouncer that the gate has not: {1}")]
    NotHere(&'static str, &'static str),
    /// It is about one database, and names none.
    #[error("a database is required: {0} DATABASE")]
    NoDatabase(String),
}

/// Reads the commands of a text, in which a semicolon ends each.
pub fn read(text: &str) -> Result<Vec<Command>, Invalid> {
    let commands = text
        .split(';')
        .map(str::trim)
        .filter(|text| !text.is_empty());
    commands.map(read_one).collect()
}

fn read_one(text: &str) -> Result<Command, Invalid> {
    let invalid = || Invalid::Command(text.chars().take(100).collect());
    let mut words = text.split_whitespace();
    let verb = words.next().unwrap_or_default().to_ascii_uppercase();
    let object: Vec<&str> = words.collect();
    if verb == "SET" {
        let name = setting(text).ok_or_else(invalid)?;
        return Ok(Command::Set(name));
    }
    let object = match object[..] {
        [] => None,
        [object] => Some(object),
        _ => return Err(invalid()),
    };
    let name = object.map(unquoted);
    let upper = object.map(str::to_ascii_uppercase);
    if let Some(missing) = missing(&verb, upper.as_deref()) {
        return Err(missing);
    }
    Ok(match (verb.as_str(), name) {
        ("SHOW", Some(_)) => Command::Show(upper.unwrap_or_default()),
        ("RELOAD", None) => Command::Reload,
        ("PAUSE", name) => Command::Pause(name),
        ("RESUME", name) => Command::Resume(name),
        ("RECONNECT", name) => Command::Reconnect(name),
        ("DISABLE", Some(name)) => Command::Disable(name),
        ("ENABLE", Some(name)) => Command::Enable(name),
        ("KILL", Some(name)) => Command::Kill(name),
        ("DISABLE" | "ENABLE" | "KILL", None) => return Err(Invalid::NoDatabase(verb)),
        ("KILL_CLIENT", Some(id)) => Command::KillClient(id.parse().map_err(|_| invalid())?),
        ("WAIT_CLOSE", name) => Command::WaitClose(name),
        ("SHUTDOWN", _) => Command::Shutdown(match upper.as_deref() {
            None => Stop::Now,
            Some("WAIT_FOR_SERVERS") => Stop::WhenIdle,
            Some("WAIT_FOR_CLIENTS") => Stop::WhenTheyLike,
            Some(_) => return Err(invalid()),
        }),
        _ => return Err(invalid()),
    })
}

/// What PgBouncer has and the gate has not, with what to use instead.
fn missing(verb: &str, object: Option<&str>) -> Option<Invalid> {
    let (command, instead) = match (verb, object) {
        ("SUSPEND", None) => (
            "SUSPEND",
            "it is for PgBouncer's restart; use PAUSE instead, which waits until no server connection is in use, and RESUME",
        ),
        ("SHOW", Some("FDS")) => (
            "SHOW FDS",
            "it hands sockets to PgBouncer's restart; use SHOW SOCKETS instead",
        ),
        _ => return None,
    };
    Some(Invalid::NotHere(command, instead))
}

/// The name of a setting in `SET NAME = VALUE` and its other forms; `None` where there is no value.
fn setting(text: &str) -> Option<String> {
    let text = text.to_ascii_lowercase().replace('=', " = ");
    let mut words = text.split_whitespace().skip(1).peekable();
    words.next_if(|word| ["session", "local"].contains(word));
    let name = unquoted(words.next()?);
    let value = words.find(|word| !["=", "to"].contains(word));
    value.map(|_| name)
}

/// A name as SQL writes it.
fn unquoted(name: &str) -> String {
    let inner = name
        .strip_prefix('"')
        .and_then(|name| name.strip_suffix('"'));
    match inner {
        Some(inner) => inner.replace("\"\"", "\""),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn commands_are_read_as_pgbouncers_are() {
        assert_eq!(
            read("show Stats; PAUSE; pause \"my\"\"shop\";"),
            Ok(vec![
                Command::Show("STATS".into()),
                Command::Pause(None),
                Command::Pause(Some("my\"shop".into())),
            ])
        );
        assert_eq!(
            read("SHUTDOWN WAIT_FOR_CLIENTS"),
            Ok(vec![Command::Shutdown(Stop::WhenTheyLike)])
        );
        assert_eq!(read("KILL_CLIENT 12"), Ok(vec![Command::KillClient(12)]));
        assert_eq!(read(" ; "), Ok(vec![]));
        for (text, name) in [
            ("SET application_name = 'x'", "application_name"),
            ("set Client_Encoding to 'utf8'", "client_encoding"),
            ("SET session DateStyle=ISO", "datestyle"),
            ("SET names 'utf8'", "names"),
            ("SET nonsense=1", "nonsense"),
        ] {
            assert_eq!(read(text), Ok(vec![Command::Set(name.into())]), "{text}");
        }
        for wrong in [
            "SELECT 1",
            "SET",
            "SET x",
            "SET x =",
            "KILL",
            "SHOW",
            "SHOW A B",
            "KILL_CLIENT x",
            "SHUTDOWN NOW",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(text: String) {
            let _ = read(&text);
        }
    }
}
