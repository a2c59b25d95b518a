//! What waits inside a PostgreSQL server.
//!
//! | module | what it does |
//! |---|---|
//! | [`server`], [`connection`] | the server and its processes; a session on it as a role in pg_monitor |
//! | [`activity`], [`processor`], [`locks`](sooner_postgres::locks) | what it shows at a moment: sessions, processor times, who waits for whom |
//! | [`classes`] | the class and the kind of what a session does |
//! | [`part`], [`ages`], [`tally`], [`resolve`], [`rates`] | from looks to seconds by part, and how many transactions there are |
//! | [`interval`], [`row`], [`breakdown`] | from these to milliseconds by part, and how sure they are |
//! | [`meter`] | what looking costs, and what the processors do |
//! | [`knobs`] | what each way to go first could gain |
//! | [`explain`] | all of that, for a while |
//! | [`levels`], [`mechanism`], [`trial`] | which processes the processor goes to first, by which means, and whether that works |
//! | [`numbers`], [`family`] | which process a number of the server means |
//! | [`told`], [`gate_tasks`], [`gates`], [`inherit`] | what gates tell; who holds what a raised process waits for |
//! | [`attached`], [`pace`] | all that is known while attached, and how often it looks |
//! | [`daemon`], [`session`], [`leftovers`], [`snapshot`] | attached until told to stop; what is put back |

pub mod activity;
pub mod ages;
mod asking;
pub mod attached;
pub mod breakdown;
pub mod classes;
pub mod connection;
mod counts;
pub mod daemon;
pub mod explain;
pub mod family;
pub mod gate_tasks;
pub mod gates;
pub mod inherit;
pub mod interval;
pub mod knobs;
pub mod leftovers;
pub mod levels;
pub mod mechanism;
pub mod meter;
pub mod numbers;
pub mod pace;
pub mod part;
pub mod processor;
pub mod rates;
pub mod resolve;
pub mod row;
pub mod server;
pub mod session;
pub mod snapshot;
pub mod tally;
pub mod told;
pub mod trial;
