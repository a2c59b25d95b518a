//! What `sooner sim`, `sooner solve model` and `sooner load model` have in common: the systems that
//! flags and a model file describe, and their exact means.

mod args;
mod cases;
mod exact;
mod infinite;
mod users;

pub use args::SystemArgs;
#[cfg(all(target_os = "linux", feature = "linux"))]
pub use cases::read;
pub use cases::{Case, cases};
pub use exact::{mean_response, queue};
pub use infinite::why as infinite;
