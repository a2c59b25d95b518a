//! What waits inside a PostgreSQL server.
//!
//! | module | what it does |
//! |---|---|
//! | [`server`], [`connection`] | the server and its processes; a session on it as a role in pg_monitor |
//! | [`activity`], [`processor`], [`locks`] | what it shows at a moment: sessions, processor times, who waits for whom |
//! | [`classes`] | the class and the kind of what a session does |
//! | [`part`], [`ages`], [`tally`], [`breakdown`] | from looks to milliseconds by part |
//! | [`meter`] | what looking costs, and what the processors do |
//! | [`knobs`] | what each way to go first could gain |
//! | [`explain`] | all of that, for a while |

pub mod activity;
pub mod ages;
pub mod breakdown;
pub mod classes;
pub mod connection;
pub mod explain;
pub mod knobs;
pub mod locks;
pub mod meter;
pub mod part;
pub mod processor;
pub mod server;
pub mod tally;
