//! Which of a site, its files, a script or an upstream answers a request.

use super::{ProxyOutcome, Reply, RequestContext, site_reply};
use crate::body::Source;
use crate::clock::Moment;
use crate::peer::Peer;
use crate::proxy::{Forwarded, Found, Route};
use crate::request_body::RequestBody;
use crate::response::{Response, plain};
use crate::static_site::{Chosen, StaticSite};
use hyper::{Method, Request, StatusCode};
use sooner_http::forwarding::routes::host_name;
use sooner_http::host;
use std::cell::OnceCell;
use std::rc::Rc;

/// The response of the site that was chosen, or of the upstream that a request is for.
pub fn pass(
    context: &mut RequestContext,
    chosen: Chosen,
    mut request: Request<RequestBody>,
    peer: &Peer,
    now: Moment,
) -> Reply {
    let active_config = context.active_config.clone();
    let site = active_config.sites.at(chosen);
    if !active_config.proxy.is_empty() && site.takes_routes() {
        let host = host::of(&request).ok().map(host_name);
        if let Some(route) = active_config.proxy.route(host, request.uri().path()) {
            if let Some(response) = site.redirect(&request, now) {
                return Reply::Now(response);
            }
            match route.script(request.uri().path()) {
                // What is no script is a file of the site.
                Some(Found::Other) => {}
                Some(Found::Missing) => return Reply::Now(missing(site, &request, now)),
                Some(Found::Script(script)) => {
                    request.extensions_mut().insert(script);
                    return forward(context, route, chosen, request, peer, now);
                }
                None if route.files_first() && site.has_file(&request, now) => {}
                None => return forward(context, route, chosen, request, peer, now),
            }
        }
    }
    site_reply::of(&active_config, chosen, request, now)
}

/// The response to a request for a script that is not there.
fn missing<B>(site: &StaticSite, request: &Request<B>, now: Moment) -> Response {
    let response = plain(StatusCode::NOT_FOUND, "no such script");
    refused(site, response, request.method() == Method::HEAD, now)
}

/// A refusal as the site makes it.
pub fn refused(site: &StaticSite, refusal: Response, is_head: bool, now: Moment) -> Response {
    let mut response = site.finish(refusal, now);
    if is_head {
        response.source = Source::Empty;
    }
    response
}

/// Forwards a request to an upstream.
fn forward(
    context: &mut RequestContext,
    route: &Rc<Route>,
    chosen: Chosen,
    request: Request<RequestBody>,
    peer: &Peer,
    now: Moment,
) -> Reply {
    let active_config = context.active_config.clone();
    let outcome = Rc::<OnceCell<ProxyOutcome>>::default();
    context.outcome = Some(outcome.clone());
    let is_head = request.method() == Method::HEAD;
    let expires = active_config.sites.at(chosen).expires_of(&request);
    let compressor = active_config.compression.of(chosen.site, route.compress());
    let compressing = compressor.map(|compressor| (compressor.wanted(&request), compressor));
    let request = request.map(|body| body.metered(&active_config.limits));
    let forwarding = active_config.proxy.forward(route, request, peer);
    Reply::Later(Box::pin(async move {
        let Forwarded {
            mut response,
            report,
        } = forwarding.await;
        let has_failed = report.lock().failure.is_some();
        // Empty until now.
        let _ = outcome.set(ProxyOutcome {
            came_at: now.instant,
            report,
        });
        let site = active_config.sites.at(chosen);
        if has_failed {
            response = site.finish(response, Moment::now());
            if is_head {
                response.source = Source::Empty;
            }
        } else {
            let expires = expires.and_then(|it| it.rule(response.status, &response.headers));
            site.add_headers(&mut response.headers);
            if let Some(rule) = expires {
                rule.add_to(&mut response.headers, Moment::now().date);
            }
        }
        match compressing {
            Some((wanted, compressor)) => compressor.response(&wanted, response).await,
            None => response,
        }
    }))
}
