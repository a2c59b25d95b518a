//! From an access log to a forecast: what the traffic is like, what each order would give it, who
//! would wait longer, and when it is not worth it.
//!
//! One pass over the logs, in bounded memory however large they are ([`Surveyor`]); the busiest
//! hours are kept and simulated on the uplink, as they were and as they would be with more traffic
//! ([`forecast()`]).

mod busiest;
mod client;
mod decode;
mod downloads;
mod files;
mod forecast;
mod formats;
mod line;
mod lines;
mod load;
mod members;
mod page;
mod parts;
mod sizes;
mod survey;
mod taken;
mod text;
mod visits;
mod when;
mod words;

pub use files::{LogError, Logs};
pub use forecast::{Forecast, NoForecast, Outcome, Scenario, forecast};
pub use formats::{FORMATS, Field, Format, Layout, Unit};
pub use line::{Entry, LineReader, NoEntry};
pub use page::html;
pub use survey::{FormatLines, Survey, Surveyor};
pub use taken::{Source, TimeTaken};
pub use text::{advice, text};
