//! The live page of a gate: who waits, who is inside, which classes are late.

use super::status::{ClassStatus, ServerStatus, Status, TargetStatus};
use sooner_operate::admin::page::{Page, table};
use sooner_operate::admin::text::{html, seconds};

/// The page as it is at the moment.
pub fn page(status: &Status) -> Page<'static> {
    Page {
        title: "Sooner gate",
        live: include_str!("page.html"),
        style: include_str!("page.css"),
        script: include_str!("page.js"),
        plain: plain(status),
    }
}

fn plain(status: &Status) -> String {
    let held_up = status.held_up.iter();
    let held_up: String = held_up
        .map(|words| format!("<p class=\"bad\">{}</p>\n", html(words)))
        .collect();
    format!(
        "<h1>{}</h1>\n{held_up}{}{}{}{}{}",
        html(&status.headline),
        now(status),
        servers(status),
        classes(status),
        targets(status),
        would_wait(status),
    )
}

fn now(status: &Status) -> String {
    let sum = |of: fn(&ServerStatus) -> usize| status.servers.iter().map(of).sum::<usize>();
    let clients = status.clients;
    let rows = [
        ("Waiting", sum(|server| server.waiting_transactions)),
        ("Inside", sum(|server| server.inside_transactions)),
        ("Server connections", sum(|server| server.connections)),
        ("Clients", clients.idle + clients.waiting + clients.active),
    ];
    let mut rows: Vec<_> = (rows.iter())
        .map(|(name, count)| vec![(*name).to_owned(), count.to_string()])
        .collect();
    rows.push(vec!["Up".into(), format!("{:.0} s", status.uptime_seconds)]);
    rows.push(vec!["Version".into(), status.version.into()]);
    table("Now", &["", ""], &rows)
}

fn servers(status: &Status) -> String {
    if status.servers.is_empty() {
        return "<p>No client has requested a database so far.</p>\n".into();
    }
    let row = |server: &ServerStatus| {
        vec![
            html(&server.address),
            server.waiting_transactions.to_string(),
            format!("{} of {}", server.inside_transactions, limit_of(server)),
            format!("{} of {}", server.connections, server.limit_connections),
            (server.kept_connections + server.idle_transactions).to_string(),
        ]
    };
    let rows: Vec<_> = status.servers.iter().map(row).collect();
    let columns = ["Server", "Waiting", "Inside", "Connections", "Held idle"];
    table("Servers", &columns, &rows)
}

/// Where nothing is held, what would be in force.
fn limit_of(server: &ServerStatus) -> usize {
    (server.observed_limit_transactions).unwrap_or(server.limit_transactions)
}

fn classes(status: &Status) -> String {
    let row = |class: &ClassStatus| {
        let rate = class.transactions_per_second;
        vec![
            class_name(&class.name),
            class
                .priority
                .map_or_else(dash, |number| number.to_string()),
            class.waiting_clients.to_string(),
            match class.limit_transactions {
                Some(limit) => format!("{} of {limit}", class.inside_transactions),
                None => class.inside_transactions.to_string(),
            },
            rate.map_or_else(dash, |rate| format!("{rate:.1}")),
            seconds(class.mean_outside_seconds),
            seconds(class.p95_outside_seconds),
            seconds(class.mean_inside_seconds),
            seconds(class.p95_inside_seconds),
            seconds(class.mean_response_seconds),
            seconds(class.p95_response_seconds),
        ]
    };
    let rows: Vec<_> = status.classes.iter().map(row).collect();
    let columns = [
        "Class", "Priority", "Waiting", "Inside", "A second", "Outside", "p95", "Inside", "p95",
        "Response", "p95",
    ];
    table("Classes", &columns, &rows)
}

fn targets(status: &Status) -> String {
    if status.targets.is_empty() {
        return String::new();
    }
    let row = |target: &TargetStatus| {
        let achieved = seconds(target.achieved_seconds);
        vec![
            class_name(&target.class),
            html(&target.server),
            target.target.clone(),
            seconds(Some(target.target_seconds)),
            match target.is_late {
                true => format!("<span class=\"bad\">{achieved}, late</span>"),
                false => achieved,
            },
        ]
    };
    let rows: Vec<_> = status.targets.iter().map(row).collect();
    let columns = ["Class", "Server", "Target", "Wanted", "Achieved"];
    table("Targets", &columns, &rows)
}

fn would_wait(status: &Status) -> String {
    if !status.is_observing {
        return String::new();
    }
    let row = |class: &ClassStatus| {
        let would = class.would_wait?;
        Some(vec![
            class_name(&class.name),
            would.transactions_total.to_string(),
            would.would_wait_total.to_string(),
            seconds(would.mean_would_wait_seconds),
            seconds(Some(would.max_would_wait_seconds)),
            would.would_wait_transactions.to_string(),
        ])
    };
    let rows: Vec<_> = status.classes.iter().filter_map(row).collect();
    let columns = [
        "Class",
        "Transactions",
        "Would have waited",
        "Mean of all",
        "Longest",
        "Would wait now",
    ];
    table("If the gate held them", &columns, &rows)
}

fn class_name(name: &str) -> String {
    if name.is_empty() {
        "no class".into()
    } else {
        html(name)
    }
}

fn dash() -> String {
    "\u{2013}".into()
}

#[cfg(test)]
mod tests {
    use super::super::status::tests::status;
    use super::*;

    #[test]
    fn the_plain_page_says_the_same() {
        let mut status = status("checkout");
        status.is_observing = true;
        let (page, _) = page(&status).render();
        for text in [
            "<h1>Class checkout is late</h1>",
            "<th scope=\"row\">db:5432</th><td>7</td><td>3 of 4</td><td>5 of 72</td><td>2</td>",
            "<td>1</td><td>6</td><td>2 of 3</td><td>12.5</td><td>20 ms</td>",
            "<td>p95</td><td>200 ms</td><td><span class=\"bad\">310 ms, late</span></td>",
            "<p class=\"bad\">db:5432: 7 waiting",
            "<td>90</td><td>30</td><td>50 ms</td><td>2 s</td><td>4</td>",
            "no class",
        ] {
            assert!(page.contains(text), "{text} is not in {page}");
        }
    }

    #[test]
    fn names_are_text() {
        let mut status = status("<script>alert(1)</script>");
        let name = "<img src=x onerror=alert(2)>";
        status.servers[0].address = name.into();
        status.targets[0].server = name.into();
        status.held_up = vec![name.into()];
        let (page, _) = page(&status).render();
        assert!(!page.contains("<script>alert") && !page.contains("<img"));
        assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    }

    #[test]
    fn a_gate_without_clients_says_so() {
        let (page, _) = page(&Status::default()).render();
        assert!(page.contains("No client has requested a database so far."));
    }
}
