//! What a site answers, compressed where that is wanted.

use super::Reply;
use crate::active_config::ActiveConfig;
use crate::clock::Moment;
use crate::request_body::RequestBody;
use crate::response::{Response, plain};
use crate::static_site::{Chosen, PendingListing, StaticReply};
use hyper::{Request, StatusCode};
use tokio::task::spawn_blocking;

/// The answer of the site or location that was chosen.
pub fn of(
    active_config: &ActiveConfig,
    chosen: Chosen,
    request: Request<RequestBody>,
    now: Moment,
) -> Reply {
    let mut request = request;
    let compressor = active_config.compression.of(chosen.site, None);
    let compressing = compressor.map(|compressor| {
        let wanted = compressor.wanted(&request);
        compressor.refuse_ambiguous_range(&mut request, &wanted);
        (compressor, wanted)
    });
    let reply = active_config.sites.at(chosen).respond(&request, now);
    match (reply, compressing) {
        (StaticReply::Now(response) | StaticReply::File(response, _), None) => Reply::Now(response),
        (StaticReply::Now(response), Some((compressor, wanted))) => {
            compressor.reply(&wanted, response, None)
        }
        (StaticReply::File(response, file), Some((compressor, wanted))) => {
            compressor.reply(&wanted, response, Some(file))
        }
        (StaticReply::Listing(pending), None) => Reply::Later(Box::pin(read_listing(pending))),
        (StaticReply::Listing(pending), Some((compressor, wanted))) => {
            Reply::Later(Box::pin(async move {
                let response = read_listing(pending).await;
                compressor.response(&wanted, response).await
            }))
        }
    }
}

/// Has a directory read by a thread that may wait for the disk.
async fn read_listing(pending: PendingListing) -> Response {
    let read = spawn_blocking(move || pending.read()).await;
    read.unwrap_or_else(|_| {
        plain(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the directory cannot be read",
        )
    })
}
