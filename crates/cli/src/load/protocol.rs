//! What is spoken: flags that the subcommands have in common.

use clap::Args;
use sooner_load::pool::Reuse;
use sooner_load::tls::TlsOptions;
use std::num::NonZeroU32;
use std::path::PathBuf;

/// What is spoken.
#[derive(Args)]
pub struct ProtocolArgs {
    /// Accept any certificate of an https:// server, such as a self-signed one of a test server
    #[arg(long, conflicts_with = "ca")]
    insecure: bool,
    /// PEM file of certificate authorities to trust instead of the system's
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Resume TLS sessions if the server offers it [default: every new connection makes a full
    /// handshake]
    #[arg(long)]
    resume: bool,
    /// Use HTTP/2, negotiated in the TLS handshake or, for http://, with prior knowledge
    #[arg(long)]
    http2: bool,
    /// Most requests at a time on an HTTP/2 connection; a further one opens another connection
    /// [default: 1]
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
