//! Holds jobs outside a backend and lets them in, in order.
//!
//! A backend that is given everything at once orders its work by chance. A [`Gate`] lets at most a limit of jobs in; the rest wait
//! outside in one queue, where a class goes before another one and, within a class, what is expected to be short before what is
//! expected to be long. No job is dropped unless a bound of the queue is asked for, and none waits for ever.
//!
//! [`Admission`] decides and [`Estimates`] says how long a job will take; neither reads a clock. [`Gate`] is both behind a lock, with
//! futures to wait in. It needs no runtime: whoever polls will be woken.

mod admission;
mod controller;
mod estimate;
mod gate;
mod goals;
mod key;
mod order;
mod recent;
mod second_chance;
mod window;

pub use admission::{Admission, Coming, QueueFull, TURN_NS};
pub use controller::{Change, Controller, ControllerLimits, Why, start};
pub use estimate::{Estimates, KEY_MEMORY, Mean};
pub use gate::{Enter, Gate, GateLimits, GateStatus, Permit};
pub use goals::feasible::{Seen, Verdict, verdict};
pub use goals::{Aim, Goal, Need, Standing};
pub use key::key;
pub use order::Order;
pub use second_chance::SecondChance;
pub use sooner_policy::{JobId, Lateness, Promise, Time};
pub use window::Window;
