//! What is spoken: flags that the subcommands have in common.

use clap::Args;
use sooner_load::pool::Reuse;
use sooner_load::tls::TlsOptions;
use std::num::NonZeroU32;
use std::path::PathBuf;

/// What is spoken.
#[derive(Args)]
pub struct ProtocolArgs {
    /// Accept any certificate of an https:// server: for test servers with a self-signed one.
    #[arg(long, conflicts_with = "ca")]
    insecure: bool,
    /// PEM file of the certificate authorities to trust instead of the system's.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Resume TLS sessions where the server offers it; without, every new connection makes the
    /// whole handshake.
    #[arg(long)]
    resume: bool,
    /// Speak HTTP/2: agreed in the TLS handshake, or known beforehand for an http:// server.
    #[arg(long)]
    http2: bool,
    /// At most N requests at a time on an HTTP/2 connection; one more opens another connection
    /// [default: 1].
    #[arg(long, value_name = "N", requires = "http2")]
    streams: Option<NonZeroU32>,
}

impl ProtocolArgs {
    /// How TLS connections are made.
    pub fn tls(&self) -> TlsOptions {
        TlsOptions {
            insecure: self.insecure,
            authorities: self.ca.clone(),
            resume: self.resume,
            http2: self.http2,
        }
    }

    /// Streams at a time on a connection; `None`: HTTP/1.1.
    pub fn http2_streams(&self) -> Option<NonZeroU32> {
        self.http2.then(|| self.streams.unwrap_or(NonZeroU32::MIN))
    }

    /// What to do with connections in a replay; `asked` is the requested number of requests on
    /// each.
    pub fn reuse(&self, asked: Option<NonZeroU32>) -> Reuse {
        let otherwise = match self.streams {
            Some(_) => NonZeroU32::MAX,
            None => NonZeroU32::MIN,
        };
        Reuse {
            requests_per_connection: asked.unwrap_or(otherwise),
            http2_streams: self.http2_streams(),
        }
    }
}
