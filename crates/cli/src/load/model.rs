//! Who triggers requests: the flags of the open, the partly-open and the closed model, and which of
//! them go together.

use crate::seconds;
use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use sooner_load::model::{Model, Offered};
use sooner_workload::arrivals::visits::{STAY_MAX, THINK_S_MAX};
use sooner_workload::users::USERS_MAX;
use sooner_workload::{Behaviour, Crowd, Process, Schedule, VisitLength, Visits};
use std::num::NonZeroU32;

/// Who triggers requests.
#[derive(Args)]
pub struct ModelArgs {
    /// What triggers a request: the clock (open), the response before it in a visit (partly-open),
    /// or that of the same user (closed)
    #[arg(long, value_enum, default_value = "open", hide_possible_values = true)]
    model: Name,
    /// Load as a share of the uplink, such as 0.9; 1.2 is a persistent overload
    #[arg(long, value_parser = Schedule::in_seconds, conflicts_with = "schedule")]
    rho: Option<Schedule>,
    /// Alternating load: low load, high load, seconds of each, such as 0.2,1.2,10,10; or W1 to W10
    /// of the manual's table
    #[arg(long, value_parser = Schedule::in_seconds)]
    schedule: Option<Schedule>,
    /// Draw exponential gaps between requests or visits, instead of the trace's own
    #[arg(long)]
    poisson: bool,
    /// Crowd at one object while the load is highest: the object nearest to this size, and its
    /// share of the requests, such as 100kB,0.5
    #[arg(long, value_name = "BYTES,SHARE")]
    crowd: Option<Crowd>,
    /// Partly-open: probability that a visit continues after a response; a visit has 1 / (1 - P)
    /// requests on average
    #[arg(long, value_name = "P", value_parser = probability, conflicts_with = "requests_per_visit")]
    stay: Option<f64>,
    /// Partly-open: exact number of requests in a visit, instead of --stay
    #[arg(long, value_name = "K")]
    requests_per_visit: Option<NonZeroU32>,
    /// Partly-open and closed: mean of the exponential pause between a response and the next
    /// request, such as 7s or 500ms [default: 0]
    #[arg(long, value_name = "TIME", value_parser = think)]
    think: Option<f64>,
    /// Closed: number of users
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(USERS_MAX)))]
    users: Option<u32>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Name {
    Open,
    PartlyOpen,
    Closed,
}

impl ModelArgs {
    /// The first flag given that says something of a model.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            ("--model", !matches!(self.model, Name::Open)),
            ("--rho", self.rho.is_some()),
            ("--schedule", self.schedule.is_some()),
            ("--poisson", self.poisson),
            ("--crowd", self.crowd.is_some()),
            ("--stay", self.stay.is_some()),
            ("--requests-per-visit", self.requests_per_visit.is_some()),
            ("--think", self.think.is_some()),
            ("--users", self.users.is_some()),
        ];
        given
            .iter()
            .find(|(_, given)| *given)
            .map(|(flag, _)| *flag)
    }

    /// The model; fails with one line when flags are missing or belong to another one.
    pub fn model(&self) -> Result<Model> {
        self.refuse_what_belongs_to_others()?;
        let think_s = self.think.unwrap_or(0.0);
        Ok(match self.model {
            Name::Open => Model::Open(self.offered()?),
            Name::PartlyOpen => {
                let length = self.visit_length()?;
                Model::PartlyOpen(self.offered()?, Visits { length, think_s })
            }
            Name::Closed => match self.users {
                Some(users) => Model::Closed {
                    users,
                    behaviour: Behaviour::Trace { think_s },
                },
                None => bail!("--model closed: give --users N, the number of users"),
            },
        })
    }

    fn refuse_what_belongs_to_others(&self) -> Result<()> {
        let is_closed = matches!(self.model, Name::Closed);
        let is_open = matches!(self.model, Name::Open);
        let has_visits = matches!(self.model, Name::PartlyOpen);
        let rules = [
            (
                "--crowd",
                self.crowd.is_some() && is_closed,
                "users ask for what the trace has; choose --model open or partly-open",
            ),
            (
                "--rho",
                self.rho.is_some() && is_closed,
                "how much comes depends on the server; leave it out, what came is reported",
            ),
            (
                "--schedule",
                self.schedule.is_some() && is_closed,
                "how much comes depends on the server; leave it out, what came is reported",
            ),
            (
                "--poisson",
                self.poisson && is_closed,
                "requests come when users have thought; give --think",
            ),
            (
                "--stay",
                self.stay.is_some() && !has_visits,
                "it is for --model partly-open",
            ),
            (
                "--requests-per-visit",
                self.requests_per_visit.is_some() && !has_visits,
                "it is for --model partly-open",
            ),
            (
                "--users",
                self.users.is_some() && !is_closed,
                "it is for --model closed",
            ),
            (
                "--think",
                self.think.is_some() && is_open,
                "it is for --model partly-open or closed",
            ),
        ];
        let name = match self.model {
            Name::Open => "open",
            Name::PartlyOpen => "partly-open",
            Name::Closed => "closed",
        };
        match rules.into_iter().find(|(_, broken, _)| *broken) {
            Some((flag, _, remedy)) => bail!("{flag} with --model {name}: {remedy}"),
            None => Ok(()),
        }
    }

    fn offered(&self) -> Result<Offered> {
        let Some(schedule) = self.rho.clone().or(self.schedule.clone()) else {
            bail!(
                "give --rho LOAD or --schedule LOW,HIGH,LOW_SECONDS,HIGH_SECONDS, the load of the uplink"
            );
        };
        let process = if self.poisson {
            Process::Poisson
        } else {
            Process::Trace
        };
        Ok(Offered {
            schedule,
            process,
            crowd: self.crowd,
        })
    }

    fn visit_length(&self) -> Result<VisitLength> {
        match (self.stay, self.requests_per_visit) {
            (_, Some(count)) => Ok(VisitLength::Exactly(count)),
            (Some(stay), None) => Ok(VisitLength::Stay(stay)),
            (None, None) => bail!("--model partly-open: give --stay P or --requests-per-visit K"),
        }
    }
}

fn probability(text: &str) -> Result<f64, String> {
    let value = text
        .parse()
        .ok()
        .filter(|value| (0.0..=STAY_MAX).contains(value));
    value.ok_or_else(|| {
        format!("`{text}` is not a probability from 0 to {STAY_MAX}; write for example 0.8")
    })
}

fn think(text: &str) -> Result<f64, String> {
    let value = seconds::any(text)?.as_secs_f64();
    if value <= THINK_S_MAX {
        Ok(value)
    } else {
        Err(format!(
            "`{text}`: a pause is out of range; give at most {THINK_S_MAX} seconds"
        ))
    }
}
