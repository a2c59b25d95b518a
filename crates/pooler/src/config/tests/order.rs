//! The order, from what classes ask for.

use super::*;
use sooner_admission::{Lateness, Order, ResponseTarget, Within};

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
    for (word, within) in [
        ("longest", Within::Longest),
        ("boost", Within::Boost),
        ("hrrn", Within::Hrrn),
        ("nudge", Within::Nudge),
        ("auto", Within::Auto),
    ] {
        let alone = config(&format!("order = \"{word}\"\n{SHOP}"));
        assert_eq!(alone.order(), Order::from(within));
        assert!(alone.needs_hints(), "{word}");
        let shared = format!("order = \"{word}\"\nshare_by = \"user\"\n{SHOP}");
        assert_eq!(config(&shared).order(), Order::LeastUsed(within));
    }
    let by_user = config(&format!("share_by = \"user\"\n{SHOP}"));
    assert_eq!(by_user.order(), Order::LeastUsed(Within::Fcfs));
    let both = config(&format!(
        "order = \"shortest\"\nshare_by = \"client\"\n{SHOP}"
    ));
    assert_eq!(both.order(), Order::LeastUsed(Within::Expected));

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
fn targets_and_weights_that_cannot_be_have_a_line_too() {
    for (text, expected) in [
        (
            format!(
                "{SHOP}[[class]]\nname = \"a\"\ntarget = {{ mean = \"30ms\",\n  p95 = \"120 millis\" }}\n"
            ),
            "gate.toml:7: class.target.p95: `120 millis` is not a length of time; write for example",
        ),
        (
            format!("{SHOP}[[class]]\nname = \"a\"\ntarget.median = \"30ms\"\n"),
            "gate.toml:6: class.target.median: there is no such target; write mean",
        ),
        (
            format!("{SHOP}[[class]]\nname = \"a\"\nweight = 3\ntarget.mean = \"30ms\"\n"),
            "gate.toml:6: class.weight: a class has a weight or a target, not both",
        ),
        (
            format!(
                "{SHOP}[[class]]\nname = \"a\"\nuser = [\"ann\"]\nweight = 3\n[[class]]\nname = \"b\"\nvariability = \"reduce\"\n"
            ),
            "gate.toml:7: class.weight: some classes have weights and others have targets",
        ),
        (
            format!(
                "order = \"shortest\"\n{SHOP}[[class]]\nname = \"a\"\ntarget.mean = \"30ms\"\n"
            ),
            "gate.toml:1: order: has no effect where classes have targets or weights",
        ),
        (
            format!("order = \"boosted\"\n{SHOP}"),
            "gate.toml:1: order: unknown value `boosted`; did you mean \"boost\"? Choose one of",
        ),
        (
            format!("share_by = \"user\"\n{SHOP}[[class]]\nname = \"a\"\nweight = 3\n"),
            "gate.toml:1: share_by: has no effect where classes have targets or weights",
        ),
        (
            format!("share_by = \"users\"\n{SHOP}"),
            "gate.toml:1: share_by: unknown value `users`; did you mean \"user\"? Choose one of",
        ),
    ] {
        let hints = mistake(&text);
        assert!(hints.starts_with(expected), "{hints}");
    }
}
