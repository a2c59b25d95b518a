//! What is known of a request before it waits: its class, from its head, its sender, and what its
//! body says where that is needed.

use super::Route;
use super::look::{BodyFields, Look};
use super::upstream::{Current, Known, Upstream};
use crate::peer::TlsPeer;
use crate::request_body::RequestBody;
use hyper::body::Body;
use hyper::{HeaderMap, Request, Uri};
use sooner_admission::Subject;
use sooner_http::forwarding::routes::host_name;
use sooner_http::host;
use sooner_limiter::Acquire;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// The class of requests without one: the middle of 0 to 7 (RFC 9218, 4.1).
const DEFAULT_CLASS: u8 = 3;

/// What a request says of itself, and who sends it.
#[derive(Clone, Copy, Debug)]
pub struct RequestFacts<'a> {
    /// The upstream that it goes to.
    pub upstream: &'a str,
    /// The path of its route.
    pub route: &'a str,
    /// Its method.
    pub method: &'a str,
    /// Its target, as it came.
    pub uri: &'a Uri,
    /// The host that it names, without a port; empty where it names none.
    pub host: &'a str,
    /// The fields of its head.
    pub headers: &'a HeaderMap,
    /// The length of its body, where it says so.
    pub body_bytes: Option<u64>,
    /// Where it comes from.
    pub address: IpAddr,
    /// The name that its client asked for in TLS; empty in clear text.
    pub tls_name: &'a str,
    /// What its body says; `None` while it was not looked at.
    pub body: Option<&'a BodyFields>,
}

/// Finds out what is known of a request.
pub struct FactFinder {
    /// Where it goes.
    pub route: Rc<Route>,
    /// Where it comes from: what a proxy in between says, if that is trusted.
    pub address: IpAddr,
    /// What its connection's TLS told.
    pub tls: Option<Arc<TlsPeer>>,
    /// How far its body is looked at.
    pub look: Look,
}

/// What is known of a request before it waits.
#[derive(Clone, Debug)]
pub struct Facts {
    /// When it came: before its body was looked at.
    pub came_at: SystemTime,
    /// The number of its class at its upstream.
    pub class: u8,
    /// The classes among which it has that number.
    pub classed_by: Rc<Known<Current>>,
    /// By what its time is told, and who is charged for it.
    pub subject: Subject,
    /// After how long its client is told by comments that it waits, and how often.
    pub comments_every: Option<Duration>,
}

impl Facts {
    /// A request of which that is known waits for admission by `upstream`; to be called once.
    pub fn acquire(&mut self, upstream: &Upstream) -> Acquire {
        let subject = std::mem::take(&mut self.subject);
        upstream.acquire(self.class, subject, &self.classed_by)
    }
}

impl FactFinder {
    /// Of `request`, which is given back as it was. Takes as long as the beginning of its body
    /// takes to come, where that is looked at; or all of it, where its length has to be known: what
    /// comes slowly must take no place meanwhile. While no server is up the length does not
    /// matter: the request is refused.
    pub async fn find(&self, mut request: Request<RequestBody>) -> (Facts, Request<RequestBody>) {
        let (upstream, came_at) = (&self.route.upstream, SystemTime::now());
        let lacks_length = request.body().size_hint().exact().is_none();
        if self.route.runs_scripts() && lacks_length && !upstream.is_down() {
            // In a place of its own: few requests need it.
            request = Box::pin(self.with_length(request)).await;
        }
        let (needs_body, current) = (upstream.needs_body(), upstream.current());
        if let Some(class) = self.class(self.facts(&request, None), &current)
            && !needs_body
        {
            let subject = self.subject(&self.facts(&request, None));
            let facts = Facts {
                came_at,
                class,
                classed_by: current,
                subject,
                comments_every: None,
            };
            return (facts, request);
        }
        let (parts, body) = request.into_parts();
        let (fields, body) = self.look.at(&parts.headers, body, &current.fields).await;
        let request = Request::from_parts(parts, body);
        // There may be other classes by now.
        let current = upstream.current();
        let facts = self.facts(&request, Some(&fields));
        let settings = upstream.settings();
        let comments = settings.tell_wait.stream.as_ref();
        let facts = Facts {
            comments_every: comments
                .filter(|comments| comments.are_wanted(&facts) && !is_still_to_come(request.body()))
                .map(|_| upstream.comment_period.get()),
            came_at,
            class: self.class(facts, &current).unwrap_or(DEFAULT_CLASS),
            subject: self.subject(&facts),
            classed_by: current,
        };
        (facts, request)
    }

    async fn with_length(&self, request: Request<RequestBody>) -> Request<RequestBody> {
        let (parts, body) = request.into_parts();
        Request::from_parts(parts, self.look.whole(body).await)
    }

    fn facts<'a>(
        &'a self,
        request: &'a Request<RequestBody>,
        body: Option<&'a BodyFields>,
    ) -> RequestFacts<'a> {
        let tls_name = self.tls.as_ref().and_then(|tls| tls.server_name.as_deref());
        RequestFacts {
            upstream: &self.route.upstream.name,
            route: &self.route.path,
            method: request.method().as_str(),
            uri: request.uri(),
            host: host::of(request).map_or("", host_name),
            headers: request.headers(),
            body_bytes: request.body().size_hint().exact(),
            address: self.address,
            tls_name: tls_name.unwrap_or_default(),
            body,
        }
    }

    /// The number of its class; `None` where its body decides, and was not looked at.
    fn class(&self, facts: RequestFacts<'_>, current: &Current) -> Option<u8> {
        if current.classes.is_empty() {
            return Some(self.plain_class());
        }
        current.classes.number_of(facts)
    }

    /// The number of its class where classes have no names.
    fn plain_class(&self) -> u8 {
        self.route.class.unwrap_or(DEFAULT_CLASS)
    }

    fn subject(&self, facts: &RequestFacts<'_>) -> Subject {
        Subject {
            plain_class: Some(self.plain_class()),
            ..self.route.upstream.subject(facts)
        }
    }
}

/// Whether the client has something to send still. A response that begins before says that it is not
/// wanted: clients that wait for `100 Continue` send it not, and nginx in between sends no more.
fn is_still_to_come(body: &RequestBody) -> bool {
    match body {
        RequestBody::Looked(looked) => !looked.is_all_here(),
        other => !other.is_end_stream(),
    }
}
