//! From an access log to a forecast: what the traffic is like, what each order would give it, who would wait longer, and when it is not worth it.
//!
//! One pass over the log, in bounded memory however large it is ([`Surveyor`]); the busiest hours are kept and simulated on the uplink, as they were and
//! as they would be with more traffic ([`forecast()`]).

mod files;
mod forecast;
mod line;
mod page;
mod sizes;
mod survey;
mod text;
mod visits;
mod when;

pub use files::{LogError, Logs};
pub use forecast::{Forecast, Outcome, Scenario, forecast};
pub use line::{Entry, NoEntry, TimeTaken, read};
pub use page::html;
pub use survey::{Survey, Surveyor};
pub use text::{advice, text};
