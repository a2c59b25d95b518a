//! Formats of access logs, as data: which field is what, and in which unit. [`crate::line`] reads
//! lines by this table, first row first.

use Field::*;
use Unit::*;

/// What a field is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// A bare word, passed over.
    Word,
    /// A text in quotes, passed over.
    Text,
    /// The client's address or name.
    Client,
    /// A list of forwarded addresses, of which the first is the client. Where it has none, the
    /// client is who asked.
    Forwarded,
    /// The time of the line.
    Time,
    /// Milliseconds that the time leaves out.
    TimeMilliseconds,
    /// The day of the line, UTC.
    Date,
    /// The time of that day.
    Clock,
    /// When the request came, where the line has another time too; goes before it.
    Began,
    /// The status of the response.
    Status,
    /// Bytes of the body.
    Body,
    /// Bytes that were sent, the head among them.
    Sent,
    /// The time the response took.
    Took(Unit),
    /// A part of that time; -1 where there was none.
    TookPart(Unit),
    /// HAProxy's times with slashes between them, in milliseconds; the last is of all.
    Timers,
    /// Whatever follows: a time taken may be in it, see `taken`.
    Rest,
}

/// The unit of a time that was taken. Where the text names one, as `12ms`, that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Seconds.
    S,
    /// Milliseconds.
    Ms,
    /// Nanoseconds.
    Ns,
    /// Seconds with a decimal point, milliseconds without.
    SecondsOrMs,
}

/// How a line is cut into fields.
#[derive(Clone, Copy, Debug)]
pub enum Layout {
    /// The client in words before a time in brackets, then fields in order.
    Httpd(&'static [Field]),
    /// A client as the last word before a time in brackets, then fields in order.
    HaProxy(&'static [Field]),
    /// Fields in order, apart by blanks.
    Words(&'static [Field]),
    /// An object of JSON that has the member `mark`; where several members say the same, the first
    /// counts.
    Members {
        /// Tells the format from others; none where any object may be one.
        mark: Option<&'static str>,
        /// Names, those inside an object behind a dot.
        members: &'static [(&'static str, Field)],
    },
    /// Columns that a line beginning with `#Fields:` has named.
    Columns(&'static [(&'static str, Field)]),
}

/// A format.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// What it is called in messages.
    pub name: &'static str,
    /// Whether the time of a line is when the response ended; otherwise when the request came.
    pub is_of_the_end: bool,
    /// How a line is cut.
    pub layout: Layout,
}

const fn begin(name: &'static str, layout: Layout) -> Format {
    Format {
        name,
        is_of_the_end: false,
        layout,
    }
}

const fn end(name: &'static str, layout: Layout) -> Format {
    Format {
        name,
        is_of_the_end: true,
        layout,
    }
}

