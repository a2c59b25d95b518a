//! What goes before what, whatever the sizes.
//!
//! Two numbers say so, each 0 first and 7 last:
//! - The class, across all connections. Only the server's word counts: a Priority field of the
//!   response, be it an upstream's or a configured header (RFC 9218, section 8). Without one every
//!   response is at 3, and the policy decides. Nothing that a client sends counts here, or one
//!   client could keep all others waiting.
//! - The urgency, among the responses of one HTTP/2 connection, with an order among equals:
//!   incremental responses share, others come one after the other, as requested. Here the client's
//!   word counts, for it orders its own responses only.
//!
//! The urgency is found so:
//! - What the server says holds, and of the rest what the client says with the Priority field (RFC
//!   9218): current browsers say it on every request, and know best.
//! - Without both, a browser still tells what a request is for (Sec-Fetch-Dest, only over TLS), or
//!   at least that it belongs to a page (Referer), and then the answer's content type tells the
//!   rest. A page is of use as soon as its text is there and styled: text, style, script and fonts
//!   are at 2, what cannot be told at 3, pictures, sound and downloads at 4.
//! - A client of which none of this is known (a script, a tool, a mirror) has 3 and its size,
//!   nothing else: there is no page to see.
//!
//! One thing the client says does not hold. A browser asks for whatever is navigated to at urgency
//! 0, before it knows that it will be a disk image; its gigabytes would go before all else that the
//! page needs. So what is stored (archives, images of disks, attachments) is never before 6, and
//! video and sound never before 3.
//!
//! With [`Rules::trust_priority`] switched off nothing that a client says changes the order of its
//! own responses either.

use super::field::{DEFAULT_URGENCY, Priority};
use http::HeaderMap;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, REFERER};

/// What a page needs to be read.
const BEFORE: u8 = DEFAULT_URGENCY - 1;
/// What may follow when the page can be read.
const AFTER: u8 = DEFAULT_URGENCY + 1;

/// What is stored and not shown: after all that a page shows.
const ASIDE: u8 = 6;

/// What the operator decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Whether what clients say counts, among their own responses.
    pub trust_priority: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            trust_priority: true,
        }
    }
}

/// What a request's head says of the response's urgency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    priority: Option<Priority>,
    destination: Option<Kind>,
    is_of_page: bool,
}

/// The class and the urgency of a response, and the order among its equals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// Across all connections, by the server's word alone: 0 goes first, 7 last.
    pub class: u8,
    /// Among the responses of the same connection: 0 goes first, 7 last.
    pub urgency: u8,
    /// Whether the client can use parts of it, which orders the responses of the same urgency on
    /// the same connection; `None` where neither side said, and the policy decides.
    pub incremental: Option<bool>,
    /// No client gets it before this urgency.
    first_urgency: u8,
    /// What the server says, whatever the client says before or later.
    of_server: Option<Priority>,
    rules: Rules,
}

/// What a response is to the page it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Text, style, script, font.
    Readable,
    /// A picture, sound, or what cannot be shown.
    Follows,
    Unknown,
}

/// What becomes of a response at its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Storage {
    /// It is part of a page, or may be.
    Shown,
    /// Sound or a film.
    Played,
    /// It is kept.
    Stored,
}

impl Hints {
    /// What the head of a request says.
    pub fn of(request: &HeaderMap) -> Self {
        let priority = Priority::of(request);
        if priority.is_some() {
            // It says everything; the rest would not be looked at.
            return Self {
                priority,
                ..Self::default()
            };
        }
        let destination = request.get("sec-fetch-dest");
        Self {
            priority,
            destination: destination.map(|value| kind_of_destination(value.as_bytes())),
            is_of_page: request.contains_key(REFERER),
        }
    }

    /// The urgency that the client gave, if it gave a priority.
    pub fn urgency(&self) -> Option<u8> {
        self.priority.map(Priority::urgency_or_default)
    }

    /// The signal of the answer with the headers `response`.
    pub fn signal(&self, response: &HeaderMap, rules: Rules) -> Signal {
        let storage = storage_of(response);
        let mut signal = Signal {
            first_urgency: match storage {
                Storage::Stored => ASIDE,
                Storage::Played => DEFAULT_URGENCY,
                Storage::Shown => 0,
            },
            ..Signal::indifferent(rules)
        };
        if rules.trust_priority {
            match self.priority {
                Some(priority) => signal = signal.updated(priority),
                None => signal.urgency = self.guess(response, storage != Storage::Shown),
            }
        }
        match Priority::of(response) {
            Some(priority) => signal.overruled(priority),
            None => signal,
        }
    }

    fn guess(&self, response: &HeaderMap, is_stored: bool) -> u8 {
        let kind = match self.destination {
            Some(Kind::Readable) if is_stored => Kind::Follows,
            Some(kind) => kind,
            None if !self.is_of_page => Kind::Unknown,
            None if is_stored => Kind::Follows,
            None => kind_of_content(response),
        };
        match kind {
            Kind::Readable => BEFORE,
            Kind::Unknown => DEFAULT_URGENCY,
            Kind::Follows => AFTER,
        }
    }
}

