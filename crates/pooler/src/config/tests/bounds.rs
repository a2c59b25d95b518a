//! What bounds a class.

use super::*;

fn class(text: &str) -> String {
    format!("{SHOP}[[class]]\nname = \"a\"\n{text}\n")
}

#[test]
fn a_class_may_have_a_cap() {
    let goals = config(&class("transactions = 3")).goals();
    assert_eq!(goals[0].inside_max, Some(3));
    assert_eq!(goals[1].inside_max, None, "of those in no class");
    // The word that upstreams have.
    let other = config(&class("requests = 3")).goals();
    assert_eq!(other[0].inside_max, Some(3));
}

#[test]
fn bounds_that_cannot_be_have_a_line() {
    for (text, expected) in [
        (
            class("transactions = 0"),
            "gate.toml:6: class.transactions: the value `0` does not fit; write a whole number, 1 or more",
        ),
        (
            class("transactions = -1"),
            "gate.toml:6: class.transactions: the value `-1` does not fit; write a whole number, 1 or more",
        ),
        (
            class("transactions = \"many\""),
            "gate.toml:6: class.transactions: the text \"many\" does not fit; write a whole number, 1 or more",
        ),
        (
            class("transactions = 21"),
            "gate.toml:6: class.transactions: more than limits.transactions allows; write at most 20, or leave it out",
        ),
        (
            class("transactions = 9\n[limits]\ntransactions = \"auto\"\ntransactions_max = 8"),
            "gate.toml:6: class.transactions: more than limits.transactions_max allows; write at most 8",
        ),
        (
            format!("mode = \"observe\"\n{}", class("transactions = 1")),
            "gate.toml:1: mode: it is how long a client keeps its server connection: transaction, session; write observe = true",
        ),
        (
            format!("observe = \"yes\"\n{}", class("transactions = 1")),
            "gate.toml:1: observe: the text \"yes\" does not fit; write true or false",
        ),
        (
            class("longest = 2"),
            "gate.toml:6: class.longest: a time has a unit and stands in quotes; write longest = \"30ms\"",
        ),
        (
            class("longest = \"0 s\""),
            "gate.toml:6: class.longest: out of range; write 10ms to 1440min",
        ),
        (
            class("longest = \"2 s\"\nlongest_action = \"kill\""),
            "gate.toml:7: class.longest_action: unknown value `kill`; choose one of yield, cancel",
        ),
        (
            class("longest_action = \"cancel\""),
            "gate.toml:6: class.longest_action: has no effect without a time; write longest = \"2s\" as well",
        ),
    ] {
        let said = mistake(&text);
        assert!(said.starts_with(expected), "{said}");
    }
}
