//! Who goes first of those who waited while the gate was paused, or while another configuration
//! came.

use std::thread;

use super::{order_after, start, until_waiting};
use crate::support::{Database, Gate, Talk, until};

/// Of two who wait, one came before the pause, and is let in while it lasts.
#[test]
fn who_waited_when_a_pause_began_goes_before_who_came_later() {
    if let Some((database, gate)) = start("who_waited_when_a_pause_began", "") {
        assert_eq!(order_over_a_pause(&database, &gate, 1), "ab");
    }
}

/// One of those who wait has the free place at once.
#[test]
fn a_more_important_class_goes_before_who_waited_when_a_pause_began() {
    let class = "[[class]]\nname = \"bob\"\nuser = [\"bob\"]\npriority = 1\n";
    if let Some((database, gate)) = start("a_more_important_class_goes_before", class) {
        assert_eq!(order_over_a_pause(&database, &gate, 3), "abaa");
    }
}

/// In which order so many of ann's transactions that wait when a pause begins, and one of bob's
/// that comes during it, go in after it; by their first letters.
fn order_over_a_pause(database: &Database, gate: &Gate, of_ann: usize) -> String {
    let client = |user| Talk::begin(&mut gate.psql(database, user));
    let mut inside = client("postgres");
    let mut waiting: Vec<Talk> = (0..of_ann).map(|_| client("ann")).collect();
    waiting.push(client("bob"));
    for one in &mut waiting {
        one.ask("SELECT 1");
    }
    inside.ask("BEGIN");
    let comes = "INSERT INTO came DEFAULT VALUES RETURNING pg_sleep(0.02)";
    let (bob, of_ann) = waiting.split_last_mut().unwrap();
    for (before, ann) in of_ann.iter_mut().enumerate() {
        ann.say(comes);
        until_waiting(gate, database, before + 1);
    }
    thread::scope(|scope| {
        let pause = scope.spawn(|| gate.admin(database, "PAUSE"));
        until("it is paused", || {
            gate.admin(database, "SHOW STATE").contains("paused|yes")
        });
        bob.say(comes);
        until_waiting(gate, database, of_ann.len() + 1);
        inside.ask("COMMIT");
        pause.join().unwrap();
    });
    gate.admin(database, "RESUME");
    for one in &mut waiting {
        one.hear();
    }
    database.ask("SELECT string_agg(who, '' ORDER BY n) FROM came")
}

#[test]
fn users_share_who_waited_before_that_was_said() {
    let Some((database, gate)) = start("users_share_who_waited_before", "") else {
        return;
    };
    let share_by = |before: &'static str, now: &'static str| {
        gate.rewrite(|text| now.to_owned() + text.strip_prefix(before).unwrap_or(&text));
        gate.admin(&database, "RELOAD");
    };
    let (by_user, by_database) = ("share_by = \"user\"\n", "share_by = \"database\"\n");
    let users = ["ann", "ann", "ann", "bob"];
    let order = order_after(&database, &gate, &users, || share_by("", by_user));
    assert_eq!(order, "abaa");
    share_by(by_user, by_database);
    // All are one client until it is said that they are several, of whom bob has had less.
    let order = order_after(&database, &gate, &users, || share_by(by_database, by_user));
    assert_eq!(order, "baaa");
}
