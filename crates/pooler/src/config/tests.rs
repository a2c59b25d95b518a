//! The gate's configuration: what is taken, what is refused, and with which words.

use super::*;
use sooner_admission::{Lateness, Order, ResponseTarget};
use sooner_postgres::hints::Hints;
use std::net::IpAddr;

/// The first mistake of a text, with its line.
fn mistake(text: &str) -> String {
    let source = sooner_config::SourceText {
        name: "gate.toml".into(),
        text: text.into(),
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
        ("", "gate.toml: database: names no database"),
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
            "[[database]]\nname = \"sooner\"\nserver = \"postgresql://db\"\n",
            "gate.toml:2: database.name: a name of the gate's own",
        ),
        (
            &format!("{SHOP}{SHOP}"),
            "gate.toml:5: database.name: \"shop\" is there twice",
        ),
        (
            &format!("{SHOP}[[rule]]\naddress = [\"10.0.0.1/8\"]\n"),
            "gate.toml:5: rule.address: 10.0.0.1/8 names one address of a network",
        ),
        (
            &format!("{SHOP}[[rule]]\nauth = \"certificate\"\n"),
            "gate.toml:5: rule.auth: nobody can be trusted so",
        ),
        (
            &format!("{SHOP}[[class]]\nname = \"high\"\npriority = 0\n"),
            "gate.toml:6: class.priority: there are priorities 1 to 200",
        ),
        (
            "[limits]\ntransactions = \"many\"\n",
            "gate.toml:2: limits.transactions: \"many\": a number from 1 on, or \"auto\"",
        ),
        (
            &format!("{SHOP}[limits]\nthroughput_loss = 5\n"),
            "gate.toml:5: limits.throughput_loss: a loss is from 0.01",
        ),
        (
            &format!("{SHOP}password = \"x\"\n"),
            "gate.toml:4: database.password: of nobody",
        ),
        (
            &format!("{SHOP}[auth_query]\nuser = \"a\"\ndatabase = \"pgbouncer\"\n"),
            "gate.toml:6: auth_query.database: \"pgbouncer\" is the gate itself",
        ),
        (
            &format!("{SHOP}[auth_query]\nuser = \"a\"\ndatabase = \"auth\"\n"),
            "gate.toml:6: auth_query.database: no [[database]] is called \"auth\"; there are [\"shop\"]",
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
fn targets_and_weights_that_cannot_be_have_a_line_too() {
    for (text, expected) in [
        (
            format!(
                "{SHOP}[[class]]\nname = \"a\"\ntarget = {{ mean = \"30ms\",\n  p95 = \"120 millis\" }}\n"
            ),
            "gate.toml:7: class.target.p95: no unit is called \"millis\"; there are us, ms, s and min",
        ),
        (
            format!("{SHOP}[[class]]\nname = \"a\"\ntarget.median = \"30ms\"\n"),
            "gate.toml:6: class.target.median: there are targets for the mean and for percentiles",
        ),
        (
            format!("{SHOP}[[class]]\nname = \"a\"\nweight = 3\ntarget.mean = \"30ms\"\n"),
            "gate.toml:6: class.weight: a class has a weight or a target, not both",
        ),
        (
            format!(
                "{SHOP}[[class]]\nname = \"a\"\nuser = [\"ann\"]\nweight = 3\n[[class]]\nname = \"b\"\nvariability = \"reduce\"\n"
            ),
            "gate.toml:7: class.weight: some classes have weights and some have targets",
        ),
        (
            format!(
                "order = \"shortest\"\n{SHOP}[[class]]\nname = \"a\"\ntarget.mean = \"30ms\"\n"
            ),
            "gate.toml:1: order: the order follows from the classes' targets or weights",
        ),
    ] {
        let hints = mistake(&text);
        assert!(hints.starts_with(expected), "{hints}");
    }
}

#[test]
fn the_first_rule_that_fits_counts_and_who_fits_none_may_not_come() {
    let config = config(&format!(
        "{SHOP}[[rule]]\nuser = [\"ann\"]\naddress = [\"10.0.0.0/8\"]\nauth = \"trust\"\n\
         [[rule]]\nuser = [\"ann\"]\nauth = \"md5\"\n\
         [[rule]]\ntransport = \"unix\"\n"
    ));
    let required_auth = |user: &str, address: Option<&str>| {
        let address: Option<IpAddr> = address.map(|text| text.parse().unwrap());
        let transport = match address {
            Some(_) => Transport::Clear,
            None => Transport::Unix,
        };
        let client = LoginAttempt {
            user,
            database: "shop",
            address,
            transport,
        };
        super::required_auth(&config.rule, config.auth, client)
    };
    assert_eq!(required_auth("ann", Some("10.1.2.3")), AuthMethod::Trust);
    assert_eq!(required_auth("ann", Some("192.0.2.1")), AuthMethod::Md5);
    assert_eq!(required_auth("ann", None), AuthMethod::Md5);
    assert_eq!(required_auth("bob", None), AuthMethod::Scram);
    assert_eq!(required_auth("bob", Some("10.1.2.3")), AuthMethod::Reject);
    let client = LoginAttempt {
        user: "bob",
        database: "shop",
        address: None,
        transport: Transport::Unix,
    };
    assert_eq!(
        super::required_auth(&[], AuthMethod::Md5, client),
        AuthMethod::Md5
    );
}

#[test]
fn a_class_is_who_fits_all_that_it_names() {
    let config = config(&format!(
        "{SHOP}[[class]]\nname = \"buyers\"\npriority = 1\nuser = [\"shop\"]\napplication_name = [\"checkout\"]\n"
    ));
    let silent = Hints::default();
    let of = |user, application_name| ClassSubject {
        user,
        database: "shop",
        application_name,
        address: None,
        session: "",
        hints: &silent,
    };
    let class = &config.class[0];
    assert!(class.is_for(of("shop", "checkout")));
    assert!(!class.is_for(of("shop", "report")) && !class.is_for(of("ann", "checkout")));
    assert!(!config.needs_hints());
}

#[test]
fn a_class_names_what_begins_so() {
    let config = config(&format!(
        "{SHOP}[[class]]\nname = \"a\"\nuser = [\"svc_*\", \"ann\"]\ndatabase = [\"sh*\"]\napplication_name = [\"batch*\"]\nsession = [\"*\"]\n"
    ));
    let silent = Hints::default();
    let is_in = |user, database, application_name, session| {
        config.class[0].is_for(ClassSubject {
            user,
            database,
            application_name,
            address: None,
            session,
            hints: &silent,
        })
    };
    assert!(is_in("svc_1", "shop", "batch 7", "any"));
    assert!(is_in("ann", "shop", "batch", ""));
    assert!(!is_in("anna", "shop", "batch", "") && !is_in("svc_1", "ship2", "bat", ""));
    assert!(!is_in("svc_1", "stock", "batch", ""));
}

#[test]
fn a_class_is_what_a_transaction_says_of_itself() {
    let config = config(&format!(
        "{SHOP}[[class]]\nname = \"word\"\nsession = [\"gold\"]\n\
         [[class]]\nname = \"pay\"\ncomment = {{ route = [\"/pay*\"], class = [\"gold\", \"silver\"] }}\n\
         [[class]]\nname = \"print\"\nfingerprint = [\"90356c2a5f55a6f1\"]\n\
         [[class]]\nname = \"shape\"\nstatement = [\"select a from*\", \"select b\"]\n"
    ));
    assert!(config.needs_hints());
    let class = |session: &str, sql: &str| {
        let hints = Hints::of(sql.as_bytes());
        let of = ClassSubject {
            user: "ann",
            database: "shop",
            application_name: "",
            address: None,
            session,
            hints: &hints,
        };
        let at = config.class.iter().find(|class| class.is_for(of));
        at.map_or("", |class| class.name.get_ref())
    };
    for (session, sql, expected) in [
        ("gold", "SELECT 1", "word"),
        ("", "/*class=silver,route=/pay/now*/ SELECT 1", "pay"),
        ("", "/*class=silver*/ SELECT 1", ""),
        ("", "/*class=tin,route=/pay*/ SELECT 1", ""),
        ("", "SELECT * FROM t WHERE id = 5", "print"),
        ("", "SELECT a FROM t", "shape"),
        ("", "SELECT b", "shape"),
        ("", "SELECT b, 1", ""),
        ("", "", ""),
    ] {
        assert_eq!(class(session, sql), expected, "{sql}");
    }
}

#[test]
fn a_class_that_nothing_can_be_in_is_a_mistake() {
    let class = |name: &str, rest: &str| format!("[[class]]\nname = \"{name}\"\n{rest}\n");
    for (classes, expected) in [
        (
            class("a", "user = []"),
            "gate.toml:5: class.user: an empty list fits nobody",
        ),
        (
            class("a", "") + &class("b", "user = [\"ann\"]"),
            "gate.toml:8: class.name: nothing is ever in it: \"a\" comes before it",
        ),
        (
            class("a", "user = [\"ann\", \"bob\"]")
                + &class("b", "user = [\"bob\"]\nsession = [\"x\"]"),
            "gate.toml:8: class.name: nothing is ever in it: \"a\"",
        ),
        (
            class("a", "comment.route = [\"/a\"]") + &class("b", "comment.route = [\"/a\"]"),
            "gate.toml:8: class.name: nothing is ever in it: \"a\"",
        ),
        (
            class("a", "fingerprint = [\"12\"]"),
            "gate.toml:6: class.fingerprint: a fingerprint has 16 digits",
        ),
    ] {
        let hints = mistake(&format!("{SHOP}{classes}"));
        assert!(hints.starts_with(expected), "{hints}");
    }
    let beside = class("a", "user = [\"ann\"]") + &class("b", "user = [\"ann\", \"bob\"]");
    config(&format!("{SHOP}{beside}"));
}

#[test]
fn a_class_that_an_earlier_one_takes_by_meaning_is_a_mistake() {
    let two = |earlier: &str, later: &str| {
        format!("{SHOP}[[class]]\nname = \"a\"\n{earlier}\n[[class]]\nname = \"b\"\n{later}\n")
    };
    for (wide, narrow) in [
        (
            "comment.route = [\"/pay*\"]",
            "comment.route = [\"/pay/now\"]",
        ),
        (
            "comment.route = [\"/pay*\"]",
            "comment.route = [\"/pay/*\", \"/pay\"]",
        ),
        (
            "statement = [\"select *\"]",
            "statement = [\"select a from*\"]",
        ),
        (
            "address = [\"10.0.0.0/8\", \"::1\"]",
            "address = [\"10.1.0.0/16\"]",
        ),
        (
            "fingerprint = [\"90356C2A5F55A6F1\"]",
            "fingerprint = [\"90356c2a5f55a6f1\"]\nuser = [\"ann\"]",
        ),
        ("user = [\"a*\"]", "user = [\"ann\"]"),
    ] {
        let hints = mistake(&two(wide, narrow));
        let expected = "gate.toml:8: class.name: nothing is ever in it: \"a\" comes before it";
        assert!(hints.starts_with(expected), "{hints}");
    }
    for (narrow, wide) in [
        (
            "comment.route = [\"/pay/now\"]",
            "comment.route = [\"/pay*\"]",
        ),
        ("comment.route = [\"/pay\"]", "comment.route = [\"/pay*\"]"),
        ("address = [\"10.1.0.0/16\"]", "address = [\"10.0.0.0/8\"]"),
        ("user = [\"ann\"]", "user = [\"a*\"]"),
        ("session = [\"x\"]", "user = [\"x\"]"),
    ] {
        config(&two(narrow, wide));
    }
}

#[test]
fn what_a_class_names_and_nobody_can_be_is_a_mistake() {
    let class = |rest: &str| format!("{SHOP}[[class]]\nname = \"a\"\n{rest}\n");
    for (text, expected) in [
        (
            class("statement = [\"select a\",\n  \"SELECT * FROM t*\"]"),
            "gate.toml:7: class.statement: \"SELECT * FROM t*\" fits nothing",
        ),
        (
            class("statement = [\"set*\"]"),
            "gate.toml:6: class.statement: \"set*\" fits nothing: shapes are of statements",
        ),
        (
            class("database = [\"shop\",\n  \"shpo\"]"),
            "gate.toml:7: class.database: no [[database]] is called \"shpo\"; there are [\"shop\"]",
        ),
        (
            class("database = [\"sho*\",\n  \"stock*\"]"),
            "gate.toml:7: class.database: no [[database]] is called \"stock*\"",
        ),
        (
            class("database = [\"sooner\"]"),
            "gate.toml:6: class.database: \"sooner\" is the gate itself",
        ),
        (
            class("target = { \"p0.95\" = \"30ms\" }"),
            "gate.toml:6: class.target.p0.95: percentiles begin with p1: p95 is the 95th",
        ),
        (
            class("weight = 2\npriority = 1"),
            "gate.toml:7: class.priority: says nothing where classes have weights",
        ),
        (
            class("user = [\"ann\"]\nweight = 2\n[[class]]\nname = \"b\"\npriority = 100"),
            "gate.toml:10: class.priority: says nothing where classes have weights",
        ),
    ] {
        let hints = mistake(&text);
        assert!(hints.starts_with(expected), "{hints}");
        assert!(!hints.contains('\n'), "{hints}");
    }
    config(&format!(
        "{}[[database]]\nname = \"*\"\nserver = \"postgresql://db\"\n",
        class("database = [\"shpo\"]")
    ));
    config(&class("database = [\"shop\"]"));
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
fn the_order_follows_from_what_classes_ask_for() {
    let order = |text: &str| config(&format!("{SHOP}{text}")).order();
    let class = "[[class]]\nname = \"a\"\n";
    assert_eq!(order(class), Order::Fcfs);
    assert_eq!(order(&format!("{class}weight = 2\n")), Order::Shares);
    let target = format!("{class}target = {{ mean = \"30ms\", p95 = \"0.1s\" }}\n");
    assert_eq!(order(&target), Order::Targets(Lateness::ByPriority));
    let shared = config(&format!("late = \"in-proportion\"\n{SHOP}{target}"));
    assert_eq!(shared.order(), Order::Targets(Lateness::InProportion));
    let shortest = config(&format!("order = \"shortest\"\n{SHOP}"));
    assert_eq!(shortest.order(), Order::Expected);

    let goals = shared.goals();
    let response_targets = [
        ResponseTarget::Mean(30_000_000),
        ResponseTarget::Share(0.95, 100_000_000),
    ];
    assert_eq!((goals[0].name.as_str(), goals[0].priority), ("a", 99));
    assert_eq!(goals[0].response_targets, response_targets);
    // A client in no class.
    assert_eq!((goals.len(), goals[1].priority), (2, u8::MAX));
}

#[test]
fn what_rules_say_of_one_name_of_the_gates_own_database_holds_for_the_other() {
    let config = config(&format!(
        "{SHOP}[[rule]]\ndatabase = [\"pgbouncer\"]\naddress = [\"10.0.0.5/32\"]\n\
         [[rule]]\ndatabase = [\"sooner\"]\nauth = \"reject\"\n[[rule]]\nauth = \"trust\"\n"
    ));
    let required_auth = |database: &str, address: &str| {
        let client = LoginAttempt {
            user: "ann",
            database,
            address: Some(address.parse().unwrap()),
            transport: Transport::Clear,
        };
        super::required_auth(&config.rule, config.auth, client)
    };
    for own in OWN_DATABASES {
        assert_eq!(required_auth(own, "10.0.0.5"), AuthMethod::Scram, "{own}");
        assert_eq!(required_auth(own, "10.0.0.6"), AuthMethod::Reject, "{own}");
    }
    assert_eq!(required_auth("shop", "10.0.0.5"), AuthMethod::Trust);
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
