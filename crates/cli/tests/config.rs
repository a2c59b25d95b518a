//! `sooner serve --config FILE`: looked at by `--check`, changed by SIGHUP, under flags, under a
//! supervisor.

mod check;
mod place;
mod proxied;
mod random;
mod random_config;
mod reload;
mod reload_at_random;
mod start_and_stop;
mod targets;
