//! The beginning of a client: what it wants, and the proof of who it is.

use std::fmt;

use bytes::{Buf, Bytes, BytesMut};

use super::login::{LoginError, LoginSecret, ServerAddress};
use super::pool::Owner;
use super::stream::Stream;
use super::{AuthMethod, Shared, cancel, system_random};
use crate::auth::scram::{Proof, ScramError, ServerExchange, Verifier, salt_of};
use crate::auth::{Md5Salt, Secret};
use crate::settings::Wanted;
use crate::wire::{
    ErrorReport, FirstPacket, FrameError, HEADER_BYTES, Look, Splitter, Startup, Version,
    write_authentication, write_error, write_negotiate_version,
};

/// Answers to requests for a proof.
const PROOF_BYTES_MAX: usize = 1 << 16;
const NO_ENCRYPTION: &[u8] = b"N";
const SCRAM_OFFER: &[u8] = b"SCRAM-SHA-256\0\0";

/// A session that a client wants, and has proved that it may have.
pub struct Greeted {
    pub owner: Owner,
    pub wanted: Wanted,
    /// What logs in as it elsewhere.
    pub proof: Option<LoginSecret>,
    pub version: Version,
}

/// Why a client is sent away.
#[derive(Debug)]
pub struct Refusal {
    told: Told,
    sqlstate: &'static str,
    message: String,
    hint: Option<&'static str>,
}

