//! Whether a server is there, before a run begins.

use crate::client::Client;
use crate::failure::Failure;
use crate::target::Target;
use std::time::Duration;

/// How long a server may take to accept the first connection.
const WAIT: Duration = Duration::from_secs(10);

/// No connection can be made.
#[derive(Debug, thiserror::Error)]
#[error("{url}: {failure}{}", remedy(failure))]
pub struct Unreachable {
    /// The server.
    url: String,
    /// Why not.
    failure: Failure,
}

fn remedy(failure: &Failure) -> &'static str {
    match failure {
        // These say themselves what would help.
        Failure::Certificate
        | Failure::CertificateName
        | Failure::CertificateDate
        | Failure::NoHttp2
        | Failure::Descriptors => "",
        Failure::Tls => "; is it a port for TLS?",
        _ => "; start the server there, or correct the URL",
    }
}

/// Makes one connection, and sends no request.
pub async fn is_reachable(client: &Client, server: &Target) -> Result<(), Unreachable> {
    let connection = async {
        let (_, socket) = client.connect(server.endpoint.address);
        client.open(socket?, &server.endpoint).await
    };
    let made = tokio::time::timeout(WAIT, connection).await;
    match made.unwrap_or(Err(Failure::TimedOut)) {
        Ok(_) => Ok(()),
        Err(failure) => Err(Unreachable {
            url: server.url_of("/"),
            failure,
        }),
    }
}
