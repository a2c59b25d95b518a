//! The workers of a server, each with one request at a time: which the processor goes to first.
//!
//! | module | what it does |
//! |---|---|
//! | [`options`] | what the operator requested |
//! | [`server`] | which processes and threads are workers |
//! | [`source`] | what workers do: by BPF programs, or read from /proc |
//! | [`levels`] | from levels to nice values, set on workers |
//! | [`groups`] | what weighs workers: one group, or several |
//! | [`weight`] | what the whole server gets beside others |
//! | [`trial`] | whether nice values and weights have an effect here |
//! | [`changes`] | what is changed, written down and put back |
//! | [`attached`] | all that is known while attached |
//! | [`daemon`], [`parent`] | attached until told to stop, below a process that puts everything back |
//! | [`waiting`] | what answers while the server is waited for |
//! | [`snapshot`] | all figures |

pub mod attached;
pub mod changes;
pub mod daemon;
pub mod groups;
pub mod levels;
pub mod options;
pub mod parent;
pub mod server;
pub mod snapshot;
pub mod source;
pub mod trial;
pub mod waiting;
pub mod weight;