impl Signal {
    /// The signal of an answer of which nothing is known.
    pub fn indifferent(rules: Rules) -> Self {
        Self {
            class: DEFAULT_URGENCY,
            urgency: DEFAULT_URGENCY,
            incremental: None,
            first_urgency: 0,
            of_server: None,
            rules,
        }
    }

    /// The signal after the client said `priority` anew; what it leaves out is the default (RFC
    /// 9218, section 7).
    pub fn updated(self, priority: Priority) -> Self {
        if !self.rules.trust_priority {
            return self;
        }
        let wanted = Self {
            urgency: priority.urgency_or_default().max(self.first_urgency),
            incremental: Some(priority.is_incremental()),
            ..self
        };
        match self.of_server {
            Some(of_server) => wanted.overruled(of_server),
            None => wanted,
        }
    }

    /// The server's word: what it leaves out stays as the client wants it (RFC 9218, section 5).
    fn overruled(self, priority: Priority) -> Self {
        Self {
            class: priority.urgency.unwrap_or(self.class),
            urgency: priority.urgency.unwrap_or(self.urgency),
            incremental: priority.incremental.or(self.incremental),
            of_server: Some(priority),
            ..self
        }
    }
}

/// What a browser will do with the response (Fetch Metadata, 2.1). A `fetch` of a script has the
/// destination `empty`, and may be anything.
fn kind_of_destination(destination: &[u8]) -> Kind {
    match destination {
        b"document" | b"iframe" | b"frame" | b"style" | b"script" | b"font" | b"xslt" => {
            Kind::Readable
        }
        b"image" | b"video" | b"audio" | b"track" | b"embed" | b"object" => Kind::Follows,
        _ => Kind::Unknown,
    }
}

fn kind_of_content(response: &HeaderMap) -> Kind {
    match media_type(response) {
        b"text/html"
        | b"text/css"
        | b"text/javascript"
        | b"application/javascript"
        | b"application/x-javascript"
        | b"application/xhtml+xml" => Kind::Readable,
        media_type if media_type.starts_with(b"font/") => Kind::Readable,
        media_type if media_type.starts_with(b"image/") => Kind::Follows,
        _ => Kind::Unknown,
    }
}

/// Whether the response is to be kept or played, not needed for a page to be read.
fn storage_of(response: &HeaderMap) -> Storage {
    let disposition = response.get(CONTENT_DISPOSITION);
    if disposition.is_some_and(|value| starts_with_ignoring_case(value.as_bytes(), b"attachment")) {
        return Storage::Stored;
    }
    match media_type(response) {
        b"application/octet-stream"
        | b"application/zip"
        | b"application/gzip"
        | b"application/x-gzip"
        | b"application/zstd"
        | b"application/x-bzip"
        | b"application/x-bzip2"
        | b"application/x-xz"
        | b"application/x-tar"
        | b"application/x-7z-compressed"
        | b"application/vnd.rar"
        | b"application/x-rar-compressed"
        | b"application/x-iso9660-image"
        | b"application/x-apple-diskimage"
        | b"application/x-rpm"
        | b"application/x-debian-package"
        | b"application/vnd.debian.binary-package"
        | b"application/vnd.android.package-archive"
        | b"application/java-archive"
        | b"application/x-msdownload"
        | b"application/vnd.microsoft.portable-executable"
        | b"application/x-bittorrent" => Storage::Stored,
        media_type if media_type.starts_with(b"video/") => Storage::Played,
        media_type if media_type.starts_with(b"audio/") => Storage::Played,
        _ => Storage::Shown,
    }
}

/// The media type without its parameters, as it is written: servers write it in lower case.
fn media_type(response: &HeaderMap) -> &[u8] {
    let value = response
        .get(CONTENT_TYPE)
        .map_or(&b""[..], |value| value.as_bytes());
    let end = value.iter().position(|&byte| byte == b';');
    value[..end.unwrap_or(value.len())].trim_ascii()
}