#[derive(Debug)]
enum Told {
    ByUs,
    /// In the server's own words.
    ByServer(Bytes),
    /// It is gone.
    Nothing,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Refusal {
    fn new(sqlstate: &'static str, message: String, hint: Option<&'static str>) -> Self {
        let told = Told::ByUs;
        Self {
            told,
            sqlstate,
            message,
            hint,
        }
    }

    /// There are too many clients.
    pub fn full(clients_max: usize) -> Self {
        let message = format!("{clients_max} clients are here already, and no more may come");
        Self::new("53300", message, Some("raise --clients-max"))
    }

    /// The gate's own machine fails it.
    pub fn ours(error: &std::io::Error) -> Self {
        Self::new("58030", format!("the gate cannot go on: {error}"), None)
    }

    /// It has sent what cannot be understood.
    pub fn of_protocol(what: &str) -> Self {
        Self::new("08P01", what.to_owned(), None)
    }

    /// The server connection was lost in the middle of its turn.
    pub fn lost(what: &str) -> Self {
        let message = format!("the connection to the database was lost: {what}");
        let hint = "a transaction that was not yet committed was not; connect again";
        Self::new("08006", message, Some(hint))
    }

    /// There is no server connection for it.
    pub fn of_login(error: LoginError, address: &ServerAddress, owner: &Owner) -> Self {
        let Owner { user, database } = owner;
        match error {
            LoginError::Unreachable(error) => Self::new(
                "08001",
                format!("the database at {address} does not answer: {error}"),
                Some("is it running, and is --backend right?"),
            ),
            LoginError::Impossible(what) => {
                Self::new("08004", format!("cannot log in at {address}: {what}"), None)
            }
            LoginError::Refused(message) => Self {
                told: Told::ByServer(message),
                sqlstate: "08004",
                message: format!(
                    "the database at {address} refuses user {user:?} for {database:?}"
                ),
                hint: None,
            },
        }
    }

    fn gone() -> Self {
        let told = Told::Nothing;
        Self {
            told,
            ..Self::new(
                "08006",
                "a client left before it said who it is".into(),
                None,
            )
        }
    }

    fn wrong(user: &str) -> Self {
        let message = format!("password authentication failed for user \"{user}\"");
        Self::new("28P01", message, None)
    }

    /// What the client is told.
    pub fn write(&self, out: &mut BytesMut) {
        match &self.told {
            Told::Nothing => {}
            Told::ByServer(message) => out.extend_from_slice(message),
            Told::ByUs => {
                let report = ErrorReport {
                    severity: "FATAL",
                    sqlstate: self.sqlstate,
                    message: &self.message,
                    hint: self.hint,
                };
                write_error(out, &report);
            }
        }
    }
}

/// Finds out what a client wants and who it is; `None` where it wanted something else, which is done.
pub async fn greet(
    shared: &Shared,
    stream: &mut Stream,
    input: &mut BytesMut,
) -> Result<Option<Greeted>, Refusal> {
    let startup = loop {
        let read = FirstPacket::read(input);
        let read = read.map_err(|error| Refusal::new(error.sqlstate(), error.to_string(), None))?;
        let Some((packet, taken_bytes)) = read else {
            more(stream, input).await?;
            continue;
        };
        input.advance(taken_bytes);
        match packet {
            FirstPacket::EncryptByTls | FirstPacket::EncryptByGss => {
                send(stream, &mut BytesMut::from(NO_ENCRYPTION)).await?;
            }
            FirstPacket::DirectTls => {
                let words = "TLS is not spoken here: use sslmode=disable";
                return Err(Refusal::of_protocol(words));
            }
            FirstPacket::Cancel { process_id, secret } => {
                cancel::cancel(shared, process_id, &secret).await;
                return Ok(None);
            }
            FirstPacket::Startup(startup) => break startup,
        }
    };
    negotiate(stream, &startup).await?;
    let wanted = Wanted::read(&startup).map_err(|what| Refusal::new("0A000", what, None))?;
    let proof = prove(shared, stream, input, startup.user()).await?;
    Ok(Some(Greeted {
        owner: Owner {
            user: startup.user().to_owned(),
            database: startup.database().to_owned(),
        },
        wanted,
        proof,
        version: startup.version.min(Version::V3_2),
    }))
}

/// Says what of a newer protocol is not spoken.
async fn negotiate(stream: &mut Stream, startup: &Startup) -> Result<(), Refusal> {
    let unknown: Vec<&str> = startup.unknown_extensions().collect();
    if startup.version <= Version::V3_2 && unknown.is_empty() {
        return Ok(());
    }
    let mut out = BytesMut::new();
    write_negotiate_version(&mut out, startup.version.min(Version::V3_2), &unknown);
    send(stream, &mut out).await
}

/// Has the client prove who it is; what logs in as it elsewhere.
async fn prove(
    shared: &Shared,
    stream: &mut Stream,
    input: &mut BytesMut,
    user: &str,
) -> Result<Option<LoginSecret>, Refusal> {
    let secret = shared.settings.users.get(user);
    let kept = secret.cloned().map(LoginSecret::Kept);
    match (shared.settings.auth, secret) {
        (AuthMethod::Trust, _) => Ok(kept),
        (AuthMethod::Password, secret) => {
            let mut out = BytesMut::new();
            write_authentication(&mut out, 3, b"");
            send(stream, &mut out).await?;
            let password = text(answer(stream, input).await?)?;
            let is_right = secret.is_some_and(|secret| secret.is_password(user, &password));
            is_right.then_some(()).ok_or_else(|| Refusal::wrong(user))?;
            Ok(Some(LoginSecret::Kept(Secret::Plain(password))))
        }
        (AuthMethod::Md5, secret) if !matches!(secret, Some(Secret::Scram(_))) => {
            let salt = system_random::bytes().map_err(|error| Refusal::ours(&error))?;
            let mut out = BytesMut::new();
            write_authentication(&mut out, 5, &salt);
            send(stream, &mut out).await?;
            let said = text(answer(stream, input).await?)?;
            let is_right =
                secret.is_some_and(|secret| Md5Salt(salt).is_answer(user, secret, &said));
            is_right.then_some(()).ok_or_else(|| Refusal::wrong(user))?;
            Ok(kept)
        }
        (AuthMethod::Scram | AuthMethod::Md5, secret) => {
            let learned = scram(shared, stream, input, user, secret).await?;
            Ok(Some(match kept {
                Some(LoginSecret::Kept(Secret::Plain(password))) => {
                    LoginSecret::Kept(Secret::Plain(password))
                }
                _ => LoginSecret::Learned(learned),
            }))
        }
    }
}

async fn scram(
    shared: &Shared,
    stream: &mut Stream,
    input: &mut BytesMut,
    user: &str,
    secret: Option<&Secret>,
) -> Result<Proof, Refusal> {
    let ours = |error: std::io::Error| Refusal::ours(&error);
    let refused = |error: ScramError| match error {
        ScramError::Wrong => Refusal::wrong(user),
        ScramError::Malformed(_) => Refusal::of_protocol(&error.to_string()),
    };
    let mut out = BytesMut::new();
    write_authentication(&mut out, 10, SCRAM_OFFER);
    send(stream, &mut out).await?;
    let salt = salt_of(&shared.nobodys_secret, user);
    let verifier = secret.and_then(|secret| secret.as_verifier(salt));
    let verifier = verifier.unwrap_or_else(|| Verifier::of_nobody(&shared.nobodys_secret, user));
    let first = answer(stream, input).await?;
    let first = sasl_first(&first)
        .ok_or_else(|| Refusal::of_protocol("the first step of SASL is malformed"))?;
    let nonce = system_random::nonce().map_err(ours)?;
    let (exchange, said) = ServerExchange::begin(first, verifier, &nonce).map_err(refused)?;
    write_authentication(&mut out, 11, said.as_bytes());
    send(stream, &mut out).await?;
    let last = answer(stream, input).await?;
    let (said, keys) = exchange.end(&last).map_err(refused)?;
    write_authentication(&mut out, 12, said.as_bytes());
    send(stream, &mut out).await?;
    Ok(Proof::Keys(keys))
}

/// The mechanism's data in the first step of SASL.
fn sasl_first(body: &[u8]) -> Option<&[u8]> {
    let data = body.strip_prefix(b"SCRAM-SHA-256\0")?;
    let (length, data) = data.split_first_chunk::<4>()?;
    (usize::try_from(i32::from_be_bytes(*length)).ok()? == data.len()).then_some(data)
}

/// A password or its like, without its zero.
fn text(body: Bytes) -> Result<String, Refusal> {
    let text = body
        .strip_suffix(b"\0")
        .and_then(|text| str::from_utf8(text).ok());
    text.map(str::to_owned)
        .ok_or_else(|| Refusal::of_protocol("a password is malformed"))
}

/// The body of the client's answer.
async fn answer(stream: &mut Stream, input: &mut BytesMut) -> Result<Bytes, Refusal> {
    let look = |tag| match tag {
        b'p' => Look::Whole(PROOF_BYTES_MAX),
        _ => Look::Unknown,
    };
    loop {
        let broke =
            |error: FrameError| Refusal::of_protocol(&format!("a proof is asked for: {error}"));
        let piece = Splitter::new(look).next(input).map_err(broke)?;
        let length = piece.map(|piece| piece.bytes.len());
        match length {
            Some(length) => return Ok(input.split_to(length).freeze().slice(HEADER_BYTES..)),
            None => more(stream, input).await?,
        }
    }
}

async fn more(stream: &mut Stream, input: &mut BytesMut) -> Result<(), Refusal> {
    match stream.more(input).await {
        Ok(1..) => Ok(()),
        _ => Err(Refusal::gone()),
    }
}

async fn send(stream: &mut Stream, out: &mut BytesMut) -> Result<(), Refusal> {
    stream.flush_all(out).await.map_err(|_| Refusal::gone())
}
