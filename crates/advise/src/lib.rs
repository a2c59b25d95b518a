//! From an access log to a forecast: what the traffic is like, what each order would give it, who
//! would wait longer, and when it is not worth it.
//!
//! One pass over the logs, in bounded memory however large they are ([`Surveyor`]); the busiest
//! hours are kept and simulated on the uplink, as they were and as they would be with more traffic
//! ([`forecast()`]). Where lines have the time taken, so is the queue before the servers
//! ([`queue`]).

mod busiest;
mod client;
mod decode;
mod downloads;
mod files;
mod forecast;
mod formats;
mod hours;
mod line;
mod lines;
mod load;
mod members;
mod models;
mod page;
mod parts;
pub mod queue;
mod request;
mod requests;
mod sizes;
mod survey;
mod taken;
mod text;
mod trace_files;
mod visits;
mod when;
mod words;

pub use files::{LogError, Logs, Sink};
pub use forecast::{Forecast, NoForecast, Outcome, Scenario, forecast};
pub use formats::{FORMATS, Field, Format, Layout, Unit};
pub use line::{AtServer, Entry, LineReader, NoEntry, Tokens};
pub use page::html;
pub use queue::QueueFigures;
pub use request::Requested;
pub use requests::{LoggedRequest, Requests, Unsaid, is_safe, other_methods};
pub use survey::{FormatLines, LinkFigures, Survey, Surveyor};
pub use taken::{Source, TimeTaken};
pub use text::{advice, text};
pub use trace_files::{TraceFiles, trace_files};
