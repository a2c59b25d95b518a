//! The beginning of a client: what it wants, whether it may have that, and the proof of who it is.

use std::time::Instant;

use bytes::{Buf, BytesMut};

use super::arrivals::{Guest, Login};
use super::auth_query::{self, Found};
use super::login::LoginSecret;
use super::prove::Asked;
use super::refusal::Refusal;
use super::settings::Settings;
use super::shared::Shared;
use super::stream::Stream;
use super::verifiers::Source;
use super::{cancel, tls};
use crate::config::{AuthMethod, Client, OWN_DATABASES, demand};
use sooner_postgres::auth::Secret;
use sooner_postgres::auth::mock::{self, Kind};
use sooner_postgres::parameters::RequestedParameters;
use sooner_postgres::wire::{FirstPacket, Startup, Version, write_negotiate_version};

const NO_ENCRYPTION: &[u8] = b"N";
const ENCRYPTION: &[u8] = b"S";

/// A session that a client wants, and has proved that it may have.
pub struct Greeted {
    /// Its place among all clients, or among those in the gate's own database.
    pub guest: Guest,
    pub stream: Stream,
    pub user: String,
    /// As the client calls it.
    pub database: String,
    pub wanted: RequestedParameters,
    /// What logs in as it elsewhere.
    pub proof: Option<LoginSecret>,
    pub version: Version,
}

/// A client that is not let in, and the connection on which it can be told.
pub struct Refused {
    pub stream: Option<Stream>,
    pub refusal: Refusal,
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        let stream = None;
        Self { stream, refusal }
    }
}

/// Finds out what a client wants and who it is; `None` where it wanted something else, which is done.
pub async fn greet(
    shared: &Shared,
    stream: Stream,
    input: &mut BytesMut,
    login: &Login,
) -> Result<Option<Greeted>, Refused> {
    let came_at = Instant::now();
    let mut stream = begin(shared, stream).await?;
    let mut is_silent = true;
    let startup = loop {
        let packet = match first_packet(&mut stream, input).await {
            Ok(packet) => packet,
            // Somebody who only wanted to know whether the gate is there.
            Err(_) if is_silent && input.is_empty() => return Ok(None),
            Err(refusal) => return Err(told(stream, refusal)),
        };
        is_silent = false;
        match packet {
            FirstPacket::EncryptByTls => stream = encrypt(shared, stream, input).await?,
            FirstPacket::EncryptByGss => {
                send(&mut stream, &mut BytesMut::from(NO_ENCRYPTION)).await?;
            }
            FirstPacket::DirectTls => {
                let words = "TLS is not spoken here: use sslmode=disable";
                return Err(told(stream, Refusal::of_protocol(words)));
            }
            FirstPacket::Cancel { process_id, secret } => {
                let cancel = cancel::cancel(shared, process_id, &secret, came_at);
                login.busy(cancel).await;
                return Ok(None);
            }
            FirstPacket::Startup(startup) => break startup,
        }
    };
    match let_in(shared, &mut stream, input, &startup, login).await {
        Ok((wanted, proof, guest)) => Ok(Some(Greeted {
            guest,
            stream,
            user: startup.user().to_owned(),
            database: startup.database().to_owned(),
            wanted,
            proof,
            version: startup.version.min(Version::V3_2),
        })),
        Err(refusal) => Err(told(stream, refusal)),
    }
}

fn told(stream: Stream, refusal: Refusal) -> Refused {
    let stream = Some(stream);
    Refused { stream, refusal }
}

/// Encrypts at once where the client's first byte begins a handshake.
async fn begin(shared: &Shared, stream: Stream) -> Result<Stream, Refusal> {
    let (Stream::Tcp(tcp), Some(config)) = (&stream, &shared.settings().tls) else {
        return Ok(stream);
    };
    let is_direct = tls::begins_at_once(tcp)
        .await
        .map_err(|_| Refusal::gone())?;
    match stream {
        Stream::Tcp(tcp) if is_direct => {
            let encrypted = tls::accept(config.clone(), tcp, true).await;
            encrypted.map_err(|error| Refusal::of_protocol(&format!("TLS: {error}")))
        }
        stream => Ok(stream),
    }
}