const fn members(mark: &'static str, members: &'static [(&'static str, Field)]) -> Layout {
    Layout::Members {
        mark: Some(mark),
        members,
    }
}

/// All that are known.
pub static FORMATS: &[Format] = &[
    begin(
        "HAProxy, option httplog",
        Layout::HaProxy(&[
            Word, Word, Timers, Status, Sent, Word, Word, Word, Word, Word, Rest,
        ]),
    ),
    begin(
        "HAProxy, option tcplog",
        Layout::HaProxy(&[Word, Word, Timers, Sent, Word, Word, Word]),
    ),
    begin(
        "HAProxy, option httplog clf",
        Layout::Httpd(&[
            Text,
            Status,
            Sent,
            Text,
            Text,
            Word,
            TimeMilliseconds,
            Text,
            Text,
            Text,
            Word,
            Word,
            Word,
            Word,
            Took(Ms),
            Rest,
        ]),
    ),
    begin(
        "Traefik, common",
        Layout::Httpd(&[Text, Status, Body, Text, Text, Word, Text, Text, Took(Ms)]),
    ),
    begin(
        "combined, with X-Forwarded-For",
        Layout::Httpd(&[Text, Status, Body, Text, Text, Forwarded, Rest]),
    ),
    begin(
        "combined",
        Layout::Httpd(&[Text, Status, Body, Text, Text, Rest]),
    ),
    begin("common", Layout::Httpd(&[Text, Status, Body, Rest])),
    end(
        "AWS ALB",
        Layout::Words(&[
            Word,
            Time,
            Word,
            Client,
            Word,
            TookPart(S),
            TookPart(S),
            TookPart(S),
            Status,
            Word,
            Word,
            Sent,
            Text,
            Text,
            Word,
            Word,
            Word,
            Text,
            Text,
            Text,
            Word,
            Began,
            Rest,
        ]),
    ),
    end(
        "AWS ALB, before it told when requests came",
        Layout::Words(&[
            Word,
            Time,
            Word,
            Client,
            Word,
            TookPart(S),
            TookPart(S),
            TookPart(S),
            Status,
            Word,
            Word,
            Sent,
            Text,
            Text,
            Word,
            Word,
            Rest,
        ]),
    ),
    end(
        "AWS Classic Load Balancer",
        Layout::Words(&[
            Time,
            Word,
            Client,
            Word,
            TookPart(S),
            TookPart(S),
            TookPart(S),
            Status,
            Word,
            Word,
            Sent,
            Text,
            Rest,
        ]),
    ),
    begin(
        "Sooner, JSON",
        members(
            "service_ns",
            &[
                ("time", Time),
                ("remote", Client),
                ("status", Status),
                ("size_bytes", Body),
                ("wait_ns", TookPart(Ns)),
                ("service_ns", TookPart(Ns)),
            ],
        ),
    ),
    begin(
        "Traefik, JSON",
        members(
            "DownstreamStatus",
            &[
                ("StartUTC", Time),
                ("StartLocal", Time),
                ("time", Time),
                ("ClientHost", Client),
                ("ClientAddr", Client),
                ("DownstreamStatus", Status),
                ("DownstreamContentSize", Body),
                ("Duration", Took(Ns)),
            ],
        ),
    ),
    end(
        "Caddy, JSON",
        members(
            "request",
            &[
                ("ts", Time),
                ("request.client_ip", Client),
                ("request.remote_ip", Client),
                ("request.remote_addr", Client),
                ("status", Status),
                ("size", Body),
                ("duration", Took(S)),
            ],
        ),
    ),
    end("CloudFront, JSON", members("x-edge-location", COLUMNS)),
    begin(
        "Envoy, JSON",
        members(
            "response_code",
            &[
                ("start_time", Time),
                ("x_forwarded_for", Forwarded),
                ("downstream_remote_address", Client),
                ("downstream_local_address", Client),
                ("response_code", Status),
                ("bytes_sent", Body),
                ("duration", Took(Ms)),
            ],
        ),
    ),
    end(
        "JSON by nginx's names",
        Layout::Members {
            mark: None,
            members: NGINX,
        },
    ),
    end("W3C", Layout::Columns(COLUMNS)),
];

/// nginx has no JSON of its own: these are its variables, and what operators call them.
const NGINX: &[(&str, Field)] = &[
    ("msec", Time),
    ("time_iso8601", Time),
    ("time_local", Time),
    ("@timestamp", Time),
    ("timestamp", Time),
    ("time", Time),
    ("ts", Time),
    ("date", Time),
    ("http_x_forwarded_for", Forwarded),
    ("x_forwarded_for", Forwarded),
    ("xff", Forwarded),
    ("remote_addr", Client),
    ("remote_ip", Client),
    ("remoteIP", Client),
    ("remote_host", Client),
    ("client_ip", Client),
    ("clientip", Client),
    ("client", Client),
    ("remote", Client),
    ("ip", Client),
    ("status", Status),
    ("status_code", Status),
    ("code", Status),
    ("body_bytes_sent", Body),
    ("bytes_sent", Sent),
    ("bytes", Body),
    ("size", Body),
    ("body_bytes", Body),
    ("response_size", Body),
    ("request_time", Took(S)),
    ("request_time_ms", Took(Ms)),
    ("duration_ms", Took(Ms)),
    ("took_ms", Took(Ms)),
    ("response_time_ms", Took(Ms)),
];

/// The W3C's names, which IIS and CloudFront use.
const COLUMNS: &[(&str, Field)] = &[
    ("date", Date),
    ("time", Clock),
    ("x-forwarded-for", Forwarded),
    ("cs(x-forwarded-for)", Forwarded),
    ("c-ip", Client),
    ("c-dns", Client),
    ("sc-status", Status),
    ("sc-bytes", Sent),
    ("time-taken", Took(SecondsOrMs)),
];
