//! A new connection to the database: found, logged in, ready.

use crate::config::{Encryption, Endpoint, ServerAddress};
use crate::hashing;
use crate::pool::connection_limits::Limited;
use crate::random;
use crate::stream::Stream;
use crate::tls::Connector;
use bytes::{Bytes, BytesMut};
use sooner_postgres::auth::scram::{ClientExchange, Proof};
use sooner_postgres::auth::{Md5Salt, Secret};
use sooner_postgres::parameters::Parameters;
use sooner_postgres::wire::{
    BackendMessage, HEADER_BYTES, Look, Malformed, Splitter, Startup, Version, look_at_backend,
    message_of_error, names_of_columns, texts_of_row, write_password, write_query, write_question,
    write_sasl_first,
};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{TcpStream, UnixStream};

/// The longest message before a session is ready.
const MESSAGE_BYTES_MAX: usize = 1 << 16;
const SCRAM: &str = "SCRAM-SHA-256";

/// A new connection, encrypted as its address says.
pub async fn connect(
    address: &ServerAddress,
    tls: Option<&Connector>,
) -> Result<Stream, LoginError> {
    connect_to(address, None, tls).await
}

/// The same, to where another connection has its end, if that is known.
pub async fn connect_to(
    address: &ServerAddress,
    peer: Option<SocketAddr>,
    tls: Option<&Connector>,
) -> Result<Stream, LoginError> {
    match (&address.endpoint, tls) {
        (Endpoint::Tcp(..), None) if address.encryption != Encryption::Disable => {
            // What is to be encrypted is never sent otherwise.
            let words = "nothing is prepared for TLS";
            Err(LoginError::Impossible(words.into()))
        }
        (Endpoint::Tcp(host, port), tls) => {
            let stream = match peer {
                Some(peer) => TcpStream::connect(peer).await?,
                None => TcpStream::connect((host.as_str(), *port)).await?,
            };
            stream.set_nodelay(true)?;
            keep_alive(&stream);
            match tls {
                Some(tls) => tls.encrypt(address, stream).await.map_err(not_encrypted),
                None => Ok(Stream::Tcp(stream)),
            }
        }
        (place @ Endpoint::Unix(..), _) => {
            Ok(Stream::Unix(UnixStream::connect(place.to_string()).await?))
        }
    }
}

/// What a certificate says, or does not, is the same at the next attempt.
fn not_encrypted(error: io::Error) -> LoginError {
    let is_lasting = error.kind() == io::ErrorKind::Unsupported
        || error
            .get_ref()
            .is_some_and(|cause| cause.is::<rustls::Error>());
    if is_lasting {
        LoginError::Impossible(format!("TLS: {error}"))
    } else {
        LoginError::Unreachable(error)
    }
}

/// A peer that is gone without a word is noticed after some minutes of silence.
pub fn keep_alive(stream: &TcpStream) {
    let keepalive = socket2::TcpKeepalive::new()
        .with_time(Duration::from_secs(60))
        .with_interval(Duration::from_secs(20));
    // Without it that is noticed later.
    let _ = socket2::SockRef::from(stream).set_tcp_keepalive(&keepalive);
}

/// What a cancel request to the database has to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerKey {
    pub process_id: i32,
    pub secret: Vec<u8>,
}

/// A session at the database.
pub struct ServerSession {
    pub stream: Stream,
    /// What was read and not looked at.
    pub input: BytesMut,
    pub key: ServerKey,
    pub parameters: Parameters,
    /// What came with the answers to the gate's own commands and is the client's: notifications,
    /// and settings that were reported.
    pub for_client: BytesMut,
    /// What the server has remarked on the last of the gate's own commands.
    pub notices: BytesMut,
}

/// Why there is no session.
#[derive(Debug)]
pub enum LoginError {
    /// It does not answer, or no longer.
    Unreachable(io::Error),
    /// It has no connection left at the moment (53300).
    Full,
    /// A role or a database has as many as its CONNECTION LIMIT (53300): the error as it came.
    AtLimit(Limited, Bytes),
    /// What it has done for others keeps it from a client's settings: a new one would take them.
    Worn,
    /// The database says no: its error as it came.
    Refused(Bytes),
    /// What answers is no database, or wants what is not there.
    Impossible(String),
}

impl fmt::Display for LoginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(error) => error.fmt(f),
            Self::Full => f.write_str("it has no connection left"),
            Self::AtLimit(_, message) => f.write_str(&message_of_error(message)),
            Self::Worn => f.write_str("it has used temporary tables"),
            Self::Refused(_) => f.write_str("it refuses"),
            Self::Impossible(what) => f.write_str(what),
        }
    }
}

impl From<io::Error> for LoginError {
    fn from(error: io::Error) -> Self {
        Self::Unreachable(error)
    }
}

