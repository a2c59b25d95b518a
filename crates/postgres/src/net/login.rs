//! A new connection to the database: found, logged in, ready.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;

use bytes::{Bytes, BytesMut};
use tokio::net::{TcpStream, UnixStream};
use url::Url;

use super::stream::Stream;
use super::system_random;
use crate::auth::scram::{ClientExchange, Proof};
use crate::auth::{Md5Salt, Secret};
use crate::exchange::Settings;
use crate::wire::{
    BackendMessage, Look, Splitter, Startup, Version, look_at_backend, write_password, write_query,
    write_sasl_first,
};

/// The longest message before a session is ready.
const MESSAGE_BYTES_MAX: usize = 1 << 16;
/// PostgreSQL's.
const DEFAULT_PORT: u16 = 5432;
const SCRAM: &str = "SCRAM-SHA-256";

/// Where a database is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerAddress {
    /// Name or address, and port.
    Tcp(String, u16),
    /// The folder of its socket file, and the port in that file's name.
    Unix(PathBuf, u16),
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(host, port) => write!(f, "{host}:{port}"),
            Self::Unix(folder, port) => write!(f, "{}/.s.PGSQL.{port}", folder.display()),
        }
    }
}

impl FromStr for ServerAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form =
            "postgresql://HOST:PORT, or postgresql:///?host=FOLDER&port=PORT for a socket file";
        let url = Url::parse(text).map_err(|error| format!("{error}; it is {form}"))?;
        if !["postgresql", "postgres"].contains(&url.scheme()) {
            return Err(format!("it is {form}"));
        }
        if !url.username().is_empty() || url.password().is_some() || url.path().len() > 1 {
            return Err(format!(
                "users and databases are the clients'; it is {form}"
            ));
        }
        let (mut host, mut port) = (url.host_str().unwrap_or_default().to_owned(), url.port());
        for (name, value) in url.query_pairs() {
            match &*name {
                "host" => host = value.into_owned(),
                "port" => port = Some(value.parse().map_err(|_| format!("{value:?} is no port"))?),
                _ => return Err(format!("{name:?} is not known; it is {form}")),
            }
        }
        let port = port.unwrap_or(DEFAULT_PORT);
        match host.as_str() {
            "" => Err(format!("it names no host; it is {form}")),
            folder if folder.starts_with('/') => Ok(Self::Unix(folder.into(), port)),
            host => Ok(Self::Tcp(host.trim_matches(['[', ']']).to_owned(), port)),
        }
    }
}

impl ServerAddress {
    /// A new connection.
    pub(super) async fn connect(&self) -> io::Result<Stream> {
        match self {
            Self::Tcp(host, port) => {
                let stream = TcpStream::connect((host.as_str(), *port)).await?;
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
            Self::Unix(..) => Ok(Stream::Unix(UnixStream::connect(self.to_string()).await?)),
        }
    }
}

/// What a cancel request to the database has to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerKey {
    pub process_id: i32,
    pub secret: Vec<u8>,
}

/// A session at the database.
pub struct Session {
    pub stream: Stream,
    /// What was read and not looked at.
    pub input: BytesMut,
    pub key: ServerKey,
    pub settings: Settings,
}

/// Why there is no session.
#[derive(Debug)]
pub enum LoginError {
    /// Nobody answers, or no longer.
    Unreachable(io::Error),
    /// The database says no: its error as it came.
    Refused(Bytes),
    /// What answers is no database, or wants what is not there.
    Impossible(String),
}

impl From<io::Error> for LoginError {
    fn from(error: io::Error) -> Self {
        Self::Unreachable(error)
    }
}

