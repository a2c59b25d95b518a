//! The line at the start: what is served where, in which order.

use super::link::Link;
use sooner_uplink::Uplink;
use sooner_web::Listening;
use sooner_web::config::Config;

/// `serving DIR on http://127.0.0.1:8080; policy srpt, uplink 10mbit; in user space`.
pub fn ready_line(config: &Config, link: &Link, listening: &Listening, uplink: &Uplink) -> String {
    let clear =
        (listening.clear_addresses().into_iter()).map(|address| format!("http://{address}"));
    let tls = (listening.tls_addresses().into_iter()).map(|address| format!("https://{address}"));
    let addresses: Vec<_> = clear.chain(tls).collect();
    let order = order(config, link, &uplink.describe());
    let admin = match listening.admin_address() {
        Some(address) => format!("; metrics on http://{address}"),
        None => String::new(),
    };
    let user = match &config.user {
        Some(user) if uplink.uses_bands() => {
            format!("; as {user}, with CAP_NET_ADMIN to take the bands down at the end")
        }
        Some(user) => format!("; as {user}"),
        None => String::new(),
    };
    let workers = match config.worker_count() {
        1 => String::new(),
        count => format!("; {count} workers"),
    };
    format!(
        "serving {} on {}; {order}{workers}{admin}{user}",
        what(config),
        addresses.join(" ")
    )
}

fn what(config: &Config) -> String {
    match &config.root {
        Some(root) => root.get_ref().display().to_string(),
        None => {
            let (sites, routes) = (config.site.len(), config.route.len());
            format!("{} and {}", count(sites, "site"), count(routes, "route"))
        }
    }
}

fn count(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{number} {noun}s"),
    }
}

fn order(config: &Config, link: &Link, mechanism: &str) -> String {
    match (link.rate, link.ordered_rate()) {
        (_, Some(rate)) => {
            let policy = config.uplink.policy().as_str();
            let share = if config.uplink.is_by_client() {
                " by client"
            } else {
                ""
            };
            format!("policy {policy}{share}, uplink {rate}; {mechanism}")
        }
        (Some(_), None) => "not ordered: uplink.mechanism is none".into(),
        (None, None) => mechanism.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_and_routes_are_counted_where_there_is_no_root() {
        let text = "[[site]]\nroot = \"/a\"\n[[site]]\nhosts = [\"b\"]\nroot = \"/b\"\n[[route]]\npath = \"/\"\nupstream = \"u\"";
        let config = Config::parse(text).unwrap();
        assert_eq!(what(&config), "2 sites and 1 route");
        assert_eq!(what(&Config::parse("root = \"/a\"").unwrap()), "/a");
    }

    #[test]
    fn the_order_is_told_with_its_rate() {
        let tell = |text: &str| {
            let config = Config::parse(text).unwrap();
            let link = Link::of(&config.uplink).unwrap();
            order(&config, &link, "as it goes")
        };
        assert_eq!(tell(""), "as it goes");
        assert_eq!(
            tell("[uplink]\nrate = \"10mbit\"\npolicy = \"las\""),
            "policy las, uplink 10mbit; as it goes"
        );
        assert_eq!(
            tell("[uplink]\nrate = \"10mbit\"\nshare_by = \"client\""),
            "policy srpt by client, uplink 10mbit; as it goes"
        );
        assert_eq!(
            tell("[uplink]\nrate = \"10mbit\"\nmechanism = \"none\""),
            "not ordered: uplink.mechanism is none"
        );
    }
}
