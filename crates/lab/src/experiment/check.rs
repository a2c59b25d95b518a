//! What a set-up must fulfil to be run: everything a server, the generator or the kernel would
//! refuse later is refused here, by its key, before anything is set up.

use super::netem;
use super::setup::{Client, Model, Setup, SetupError, wrong};
use crate::peers::Peer;
use sooner_workload::{Crowd, Rate, Schedule};
use std::collections::BTreeSet;

/// What the kernel takes as a maximum segment size, up to what fits a packet of 1500 bytes (tcp(7),
/// `TCP_MAXSEG`).
const MSS_BYTES: std::ops::RangeInclusive<u32> = 88..=1460;

impl Setup {
    pub(super) fn check(&self) -> Result<(), SetupError> {
        self.check_peers()?;
        self.check_runs()?;
        self.check_clients()?;
        self.check_hosts()?;
        self.check_users()?;
        self.check_crowd()?;
        self.check_beside()?;
        self.check_bottleneck()?;
        self.check_netem()?;
        self.check_model()
    }

    fn check_peers(&self) -> Result<(), SetupError> {
        if self.peers.is_empty() {
            return Err(wrong(
                "peers",
                "no server is named; name some, like [\"nginx\", \"sooner srpt user-space\"]",
            ));
        }
        let mut seen = BTreeSet::new();
        for name in &self.peers {
            name.parse::<Peer>()
                .map_err(|error| wrong("peers", error.to_string()))?;
            if !seen.insert(name) {
                return Err(wrong("peers", format!("\"{name}\" is there twice")));
            }
        }
        Ok(())
    }

    fn check_runs(&self) -> Result<(), SetupError> {
        let different: BTreeSet<&u64> = self.seeds.iter().collect();
        if self.seeds.is_empty() || different.len() < self.seeds.len() {
            return Err(wrong("seeds", "at least one, each once, like [1, 2, 3]"));
        }
        if self.seconds < 5 || self.warm_up_seconds >= self.seconds {
            return Err(wrong(
                "seconds",
                "a run takes at least 5 s, and longer than its warm_up_seconds",
            ));
        }
        Ok(())
    }

    fn check_clients(&self) -> Result<(), SetupError> {
        if self.clients.is_empty() {
            return Err(wrong(
                "clients",
                "there is none; leave the key out, or give [{ rtt_ms = 100, loss = 0.01 }]",
            ));
        }
        for client in &self.clients {
            if !(0.0..=10_000.0).contains(&client.rtt_ms) || !(0.0..1.0).contains(&client.loss) {
                return Err(wrong(
                    "clients",
                    "rtt_ms is 0 to 10000, loss a share below 1, like 0.05 for 5 %",
                ));
            }
        }
        Ok(())
    }

    fn check_hosts(&self) -> Result<(), SetupError> {
        if self.mss.is_some_and(|bytes| !MSS_BYTES.contains(&bytes)) {
            return Err(wrong("mss", "88 to 1460 bytes"));
        }
        let counts = [
            ("queue_packets", Some(self.queue_packets)),
            (
                "requests_per_connection",
                Some(self.requests_per_connection),
            ),
            ("initial_window", self.initial_window),
            ("backlog", self.backlog),
            ("workers", self.workers),
        ];
        match counts.into_iter().find(|(_, count)| *count == Some(0)) {
            Some((key, _)) => Err(wrong(key, "at least 1")),
            None if self.initial_rto_ms == Some(0) => Err(wrong("initial_rto_ms", "at least 1")),
            None if self.send_buffer_bytes.is_some_and(|bytes| bytes < 4096) => {
                Err(wrong("send_buffer_bytes", "at least 4096"))
            }
            None => Ok(()),
        }
    }

    fn check_users(&self) -> Result<(), SetupError> {
        if self
            .patience_seconds
            .is_some_and(|seconds| !is_positive(seconds))
        {
            return Err(wrong(
                "patience_seconds",
                "above 0; leave the key out for users who never abort",
            ));
        }
        if self.stay.is_some_and(|stay| !(0.0..1.0).contains(&stay)) {
            return Err(wrong("stay", "a probability below 1, like 0.8"));
        }
        if self.requests_per_visit == Some(0) {
            return Err(wrong("requests_per_visit", "at least 1"));
        }
        if self.users == Some(0) {
            return Err(wrong("users", "at least 1"));
        }
        if self.think_seconds != 0.0 && !is_positive(self.think_seconds) {
            return Err(wrong("think_seconds", "0 or above"));
        }
        Ok(())
    }

    fn check_crowd(&self) -> Result<(), SetupError> {
        let Some(crowd) = &self.crowd else {
            return Ok(());
        };
        if !self.model.has_load() {
            return Err(wrong(
                "crowd",
                "it comes in the open and the partly-open model",
            ));
        }
        match crowd.parse::<Crowd>() {
            Ok(_) => Ok(()),
            Err(error) => Err(wrong("crowd", error.to_string())),
        }
    }

    fn check_beside(&self) -> Result<(), SetupError> {
        if self.downloads > 0 && self.model == Model::Saturated {
            return Err(wrong(
                "downloads",
                "the saturated model is downloads; give their number as users",
            ));
        }
        if self.streams.is_some_and(|count| count == 0 || !self.tls) {
            return Err(wrong("streams", "at least 1, and with tls = true"));
        }
        let speaks_http2 = |name: &String| name.starts_with("nginx") || name.starts_with("sooner ");
        if self.streams.is_some() && !self.peers.iter().all(speaks_http2) {
            return Err(wrong("streams", "only nginx and sooner speak HTTP/2 here"));
        }
        Ok(())
    }

