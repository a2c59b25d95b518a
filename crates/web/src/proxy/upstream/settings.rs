//! What a configuration says of an upstream: all that a reload may change while requests wait.

use crate::proxy::classes::Classes;
use crate::proxy::config::UpstreamTable;
use crate::proxy::fastcgi::FastCgi;
use crate::proxy::health::{HealthLimits, Standing};
use crate::proxy::request_headers::RequestHeaders;
use crate::proxy::server::Server;
use crate::proxy::server_limit::ServerLimit;
use crate::proxy::share_by::ShareBy;
use crate::proxy::subject::Kind;
use crate::proxy::tell_wait::TellWait;
use crate::proxy::waiting_stream::Comments;
use hyper::header::HeaderValue;
use sooner_admission::{Order, Time};
use sooner_config::classes::OrderName;
use sooner_http::json_fields::FieldPath;
use sooner_tls::Authorities;
use std::sync::Arc;
use std::time::Duration;

/// How long each step with a server may take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
    /// Waiting to go in; `None`: as long as the client does.
    pub queue: Option<Duration>,
    /// Connecting, TLS included.
    pub connect: Duration,
    /// From the end of the request to the beginning of the response.
    pub response: Duration,
    /// Between two pieces of the response.
    pub idle: Duration,
}

/// The `Host` a server gets.
#[derive(Clone, Debug, PartialEq)]
pub enum HostRule {
    /// The client's.
    Client,
    /// The name in the client's: in lower case, without port and final dot.
    Name,
    /// The server's own.
    Server,
    /// This.
    Fixed(HeaderValue),
}

/// The health check of the servers.
#[derive(Clone, Debug, PartialEq)]
pub struct HealthCheck {
    /// The path to get.
    pub path: String,
    /// The time from one check to the next, and for a response.
    pub interval: Duration,
}

/// What is said of an upstream.
pub struct Settings {
    /// What it was made from.
    pub table: UpstreamTable,
    /// What its servers are trusted by; `None` where none speaks TLS.
    pub authorities: Option<Authorities>,
    /// Its servers.
    pub servers: Vec<Arc<Server>>,
    /// How many requests each gets at once.
    pub limit: ServerLimit,
    /// When they go out and come back.
    pub health: HealthLimits,
    /// The health check.
    pub check: Option<HealthCheck>,
    /// Who is told how long requests waited.
    pub tell_wait: TellWait,
    /// How long each step may take.
    pub times: Times,
    /// How often a request that may be repeated is.
    pub retries: u32,
    /// Which `Host` its servers get.
    pub host: HostRule,
    /// Headers that requests to them have, whatever clients sent.
    pub headers: Arc<RequestHeaders>,
    /// What makes two of its requests alike.
    pub kind: Kind,
    /// Who is charged for what requests take; `None`: all alike.
    pub share_by: Option<ShareBy>,
    /// How long an idle connection is kept.
    pub keep: Duration,
    /// Where its scripts are, if its servers run some.
    pub fastcgi: Option<FastCgi>,
}

impl Settings {
    /// Whether nothing is held back, and it is only found out what would be.
    pub fn is_observed(&self) -> bool {
        self.table.observe.as_ref().is_some_and(|it| *it.get_ref())
    }

    /// How many may wait; `None`: all that come.
    pub fn waiting_max(&self) -> Option<usize> {
        self.table.waiting_max.as_ref().map(|most| *most.get_ref())
    }

    /// Whether the same is said here.
    pub fn is_like(&self, other: &Self) -> bool {
        self.table == other.table && self.authorities == other.authorities
    }

    /// The most requests that are ever inside, while all its servers are up.
    pub fn most(&self) -> usize {
        let all = self.servers.iter().map(|_| self.limit.max());
        all.fold(0, usize::saturating_add)
    }

    /// Whether no server is up, so that no request is admitted.
    pub fn is_down(&self, now: Time) -> bool {
        let mut all = self.servers.iter();
        all.all(|server| server.standing(now) == Standing::Down)
    }

    /// The fields of bodies that kinds, who is charged, and comments go by.
    pub fn fields(&self) -> impl Iterator<Item = &FieldPath> {
        let share_by = self.share_by.as_ref().and_then(ShareBy::field);
        let comments = self.tell_wait.stream.as_ref().map(Comments::field);
        self.kind.fields().chain(share_by).chain(comments)
    }

    /// In which order requests of these classes that wait go in.
    pub fn order(&self, classes: &Classes) -> Order {
        let order = self.table.order.as_ref();
        let otherwise = order.map_or(OrderName::Shortest, |order| *order.get_ref());
        classes.order(
            self.table.name.get_ref(),
            otherwise,
            self.share_by.is_some(),
        )
    }
}
