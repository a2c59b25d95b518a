//! `--check --observe`: whether the targets of classes before upstreams can be met, by what a
//! server that runs sees meanwhile.

use super::effective::Effective;
use crate::feasibility::{Found, Jobs, Place, Seen, no_target, word};
use crate::output;
use anyhow::{Result, anyhow, bail};
use serde::Serialize;
use sooner_admission::Observed;
use sooner_config::classes::ClassAims;
use sooner_operate::say;
use sooner_web::admin::ClassReading;
use sooner_web::admin::client::{Look, look, percentiles};
use sooner_web::config::{Config, Misconfigured};
use sooner_web::proxy::ClassTable;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

const NS_PER_S: f64 = 1e9;

/// Watches for so many seconds; the exit code is 1 where targets cannot be met.
pub async fn run(effective: &Effective, seconds: u64, is_json: bool) -> Result<ExitCode> {
    let config = &effective.config;
    let upstreams = upstreams_with_targets(config).map_err(|wrong| effective.located(wrong))?;
    let address = admin_address(config).map_err(|wrong| effective.located(wrong))?;
    let before = ask(address).await?;
    for upstream in &upstreams {
        check_upstream(upstream, config, &before)?;
        remark(upstream, &before);
    }
    say(format_args!("watching {address} for {seconds} s"));
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let after = ask(address).await?;
    let (mut found, mut idle) = (Vec::new(), Vec::new());
    for upstream in upstreams {
        check_upstream(upstream, config, &after)?;
        let classes = tables_at(config, upstream);
        let seen = seen(&classes, upstream, (&before, &after))?;
        let aims: Vec<ClassAims<'_>> = classes.iter().map(|table| table.aims()).collect();
        let place = Place {
            jobs: Jobs::Requests,
            limit_key: "upstream.limit",
            source: &effective.source,
        };
        match Found::new(&aims, &seen, place) {
            Some(here) => found.push((upstream, here)),
            None => idle.push(upstream),
        }
    }
    if found.is_empty() {
        bail!("no request arrived within {seconds} s, so nothing can be said; watch for longer");
    }
    for upstream in idle {
        say(format_args!(
            "upstream `{upstream}`: no request arrived within {seconds} s, so nothing can be said; watch for longer of it"
        ));
    }
    print(found, seconds, is_json)
}

/// The upstreams, by name, before which a class has a target.
fn upstreams_with_targets(config: &Config) -> Result<Vec<&str>, Misconfigured> {
    let names = config.upstream.iter();
    let names = names.map(|table| table.name.get_ref().as_str());
    let has_target = |name: &&str| {
        let classes = tables_at(config, name).into_iter();
        classes.into_iter().any(|table| !table.target.is_empty())
    };
    let names: Vec<&str> = names.filter(has_target).collect();
    if names.is_empty() {
        return Err(no_target("no class before an upstream has a target"));
    }
    Ok(names)
}

fn tables_at<'a>(config: &'a Config, upstream: &str) -> Vec<&'a ClassTable> {
    let tables = config.class.iter();
    tables.filter(|table| table.may_be_at(upstream)).collect()
}

/// Where the server that runs is asked: one that listens everywhere is on this machine as well.
fn admin_address(config: &Config) -> Result<SocketAddr, Misconfigured> {
    let Some(listen) = &config.admin.listen else {
        return Err(Misconfigured::without_place(
            "admin.listen",
            "--observe asks the running server at its admin address, and none is configured; write [admin] listen = \"127.0.0.1:9090\", or give --admin ADDR:PORT",
        ));
    };
    let mut address = listen.get_ref().0;
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    Ok(address)
}

async fn ask(address: SocketAddr) -> Result<Look> {
    look(address).await.map_err(|error| {
        anyhow!(
            "the admin address {address} gives no status: {error}; start the server with it, or name another one with --admin ADDR:PORT"
        )
    })
}