fn starts_with_ignoring_case(value: &[u8], start: &[u8]) -> bool {
    value
        .get(..start.len())
        .is_some_and(|head| head.eq_ignore_ascii_case(start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::{HeaderName, HeaderValue};

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let line = |&(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        };
        lines.iter().map(line).collect()
    }

    fn signal(
        request: &[(&'static str, &'static str)],
        response: &[(&'static str, &'static str)],
        rules: Rules,
    ) -> (u8, Option<bool>) {
        let signal = Hints::of(&headers(request)).signal(&headers(response), rules);
        (signal.urgency, signal.incremental)
    }

    fn urgency(request: (&'static str, &'static str), content_type: &'static str) -> u8 {
        let response = [("content-type", content_type)];
        signal(&[request], &response, Rules::default()).0
    }

    const REFERRED: (&str, &str) = ("referer", "http://example.org/");

    #[test]
    fn what_the_server_says_holds_against_later_updates() {
        let mut answer = HeaderMap::new();
        answer.insert("priority", HeaderValue::from_static("u=6"));
        let signal = Hints::default().signal(&answer, Rules::default());
        assert_eq!((signal.class, signal.urgency), (6, 6));
        let update = Priority::parse(b"u=0, i").unwrap();
        let updated = signal.updated(update);
        assert_eq!((updated.class, updated.urgency), (6, 6));
        assert_eq!(updated.incremental, Some(true));
    }

    #[test]
    fn a_tool_has_its_size_and_nothing_else() {
        for content_type in ["text/html", "image/png", "application/zip"] {
            let response = [("content-type", content_type)];
            let request = [("user-agent", "tool/1"), ("accept", "*/*")];
            assert_eq!(signal(&request, &response, Rules::default()), (3, None));
        }
    }

    #[test]
    fn what_the_client_says_holds() {
        let of = |value| {
            let request = [("priority", value), ("sec-fetch-dest", "image"), REFERRED];
            signal(&request, &[("content-type", "text/html")], Rules::default())
        };
        assert_eq!(of("u=0, i"), (0, Some(true)));
        assert_eq!(of("u=5"), (5, Some(false)));
        assert_eq!(of("i"), (3, Some(true)));
        assert_eq!(of("u=9"), (3, Some(false)));
        assert_eq!(of("u=,"), (4, None), "as if not sent");
    }

    #[test]
    fn the_operator_may_distrust() {
        let request = [("priority", "u=1"), ("sec-fetch-dest", "image"), REFERRED];
        let distrusting = Rules {
            trust_priority: false,
        };
        let response = [("content-type", "text/html")];
        assert_eq!(signal(&request, &response, distrusting), (3, None));
        let said = Hints::default().signal(&HeaderMap::new(), distrusting);
        assert_eq!(said.updated(Priority::parse(b"u=0").unwrap()), said);
    }

    #[test]
    fn without_a_priority_text_goes_before_pictures() {
        assert_eq!(urgency(("sec-fetch-dest", "document"), "text/html"), 2);
        assert_eq!(urgency(("sec-fetch-dest", "style"), "text/css"), 2);
        assert_eq!(urgency(("sec-fetch-dest", "empty"), "image/png"), 3);
        assert_eq!(urgency(("sec-fetch-dest", "image"), "image/png"), 4);
        assert_eq!(urgency(REFERRED, "text/html; charset=utf-8"), 2);
        assert_eq!(urgency(REFERRED, "font/woff2"), 2);
        assert_eq!(urgency(REFERRED, "application/json"), 3);
        assert_eq!(urgency(REFERRED, "image/png"), 4);
        assert_eq!(urgency(REFERRED, "application/zip"), 4);
        assert_eq!(urgency(("accept", "*/*"), "image/png"), 3);
    }

    #[test]
    fn a_navigation_that_turns_out_to_be_a_download_comes_after_the_page() {
        for (response, first) in [
            (("content-type", "application/x-iso9660-image"), 6),
            (("content-type", "video/mp4"), 3),
            (("content-disposition", "Attachment; filename=x"), 6),
        ] {
            let of = |request| signal(&[request], &[response], Rules::default()).0;
            assert_eq!(of(("priority", "u=0, i")), first);
            assert_eq!(of(("priority", "u=7")), 7);
            assert_eq!(of(("sec-fetch-dest", "document")), 4);
        }
    }

    #[test]
    fn nothing_that_a_client_sends_changes_its_class() {
        for request in [("priority", "u=0"), ("sec-fetch-dest", "style"), REFERRED] {
            for content_type in ["text/html", "image/png", "application/zip"] {
                let hints = Hints::of(&headers(&[request]));
                let response = headers(&[("content-type", content_type)]);
                let signal = hints.signal(&response, Rules::default());
                assert_eq!(signal.class, 3, "{request:?} {content_type}");
                let updated = signal.updated(Priority::parse(b"u=0, i").unwrap());
                assert_eq!(updated.class, 3);
            }
        }
    }

    #[test]
    fn what_the_server_says_holds_against_the_client() {
        let of = |request, response| {
            signal(
                &[("priority", request)],
                &[("priority", response)],
                Rules::default(),
            )
        };
        assert_eq!(of("u=5, i", "u=1"), (1, Some(true)));
        assert_eq!(of("u=5, i", "i=?0"), (5, Some(false)));
        assert_eq!(of("u=5, i", "u="), (5, Some(true)));
    }

    #[test]
    fn an_update_holds_as_the_field_would() {
        let picture = headers(&[("content-type", "image/png")]);
        let signal = Hints::default().signal(&picture, Rules::default());
        let updated = signal.updated(Priority::parse(b"u=1, i").unwrap());
        assert_eq!((updated.urgency, updated.incremental), (1, Some(true)));
        let again = updated.updated(Priority::parse(b"").unwrap());
        assert_eq!((again.urgency, again.incremental), (3, Some(false)));
        let film = headers(&[("content-type", "video/mp4")]);
        let signal = Hints::default().signal(&film, Rules::default());
        assert_eq!(signal.updated(Priority::parse(b"u=0").unwrap()).urgency, 3);
    }
}
