//! What is read, and what is refused in which words.

use super::*;
use proptest::prelude::*;

fn check_policy(name: &str) -> Result<(), String> {
    match name {
        "fair" | "srpt" => Ok(()),
        _ => Err(format!("`{name}` is not a policy; use fair or srpt")),
    }
}

fn model(text: &str) -> Model {
    Model::read(text, check_policy).expect(text)
}

fn mistake(text: &str) -> String {
    Model::read(text, check_policy).expect_err(text).to_string()
}

#[test]
fn the_shortest_model_is_open_and_poisson() {
    let shortest = model("sizes = \"exp:mean=1\"\nschedule = 0.8\n");
    let schedule = "0.8".parse().expect("a load");
    assert_eq!(
        shortest.users,
        Users::Open {
            schedule,
            arrivals: Arrivals::Poisson
        }
    );
    assert_eq!(
        (shortest.policy.as_deref(), shortest.servers, shortest.mpl),
        (None, 1, None)
    );
}

#[test]
fn every_kind_of_users_is_read() {
    let closed = model(
        "sizes = \"surge\"\npolicy = \"srpt\"\nservers = 2\nmpl = 8\n[users]\nkind = \"closed\"\nusers = 100\nthink = \"exp:mean=5\"\n",
    );
    assert_eq!(
        (closed.policy.as_deref(), closed.servers, closed.mpl),
        (Some("srpt"), 2, Some(8))
    );
    assert_eq!(
        closed.users,
        Users::Closed {
            users: 100,
            think: "exp:mean=5".parse().expect("a law")
        }
    );
    let partly = model(
        "sizes = \"trace:epa\"\nschedule = \"0.2,1.2,10,10\"\n[arrivals]\nkind = \"trace\"\n[users]\nkind = \"partly-open\"\nstay = 0.9\n",
    );
    let Users::PartlyOpen {
        schedule,
        arrivals,
        stay,
        think,
    } = partly.users
    else {
        panic!("partly-open")
    };
    assert_eq!(
        (schedule.to_string().as_str(), arrivals, stay, think.mean()),
        ("0.2,1.2,10,10", Arrivals::Trace, 0.9, 0.0)
    );
    let renewal = model(
        "sizes = \"det:mean=1\"\nschedule = 1\narrivals = { kind = \"renewal\", gaps = \"h2:mean=1,c2=4\" }\nusers = { kind = \"open\" }\n",
    );
    assert!(matches!(
        renewal.users,
        Users::Open {
            arrivals: Arrivals::Renewal(_),
            ..
        }
    ));
}

#[test]
fn what_a_link_adds_is_read() {
    let link = model(
        "sizes = \"trace:epa\"\nschedule = 0.9\nuplink = \"10mbit\"\nerror = 0.5\nturn = 0.02\nguard = true\n[priority]\nshare = 0.1\nfirst = \"chance\"\n",
    );
    assert_eq!(link.uplink.map(Rate::bits_per_sec), Some(10_000_000));
    assert_eq!(
        (link.error, link.turn, link.guard),
        (Some(0.5), Some(0.02), true)
    );
    let first = First::Chance;
    assert_eq!(link.priority, Some(Priority { share: 0.1, first }));
    let smallest = model("sizes = \"surge\"\nschedule = 0.9\npriority = { share = 0.5 }\n");
    let first = First::Smallest;
    assert_eq!(smallest.priority, Some(Priority { share: 0.5, first }));
    assert_eq!(
        (
            smallest.uplink,
            smallest.error,
            smallest.turn,
            smallest.guard
        ),
        (None, None, None, false)
    );
}

/// A model up to its tables.
const OPEN: &str = "sizes = \"exp:mean=1\"\nschedule = 0.8\n";