/// Logs a user in to a database; with a secret where one is known.
pub async fn log_in(
    mut stream: Stream,
    user: &str,
    database: &str,
    secret: Option<&LoginSecret>,
) -> Result<ServerSession, LoginError> {
    let (mut out, mut input) = (Vec::new(), BytesMut::new());
    let startup = Startup {
        version: Version::V3_0,
        parameters: [("user", user), ("database", database)]
            .map(|(name, value)| (name.into(), value.into()))
            .to_vec(),
    };
    startup.write(&mut out);
    stream.flush_all(&mut BytesMut::from(&out[..])).await?;
    authenticate(&mut stream, &mut input, user, secret).await?;
    let mut key = ServerKey {
        process_id: 0,
        secret: Vec::new(),
    };
    let mut parameters = Parameters::new();
    loop {
        let message = next(&mut stream, &mut input).await?;
        match read(&message)? {
            BackendMessage::ParameterStatus(status) => {
                parameters.insert(status.name.to_vec(), status.value.to_vec());
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
    Ok(ServerSession {
        stream,
        input,
        key,
        parameters,
        for_client: BytesMut::new(),
        notices: BytesMut::new(),
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

async fn authenticate(
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
                    write_password(&mut out, &[&password[..], b"\0"].concat());
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
                    return Err(odd("it offers no SASL mechanism that the gate supports"));
                }
                return scram(stream, input, user, secret).await;
            }
            BackendMessage::Authentication(code, _) => {
                return Err(odd(&format!(
                    "it asks for authentication method {code}, which the gate does not support"
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
    let (exchange, first) = ClientExchange::begin(proof, &random::nonce()?);
    write_sasl_first(&mut out, SCRAM, first.as_bytes());
    stream.flush_all(&mut out).await?;
    let answer = sasl(stream, input, 11).await?;
    let answered =
        hashing::OF_LOGINS.run(exchange.hashes(&answer), move || exchange.answer(&answer));
    let (end, last) = answered
        .await?
        .map_err(|error| odd(&format!("{error}; does the server have another verifier?")))?;
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
        "it wants user {user:?} to authenticate, and the gate does not have {what}"
    ))
}

fn read(message: &Bytes) -> Result<BackendMessage<'_>, LoginError> {
    let read = BackendMessage::read(message[0], &message[HEADER_BYTES..]);
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

/// Rows as text; `None` is NULL.
pub type Rows = Vec<Vec<Option<String>>>;

impl ServerSession {
    /// Runs commands of the gate's own; what it reports is noted, the rest thrown away. An error is
    /// the server's, as it came.
    pub async fn execute(
        &mut self,
        sql: &[u8],
        parameters: &mut Parameters,
    ) -> Result<(), LoginError> {
        let mut out = BytesMut::new();
        write_query(&mut out, sql);
        self.stream.flush_all(&mut out).await?;
        self.read_answer(parameters).await.map(|_| ())
    }

    /// Runs commands of the gate's own; their rows.
    pub async fn query(
        &mut self,
        sql: &[u8],
        parameters: &mut Parameters,
    ) -> Result<Rows, LoginError> {
        let mut out = BytesMut::new();
        write_query(&mut out, sql);
        self.stream.flush_all(&mut out).await?;
        self.read_answer(parameters).await.map(|(_, rows)| rows)
    }

    /// Asks a question with one parameter, all of it text.
    pub async fn query_with(
        &mut self,
        sql: &str,
        parameter: &str,
        parameters: &mut Parameters,
    ) -> Result<Rows, LoginError> {
        let mut out = BytesMut::new();
        write_question(&mut out, sql, parameter);
        self.stream.flush_all(&mut out).await?;
        self.read_answer(parameters).await.map(|(_, rows)| rows)
    }

    /// What comes until the server is ready again: names of columns, and rows.
    pub async fn read_answer(
        &mut self,
        parameters: &mut Parameters,
    ) -> Result<(Vec<String>, Rows), LoginError> {
        let (mut failed, mut columns, mut rows) = (None, Vec::new(), Vec::new());
        self.notices = BytesMut::new();
        loop {
            let message = next(&mut self.stream, &mut self.input).await?;
            let body = &message[HEADER_BYTES..];
            let malformed = |error: Malformed| odd(&error.to_string());
            match message[0] {
                b'T' => columns = names_of_columns(body).map_err(malformed)?,
                b'D' => rows.push(texts_of_row(body).map_err(malformed)?),
                b'A' | b'S' => self.for_client.extend_from_slice(&message),
                b'N' => self.notices.extend_from_slice(&message),
                _ => {}
            }
            match read(&message)? {
                BackendMessage::ParameterStatus(status) => {
                    let (name, value) = (status.name.to_vec(), status.value.to_vec());
                    parameters.insert(name, value);
                }
                BackendMessage::Error(_) => failed = Some(message.clone()),
                BackendMessage::Ready(_) => break,
                _ => {}
            }
        }
        match failed {
            Some(message) => Err(LoginError::Refused(message)),
            None => Ok((columns, rows)),
        }
    }

    /// Ends it, and waits until the server has: its place there is free then.
    pub async fn end(mut self) {
        let mut goodbye = BytesMut::from(&b"X\0\0\0\x04"[..]);
        if self.stream.flush_all(&mut goodbye).await.is_ok() {
            while let Ok(1..) = self.stream.more(&mut self.input).await {
                self.input.clear();
            }
        }
    }

    /// What the server has said when it ended it, or nothing; `None` of one that is not quiet
    /// because the server has told it something else.
    pub fn last_words(&self) -> Option<String> {
        if self.input.is_empty() {
            return Some(String::new());
        }
        let message = Splitter::new(|_| Look::Whole(MESSAGE_BYTES_MAX)).next(&self.input);
        let message = message.ok().flatten()?.bytes;
        let is_end = message.first() == Some(&b'E');
        is_end.then(|| message_of_error(message))
    }

    /// Whether it is open and nothing has come unasked.
    pub fn is_quiet(&mut self) -> bool {
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        self.input.is_empty() && self.stream.poll_more(&mut cx, &mut self.input).is_pending()
    }
}
