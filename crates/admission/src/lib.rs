//! Who may go into a backend, and how many: decided without a clock and without I/O.
//!
//! [`Admission`] has everything about the jobs of one backend. Its parts can be had by themselves:
//! [`AdmissionQueue`] orders who waits, [`Predictor`] says how long a job will take,
//! [`Controller`] finds the limit, [`verdict`] says whether targets can be met.

mod admission;
mod caps;
mod controller;
mod follow;
mod goals;
mod kind_name;
mod law;
mod mean;
mod order;
mod playback;
mod player;
mod predict;
mod queue;
mod recent;
mod rehearsal;
mod second_chance;
mod subject;
mod ticket;
mod waiting;
mod window;

pub use admission::{Admission, AdmissionSettings, AdmissionStatus, Renewed};
pub use controller::{Change, Controller, ControllerLimits, Why, start};
pub use follow::{Follower, Taken};
pub use goals::feasible::{Observed, Verdict, verdict};
pub use goals::{ClassStatus, Done, Goal, Need, ResponseTarget};
pub use kind_name::KindName;
pub use mean::Mean;
pub use order::{Order, Tuning, Within};
pub use playback::{OrderFigures, PlayedOrders};
pub use player::{Player, Recorded};
pub use predict::{
    KIND_MEMORY, Outcome, Prediction, Predictor, Quality, Shadows, Trust, quality, tuning_of,
};
pub use queue::{AdmissionQueue, QueueFull, Request, TURN_NS};
pub use rehearsal::{Ending, Rehearsal, WouldWait};
pub use second_chance::SecondChance;
pub use sooner_policy::{ClientId, JobId, Lateness, Payer, Promise, Time};
pub use subject::Subject;
pub use ticket::Ticket;
pub use window::{Window, Windows};
