//! A request as it goes onto the wire, made before the run: sending it copies nothing.

use crate::target::{Target, USER_AGENT};
use bytes::Bytes;
use http::header::{
    CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, TRANSFER_ENCODING, USER_AGENT as AGENT,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method};

/// What a body is taken for unless a field says so, as curl does.
const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");

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
        /// Head and body.
        bytes: Vec<u8>,
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
        let host = fields.remove(HOST);
        let host = host.as_ref().and_then(|host| host.to_str().ok());
        let target = &Target {
            authority: host.unwrap_or(&target.authority).into(),
            ..target.clone()
        };
        let uri: http::Uri = target.url_of(&question.path).parse().map_err(|_| wrong())?;
        let body = question.body.clone().unwrap_or_default();
        if http2 {
            let mut head = http::Request::new(());
            *head.method_mut() = question.method.clone();
            *head.uri_mut() = uri;
            *head.version_mut() = http::Version::HTTP_2;
            *head.headers_mut() = fields;
            let head = Box::new(head);
            return Ok(Message::Http2 { head, body });
        }
        let mut bytes = Vec::with_capacity(256 + body.len());
        let line = format!("{} {} HTTP/1.1\r\n", question.method, question.path);
        bytes.extend_from_slice(line.as_bytes());
        let mut add = |name: &str, value: &[u8]| {
            for part in [name.as_bytes(), b": ", value, b"\r\n"] {
                bytes.extend_from_slice(part);
            }
        };
        add("host", target.authority.as_bytes());
        for (name, value) in &fields {
            add(name.as_str(), value.as_bytes());
        }
        if close {
            add("connection", b"close");
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(&body);
        Ok(Message::Http1 {
            bytes,
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
            Ok(Message::Http1 { bytes, .. }) => String::from_utf8(bytes).expect("text"),
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