    fn check_bottleneck(&self) -> Result<(), SetupError> {
        let Some(link) = &self.bottleneck else {
            return Ok(());
        };
        let rates = link
            .steps
            .iter()
            .map(|(_, rate)| rate)
            .chain(&link.client_rate);
        for rate in rates {
            if let Err(error) = rate.parse::<Rate>() {
                return Err(wrong("bottleneck", error.to_string()));
            }
        }
        let changes = link.client_rate.is_some() || !link.steps.is_empty();
        if link.saved_bytes.is_some() && changes {
            return Err(wrong(
                "bottleneck",
                "saved_bytes goes with neither client_rate nor steps",
            ));
        }
        if self.tls && link.neighbours.is_some() {
            return Err(wrong("bottleneck", "neighbours speak no TLS"));
        }
        Ok(())
    }

    fn check_netem(&self) -> Result<(), SetupError> {
        let Some(words) = &self.netem else {
            return Ok(());
        };
        let emulated = |client: &Client| *client != Client::default();
        if self.bottleneck.is_some() || self.clients.iter().any(emulated) {
            return Err(wrong(
                "netem",
                "it goes with neither bottleneck nor rtt_ms, loss or jitter_ms of clients",
            ));
        }
        netem::check(words).map_err(|problem| wrong("netem", problem))
    }

    fn check_model(&self) -> Result<(), SetupError> {
        match self.model {
            Model::Closed | Model::Surge | Model::Saturated if self.users.is_none() => Err(wrong(
                "users",
                "a model without a schedule needs their number",
            )),
            Model::Surge if self.surge_files().is_none() => Err(wrong(
                "trace",
                "SURGE's users ask for SURGE's files; give trace = \"surge:1\"",
            )),
            Model::PartlyOpen if self.stay.is_none() && self.requests_per_visit.is_none() => {
                Err(wrong(
                    "stay",
                    "the partly-open model needs stay = 0.8 or requests_per_visit = 5",
                ))
            }
            Model::Saturated if self.clients.len() > 1 => {
                Err(wrong("clients", "the saturated model has one client host"))
            }
            Model::Closed | Model::Surge | Model::Saturated => Ok(()),
            Model::Open | Model::PartlyOpen => match Schedule::in_seconds(&self.schedule) {
                Ok(_) => Ok(()),
                Err(error) => Err(wrong("schedule", error.to_string())),
            },
        }
    }
}

fn is_positive(seconds: f64) -> bool {
    seconds.is_finite() && seconds > 0.0
}

#[cfg(test)]
mod tests {
    use crate::experiment::setup::SetupTable;

    fn table(text: &str) -> SetupTable {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn what_cannot_be_run_is_refused_by_its_key() {
        let least = table("peers = [\"nginx\"]\nschedule = \"0.9\"");
        for (text, key) in [
            ("peers = []", "peers"),
            ("peers = [\"nginz\"]", "peers"),
            ("peers = [\"nginx\", \"caddy\", \"nginx\"]", "peers"),
            ("seeds = []", "seeds"),
            ("seeds = [1, 2, 1]", "seeds"),
            ("rate = \"10mbt\"", "rate"),
            ("seconds = 3", "seconds"),
            ("seconds = 9\nwarm_up_seconds = 9", "seconds"),
            ("schedule = \"W11\"", "schedule"),
            ("schedule = \"0.2,1.2,10,0.01\"", "schedule"),
            ("clients = [{ loss = 5.0 }]", "clients"),
            ("mss = 20", "mss"),
            ("queue_packets = 0", "queue_packets"),
            ("requests_per_connection = 0", "requests_per_connection"),
            ("initial_window = 0", "initial_window"),
            ("initial_rto_ms = 0", "initial_rto_ms"),
            ("send_buffer_bytes = 4095", "send_buffer_bytes"),
            ("patience_seconds = 0.0", "patience_seconds"),
            ("patience_seconds = nan", "patience_seconds"),
            ("model = \"closed\"", "users"),
            ("model = \"closed\"\nusers = 0", "users"),
            (
                "model = \"closed\"\nusers = 1\nthink_seconds = -1.0",
                "think_seconds",
            ),
            ("model = \"partly-open\"", "stay"),
            ("model = \"partly-open\"\nstay = 1.0", "stay"),
            (
                "model = \"partly-open\"\nrequests_per_visit = 0",
                "requests_per_visit",
            ),
            ("model = \"surge\"\ntrace = \"surge:1\"", "users"),
            ("model = \"surge\"\nusers = 5", "trace"),
            ("model = \"saturated\"", "users"),
            (
                "model = \"saturated\"\nusers = 5\nclients = [{}, {}]",
                "clients",
            ),
            (
                "model = \"saturated\"\nusers = 5\ndownloads = 1",
                "downloads",
            ),
            ("[bottleneck]\nclient_rate = \"2mbt\"", "bottleneck"),
            (
                "[bottleneck]\nsaved_bytes = 1\nclient_rate = \"2mbit\"",
                "bottleneck",
            ),
            ("netem = \"delay 20\"", "netem"),
            (
                "netem = \"delay 20ms\"\nclients = [{ rtt_ms = 20 }]",
                "netem",
            ),
            ("netem = \"delay 20ms\"\n[bottleneck]", "netem"),
            ("crowd = \"1000\"", "crowd"),
            (
                "crowd = \"1000,0.5\"\nmodel = \"closed\"\nusers = 5",
                "crowd",
            ),
        ] {
            let error = table(text).over(&least).complete().unwrap_err();
            assert_eq!(error.key, key, "{text}: {error}");
        }
    }
}
