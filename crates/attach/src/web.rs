//! Responses of web servers are ordered where they leave the host.
//!
//! | module | what it does |
//! |---|---|
//! | [`config`] | what the operator requested |
//! | [`ports`] | which ports a process, a control group or any server listens on |
//! | [`attached`] | bands and programs on a device, the cutoffs between the bands learned as responses pass |
//! | [`watch`] | response times by size, beside those that FAIR would have given |
//! | [`snapshot`] | all that as values, for programs and for `attach top` |
//! | [`exposition`] | the same for Prometheus |
//! | [`control`] | the socket on which a running one answers |
//! | [`daemon`] | attaching until told to stop |
//! | [`detach`] | ending one that runs, and cleaning up after one that was killed |

pub mod attached;
pub mod config;
pub mod control;
pub mod daemon;
pub mod detach;
pub mod exposition;
pub mod ports;
pub mod snapshot;
pub mod watch;
