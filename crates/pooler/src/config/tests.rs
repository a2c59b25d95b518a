//! The gate's configuration: what is taken, what is refused, and with which words.

mod bounds;
mod classes;
mod empty_classes;
mod order;
mod rows;
mod rules;

use super::*;

/// The first mistake of a text, with its line.
fn mistake(text: &str) -> String {
    let source = sooner_config::SourceText {
        name: "gate.toml".into(),
        text: text.into(),
        flags: &[],
    };
    let config = Config::parse(text);
    let error = config.and_then(|config| config.check()).unwrap_err();
    source.render(&error)
}

const SHOP: &str = "[[database]]\nname = \"shop\"\nserver = \"postgresql://db\"\n";

fn config(text: &str) -> Config {
    let config = Config::parse(text).unwrap();
    config.check().unwrap();
    config
}

#[test]
fn what_is_not_said_has_a_default() {
    let config = config(SHOP);
    assert_eq!(config.auth, AuthMethod::Scram);
    assert_eq!(config.limits.transactions_most(), 20);
    assert_eq!(config.limits.query_wait_seconds, 0);
    assert_eq!(config.mode, Mode::Transaction);
}

#[test]
fn mistakes_have_a_line_and_a_key() {
    for (text, expected) in [
        ("", "gate.toml: database: there is no database"),
        (
            "[limits]\ntransactions = 0\n",
            "gate.toml:2: limits.transactions: ",
        ),
        (
            "limit = 3",
            "gate.toml:1: limit: unknown key; did you mean `limits`?",
        ),
        (
            "[[database]]\nname = \"shop\"\nserver = \"db:5432\"\n",
            "gate.toml:3: database.server: ",
        ),
        (
            &format!("listen = [\"0.0.0.0:6432\",\n\"127.0.0.1:6432\"]\n{SHOP}"),
            "gate.toml:2: listen: 127.0.0.1:6432 and 0.0.0.0:6432 of listen exclude each other",
        ),
        (
            &format!("listen = [\"/tmp/x\", \"[::1]:6432\"]\nmetrics = \"[::]:6432\"\n{SHOP}"),
            "gate.toml:2: metrics: [::]:6432 and [::1]:6432 of listen exclude each other",
        ),
        (
            "[[database]]\nname = \"sooner\"\nserver = \"postgresql://db\"\n",
            "gate.toml:2: database.name: a name of the gate's own",
        ),
        (
            &format!("{SHOP}{SHOP}"),
            "gate.toml:5: database.name: \"shop\" is given twice",
        ),
        (
            &format!("{SHOP}[[rule]]\naddress = [\"10.0.0.1/8\"]\n"),
            "gate.toml:5: rule.address: 10.0.0.1/8 names one address of a network",
        ),
        (
            &format!("{SHOP}[[rule]]\nauth = \"certificate\"\n"),
            "gate.toml:5: rule.auth: no certificate can be checked",
        ),
        (
            &format!("{SHOP}[[class]]\nname = \"high\"\npriority = 0\n"),
            "gate.toml:6: class.priority: out of range; write 1 (first) to 200",
        ),
        (
            "[limits]\ntransactions = \"many\"\n",
            "gate.toml:2: limits.transactions: \"many\" cannot be; write a whole number from 1 on, or \"auto\"",
        ),
        (
            &format!("{SHOP}[limits]\nthroughput_loss = 5\n"),
            "gate.toml:5: limits.throughput_loss: out of range; write 0.01",
        ),
        (
            &format!("{SHOP}password = \"x\"\n"),
            "gate.toml:4: database.password: it belongs to no user",
        ),
        (
            &format!("{SHOP}[auth_query]\nuser = \"a\"\ndatabase = \"pgbouncer\"\n"),
            "gate.toml:6: auth_query.database: \"pgbouncer\" is the gate itself",
        ),
        (
            &format!("{SHOP}[auth_query]\nuser = \"a\"\ndatabase = \"auth\"\n"),
            "gate.toml:6: auth_query.database: there is no [[database]] \"auth\"; there are [\"shop\"]",
        ),
        (
            &format!("{SHOP}[auth_query]\nuser = \"a\"\nquery = \"SELECT 1\"\n"),
            "gate.toml:6: auth_query.query: it has no $1",
        ),
    ] {
        let hints = mistake(text);
        assert!(hints.starts_with(expected), "{hints}");
    }
}

