//! What a line of the log has of the upstream.

use super::json::push_string;
use super::record::push_field;
use std::sync::Arc;

/// The upstream of a response, or of the request without one.
#[derive(Debug, Clone)]
pub struct UpstreamFacts {
    /// The upstream's name in the configuration.
    pub upstream: Arc<str>,
    /// The server of the last attempt; `None` without one.
    pub server: Option<Arc<str>>,
    /// From the request's arrival to the head of the upstream's answer, waiting for admission
    /// included, ns.
    pub answer_ns: u64,
    /// Of that, until the turn of the last server, ns.
    pub wait_ns: u64,
    /// How many attempts were made, perhaps several on one server.
    pub tries: u32,
    /// What went wrong on the way, each server with its failure; `None` if nothing did.
    pub error: Option<Box<str>>,
}

impl UpstreamFacts {
    /// Appends the fields of JSON.
    pub(super) fn push(&self, out: &mut Vec<u8>) {
        push_text(b",\"upstream\":", Some(&self.upstream), out);
        push_text(b",\"upstream_server\":", self.server.as_deref(), out);
        push_field(b",\"upstream_ns\":", self.answer_ns, out);
        push_field(b",\"upstream_wait_ns\":", self.wait_ns, out);
        push_field(b",\"upstream_tries\":", self.tries.into(), out);
        push_text(b",\"upstream_error\":", self.error.as_deref(), out);
    }
}

/// Appends the field if there is a text for it.
fn push_text(name: &[u8], text: Option<&str>, out: &mut Vec<u8>) {
    if let Some(text) = text {
        out.extend_from_slice(name);
        push_string(text.as_bytes(), out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_wrong_is_said() {
        let upstream_facts = UpstreamFacts {
            upstream: "app".into(),
            server: Some("http://a".into()),
            answer_ns: 9,
            wait_ns: 4,
            tries: 2,
            error: Some("http://a: \"refused\"".into()),
        };
        let mut out = Vec::new();
        upstream_facts.push(&mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            r#","upstream":"app","upstream_server":"http://a","upstream_ns":9,"upstream_wait_ns":4,"upstream_tries":2,"upstream_error":"http://a: \"refused\"""#
        );
    }
}
