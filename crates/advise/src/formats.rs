//! Formats of access logs, as data: which field is what, and in which unit. [`crate::line`] reads
//! lines by this table, first row first.

mod names;

use crate::models;
use Field::*;
use Unit::*;
use names::{COLUMNS, NGINX, RAILS};

/// What a field is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// A bare word, passed over.
    Word,
    /// A text in quotes, passed over.
    Text,
    /// The line of the request in quotes: `GET /a HTTP/1.1`.
    Request,
    /// The method of the request.
    Method,
    /// The path of the request, with or without what stands before and behind it.
    Path,
    /// What stands behind the path, where the log has it apart.
    Query,
    /// Which server answered, or which service of it.
    Server,
    /// The language model that answered.
    Model,
    /// The client's address or name.
    Client,
    /// The same with a port behind it, which is no part of an address however that is written.
    ClientWithPort,
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
    /// A part of that time which was the server's.
    TookPartAtServer(Unit),
    /// A part of that time in which the response was written and nothing computed.
    TookPartOnLink(Unit),
    /// Likewise the rest from the beginning of the response to its last byte: a server that streams
    /// still works on it.
    TookPartOfResponse(Unit),
    /// The time at the server that answered, several attempts with commas between them.
    AtServer(Unit),
    /// The same, 0 where none was asked.
    AtServerUnlessZero(Unit),
    /// The time until the response of the server that answered began; its bytes came after that.
    UntilResponse(Unit),
    /// The time in a queue before the server.
    Waited(Unit),
    /// HAProxy's times with slashes between them, in milliseconds; the last is of all.
    Timers,
    /// The same, each in a field of its own.
    Timer,
    /// When the response ended, where the line has the time of the request too.
    Ended,
    /// When the first token of an answer came.
    FirstToken,
    /// The time until then.
    UntilFirstToken(Unit),
    /// Tokens of the prompt.
    PromptTokens,
    /// Tokens of the answer.
    CompletionTokens,
    /// Whatever follows: a time taken may be in it, see `taken`.
    Rest,
    /// Whatever follows, the line of the request as the last in quotes.
    RestWithRequest,
}

/// The unit of a time that was taken. Where the text names one, as `12ms`, that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Seconds.
    S,
    /// Milliseconds.
    Ms,
    /// Microseconds.
    Us,
    /// Nanoseconds.
    Ns,
    /// Seconds with a decimal point, milliseconds without, unless the operator says otherwise.
    SecondsOrMs,
    /// Seconds, unless the operator says otherwise.
    SUnlessGiven,
    /// Milliseconds, unless the operator says otherwise.
    MsUnlessGiven,
}

