//! Which of a site, its files, a script or an upstream answers a request.

use super::entering::{Goal, Place, Visit};
use super::{ProxyOutcome, Reply, RequestContext, site_reply};
use crate::body::Source;
use crate::clock::Moment;
use crate::peer::Peer;
use crate::proxy::{Found, Route, Script, ScriptRoutes};
use crate::request_body::RequestBody;
use crate::response::{Response, plain};
use crate::static_site::{Asked, Chosen, Led, StaticSite};
use hyper::{Method, Request, StatusCode};
use sooner_http::forwarding::routes::host_name;
use sooner_http::host;
use std::cell::OnceCell;
use std::rc::Rc;

/// The response of the site that was chosen, or of the upstream that a request is for.
pub fn pass(
    visit: Visit<'_>,
    context: &mut RequestContext,
    place: Place,
    request: Request<RequestBody>,
) -> Reply {
    let active_config = context.active_config.clone();
    let site = active_config.sites.at(place.chosen);
    let Visit { peer, now, .. } = visit;
    if let Goal::Script(_, route) = &place.goal
        && site.takes_routes()
    {
        return forward(context, route, place.chosen, request, peer, now);
    }
    let host = match active_config.proxy.is_empty() {
        true => None,
        false => host::of(&request).ok().map(host_name),
    };
    if let Goal::Asked = place.goal
        && !active_config.proxy.is_empty()
        && site.takes_routes()
        && let Some(route) = active_config.proxy.route(host, request.uri().path())
    {
        if let Some(response) = site.redirect(&request, now) {
            return Reply::Now(response);
        }
        match route.script(request.uri().path()) {
            // What is no script is a file of the site.
            Some(Found::Other) => {}
            Some(Found::Missing) => return Reply::Now(missing(site, &request, now)),
            Some(Found::Script(script)) => {
                return run(visit, context, place, request, script, route);
            }
            None if route.files_first() && site.has_file(&request, now) => {}
            None => return forward(context, route, place.chosen, request, peer, now),
        }
    }
    let asked = Asked {
        led: place.led().map(|led| &*led.path),
        scripts: ScriptRoutes::new(&active_config.proxy, host),
        is_whole: false,
    };
    let led = match site_reply::of(&active_config, place.chosen, &request, asked, now) {
        Ok(reply) => return reply,
        Err(led) => led,
    };
    let script = asked.scripts.find(&led.path);
    lead_on(visit, context, place, request, led, script)
}

/// Has a script run that a path leads to: as if it had been asked for by its name.
fn run(
    visit: Visit<'_>,
    context: &mut RequestContext,
    place: Place,
    mut request: Request<RequestBody>,
    script: Script,
    route: &Rc<Route>,
) -> Reply {
    let led = Led {
        path: script.path(),
        is_last_resort: route.is_fallback(&script),
    };
    // It was looked up already.
    if led.path == request.uri().path() && led.in_small_letters().is_none() {
        request.extensions_mut().insert(script);
        return forward(context, route, place.chosen, request, visit.peer, visit.now);
    }
    lead_on(
        visit,
        context,
        place,
        request,
        led,
        Some((route.clone(), script)),
    )
}

/// Goes on to what a request has led to.
fn lead_on(
    visit: Visit<'_>,
    context: &mut RequestContext,
    place: Place,
    mut request: Request<RequestBody>,
    led: Led,
    script: Option<(Rc<Route>, Script)>,
) -> Reply {
    let sites = &context.active_config.sites;
    let chosen = sites.choose_for(place.chosen, &led);
    let goal = match script {
        Some((route, script)) => {
            request.extensions_mut().insert(script);
            Goal::Script(led, route)
        }
        None => Goal::File(led),
    };
    visit.enter(context, place.leads_to(chosen, goal), request)
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
    let (report, passage) = active_config
        .proxy
        .forward(route, request, peer, &context.grace_end);
    Reply::Later(Box::pin(async move {
        // Empty until now: nothing is forwarded before a password has been looked at.
        let _ = outcome.set(ProxyOutcome {
            came_at: now.instant,
            report: report.clone(),
        });
        let mut response = passage.response().await;
        let has_failed = report.lock().failure.is_some();
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