#[track_caller]
fn assert_mistake(text: &str, words: &str) {
    let message = mistake(text);
    assert!(message.starts_with(words), "{text}\n{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
}

#[test]
fn a_mistake_has_its_line_its_key_and_a_remedy() {
    for (text, words) in [
        ("schedule = 0.8\n", "sizes: is missing"),
        (
            "sizes = \"exp:mean=1\"\n",
            "schedule: is missing; give the load",
        ),
        (
            "sizes = \"exp:mean=0\"\nschedule = 0.8",
            "line 1: sizes: distribution `exp:mean=0`: mean is 0",
        ),
        (
            "sizes = \"exp:mean=1\"\nschedule = -1",
            "line 2: schedule: schedule `-1`",
        ),
        (
            &format!("{OPEN}polcy = \"srpt\""),
            "line 3: polcy: unknown field `polcy`, expected one of",
        ),
        (
            &format!("{OPEN}policy = \"best\""),
            "line 3: policy: `best` is not a policy; use fair or srpt",
        ),
        (
            &format!("{OPEN}servers = 0"),
            "line 3: servers: 0 is out of range; give 1 to",
        ),
        (&format!("{OPEN}mpl = -1"), "line 3: mpl: "),
        (
            &format!("{OPEN}uplink = \"10 apples\""),
            "line 3: uplink: rate `10 apples`: `apples` is not a unit of a rate",
        ),
        (
            &format!("{OPEN}error = -0.1"),
            "line 3: error: -0.1 is out of range; give 0 to 5",
        ),
        (
            &format!("{OPEN}turn = 0.0"),
            "line 3: turn: 0 is out of range",
        ),
        (
            &format!("{OPEN}[priority]\nshare = 1.0"),
            "line 4: priority.share: 1 is out of range",
        ),
        (
            &format!("{OPEN}[priority]\nshare = 0.1\nfirst = \"last\""),
            "line 5: priority.first: unknown value `last`; use smallest, chance",
        ),
        (
            &format!("{OPEN}[arrivals]\nkind = \"trace\""),
            "line 4: arrivals.kind: the gaps of a trace",
        ),
        (
            &format!("{OPEN}[arrivals]\nkind = \"renewal\""),
            "arrivals.gaps: is missing",
        ),
        (
            &format!("{OPEN}[arrivals]\nkind = \"renewal\"\ngaps = \"pareto:k=1,alpha=1\""),
            "line 5: arrivals.gaps: has no mean",
        ),
        (
            &format!("{OPEN}[arrivals]\nkind = \"poisson\"\ngaps = \"exp:mean=1\""),
            "line 5: arrivals.gaps: the gaps of a Poisson",
        ),
        (&format!("{OPEN}="), "line 3: "),
    ] {
        assert_mistake(text, words);
    }
}

#[test]
fn a_mistake_in_the_users_does_too() {
    for (text, words) in [
        (
            "sizes = \"surge\"\n[users]\nkind = \"closed\"",
            "users.users: is missing",
        ),
        (
            &format!("{OPEN}[users]\nkind = \"shut\""),
            "line 4: users.kind: unknown kind `shut`; use open",
        ),
        (
            &format!("{OPEN}[users]\nkind = \"open\"\nthink = \"exp:mean=1\""),
            "line 5: users.think: users of an open",
        ),
        (
            &format!("{OPEN}[users]\nkind = \"closed\"\nusers = 3"),
            "line 2: schedule: the load of a closed",
        ),
        (
            "sizes = \"surge\"\n[users]\nkind = \"closed\"\nusers = 0",
            "line 4: users.users: 0 is out of range",
        ),
        (
            &format!("{OPEN}[users]\nkind = \"partly-open\""),
            "users.stay: is missing",
        ),
        (
            &format!("{OPEN}[users]\nkind = \"partly-open\"\nstay = 1"),
            "line 5: ",
        ),
        (
            &format!("{OPEN}[users]\nkind = \"partly-open\"\nstay = 1.0"),
            "line 5: users.stay: 1 is out of range",
        ),
        (
            &format!("{OPEN}[users]\nusers = 3"),
            "line 3: users.kind: is missing",
        ),
    ] {
        assert_mistake(text, words);
    }
}

proptest! {
    #[test]
    fn any_text_is_a_model_or_a_mistake(text in "(sizes|schedule|policy|users|arrivals|[\\[\\]a-z0-9.=\"\n {}#]){0,60}") {
        let _ = Model::read(&text, check_policy);
    }

    #[test]
    fn any_letters_are_a_model_or_a_mistake(text in ".{0,60}") {
        if let Err(mistake) = Model::read(&text, check_policy) {
            prop_assert_eq!(mistake.to_string().lines().count(), 1);
        }
    }
}
