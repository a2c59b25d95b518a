//! A request as it goes onto the wire, made before the run: sending it copies nothing.

use crate::target::{Target, USER_AGENT};
use bytes::Bytes;
use http::header::{
    CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, TRANSFER_ENCODING, USER_AGENT as AGENT,
};
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue, Method};

/// What a body is taken for unless a field says so, as curl does.
const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");

/// So much of a body is copied behind each head, at most: what a read of a server's takes.
pub const BEGIN_BODY_BYTES: usize = 16 * 1024;

/// What to ask a server for.
#[derive(Clone, Debug)]
pub struct Question {
    /// The method.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// Fields beside those that HTTP needs; `host` and `user-agent` take the place of ours.
    pub fields: HeaderMap,
    /// Body; none: a request without one.
    pub body: Option<Bytes>,
}

/// A request as bytes, or as HTTP/2 has it.
#[derive(Clone, Debug)]
pub enum Message {
    /// HTTP/1.1.
    Http1 {
        /// The head and the first [`BEGIN_BODY_BYTES`] of the body, so that a small request goes
        /// out in one piece.
        begin: Bytes,
        /// The rest of the body, which all requests share that have the same one.
        rest: Bytes,
        /// The method.
        method: Method,
    },
    /// HTTP/2.
    Http2 {
        /// The head.
        head: Box<http::Request<()>>,
        /// The body, which may be empty.
        body: Bytes,
    },
}

/// A request that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    /// No `NAME: VALUE`.
    #[error("`{0}` is not a header field; write NAME: VALUE, as in 'accept: text/html'")]
    Field(String),
    /// A field that the generator sets itself.
    #[error("`{0}` is set by the body and the connection; leave the field out")]
    OwnField(HeaderName),
    /// A field that belongs to connections of HTTP/1.1.
    #[error(
        "`{0}` must not be sent over HTTP/2 (RFC 9113, section 8.2.2); leave the field out, or --http2"
    )]
    NotInHttp2(String),
    /// A host that no URL has.
    #[error(
        "`host: {0}` names no host; write a name or an address, as in 'host: example.org:8080'"
    )]
    Host(String),
    /// No method that can be asked with.
    #[error("`{0}` is not a method; write for example GET, HEAD or POST")]
    Method(String),
    /// Not a path that HTTP allows.
    #[error(
        "{0}: not a URL that HTTP allows; encode other characters than letters and digits, as in %20"
    )]
    Url(String),
}

/// Reads a field as people type it: `NAME: VALUE`.
pub fn field(text: &str) -> Result<(HeaderName, HeaderValue), MessageError> {
    let wrong = || MessageError::Field(text.into());
    let (name, value) = text.split_once(':').ok_or_else(wrong)?;
    let name: HeaderName = name.trim().parse().map_err(|_| wrong())?;
    let value = HeaderValue::from_str(value.trim()).map_err(|_| wrong())?;
    if [CONTENT_LENGTH, TRANSFER_ENCODING, CONNECTION].contains(&name) {
        return Err(MessageError::OwnField(name));
    }
    Ok((name, value))
}

/// Reads a method as people type it, in letters of any size. CONNECT asks for no resource.
pub fn method(text: &str) -> Result<Method, MessageError> {
    match text.to_ascii_uppercase().parse() {
        Ok(Method::CONNECT) | Err(_) => Err(MessageError::Method(text.into())),
        Ok(method) => Ok(method),
    }
}

/// Refuses fields of connections, which make a request malformed in HTTP/2.
fn check_for_http2(fields: &HeaderMap) -> Result<(), MessageError> {
    for (name, value) in fields {
        let is_of_connection = match name.as_str() {
            "keep-alive" | "proxy-connection" | "upgrade" => true,
            "te" => !value.as_bytes().eq_ignore_ascii_case(b"trailers"),
            _ => false,
        };
        if is_of_connection {
            let value = String::from_utf8_lossy(value.as_bytes());
            return Err(MessageError::NotInHttp2(format!("{name}: {value}")));
        }
    }
    Ok(())
}

impl Question {
    /// A GET of `path`.
    pub fn get(path: &str) -> Question {
        Question {
            method: Method::GET,
            path: path.into(),
            fields: HeaderMap::new(),
            body: None,
        }
    }