/// The client asks for encryption: it gets it, or a no.
async fn encrypt(shared: &Shared, mut stream: Stream, input: &BytesMut) -> Result<Stream, Refusal> {
    let config = shared.settings().tls.clone();
    let is_clear = matches!(stream, Stream::Tcp(_));
    let (Some(config), true) = (config, is_clear) else {
        send(&mut stream, &mut BytesMut::from(NO_ENCRYPTION)).await?;
        return Ok(stream);
    };
    if !input.is_empty() {
        let words = "clear text behind the request for TLS: somebody is between client and gate";
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
            return Err(Refusal::gone());
        }
    }
}

/// What the client wants besides its name and database, what logs in as it elsewhere, and its place among all clients.
async fn let_in(
    shared: &Shared,
    stream: &mut Stream,
    input: &mut BytesMut,
    startup: &Startup,
    login: &Login,
) -> Result<(RequestedParameters, Option<LoginSecret>, Guest), Refusal> {
    negotiate(stream, startup).await?;
    let wanted = RequestedParameters::read(startup).map_err(Refusal::unsupported)?;
    if let Some((sqlstate, words)) = wanted.forbidden(startup.user()) {
        return Err(Refusal::forbidden(sqlstate, words));
    }
    let settings = shared.settings();
    let (user, database) = (startup.user(), startup.database());
    let is_own = OWN_DATABASES.contains(&database);
    // Before anything is computed or looked up for it; whoever wants to see what is wrong comes in all the same.
    let place = match is_own {
        true => Ok(()),
        false => login.has_place(shared.bounds()),
    };
    place.map_err(Refusal::full)?;
    let guest = |is_own| match is_own {
        true => login.console().map_err(Refusal::full),
        false => login.guest(shared.bounds()).map_err(Refusal::full),
    };
    let client = Client {
        user,
        database,
        address: stream.peer().map(|peer| peer.ip()),
        transport: stream.transport(),
    };
    if is_own && OWN_DATABASES.contains(&user) && stream.is_own_user() {
        // Whoever runs the gate could do everything that is done there anyway.
        return Ok((wanted, None, guest(is_own)?));
    }
    let config = &settings.config;
    let method = demand(&config.rule, config.auth, client);
    if method == AuthMethod::Reject {
        let from = client.address.map(|address| address.to_string());
        let from = from.unwrap_or_else(|| "a socket file".into());
        return Err(Refusal::not_allowed(user, database, &from));
    }
    let (secret, source) = login.busy(known(shared, &settings, client, method)).await;
    let (could_ask, source) = match source {
        Some(source) => (true, source),
        None => (false, Source::Mock),
    };
    let mut asked = Asked {
        stream,
        input,
        user,
        secret: &secret,
        source,
        nobodys_secret: &shared.nobodys_secret,
        verifiers: &shared.verifiers,
    };
    match asked.prove(method).await {
        // Others may have come while it proved who it is.
        Ok(proof) => Ok((wanted, proof, guest(is_own)?)),
        // It may have been right.
        Err(refusal) if !could_ask && refusal.is_of_proof() => Err(Refusal::not_looked_up()),
        Err(refusal) => Err(refusal),
    }
}

/// What a client has to prove, and whence that is: `None` where the database could not be asked. Of a user whom nobody knows, it is what such a
/// user might have, and the way to it is the same.
async fn known(
    shared: &Shared,
    settings: &Settings,
    client: Client<'_>,
    method: AuthMethod,
) -> (Secret, Option<Source>) {
    let Client { user, database, .. } = client;
    let of_file = settings.users.get(user);
    let mut source = Some(Source::Mock);
    match of_file {
        Some(_) if method.needs_secret() => {
            auth_query::ask_all_the_same(shared, user, database).await;
        }
        None if method.needs_secret() => match auth_query::look_up(shared, user, database).await {
            Found::Secret(Some(secret)) => {
                shared.last_kind.set(Some(Kind::of(&secret)));
                return (secret, Some(Source::Lookup));
            }
            Found::Secret(None) => {}
            Found::Nothing => source = None,
        },
        _ => {}
    }
    if let Some(secret) = of_file {
        return (secret.clone(), Some(Source::File));
    }
    let key = &shared.nobodys_secret;
    let kind = mock::kind_for(&settings.kinds, key, user);
    let kind = shared.last_kind.get().or(kind).unwrap_or(Kind::USUAL);
    (mock::secret(kind, key, user), source)
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

async fn send(stream: &mut Stream, out: &mut BytesMut) -> Result<(), Refusal> {
    stream.flush_all(out).await.map_err(|_| Refusal::gone())
}
