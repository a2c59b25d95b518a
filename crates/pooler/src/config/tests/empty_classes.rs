//! Classes that nothing can be in, which are mistakes.

use super::*;

#[test]
fn a_class_that_nothing_can_be_in_is_a_mistake() {
    let class = |name: &str, rest: &str| format!("[[class]]\nname = \"{name}\"\n{rest}\n");
    for (classes, expected) in [
        (
            class("a", "user = []"),
            "gate.toml:5: class.user: an empty list or table fits no client",
        ),
        (
            class("a", "") + &class("b", "user = [\"ann\"]"),
            "gate.toml:8: class.name: it stays empty: \"a\" comes before it",
        ),
        (
            class("a", "user = [\"ann\", \"bob\"]")
                + &class("b", "user = [\"bob\"]\nsession = [\"x\"]"),
            "gate.toml:8: class.name: it stays empty: \"a\"",
        ),
        (
            class("a", "comment.route = [\"/a\"]") + &class("b", "comment.route = [\"/a\"]"),
            "gate.toml:8: class.name: it stays empty: \"a\"",
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
        let expected = "gate.toml:8: class.name: it stays empty: \"a\" comes before it";
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
            "gate.toml:7: class.statement: \"SELECT * FROM t*\" matches no statement",
        ),
        (
            class("statement = [\"set*\"]"),
            "gate.toml:6: class.statement: \"set*\" matches no statement: BEGIN, SET",
        ),
        (
            class("database = [\"shop\",\n  \"shpo\"]"),
            "gate.toml:7: class.database: there is no [[database]] \"shpo\"; there are [\"shop\"]",
        ),
        (
            class("database = [\"sho*\",\n  \"stock*\"]"),
            "gate.toml:7: class.database: there is no [[database]] \"stock*\"",
        ),
        (
            class("database = [\"sooner\"]"),
            "gate.toml:6: class.database: \"sooner\" is the gate itself",
        ),
        (
            class("target = {}"),
            "gate.toml:6: class.target: it names no target; write target = { mean",
        ),
        (
            class("target = { \"p99.9\" = \"30ms\", p5 = \"31ms\", mean = \"60ms\" }"),
            "gate.toml:6: class.target.p99.9: less than p5, which is never above it",
        ),
        (
            class("comment = {}"),
            "gate.toml:5: class.comment: an empty list or table fits no client",
        ),
        (
            format!("late = \"in-proportion\"\n{}", class("priority = 1")),
            "gate.toml:1: late: has no effect where no class has a target",
        ),
        (
            class("target = { \"p0.95\" = \"30ms\" }"),
            "gate.toml:6: class.target.p0.95: percentiles begin with p1: p95 is the 95th",
        ),
        (
            class("weight = 2\npriority = 1"),
            "gate.toml:7: class.priority: has no effect where classes have weights",
        ),
        (
            class("user = [\"ann\"]\nweight = 2\n[[class]]\nname = \"b\"\npriority = 100"),
            "gate.toml:10: class.priority: has no effect where classes have weights",
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
fn a_pattern_that_nothing_matches_is_a_mistake() {
    let class = |rest: &str| format!("{SHOP}[[class]]\nname = \"a\"\n{rest}\n");
    for (text, expected) in [
        (
            class("user = [\"ann\",\n  \"a*b\"]"),
            "gate.toml:7: class.user: \"a*b\" matches nothing: a * stands for anything only at the \
             end; write \"a*\", or list the values",
        ),
        (
            class("user = [\"*b\"]"),
            "gate.toml:6: class.user: \"*b\" matches nothing: a * stands for anything only at the \
             end; list the values",
        ),
        (
            class("user = [\"\"]"),
            "gate.toml:6: class.user: \"\" is no name; write one",
        ),
        (
            class(&format!("user = [\"{}\"]", "a".repeat(64))),
            &format!(
                "gate.toml:6: class.user: \"{}\" matches nothing: names end after 63 bytes; write \"{}\"",
                "a".repeat(64),
                "a".repeat(63)
            ),
        ),
        (
            class("database = [\"s*p\"]"),
            "gate.toml:6: class.database: \"s*p\" matches nothing: a *",
        ),
        (
            class("application_name = [\"a*b*\"]"),
            "gate.toml:6: class.application_name: \"a*b*\" matches nothing: a *",
        ),
        (
            class("session = [\"**\"]"),
            "gate.toml:6: class.session: \"**\" matches nothing: a *",
        ),
        (
            class("comment.route = [\"/a\", \"/*/a\"]"),
            "gate.toml:6: class.comment.route: \"/*/a\" matches nothing: a *",
        ),
        (
            class("comment.\"\" = [\"/a\"]"),
            "gate.toml:6: class.comment: \"\" is no key",
        ),
        (
            format!("{SHOP}[[rule]]\nuser = [\"app_*\"]\n"),
            "gate.toml:5: rule.user: \"app_*\" matches nothing: a rule has whole names; list them",
        ),
        (
            format!("{SHOP}[[rule]]\ndatabase = [\"*\"]\n"),
            "gate.toml:5: rule.database: \"*\" matches nothing: a rule has whole names",
        ),
    ] {
        let hints = mistake(&text);
        assert!(hints.starts_with(expected), "{hints}");
        assert!(!hints.contains('\n'), "{hints}");
    }
    // What has no application name, and a word that is none, may be meant.
    config(&class(
        "application_name = [\"\"]\nsession = [\"*\"]\nuser = [\"a*\"]",
    ));
}
