//! Who goes first of those who waited while the gate was paused, or while another configuration
//! came.

use std::thread;

use super::{order_after, start, until_waiting};
use crate::support::{Talk, until};

/// Of two who wait, one came before the pause, and is let in while it lasts.
#[test]
fn who_waited_when_a_pause_began_goes_before_who_came_later() {
    let Some((database, gate)) = start("who_waited_when_a_pause_began", "") else {
        return;
    };
    let mut inside = Talk::begin(&mut gate.psql(&database, "postgres"));
    let [mut ann, mut bob] = ["ann", "bob"].map(|user| {
        let mut client = Talk::begin(&mut gate.psql(&database, user));
        client.ask("SELECT 1");
        client
    });
    inside.ask("BEGIN");
    let comes = "INSERT INTO came DEFAULT VALUES RETURNING pg_sleep(0.02)";
    ann.say(comes);
    until_waiting(&gate, &database, 1);
    thread::scope(|scope| {
        let pause = scope.spawn(|| gate.admin(&database, "PAUSE"));
        until("it is paused", || {
            gate.admin(&database, "SHOW STATE").contains("paused|yes")
        });
        bob.say(comes);
        until_waiting(&gate, &database, 2);
        inside.ask("COMMIT");
        pause.join().unwrap();
    });
    gate.admin(&database, "RESUME");
    ann.hear();
    bob.hear();
    let order = database.ask("SELECT string_agg(who, '' ORDER BY n) FROM came");
    assert_eq!(order, "ab");
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
