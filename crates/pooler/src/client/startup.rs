//! The startup of a client: what it wants, whether it may have that, and the proof of who it is.

use crate::client::auth_query::{self, LookupResult};
use crate::client::authentication::Authentication;
use crate::client::cancel;
use crate::client::refusal::Refusal;
use crate::client::slots::{ClientSlot, LoginSlot};
use crate::client::verifiers::SecretSource;
use crate::config::{AuthMethod, LoginAttempt, OWN_DATABASES, required_auth};
use crate::configuration::Configuration;
use crate::pool::server_session::LoginSecret;
use crate::pooler::Pooler;
use crate::stream::Stream;
use crate::tls;
use bytes::{Buf, BytesMut};
use sooner_postgres::auth::Secret;
use sooner_postgres::auth::mock::{self, Kind};
use sooner_postgres::parameters::{RequestedParameters, wants_replication};
use sooner_postgres::wire::{FirstPacket, Startup, Version, write_negotiate_version};
use std::time::Instant;

const NO_ENCRYPTION: &[u8] = b"N";
const ENCRYPTION: &[u8] = b"S";

/// A session that a client wants, and has proved that it may have.
pub struct AuthenticatedClient {
    /// Its place among all clients, or among those in the gate's own database.
    pub client_slot: ClientSlot,
    pub stream: Stream,
    pub user: String,
    /// As the client calls it.
    pub database: String,
    pub requested: RequestedParameters,
    /// What logs in as it elsewhere.
    pub proof: Option<LoginSecret>,
    pub version: Version,
}

/// A client that is not let in, and the connection on which it can be told.
pub struct StartupFailure {
    pub stream: Option<Stream>,
    pub refusal: Refusal,
}

impl From<Refusal> for StartupFailure {
    fn from(refusal: Refusal) -> Self {
        let stream = None;
        Self { stream, refusal }
    }
}

/// Finds out what a client wants and who it is; `None` where it wanted something else, which is
/// done.
pub async fn start_up(
    pooler: &Pooler,
    stream: Stream,
    input: &mut BytesMut,
    login_slot: &LoginSlot,
) -> Result<Option<AuthenticatedClient>, StartupFailure> {
    let came_at = Instant::now();
    let mut stream = begin(pooler, stream).await?;
    let mut is_silent = true;
    let startup = loop {
        let packet = match first_packet(&mut stream, input).await {
            Ok(packet) => packet,
            // A probe of whether the gate is there.
            Err(_) if is_silent && input.is_empty() => return Ok(None),
            Err(refusal) => return Err(failed(stream, refusal)),
        };
        is_silent = false;
        match packet {
            FirstPacket::EncryptByTls => stream = encrypt(pooler, stream, input).await?,
            FirstPacket::EncryptByGss => {
                send(&mut stream, &mut BytesMut::from(NO_ENCRYPTION)).await?;
            }
            FirstPacket::DirectTls => {
                let words = "TLS is not spoken here: use sslmode=disable";
                return Err(failed(stream, Refusal::of_protocol(words)));
            }
            FirstPacket::Cancel { process_id, secret } => {
                let cancel = cancel::cancel(pooler, process_id, &secret, came_at);
                login_slot.busy(cancel).await;
                return Ok(None);
            }
            FirstPacket::Startup(startup) => break startup,
        }
    };
    match authenticate(pooler, &mut stream, input, &startup, login_slot).await {
        Ok((requested, proof, client_slot)) => Ok(Some(AuthenticatedClient {
            client_slot,
            stream,
            user: startup.user().to_owned(),
            database: startup.database().to_owned(),
            requested,
            proof,
            version: startup.version.min(Version::V3_2),
        })),
        Err(refusal) => Err(failed(stream, refusal)),
    }
}

fn failed(stream: Stream, refusal: Refusal) -> StartupFailure {
    let stream = Some(stream);
    StartupFailure { stream, refusal }
}

/// Encrypts at once where the client's first byte begins a handshake.
async fn begin(pooler: &Pooler, stream: Stream) -> Result<Stream, Refusal> {
    let (Stream::Tcp(tcp), Some(config)) = (&stream, &pooler.configuration().tls) else {
        return Ok(stream);
    };
    let is_direct = tls::begins_at_once(tcp).await;
    match stream {
        Stream::Tcp(tcp) if is_direct => {
            let encrypted = tls::accept(config.clone(), tcp, true).await;
            encrypted.map_err(|error| Refusal::of_protocol(&format!("TLS: {error}")))
        }
        stream => Ok(stream),
    }
}

/// The client asks for encryption: it gets it, or a no.
async fn encrypt(pooler: &Pooler, mut stream: Stream, input: &BytesMut) -> Result<Stream, Refusal> {
    let config = pooler.configuration().tls.clone();
    let is_clear = matches!(stream, Stream::Tcp(_));
    let (Some(config), true) = (config, is_clear) else {
        send(&mut stream, &mut BytesMut::from(NO_ENCRYPTION)).await?;
        return Ok(stream);
    };
    if !input.is_empty() {
        let words =
            "clear text behind the request for TLS: another party stands between client and gate";
        return Err(Refusal::of_protocol(words));
    }
    send(&mut stream, &mut BytesMut::from(ENCRYPTION)).await?;
    match stream {
        Stream::Tcp(tcp) => {
            let encrypted = tls::accept(config, tcp, false).await;
            encrypted.map_err(|error| Refusal::of_protocol(&format!("TLS: {error}")))
        }
        stream => Ok(stream),
    }
}

