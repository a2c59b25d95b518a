//! What is known of a request before it waits: its class, from its head, its sender, and what its
//! body says where that is needed.

use super::classes::ClassSubject;
use super::look::{BodyFields, Look};
use super::upstream::Upstream;
use crate::peer::TlsPeer;
use crate::request_body::RequestBody;
use hyper::Request;
use sooner_http::forwarding::routes::host_name;
use sooner_http::host;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

/// The class of requests without one: the middle of 0 to 7 (RFC 9218, 4.1).
const DEFAULT_CLASS: u8 = 3;

/// Finds it out.
pub struct FactFinder {
    /// Where the request goes.
    pub upstream: Rc<Upstream>,
    /// The class of its route, where there are no others.
    pub route_class: Option<u8>,
    /// Where it comes from: what a proxy in between says, if that is trusted.
    pub address: IpAddr,
    /// What its connection's TLS told.
    pub tls: Option<Arc<TlsPeer>>,
    /// How far its body is looked at.
    pub look: Look,
}

/// What is known of a request.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The number of its class at its upstream.
    pub class: u8,
}

impl FactFinder {
    /// Of `request`, which is given back as it was. Takes as long as the beginning of its body
    /// takes to come, where that is looked at.
    pub async fn find(&self, request: Request<RequestBody>) -> (Facts, Request<RequestBody>) {
        let head_alone = self.class(&request, None);
        if let Some(class) = head_alone {
            return (Facts { class }, request);
        }
        let (parts, body) = request.into_parts();
        let current = self.upstream.current();
        let (fields, body) = self.look.at(&parts.headers, body, &current.fields).await;
        let request = Request::from_parts(parts, body);
        // There may be other classes by now.
        let class = self.class(&request, Some(&fields));
        let class = class.unwrap_or(DEFAULT_CLASS);
        (Facts { class }, request)
    }

    /// The number of its class; `None` where its body decides, and was not looked at.
    fn class(&self, request: &Request<RequestBody>, body: Option<&BodyFields>) -> Option<u8> {
        let current = self.upstream.current();
        if current.classes.is_empty() {
            return Some(self.route_class.unwrap_or(DEFAULT_CLASS));
        }
        let tls_name = self.tls.as_ref().and_then(|tls| tls.server_name.as_deref());
        current.classes.number_of(ClassSubject {
            upstream: &self.upstream.name,
            host: host::of(request).map_or("", host_name),
            path: request.uri().path(),
            method: request.method().as_str(),
            headers: request.headers(),
            address: self.address,
            tls_name: tls_name.unwrap_or_default(),
            body,
        })
    }
}