/// That the server that runs has this upstream, with the classes of the configuration.
fn check_upstream(upstream: &str, config: &Config, look: &Look) -> Result<()> {
    let servers = || look.upstreams.iter();
    if !servers().any(|server| server.upstream == upstream) {
        let mut names: Vec<&str> = servers().map(|server| server.upstream.as_str()).collect();
        names.dedup();
        bail!(
            "the running server has no upstream `{upstream}` ({}); configure this one there first, with any targets",
            if names.is_empty() {
                "it has none".to_owned()
            } else {
                names.join(", ")
            }
        );
    }
    if look
        .upstream_rehearsals
        .iter()
        .any(|row| row.upstream == upstream)
    {
        bail!(
            "upstream `{upstream}` of the running server holds nothing back (observe = true), so the times of its requests do not tell of a queue; see upstream_rehearsals in its status.json"
        );
    }
    let has: Vec<&str> = rows(look, upstream).map(|row| row.class.as_str()).collect();
    let wanted = tables_at(config, upstream).into_iter();
    let wanted = wanted.map(|table| table.name.get_ref().as_str());
    if has != wanted.chain([""]).collect::<Vec<_>>() {
        let named: Vec<&str> = has.into_iter().filter(|name| !name.is_empty()).collect();
        bail!(
            "the running server has other classes before upstream `{upstream}` ({}); configure these there first, with any targets",
            if named.is_empty() {
                "none".to_owned()
            } else {
                named.join(", ")
            }
        );
    }
    Ok(())
}

fn rows<'a>(look: &'a Look, upstream: &'a str) -> impl Iterator<Item = &'a ClassReading> {
    let rows = look.upstream_classes.iter();
    rows.filter(move |row| row.upstream == upstream)
}

/// Says where the order of the server that runs makes the mean shorter than targets can.
fn remark(upstream: &str, look: &Look) {
    let mut servers = look.upstreams.iter();
    let server = servers.find(|server| server.upstream == upstream);
    let by_arrival = ["fifo", "targets", "weights"];
    if let Some(server) = server.filter(|one| !by_arrival.contains(&one.order.as_str())) {
        say(format_args!(
            "upstream `{upstream}` of the running server orders requests by {}; with targets, the requests of a class go in order of arrival, so the mean of all may differ; to be certain, watch it with targets or with order = \"fifo\"",
            match server.order.as_str() {
                "share_by" => "what their client had",
                _ => "how long they are expected to take",
            }
        ));
    }
}

/// What was seen of each class, and behind the last of requests in none.
fn seen(
    classes: &[&ClassTable],
    upstream: &str,
    (before, after): (&Look, &Look),
) -> Result<Vec<Observed>> {
    let named = classes.iter().map(|table| {
        let aims = table.aims();
        (aims.name.get_ref().as_str(), aims.goal().response_targets)
    });
    let of_class = |(name, response_targets)| {
        let find = |look| rows(look, upstream).find(|row| row.class == name);
        let (Some(then), Some(now)) = (find(before), find(after)) else {
            bail!("the running server has no class `{name}` any more; watch it again");
        };
        let Some(jobs) = now.done_total.checked_sub(then.done_total) else {
            bail!("the server was restarted meanwhile; watch it again");
        };
        let always = [
            (0.95, now.p95_response_seconds),
            (0.99, now.p99_response_seconds),
        ];
        let always = always
            .into_iter()
            .filter_map(|(share, seconds)| Some((share, seconds?)));
        let known = always.chain(percentiles(&now.targets));
        let since = |now: f64, then: f64| (now - then).max(0.0) * NS_PER_S;
        let seen = Seen {
            jobs,
            response_sum_ns: since(now.response_seconds_total, then.response_seconds_total),
            inside_sum_ns: since(now.inside_seconds_total, then.inside_seconds_total),
            percentiles_ns: known.map(|(share, s)| (share, s * NS_PER_S)).collect(),
        };
        Ok(seen.observed(response_targets))
    };
    named.chain([("", Vec::new())]).map(of_class).collect()
}

/// What was found, before each upstream.
#[derive(Serialize)]
struct Report {
    schema: u32,
    time_unit: &'static str,
    observed_seconds: u64,
    verdict: &'static str,
    upstreams: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    upstream: String,
    #[serde(flatten)]
    found: Found,
}

fn print(found: Vec<(&str, Found)>, seconds: u64, is_json: bool) -> Result<ExitCode> {
    let is_feasible = found.iter().all(|(_, found)| found.is_feasible());
    if is_json {
        let rows = found.into_iter().map(|(upstream, found)| Row {
            upstream: upstream.to_owned(),
            found,
        });
        output::json(&Report {
            schema: 1,
            time_unit: "ms",
            observed_seconds: seconds,
            verdict: word(is_feasible),
            upstreams: rows.collect(),
        })?;
    } else {
        for (upstream, found) in found {
            output::line(format_args!("upstream {upstream}"))?;
            found.print(seconds)?;
        }
    }
    Ok(match is_feasible {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}
