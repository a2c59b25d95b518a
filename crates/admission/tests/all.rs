//! One program of all tests that use the crate from outside, because each program is linked anew.

mod alike;
mod backends;
mod caps;
mod decisions;
mod doubt;
mod grants;
mod overruns;
mod properties;
mod rehearsal;
mod renewal;
mod stalls;
mod targets;
mod worlds;