async fn first_packet(stream: &mut Stream, input: &mut BytesMut) -> Result<FirstPacket, Refusal> {
    loop {
        let read = FirstPacket::read(input).map_err(|error| Refusal::of_startup(&error))?;
        if let Some((packet, taken_bytes)) = read {
            input.advance(taken_bytes);
            return Ok(packet);
        }
        if !matches!(stream.more(input).await, Ok(1..)) {
            return Err(Refusal::left());
        }
    }
}

/// What the client wants besides its name and database, what logs in as it elsewhere, and its place
/// among all clients.
async fn authenticate(
    pooler: &Pooler,
    stream: &mut Stream,
    input: &mut BytesMut,
    startup: &Startup,
    login_slot: &LoginSlot,
) -> Result<(RequestedParameters, Option<LoginSecret>, ClientSlot), Refusal> {
    negotiate(stream, startup).await?;
    wants_replication(startup).map_err(|unknown| Refusal::unknown_replication(&unknown))?;
    let requested = RequestedParameters::read(startup).map_err(Refusal::unsupported)?;
    if let Some((sqlstate, words)) = requested.forbidden(startup.user()) {
        return Err(Refusal::forbidden(sqlstate, words));
    }
    let configuration = pooler.configuration();
    let (user, database) = (startup.user(), startup.database());
    let is_own = OWN_DATABASES.contains(&database);
    if pooler.is_stopping() && !is_own {
        return Err(Refusal::stopping());
    }
    // Before anything is computed or looked up for it; the console is open all the same, to see
    // what is wrong.
    let place = if is_own {
        Ok(())
    } else {
        login_slot.has_room(pooler.slot_limits())
    };
    place.map_err(Refusal::full)?;
    let client_slot = |is_own| {
        if is_own {
            login_slot.console().map_err(Refusal::full)
        } else {
            login_slot
                .client(pooler.slot_limits())
                .map_err(Refusal::full)
        }
    };
    let client = LoginAttempt {
        user,
        database,
        address: stream.peer().map(|peer| peer.ip()),
        transport: stream.transport(),
    };
    if is_own && OWN_DATABASES.contains(&user) && stream.is_own_user() {
        // The user that runs the gate could do all of that anyway.
        return Ok((requested, None, client_slot(is_own)?));
    }
    let config = &configuration.config;
    let method = required_auth(&config.rule, config.auth, client);
    if method == AuthMethod::Reject {
        let from = client.address.map(|address| address.to_string());
        let from = from.unwrap_or_else(|| "a socket file".into());
        return Err(Refusal::not_allowed(user, database, &from));
    }
    let (secret, source) = login_slot
        .busy(secret_of(pooler, &configuration, client, method))
        .await;
    let (could_ask, source) = match source {
        Some(source) => (true, source),
        None => (false, SecretSource::Mock),
    };
    let mut authentication = Authentication {
        stream,
        input,
        user,
        secret: &secret,
        source,
        mock_secret: &pooler.mock_secret,
        verifiers: &pooler.verifiers,
    };
    match authentication.run(method).await {
        // Others may have come while it proved who it is.
        Ok(proof) => Ok((requested, proof, client_slot(is_own)?)),
        // It may have been right.
        Err(refusal) if !could_ask && refusal.is_of_proof() => Err(Refusal::not_looked_up()),
        Err(refusal) => Err(refusal),
    }
}

/// What a client has to prove, and whence that is: `None` where the database could not be asked. Of
/// an unknown user, it is what such a user might have, and the way to it is the same.
async fn secret_of(
    pooler: &Pooler,
    configuration: &Configuration,
    client: LoginAttempt<'_>,
    method: AuthMethod,
) -> (Secret, Option<SecretSource>) {
    let LoginAttempt { user, database, .. } = client;
    let of_file = configuration.users.get(user);
    let mut source = Some(SecretSource::Mock);
    match of_file {
        Some(_) if method.needs_secret() => {
            auth_query::ask_all_the_same(pooler, user, database).await;
        }
        None if method.needs_secret() => match auth_query::look_up(pooler, user, database).await {
            LookupResult::Secret(Some(secret)) => {
                pooler.last_kind.set(Some(Kind::of(&secret)));
                return (secret, Some(SecretSource::Lookup));
            }
            LookupResult::Secret(None) => {}
            LookupResult::Nothing => source = None,
        },
        _ => {}
    }
    if let Some(secret) = of_file {
        return (secret.clone(), Some(SecretSource::File));
    }
    let key = &pooler.mock_secret;
    let kind = mock::kind_for(&configuration.kinds, key, user);
    let kind = pooler.last_kind.get().or(kind).unwrap_or(Kind::USUAL);
    (mock::secret(kind, key, user), source)
}

/// Says what of a newer protocol is not spoken.
async fn negotiate(stream: &mut Stream, startup: &Startup) -> Result<(), Refusal> {
    let unknown: Vec<&[u8]> = startup.unknown_extensions().collect();
    if startup.version <= Version::V3_2 && unknown.is_empty() {
        return Ok(());
    }
    let mut out = BytesMut::new();
    write_negotiate_version(&mut out, startup.version.min(Version::V3_2), &unknown);
    send(stream, &mut out).await
}

async fn send(stream: &mut Stream, out: &mut BytesMut) -> Result<(), Refusal> {
    stream.flush_all(out).await.map_err(|_| Refusal::left())
}