#[test]
fn no_time_is_longer_than_clocks_can_count() {
    for key in [
        "query_wait_seconds",
        "patience_seconds",
        "login_seconds",
        "server_idle_seconds",
        "server_lifetime_seconds",
        "server_check_seconds",
        "grace_seconds",
    ] {
        let text = |seconds: u64| format!("{SHOP}[limits]\n{key} = {seconds}\n");
        config(&text(SECONDS_MAX));
        for seconds in [SECONDS_MAX + 1, i64::MAX as u64] {
            let hints = mistake(&text(seconds));
            let expected =
                format!("gate.toml:5: limits.{key}: {seconds} seconds is more than a year");
            assert!(hints.starts_with(&expected), "{hints}");
        }
    }
}

#[test]
fn a_star_stands_for_all_that_have_no_entry_above_it() {
    let config = config(&format!(
        "{SHOP}[[database]]\nname = \"*\"\nserver = \"postgresql://other\"\n"
    ));
    let at = |name| config.database(name).unwrap().server.get_ref().to_string();
    assert_eq!(
        (at("shop").as_str(), at("x").as_str()),
        ("db:5432", "other:5432")
    );
}

#[test]
fn paths_are_beside_the_file() {
    let mut config = config(
        "users = \"users.txt\"\nlisten = [\"./gate.sock\", \"127.0.0.1:1\"]\n[[database]]\nname = \"*\"\nserver = \"postgresql://db?sslrootcert=ca.pem\"\n",
    );
    config.relative_to(std::path::Path::new("/etc/sooner"));
    let users = config.users.as_ref().unwrap().get_ref();
    assert_eq!(users.to_str(), Some("/etc/sooner/users.txt"));
    let authorities = config.database[0].server.get_ref().authorities.clone();
    assert_eq!(authorities.unwrap().to_str(), Some("/etc/sooner/ca.pem"));
    let listen: Vec<&String> = config.listen.iter().map(|at| at.get_ref()).collect();
    assert_eq!(listen, ["/etc/sooner/./gate.sock", "127.0.0.1:1"]);
}

#[test]
fn priorities_are_of_a_server() {
    let other = "[[database]]\nname = \"b\"\nserver = \"postgresql://other\"\n";
    let told = |text: &str| {
        let config = config(text);
        assert!(config.check().is_ok(), "{text}");
        let sockets = config.priority_sockets().into_iter();
        let words: Vec<String> = sockets
            .map(|(server, path)| format!("{server} {}", path.display()))
            .collect();
        words.join(", ")
    };
    assert_eq!(told(&format!("{SHOP}{other}")), "");
    let only = told(&format!("priorities = \"/a\"\n{SHOP}"));
    assert!(only.ends_with(" /a") && !only.contains(','), "{only}");
    let second = told(&format!("{SHOP}{other}priorities = \"/b\"\n"));
    assert_eq!(second, "other:5432 /b");
    let mistake = |text: &str| {
        let config = Config::parse(text).unwrap();
        config.check().unwrap_err().to_string()
    };
    let several = mistake(&format!("priorities = \"/a\"\n{SHOP}{other}"));
    assert!(several.contains("there are several servers"), "{several}");
    let same = SHOP.replace("shop", "b");
    let twice = mistake(&format!(
        "{SHOP}priorities = \"/a\"\n{same}priorities = \"/b\"\n"
    ));
    assert!(twice.contains("has another one already"), "{twice}");
}
