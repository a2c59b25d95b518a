//! `workers`: threads that serve.

use super::{Config, Misconfigured};
use sooner_config::Limit;
use std::thread::available_parallelism;

/// More would only take turns, on any machine of today.
const WORKERS_MAX: usize = 256;
const KEY: &str = "workers";

impl Config {
    /// Threads that serve: as many as are named, or as processors may be used (by affinity and
    /// quota); one where there is a queue before upstreams, of which each worker would have its
    /// own.
    pub fn worker_count(&self) -> usize {
        match self.workers.as_ref().map(|workers| *workers.get_ref()) {
            None => 1,
            Some(Limit::Fixed(count)) => count.get(),
            Some(Limit::Auto) if self.passes_requests_on() => 1,
            Some(Limit::Auto) => processors().min(WORKERS_MAX),
        }
    }

    fn passes_requests_on(&self) -> bool {
        !self.upstream.is_empty() || !self.route.is_empty()
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
        if count > 1 && self.passes_requests_on() {
            return Err(Misconfigured::at(
                workers,
                KEY,
                "only files can be served by several so far, and there is [[upstream]] or [[route]]; write 1, or \"auto\"",
            ));
        }
        Ok(())
    }

    /// Workers that work and are hardly meant.
    pub(super) fn remark_on_workers(&self) -> Option<Misconfigured> {
        let workers = self.workers.as_ref()?;
        let (count, processors) = (self.worker_count(), processors());
        if count > processors {
            let message = format!(
                "{count} take turns on the {processors} processor(s) that this process may use; \"auto\" stands for {processors}"
            );
            return Some(Misconfigured::at(workers, KEY, message));
        }
        let is_auto = *workers.get_ref() == Limit::Auto;
        (is_auto && processors > 1 && self.passes_requests_on()).then(|| {
            let message = "1, because only files can be served by several so far, and there is [[upstream]] or [[route]]";
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

    const ROUTE: &str = "[[route]]\npath = \"/\"\nupstream = \"u\"\n";

    fn config(text: &str) -> Config {
        Config::parse(text).unwrap()
    }

    #[test]
    fn upstreams_have_one_worker() {
        let together = config(&format!("workers = 2\n{ROUTE}"));
        let mistake = together.check_workers().unwrap_err();
        assert!(mistake.message.contains("write 1"), "{mistake:?}");
        let auto = config(&format!("workers = \"auto\"\n{ROUTE}"));
        assert_eq!((auto.worker_count(), auto.check_workers()), (1, Ok(())));
        assert_eq!(auto.remark_on_workers().is_some(), processors() > 1);
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