    /// The fields to send: ours where none takes their place, and what the body needs.
    fn all_fields(&self) -> HeaderMap {
        let mut fields = self.fields.clone();
        if !fields.contains_key(AGENT) {
            fields.insert(AGENT, HeaderValue::from_static(USER_AGENT));
        }
        let Some(body) = &self.body else {
            return fields;
        };
        if !fields.contains_key(CONTENT_TYPE) {
            fields.insert(CONTENT_TYPE, FORM);
        }
        fields.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
        fields
    }
}

/// The same URI at another host.
fn with_host(uri: http::Uri, host: &HeaderValue) -> Result<http::Uri, MessageError> {
    let wrong = || MessageError::Host(String::from_utf8_lossy(host.as_bytes()).into());
    let mut parts = uri.into_parts();
    let authority = Authority::try_from(host.as_bytes()).map_err(|_| wrong())?;
    parts.authority = Some(authority);
    http::Uri::from_parts(parts).map_err(|_| wrong())
}

impl Message {
    /// Makes `question` to `target`; over HTTP/1.1 the server may be asked to `close`.
    pub fn new(
        question: &Question,
        target: &Target,
        http2: bool,
        close: bool,
    ) -> Result<Message, MessageError> {
        let wrong = || MessageError::Url(target.url_of(&question.path));
        // One that HTTP/2 takes is one that fits on the line of HTTP/1.1 too.
        let mut fields = question.all_fields();
        let mut uri: http::Uri = target.url_of(&question.path).parse().map_err(|_| wrong())?;
        let own = HeaderValue::from_str(&target.authority).map_err(|_| wrong())?;
        let host = fields.remove(HOST).unwrap_or(own);
        // A field without a value is right in HTTP/1.1 (RFC 9112, section 3.2).
        if http2 || !host.is_empty() {
            uri = with_host(uri, &host)?;
        }
        let body = question.body.clone().unwrap_or_default();
        if http2 {
            check_for_http2(&fields)?;
            let mut head = http::Request::new(());
            *head.method_mut() = question.method.clone();
            *head.uri_mut() = uri;
            *head.version_mut() = http::Version::HTTP_2;
            *head.headers_mut() = fields;
            let head = Box::new(head);
            return Ok(Message::Http2 { head, body });
        }
        let (first, rest) = {
            let mut rest = body;
            let first = rest.split_to(rest.len().min(BEGIN_BODY_BYTES));
            (first, rest)
        };
        let mut bytes = Vec::with_capacity(256 + first.len());
        let line = format!("{} {} HTTP/1.1\r\n", question.method, question.path);
        bytes.extend_from_slice(line.as_bytes());
        let mut add = |name: &str, value: &[u8]| {
            for part in [name.as_bytes(), b": ", value, b"\r\n"] {
                bytes.extend_from_slice(part);
            }
        };
        add("host", host.as_bytes());
        for (name, value) in &fields {
            add(name.as_str(), value.as_bytes());
        }
        if close {
            add("connection", b"close");
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(&first);
        Ok(Message::Http1 {
            begin: bytes.into(),
            rest,
            method: question.method.clone(),
        })
    }

    /// Whether the answer has no body.
    pub fn is_head(&self) -> bool {
        match self {
            Message::Http1 { method, .. } => method == Method::HEAD,
            // The frames say where a body ends.
            Message::Http2 { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::TlsOptions;

    fn target() -> Target {
        Target::resolve("http://127.0.0.1:8080/", &TlsOptions::default()).expect("an address")
    }

    fn text(question: &Question, close: bool) -> String {
        match Message::new(question, &target(), false, close) {
            Ok(Message::Http1 { begin, .. }) => String::from_utf8(begin.into()).expect("text"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_plain_request_has_what_http_needs() {
        let get = Question::get("/a?b=c");
        assert_eq!(
            text(&get, false),
            "GET /a?b=c HTTP/1.1\r\nhost: 127.0.0.1:8080\r\nuser-agent: sooner-load\r\n\r\n"
        );
        assert!(text(&get, true).ends_with("connection: close\r\n\r\n"));
    }

    #[test]
    fn a_body_has_its_length_and_fields_take_the_place_of_ours() {
        let fields = ["Host: example.org", "user-agent:x", "Accept: */*"];
        let question = Question {
            method: Method::POST,
            fields: fields.iter().map(|text| field(text).expect(text)).collect(),
            body: Some(Bytes::from_static(b"a=1")),
            ..Question::get("/")
        };
        let sent = text(&question, false);
        assert!(
            sent.starts_with("POST / HTTP/1.1\r\nhost: example.org\r\n"),
            "{sent}"
        );
        for part in [
            "user-agent: x\r\n",
            "accept: */*\r\n",
            "content-length: 3\r\n",
        ] {
            assert!(sent.contains(part), "{sent}");
        }
        assert!(
            sent.contains("content-type: application/x-www-form-urlencoded\r\n"),
            "{sent}"
        );
        assert!(
            sent.ends_with("\r\n\r\na=1") && sent.matches("host:").count() == 1,
            "{sent}"
        );
        match Message::new(&question, &target(), true, false) {
            Ok(Message::Http2 { head, body }) => {
                assert_eq!(head.uri(), "http://example.org/");
                assert_eq!((head.method(), body.len()), (&Method::POST, 3));
            }
            other => panic!("{other:?}"),
        }
    }

    fn with_field(text: &str, http2: bool) -> Result<Message, MessageError> {
        let question = Question {
            fields: [field(text).expect(text)].into_iter().collect(),
            ..Question::get("/")
        };
        Message::new(&question, &target(), http2, false)
    }

    #[test]
    fn fields_of_connections_are_refused_in_http_2_alone() {
        for text in [
            "keep-alive: timeout=5",
            "Upgrade: websocket",
            "proxy-connection: keep-alive",
            "te: gzip",
            "te: trailers, gzip",
        ] {
            let said = with_field(text, true).expect_err(text).to_string();
            assert!(said.contains("section 8.2.2"), "{said}");
            assert!(said.starts_with(&format!("`{}`", text.replace('U', "u"))));
            assert!(with_field(text, false).is_ok(), "{text}");
        }
        assert!(with_field("te: Trailers", true).is_ok());
    }

    #[test]
    fn an_empty_host_is_sent_as_it_is_and_one_that_is_none_is_told() {
        match with_field("host:", false) {
            Ok(Message::Http1 { begin, .. }) => {
                assert!(
                    begin.starts_with(b"GET / HTTP/1.1\r\nhost: \r\n"),
                    "{begin:?}"
                );
            }
            other => panic!("{other:?}"),
        }
        let wrong = [("host:", true), ("host: a b", false), ("host: a/b", true)];
        for (text, http2) in wrong {
            let said = with_field(text, http2).expect_err(text).to_string();
            assert!(said.contains("names no host; write a name"), "{said}");
        }
    }

    #[test]
    fn requests_share_a_large_body_and_have_a_small_one_behind_their_heads() {
        let post = |bytes: usize| {
            let question = Question {
                body: Some(vec![b'x'; bytes].into()),
                method: Method::POST,
                ..Question::get("/")
            };
            match Message::new(&question, &target(), false, false) {
                Ok(Message::Http1 { begin, rest, .. }) => (question.body, begin, rest),
                other => panic!("{other:?}"),
            }
        };
        let (_, begin, rest) = post(BEGIN_BODY_BYTES);
        assert!(begin.ends_with(b"xxx") && rest.is_empty());
        let (body, begin, rest) = post(BEGIN_BODY_BYTES + 5);
        assert!(begin.ends_with(b"xxx") && rest.len() == 5);
        let of_body = body.expect("a body").slice(BEGIN_BODY_BYTES..);
        assert_eq!(rest.as_ptr(), of_body.as_ptr(), "a copy");
    }

    #[test]
    fn methods_are_read_in_letters_of_any_size() {
        assert_eq!(method("get").expect("one"), Method::GET);
        assert_eq!(method("M-SEARCH").expect("one").as_str(), "M-SEARCH");
        for text in ["CONNECT", "connect", "", "a b"] {
            let said = method(text).expect_err(text).to_string();
            assert!(said.ends_with("write for example GET, HEAD or POST"));
        }
    }

    #[test]
    fn what_cannot_be_sent_says_what_would_be_right() {
        for text in ["", "accept", ": x", "a b: c", "x: a\r\nb: c"] {
            let said = field(text).expect_err(text).to_string();
            assert!(said.contains("NAME: VALUE"), "{said}");
        }
        let said = field("Content-Length: 3").expect_err("ours").to_string();
        assert!(said.contains("leave the field out"), "{said}");
        let blank = Question::get("/a b");
        assert!(Message::new(&blank, &target(), false, false).is_err());
    }
}
