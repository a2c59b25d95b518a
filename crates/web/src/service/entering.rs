//! The way of a request into a site: to the location that answers, past the passwords before it,
//! and the same once more for what its path led to there.

use super::passing::{pass, refused};
use super::{Reply, RequestContext};
use crate::auth::{self, Checker, Guard, Looked};
use crate::clock::Moment;
use crate::peer::Peer;
use crate::proxy::{Route, User};
use crate::request_body::RequestBody;
use crate::static_site::{Chosen, Led};
use hyper::{Method, Request};
use sooner_http::basic_auth::Credentials;
use std::rc::Rc;

/// What does not change on the way.
#[derive(Clone, Copy)]
pub struct Visit<'a> {
    /// What knows passwords.
    pub checker: &'a Checker,
    /// The client.
    pub peer: &'a Peer,
    /// When it came.
    pub now: Moment,
}

/// How far a request has come.
#[derive(Clone)]
pub struct Place {
    /// Who answers.
    pub chosen: Chosen,
    /// What its path led to.
    pub goal: Goal,
    /// The guard that it was sent past last, which need not look twice.
    passed: Option<Rc<Guard>>,
}

/// What answers a request.
#[derive(Clone)]
pub enum Goal {
    /// What its path leads to.
    Asked,
    /// A file of the site that its path led to.
    File(Led),
    /// A script that its path led to; the request has it.
    Script(Led, Rc<Route>),
}

impl Place {
    /// Of a request for what its path says.
    pub fn asked(chosen: Chosen) -> Self {
        Self {
            chosen,
            goal: Goal::Asked,
            passed: None,
        }
    }

    /// The place that it leads to.
    pub fn leads_to(&self, chosen: Chosen, goal: Goal) -> Self {
        Self {
            chosen,
            goal,
            passed: self.passed.clone(),
        }
    }

    /// What its path led to, if it led on.
    pub fn led(&self) -> Option<&Led> {
        match &self.goal {
            Goal::Asked => None,
            Goal::File(led) | Goal::Script(led, _) => Some(led),
        }
    }
}

impl Visit<'_> {
    /// The response at a place, if the client may enter it.
    pub fn enter(
        self,
        context: &mut RequestContext,
        mut place: Place,
        mut request: Request<RequestBody>,
    ) -> Reply {
        let active_config = context.active_config.clone();
        let chosen = place.chosen;
        let site = active_config.sites.at(chosen);
        let path = place.led().map_or(request.uri().path(), |led| &led.path);
        let guard = active_config.sites.guard(chosen, path);
        let is_passed = |guard: &Rc<Guard>| {
            let passed = place.passed.as_ref();
            passed.is_some_and(|passed| Rc::ptr_eq(passed, guard))
        };
        let Some(guard) = guard.filter(|guard| !is_passed(guard)).cloned() else {
            return pass(self, context, place, request);
        };
        // What is elsewhere needs no password here.
        if place.led().is_none()
            && let Some(response) = site.redirect(&request, self.now)
        {
            return Reply::Now(response);
        }
        let credentials = Credentials::of(request.headers());
        context.user = credentials.as_ref().map(|it| it.user.clone().into());
        if let Some(user) = &context.user {
            request.extensions_mut().insert(User(user.clone()));
        }
        let proxy = &active_config.proxy;
        let client = proxy.client_address(request.headers(), self.peer.remote.ip());
        let is_head = request.method() == Method::HEAD;
        place.passed = Some(guard.clone());
        match self.checker.look(&guard, credentials, client.into()) {
            Looked::Known(outcome) => match auth::refusal(&guard, outcome) {
                Some(refusal) => Reply::Now(refused(site, refusal, is_head, self.now)),
                None => pass(self, context, place, request),
            },
            Looked::Later(check) => {
                let passing = pass(self, context, place, request);
                Reply::Later(Box::pin(async move {
                    match auth::refusal(&guard, check.outcome().await) {
                        Some(refusal) => {
                            let site = active_config.sites.at(chosen);
                            refused(site, refusal, is_head, Moment::now())
                        }
                        None => passing.response().await,
                    }
                }))
            }
        }
    }
}