/// Logs a user in to a database; `proof` where one is known.
pub async fn log_in(
    address: &ServerAddress,
    user: &str,
    database: &str,
    secret: Option<&LoginSecret>,
) -> Result<Session, LoginError> {
    let mut stream = address.connect().await?;
    let (mut out, mut input) = (Vec::new(), BytesMut::new());
    let startup = Startup {
        version: Version::V3_0,
        parameters: [("user", user), ("database", database)]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
    };
    startup.write(&mut out);
    stream.flush_all(&mut BytesMut::from(&out[..])).await?;
    prove(&mut stream, &mut input, user, secret).await?;
    let mut key = ServerKey {
        process_id: 0,
        secret: Vec::new(),
    };
    let mut settings = Settings::new();
    loop {
        let message = next(&mut stream, &mut input).await?;
        match read(&message)? {
            BackendMessage::ParameterStatus(status) => {
                settings.insert(status.name.to_vec(), status.value.to_vec());
            }
            BackendMessage::KeyData { process_id, secret } => {
                let secret = secret.to_vec();
                key = ServerKey { process_id, secret };
            }
            BackendMessage::Error(_) => return Err(LoginError::Refused(message)),
            BackendMessage::Ready(_) => break,
            _ => {}
        }
    }
    Ok(Session {
        stream,
        input,
        key,
        settings,
    })
}

/// What the gate proves itself by.
#[derive(Clone)]
pub enum LoginSecret {
    /// A password or an md5 hash.
    Kept(Secret),
    /// What the client's own proof has told.
    Learned(Proof),
}

async fn prove(
    stream: &mut Stream,
    input: &mut BytesMut,
    user: &str,
    secret: Option<&LoginSecret>,
) -> Result<(), LoginError> {
    loop {
        let message = next(stream, input).await?;
        let mut out = BytesMut::new();
        match read(&message)? {
            BackendMessage::Authentication(0, _) => return Ok(()),
            BackendMessage::Authentication(3, _) => match secret {
                Some(LoginSecret::Kept(Secret::Plain(password))) => {
                    write_password(&mut out, &[password.as_bytes(), b"\0"].concat());
                }
                _ => return Err(lacks(user, "a password")),
            },
            BackendMessage::Authentication(5, salt) => {
                let salt = Md5Salt(
                    salt.try_into()
                        .map_err(|_| odd("an md5 salt has 4 bytes"))?,
                );
                let answer = match secret {
                    Some(LoginSecret::Kept(secret)) => salt.answer(user, secret),
                    _ => None,
                };
                let answer = answer.ok_or_else(|| lacks(user, "a password or md5 hash"))?;
                write_password(&mut out, &[answer.as_bytes(), b"\0"].concat());
            }
            BackendMessage::Authentication(10, mechanisms) => {
                let offers = mechanisms
                    .split(|byte| *byte == 0)
                    .any(|name| name == SCRAM.as_bytes());
                if !offers {
                    return Err(odd("it offers no mechanism that is spoken here"));
                }
                return scram(stream, input, user, secret).await;
            }
            BackendMessage::Authentication(code, _) => {
                return Err(odd(&format!(
                    "it asks for proof number {code}, which is not known here"
                )));
            }
            BackendMessage::Error(_) => return Err(LoginError::Refused(message)),
            _ => {}
        }
        stream.flush_all(&mut out).await?;
    }
}

async fn scram(
    stream: &mut Stream,
    input: &mut BytesMut,
    user: &str,
    secret: Option<&LoginSecret>,
) -> Result<(), LoginError> {
    let proof = match secret {
        Some(LoginSecret::Kept(Secret::Plain(password))) => Proof::Password(password.clone()),
        Some(LoginSecret::Learned(proof)) => proof.clone(),
        _ => {
            return Err(lacks(
                user,
                "a password, or a client that proves one by SCRAM",
            ));
        }
    };
    let mut out = BytesMut::new();
    let (exchange, first) = ClientExchange::begin(proof, &system_random::nonce()?);
    write_sasl_first(&mut out, SCRAM, first.as_bytes());
    stream.flush_all(&mut out).await?;
    let answer = sasl(stream, input, 11).await?;
    let (end, last) = exchange
        .answer(&answer)
        .map_err(|error| odd(&format!("{error}: has the server another verifier?")))?;
    write_password(&mut out, last.as_bytes());
    stream.flush_all(&mut out).await?;
    let answer = sasl(stream, input, 12).await?;
    end.check(&answer)
        .map_err(|error| odd(&error.to_string()))?;
    let message = next(stream, input).await?;
    match read(&message)? {
        BackendMessage::Authentication(0, _) => Ok(()),
        _ => Err(LoginError::Refused(message)),
    }
}

