//! What is wrong between blocks: names, addresses and defaults that are there twice.

use super::super::listen::Listen;
use super::super::tree::Directive;
use crate::ini::ImportError;
use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;

/// The first mistake within `http`; `is_whole` says that formats of logs are all there.
pub fn check(http: &[Directive], is_whole: bool) -> Result<(), ImportError> {
    names_once(http, "upstream")?;
    names_once(http, "log_format")?;
    for own in http.iter().filter(|own| own.name == "upstream") {
        if !own.inside().iter().any(|inner| inner.name == "server") {
            let what = format!(
                "upstream {}: has no server; write server ADDRESS; in it",
                own.first()
            );
            return Err(own.at.wrong(what));
        }
    }
    let mut defaults: HashMap<SocketAddr, &Directive> = HashMap::new();
    for server in http.iter().filter(|own| own.name == "server") {
        let mut seen: HashSet<SocketAddr> = HashSet::new();
        for own in server.inside().iter().filter(|own| own.name == "listen") {
            let Ok(Ok(listen)) = Listen::of(own) else {
                continue;
            };
            let address = listen.address;
            if !seen.insert(address) {
                let what = format!("listen: a second one at {address} in this server; keep one");
                return Err(own.at.wrong(what));
            }
            if listen.is_default
                && let Some(first) = defaults.insert(address, own)
            {
                let what = format!(
                    "listen: a second default server at {address}, after that in line {} of {}; keep one",
                    first.at.line, first.at.file
                );
                return Err(own.at.wrong(what));
            }
        }
    }
    if is_whole {
        formats(http, http)?;
    }
    Ok(())
}

fn names_once(http: &[Directive], name: &str) -> Result<(), ImportError> {
    let mut seen: HashSet<&str> = HashSet::new();
    for own in http.iter().filter(|own| own.name == name) {
        let is_own = name == "log_format" && own.first() == "combined";
        if !seen.insert(own.first()) || is_own {
            let what = format!(
                "{name}: {:?} is there already; write another name",
                own.first()
            );
            return Err(own.at.wrong(what));
        }
    }
    Ok(())
}

/// That logs are in formats that are there.
fn formats(level: &[Directive], http: &[Directive]) -> Result<(), ImportError> {
    for own in level {
        if own.name == "access_log" {
            let name = own.args.get(1).map_or("combined", String::as_str);
            let mut formats = http.iter().filter(|own| own.name == "log_format");
            let is_known = name == "combined"
                || own.first() == "off"
                || formats.any(|own| own.first() == name);
            if !is_known {
                let what =
                    format!("access_log: no log_format is called {name:?}; write one in http");
                return Err(own.at.wrong(what));
            }
        }
        if matches!(
            own.name.as_str(),
            "server" | "location" | "if" | "limit_except"
        ) {
            formats(own.inside(), http)?;
        }
    }
    Ok(())
}
