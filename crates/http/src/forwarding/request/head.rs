//! The head of a request as it is written to a server: framing, host and connection in the words of
//! its protocol.

use super::Outgoing;
use crate::fastcgi;
use http::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderValue, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, Method, Request, Uri, Version};
use std::sync::Arc;

/// What an upstream is spoken to in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
}

impl Outgoing {
    /// The head for a server called `authority`, spoken to over `protocol`; `body_bytes` as far as
    /// it is known. Where there are parameters the target and the fields are in these alone: what
    /// makes records of it needs only the framing, and bounds how long a head may be.
    pub fn head(
        &self,
        protocol: Protocol,
        authority: &str,
        is_tls: bool,
        body_bytes: Option<u64>,
    ) -> Request<()> {
        let mut headers = HeaderMap::with_capacity(self.headers.keys_len() + 4);
        let host = match &self.host {
            Some(host) => host.clone(),
            None => HeaderValue::from_str(authority)
                .unwrap_or_else(|_| HeaderValue::from_static("localhost")),
        };
        let uri = match protocol {
            Protocol::Http1 => {
                headers.insert(HOST, host);
                match self.parameters {
                    Some(_) => Uri::from_static("/"),
                    None => Uri::from(self.target.clone()),
                }
            }
            Protocol::Http2 => self.absolute(&host, is_tls),
        };
        if self.parameters.is_none() {
            headers.extend(self.headers.clone());
        }
        self.frame(&mut headers, protocol, body_bytes);
        self.connect(&mut headers, protocol, body_bytes);
        let mut request = Request::new(());
        if let Some(parameters) = &self.parameters {
            // Only now: what the server is told of the wait has come into the fields since.
            let mut parameters = parameters.clone();
            fastcgi::push_fields(&self.headers, &mut parameters);
            request.extensions_mut().insert(Arc::new(parameters));
        }
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        *request.version_mut() = match protocol {
            Protocol::Http1 => Version::HTTP_11,
            Protocol::Http2 => Version::HTTP_2,
        };
        request
    }

    fn absolute(&self, host: &HeaderValue, is_tls: bool) -> Uri {
        let scheme = if is_tls { "https" } else { "http" };
        Uri::builder()
            .scheme(scheme)
            .authority(host.as_bytes())
            .path_and_query(self.target.clone())
            .build()
            // Not reached: hosts were checked. Without an authority the request is refused by the
            // connection.
            .unwrap_or_else(|_| Uri::from(self.target.clone()))
    }

    fn frame(&self, headers: &mut HeaderMap, protocol: Protocol, body_bytes: Option<u64>) {
        let means_a_body = matches!(self.method, Method::POST | Method::PUT | Method::PATCH);
        match body_bytes {
            Some(0) if !means_a_body => {}
            Some(bytes) => {
                headers.insert(CONTENT_LENGTH, HeaderValue::from(bytes));
            }
            None if protocol == Protocol::Http1 => {
                headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
            }
            None => {}
        }
        if body_bytes.is_some() {
            headers.remove(TRAILER);
        }
    }

    fn connect(&self, headers: &mut HeaderMap, protocol: Protocol, body_bytes: Option<u64>) {
        match (protocol, &self.upgrade) {
            (Protocol::Http1, Some(protocol)) => {
                headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
                headers.insert(UPGRADE, protocol.clone());
            }
            (Protocol::Http1, None) if self.takes_trailers => {
                headers.insert(CONNECTION, HeaderValue::from_static("te"));
                headers.insert(TE, HeaderValue::from_static("trailers"));
            }
            (Protocol::Http2, _) if self.takes_trailers => {
                headers.insert(TE, HeaderValue::from_static("trailers"));
            }
            _ => {}
        }
        if protocol == Protocol::Http1 && self.expects_continue && body_bytes != Some(0) {
            headers.insert(EXPECT, HeaderValue::from_static("100-continue"));
        }
    }
}