/// The next step of SASL.
async fn sasl(stream: &mut Stream, input: &mut BytesMut, code: i32) -> Result<Vec<u8>, LoginError> {
    let message = next(stream, input).await?;
    match read(&message)? {
        BackendMessage::Authentication(is, payload) if is == code => Ok(payload.to_vec()),
        BackendMessage::Error(_) => Err(LoginError::Refused(message)),
        _ => Err(odd("it skips a step of SCRAM")),
    }
}

fn odd(what: &str) -> LoginError {
    LoginError::Impossible(what.to_owned())
}

fn lacks(user: &str, what: &str) -> LoginError {
    odd(&format!(
        "it wants a proof of user {user:?}, and the gate does not have {what}"
    ))
}

fn read(message: &Bytes) -> Result<BackendMessage<'_>, LoginError> {
    let read = BackendMessage::read(message[0], &message[crate::wire::HEADER_BYTES..]);
    read.map_err(|error| odd(&error.to_string()))
}

/// The next message, whole.
async fn next(stream: &mut Stream, input: &mut BytesMut) -> Result<Bytes, LoginError> {
    let whole = |tag| match look_at_backend(tag) {
        Look::Unknown => Look::Unknown,
        _ => Look::Whole(MESSAGE_BYTES_MAX),
    };
    loop {
        let piece = Splitter::new(whole)
            .next(input)
            .map_err(|error| odd(&error.to_string()))?;
        let length = piece.map(|piece| piece.bytes.len());
        match length {
            Some(length) => return Ok(input.split_to(length).freeze()),
            None if stream.more(input).await? == 0 => {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
            None => {}
        }
    }
}

impl Session {
    /// Runs commands of the gate's own; what it reports is noted, the rest thrown away. An error is the server's, as it came.
    pub async fn run(&mut self, sql: &[u8], settings: &mut Settings) -> Result<(), LoginError> {
        let mut out = BytesMut::new();
        write_query(&mut out, sql);
        self.stream.flush_all(&mut out).await?;
        let mut failed = None;
        loop {
            let message = next(&mut self.stream, &mut self.input).await?;
            match read(&message)? {
                BackendMessage::ParameterStatus(status) => {
                    let (name, value) = (status.name.to_vec(), status.value.to_vec());
                    settings.insert(name, value);
                }
                BackendMessage::Error(_) => failed = Some(message.clone()),
                BackendMessage::Ready(_) => break,
                _ => {}
            }
        }
        match failed {
            Some(message) => Err(LoginError::Refused(message)),
            None => Ok(()),
        }
    }

    /// Whether nobody has closed it and nothing has come that nobody asked for.
    pub fn is_quiet(&mut self) -> bool {
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        self.input.is_empty() && self.stream.poll_more(&mut cx, &mut self.input).is_pending()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_at_an_address_or_behind_a_file() {
        let read = |text: &str| {
            text.parse::<ServerAddress>()
                .map(|address| address.to_string())
        };
        for (text, expected) in [
            ("postgresql://db.example:5433", "db.example:5433"),
            ("postgres://127.0.0.1/", "127.0.0.1:5432"),
            ("postgresql://[::1]:6000", "::1:6000"),
            (
                "postgresql:///?host=/run/postgresql",
                "/run/postgresql/.s.PGSQL.5432",
            ),
            ("postgresql:///?host=/a%20b&port=6000", "/a b/.s.PGSQL.6000"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(expected), "{text}");
        }
        for text in [
            "",
            "db:5432",
            "http://db",
            "postgresql://",
            "postgresql://ann@db",
            "postgresql://db/shop",
            "postgresql://db?sslmode=require",
            "postgresql://db?port=x",
        ] {
            let error = read(text).unwrap_err();
            assert!(!error.contains('\n') && !error.is_empty(), "{text}");
        }
    }
}
