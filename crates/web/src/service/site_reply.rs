//! What a site answers, compressed where that is wanted.

use super::Reply;
use crate::active_config::ActiveConfig;
use crate::clock::Moment;
use crate::request_body::RequestBody;
use crate::response::{Response, plain};
use crate::static_site::{Asked, Chosen, Led, PendingListing, StaticReply};
use hyper::{Request, StatusCode};
use tokio::task::spawn_blocking;

/// The answer of the site or location that was chosen, or what the request leads to.
pub fn of(
    active_config: &ActiveConfig,
    chosen: Chosen,
    request: &Request<RequestBody>,
    asked: Asked<'_>,
    now: Moment,
) -> Result<Reply, Led> {
    let site = active_config.sites.at(chosen);
    let mut reply = site.answer(request, asked, now)?;
    let Some(compressor) = active_config.compression.of(chosen.site, None) else {
        return Ok(match reply {
            StaticReply::Now(response) | StaticReply::File(response, _) => Reply::Now(response),
            StaticReply::Listing(pending) => Reply::Later(Box::pin(read_listing(pending))),
        });
    };
    let wanted = compressor.wanted(request);
    if compressor.is_range_ambiguous(request, &wanted) {
        let is_whole = true;
        let whole = site.answer(request, Asked { is_whole, ..asked }, now)?;
        if let StaticReply::File(response, _) = &whole
            && compressor.compresses(response, &wanted)
        {
            reply = whole;
        }
    }
    Ok(match reply {
        StaticReply::Now(response) => compressor.reply(&wanted, response, None),
        StaticReply::File(response, file) => compressor.reply(&wanted, response, Some(file)),
        StaticReply::Listing(pending) => Reply::Later(Box::pin(async move {
            let response = read_listing(pending).await;
            compressor.response(&wanted, response).await
        })),
    })
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