/// How a line is cut into fields.
#[derive(Clone, Copy, Debug)]
pub enum Layout {
    /// The client in words before a time in brackets, then fields in order.
    Httpd(&'static [Field]),
    /// A client with its port as the last word before a time in brackets, then fields in order.
    HaProxy(&'static [Field]),
    /// Fields in order, apart by blanks.
    Words(&'static [Field]),
    /// An object of JSON that has one of the members `marks`; where several members say the same,
    /// the first counts.
    Members {
        /// Tell the format from others; none where any object may be one. With a dot behind it, one
        /// that is an object itself.
        marks: &'static [&'static str],
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

const fn members(
    marks: &'static [&'static str],
    members: &'static [(&'static str, Field)],
) -> Layout {
    Layout::Members { marks, members }
}

/// All that are known.
pub static FORMATS: &[Format] = &[
    begin(
        "HAProxy, option httplog",
        Layout::HaProxy(&[
            Word,
            Server,
            Timers,
            Status,
            Sent,
            Word,
            Word,
            Word,
            Word,
            Word,
            RestWithRequest,
        ]),
    ),
    begin(
        "HAProxy, option tcplog",
        Layout::HaProxy(&[Word, Server, Timers, Sent, Word, Word, Word]),
    ),
    begin(
        "HAProxy, option httplog clf",
        Layout::Httpd(&[
            Request,
            Status,
            Sent,
            Text,
            Text,
            Word,
            TimeMilliseconds,
            Text,
            Text,
            Server,
            Timer,
            Timer,
            Timer,
            Timer,
            Timer,
            Rest,
        ]),
    ),
    begin(
        "Traefik, common",
        Layout::Httpd(&[
            Request,
            Status,
            Body,
            Text,
            Text,
            Word,
            Text,
            Server,
            Took(Ms),
        ]),
    ),
    begin(
        "combined, with X-Forwarded-For",
        Layout::Httpd(&[Request, Status, Body, Text, Text, Forwarded, Rest]),
    ),
    begin(
        "combined",
        Layout::Httpd(&[Request, Status, Body, Text, Text, Rest]),
    ),
    begin("common", Layout::Httpd(&[Request, Status, Body, Rest])),
    end(
        "AWS ALB",
        Layout::Words(&[
            Word,
            Time,
            Word,
            ClientWithPort,
            Server,
            TookPart(S),
            TookPartAtServer(S),
            TookPart(S),
            Status,
            Word,
            Word,
            Sent,
            Request,
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
            ClientWithPort,
            Server,
            TookPart(S),
            TookPartAtServer(S),
            TookPart(S),
            Status,
            Word,
            Word,
            Sent,
            Request,
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
            ClientWithPort,
            Server,
            TookPart(S),
            TookPartAtServer(S),
            TookPart(S),
            Status,
            Word,
            Word,
            Sent,
            Request,
            Rest,
        ]),
    ),
    begin(
        "Envoy, default",
        Layout::Words(&[
            Time,
            Request,
            Status,
            Word,
            Word,
            Body,
            Took(Ms),
            UntilResponse(Ms),
            Forwarded,
            Text,
            Text,
            Text,
            Server,
            Rest,
        ]),
    ),
    begin(
        "Envoy, Istio's",
        Layout::Words(&[
            Time,
            Request,
            Status,
            Word,
            Word,
            Word,
            Text,
            Word,
            Body,
            Took(Ms),
            UntilResponse(Ms),
            Forwarded,
            Text,
            Text,
            Text,
            Server,
            Rest,
        ]),
    ),
    end(
        "JSON of language models",
        members(models::MARKS, models::MEMBERS),
    ),
    begin(
        "Sooner, JSON",
        members(
            &["service_ns"],
            &[
                ("time", Time),
                ("remote", Client),
                ("method", Method),
                ("target", Path),
                ("status", Status),
                ("size_bytes", Body),
                ("wait_ns", TookPartOnLink(Ns)),
                ("service_ns", TookPartOfResponse(Ns)),
                ("upstream_ns", UntilResponse(Ns)),
                ("upstream_wait_ns", Waited(Ns)),
                ("upstream_server", Server),
            ],
        ),
    ),
    begin(
        "Traefik, JSON",
        members(
            &["DownstreamStatus"],
            &[
                ("StartUTC", Time),
                ("StartLocal", Time),
                ("time", Time),
                ("ClientHost", Client),
                ("ClientAddr", Client),
                ("DownstreamStatus", Status),
                ("DownstreamContentSize", Body),
                ("RequestMethod", Method),
                ("RequestPath", Path),
                ("ServiceAddr", Server),
                ("Duration", Took(Ns)),
                ("OriginDuration", AtServerUnlessZero(Ns)),
            ],
        ),
    ),
    end(
        "Caddy, JSON",
        members(
            // Others write the line of the request by this name.
            &["request."],
            &[
                ("ts", Time),
                ("request.client_ip", Client),
                ("request.remote_ip", Client),
                ("request.remote_addr", Client),
                ("status", Status),
                ("size", Body),
                ("request.method", Method),
                ("request.uri", Path),
                ("duration", Took(SUnlessGiven)),
            ],
        ),
    ),
    end("CloudFront, JSON", members(&["x-edge-location"], COLUMNS)),
    begin(
        "Envoy, JSON",
        members(
            &["response_code"],
            &[
                ("start_time", Time),
                ("x_forwarded_for", Forwarded),
                ("downstream_remote_address", Client),
                ("downstream_local_address", Client),
                ("response_code", Status),
                ("bytes_sent", Body),
                ("method", Method),
                ("path", Path),
                ("x_envoy_original_path", Path),
                ("upstream_host", Server),
                ("duration", Took(Ms)),
                ("upstream_service_time", UntilResponse(Ms)),
                ("x_envoy_upstream_service_time", UntilResponse(Ms)),
            ],
        ),
    ),
    end("Rails, JSON of lograge", members(&["controller"], RAILS)),
    end(
        "JSON by nginx's names",
        Layout::Members {
            marks: &[],
            members: NGINX,
        },
    ),
    end("W3C", Layout::Columns(COLUMNS)),
];
