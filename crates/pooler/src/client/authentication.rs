//! A client's proof of who it is, as its rule demands it.

use crate::client::refusal::Refusal;
use crate::client::verifiers::{SecretSource, Verifiers};
use crate::config::AuthMethod;
use crate::hashing;
use crate::pool::server_session::LoginSecret;
use crate::random;
use crate::stream::Stream;
use bytes::{Bytes, BytesMut};
use sooner_postgres::auth::scram::{Proof, ScramError, ServerExchange};
use sooner_postgres::auth::{Md5Salt, Secret};
use sooner_postgres::wire::{FrameError, HEADER_BYTES, Look, Splitter, write_authentication};
use std::cell::RefCell;

/// Answers to requests for a proof.
const PROOF_BYTES_MAX: usize = 1 << 16;
const SCRAM_OFFER: &[u8] = b"SCRAM-SHA-256\0\0";

/// A client that has to prove who it is.
pub struct Authentication<'a> {
    pub stream: &'a mut Stream,
    pub input: &'a mut BytesMut,
    pub user: &'a str,
    /// What it has to prove to know.
    pub secret: &'a Secret,
    /// Whence that is; whatever a client proves to know of a mocked one is wrong.
    pub source: SecretSource,
    /// For what has to be the same at each attempt, and cannot be guessed.
    pub mock_secret: &'a [u8; 32],
    /// Of those who have come before.
    pub verifiers: &'a RefCell<Verifiers>,
}

impl Authentication<'_> {
    /// Has the client prove who it is; what logs in as it elsewhere.
    pub async fn run(&mut self, method: AuthMethod) -> Result<Option<LoginSecret>, Refusal> {
        let is_known = self.source != SecretSource::Mock;
        let kept = is_known.then(|| LoginSecret::Kept(self.secret.clone()));
        match method {
            AuthMethod::Trust => Ok(kept),
            AuthMethod::Reject => Err(Refusal::wrong(self.user)),
            AuthMethod::Certificate => {
                let certificate = self.stream.certificate();
                let certificate = certificate.ok_or_else(Refusal::no_certificate)?;
                match sooner_tls::common_name_of(certificate) {
                    Some(name) if name == self.user => Ok(kept),
                    _ => Err(Refusal::wrong_certificate(self.user)),
                }
            }
            AuthMethod::Password => self.password().await,
            AuthMethod::Md5 if !matches!(self.secret, Secret::Scram(_)) => {
                self.md5().await?;
                Ok(kept)
            }
            AuthMethod::Scram | AuthMethod::Md5 => {
                let learned = self.scram().await?;
                Ok(Some(match kept {
                    Some(LoginSecret::Kept(Secret::Plain(password))) => {
                        LoginSecret::Kept(Secret::Plain(password))
                    }
                    _ => LoginSecret::Learned(learned),
                }))
            }
        }
    }

    async fn password(&mut self) -> Result<Option<LoginSecret>, Refusal> {
        self.ask(3, b"").await?;
        let password = text(&self.answer().await?)?;
        // Held against what is mocked as well, which takes as long.
        let (secret, user) = (self.secret.clone(), self.user.to_owned());
        let said = password.clone();
        let compared = hashing::OF_CLIENTS.run(self.secret.hashes(), move || {
            secret.is_password(&user, &said)
        });
        let is_right = compared.await.map_err(|error| Refusal::internal(&error))?;
        if is_right && self.source != SecretSource::Mock {
            Ok(Some(LoginSecret::Kept(Secret::Plain(password))))
        } else {
            Err(Refusal::wrong(self.user))
        }
    }

    async fn md5(&mut self) -> Result<(), Refusal> {
        let salt = random::bytes().map_err(|error| Refusal::internal(&error))?;
        self.ask(5, &salt).await?;
        let said = text(&self.answer().await?)?;
        let is_right = Md5Salt(salt).is_answer(self.user, self.secret, &said);
        if is_right && self.source != SecretSource::Mock {
            Ok(())
        } else {
            Err(Refusal::wrong(self.user))
        }
    }

    async fn scram(&mut self) -> Result<Proof, Refusal> {
        let ours = |error: std::io::Error| Refusal::internal(&error);
        let user = self.user;
        let refused = |error: ScramError| match error {
            ScramError::Wrong => Refusal::wrong(user),
            ScramError::Malformed(_) | ScramError::TooOften => {
                Refusal::of_protocol(&error.to_string())
            }
        };
        self.ask(10, SCRAM_OFFER).await?;
        let first = self.answer().await?;
        let first = sasl_first(&first)
            .ok_or_else(|| Refusal::of_protocol("the first step of SASL is malformed"))?;
        let nonce = random::nonce().map_err(ours)?;
        let verifier = {
            let mut verifiers = self.verifiers.borrow_mut();
            verifiers.of(user, self.secret, self.source, self.mock_secret)
        };
        let (exchange, said) = ServerExchange::begin(first, verifier, &nonce).map_err(refused)?;
        self.ask(11, said.as_bytes()).await?;
        let last = self.answer().await?;
        let (said, keys) = exchange.end(&last).map_err(refused)?;
        if self.source == SecretSource::Mock {
            return Err(Refusal::wrong(user));
        }
        self.ask(12, said.as_bytes()).await?;
        Ok(Proof::Keys(keys))
    }

    async fn ask(&mut self, code: i32, payload: &[u8]) -> Result<(), Refusal> {
        let mut out = BytesMut::new();
        write_authentication(&mut out, code, payload);
        let sent = self.stream.flush_all(&mut out).await;
        sent.map_err(|_| Refusal::left())
    }

    /// The body of the client's answer.
    async fn answer(&mut self) -> Result<Bytes, Refusal> {
        let look = |tag| match tag {
            b'p' => Look::Whole(PROOF_BYTES_MAX),
            _ => Look::Unknown,
        };
        loop {
            let broke = |error: FrameError| {
                Refusal::of_protocol(&format!(
                    "the answer to an authentication request is malformed: {error}"
                ))
            };
            let piece = Splitter::new(look).next(self.input).map_err(broke)?;
            let length = piece.map(|piece| piece.bytes.len());
            if let Some(length) = length {
                return Ok(self.input.split_to(length).freeze().slice(HEADER_BYTES..));
            }
            if !matches!(self.stream.more(self.input).await, Ok(1..)) {
                return Err(Refusal::left());
            }
        }
    }
}

/// The mechanism's data in the first step of SASL.
fn sasl_first(body: &[u8]) -> Option<&[u8]> {
    let data = body.strip_prefix(b"SCRAM-SHA-256\0")?;
    let (length, data) = data.split_first_chunk::<4>()?;
    (usize::try_from(i32::from_be_bytes(*length)).ok()? == data.len()).then_some(data)
}

/// A password or its like, without its zero: of any bytes, as in PostgreSQL.
fn text(body: &[u8]) -> Result<Vec<u8>, Refusal> {
    let text = body.strip_suffix(b"\0").filter(|text| !text.contains(&0));
    text.map(<[u8]>::to_vec)
        .ok_or_else(|| Refusal::of_protocol("a password is malformed"))
}
