//! Classes behind the middle, with `--lower`: last, but not while another one waits for them.

use super::*;

const CLASSES: &str = "[[class]]\nname = \"high\"\npriority = 1\napplication_name = [\"high\"]\n\
                       [[class]]\nname = \"reports\"\npriority = 150\n\
                       application_name = [\"reports\"]\n";

#[test]
fn a_session_behind_the_others_is_not_while_one_waits_for_it() {
    let test = "a_session_behind_the_others_is_not_while_one_waits_for_it";
    let Some((database, _turn)) = database(test) else {
        return;
    };
    database.ask("CREATE TABLE t AS SELECT 1 AS id");
    let (mut reports, reports_pid) = session(&database, "reports");
    let (mut other, other_pid) = session(&database, "other");
    let ordinary = standing(reports_pid);
    let mut child = attached(&database, CLASSES, &["--lower"]);
    until("it is lowered", || standing(reports_pid) != ordinary);
    let last = standing(reports_pid);
    assert!(last.ends_with(" 11") || last.contains("nice 11"), "{last}");
    assert_eq!(standing(other_pid), ordinary);
    let (_high, high_pid) = session(&database, "high");
    until("the high one is raised", || standing(high_pid) != ordinary);
    reports.ask("BEGIN");
    reports.ask("UPDATE t SET id = 2");
    other.say("UPDATE t SET id = 3");
    until("its lock is waited for", || {
        standing(reports_pid) == ordinary
    });
    let status = status_of(&child);
    assert_eq!([&status["lowered"], &status["spared"]], [0, 1], "{status}");
    reports.ask("ROLLBACK");
    other.hear();
    until("it is last again", || standing(reports_pid) == last);
    end(&mut child, Signal::TERM);
    assert_eq!(
        [reports_pid, other_pid].map(standing),
        [ordinary.clone(), ordinary]
    );
}

#[test]
fn a_session_that_a_killed_one_lowered_is_put_back_at_the_next_start() {
    let test = "a_session_that_a_killed_one_lowered_is_put_back_at_the_next_start";
    let Some((database, _turn)) = database(test) else {
        return;
    };
    let (_reports, reports_pid) = session(&database, "reports");
    let ordinary = standing(reports_pid);
    let mut child = attached(&database, CLASSES, &["--lower"]);
    until("it is lowered", || standing(reports_pid) != ordinary);
    end(&mut child, Signal::KILL);
    assert_ne!(standing(reports_pid), ordinary, "no one could put it back");
    let mut child = attached(&database, CLASSES, &[]);
    assert_eq!(standing(reports_pid), ordinary);
    end(&mut child, Signal::TERM);
}

#[test]
fn without_lower_none_goes_last() {
    let Some((database, _turn)) = database("without_lower_none_goes_last") else {
        return;
    };
    let (_reports, reports_pid) = session(&database, "reports");
    let ordinary = standing(reports_pid);
    let mut child = attached(&database, CLASSES, &[]);
    let (_high, high_pid) = session(&database, "high");
    until("the high one is raised", || standing(high_pid) != ordinary);
    assert_eq!(standing(reports_pid), ordinary);
    end(&mut child, Signal::TERM);
}
