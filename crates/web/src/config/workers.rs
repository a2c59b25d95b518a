//! `workers`: threads that serve.

use super::{Config, Misconfigured};
use sooner_config::Limit;
use std::thread::available_parallelism;

/// More would only take turns, on any machine of today.
const WORKERS_MAX: usize = 256;
const KEY: &str = "workers";

impl Config {
    /// Threads that serve: as many as are named, or as processors may be used (by affinity and
    /// quota).
    pub fn worker_count(&self) -> usize {
        match self.workers.as_ref().map(|workers| *workers.get_ref()) {
            None => 1,
            Some(Limit::Fixed(count)) => count.get(),
            Some(Limit::Auto) => processors().min(WORKERS_MAX),
        }
    }

    /// Workers that there cannot be.
    pub(super) fn check_workers(&self) -> Result<(), Misconfigured> {
        let Some(workers) = &self.workers else {
            return Ok(());
        };
        let count = self.worker_count();
        if count > WORKERS_MAX {
            let message = format!("{count} are too many; write at most {WORKERS_MAX}, or \"auto\"");
            return Err(Misconfigured::at(workers, KEY, message));
        }
        Ok(())
    }

    /// Workers that work and are hardly meant.
    pub(super) fn remark_on_workers(&self) -> Option<Misconfigured> {
        let workers = self.workers.as_ref()?;
        let (count, processors) = (self.worker_count(), processors());
        (count > processors).then(|| {
            let message = format!(
                "{count} take turns on the {processors} processor(s) that this process may use; \"auto\" stands for {processors}"
            );
            Misconfigured::at(workers, KEY, message)
        })
    }
}

fn processors() -> usize {
    available_parallelism().map_or(1, |count| count.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config {
        Config::parse(text).unwrap()
    }

    #[test]
    fn it_is_the_same_before_upstreams() {
        let route = "[[route]]\npath = \"/\"\nupstream = \"u\"\n";
        for (workers, count) in [("2", 2), ("\"auto\"", processors())] {
            let config = config(&format!("workers = {workers}\n{route}"));
            assert_eq!(
                (config.worker_count(), config.check_workers()),
                (count, Ok(()))
            );
        }
        assert_eq!(config("workers = 1").check_workers(), Ok(()));
    }

    #[test]
    fn as_many_as_processors_unless_named() {
        assert_eq!(config("").worker_count(), 1);
        let auto = config("workers = \"auto\"");
        assert_eq!(auto.worker_count(), processors());
        assert!(auto.remark_on_workers().is_none());
        let many = config(&format!("workers = {}", processors() + 1));
        assert!(many.remark_on_workers().is_some());
        assert!(config("workers = 257").check_workers().is_err());
        for wrong in ["0", "-1", "\"two\"", "1.5", "true"] {
            assert!(
                Config::parse(&format!("workers = {wrong}")).is_err(),
                "{wrong}"
            );
        }
    }
}
