//! What gates tell of processes, and where their own stand.

use super::*;

#[test]
fn a_gate_tells_which_transaction_runs() {
    let test = "a_gate_tells_which_transaction_runs";
    let Some((database, _turn)) = database(test) else {
        return;
    };
    let socket: PathBuf = database.folder().join("gate.sock");
    let path = socket.display().to_string();
    // Of no session of the server's own: only the gate knows.
    let classes = CLASSES.replace(
        "application_name = [\"high\"]",
        "comment = { kind = [\"pay\"] }",
    );
    let mut child = attached(&database, &classes, &["--gate", &path, "--cost", "0.01"]);
    let config = format!("priorities = \"{path}\"\n{classes}[limits]\ntransactions = 1\n");
    let gate = Gate::start(Path::new(env!("CARGO_BIN_EXE_sooner")), &database, &config);
    let mut talk = Talk::begin(&mut gate.psql(&database, "postgres"));
    let pid: u32 = talk.ask("SELECT pg_backend_pid()").parse().unwrap();
    let ordinary = standing(pid);
    let gate_is_told = || status_of(&child)["gates"] == 1;
    until("the gate is connected", gate_is_told);
    for _ in 0..3 {
        assert_eq!(
            talk.ask("SELECT pg_backend_pid() /*kind='pay'*/"),
            pid.to_string()
        );
        until("it is raised", || standing(pid) != ordinary);
        talk.ask("SELECT 1");
        until("it is put back", || standing(pid) == ordinary);
    }
    talk.ask("SELECT 1 /*kind='pay'*/");
    until("it is raised", || standing(pid) != ordinary);
    // What it told is asked for anew where the session on the server is lost.
    let ends = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                WHERE application_name = 'sooner attach'";
    assert_eq!(database.ask(ends), "1");
    until("all is put back", || standing(pid) == ordinary);
    until("it is attached again", gate_is_told);
    talk.ask("SELECT 1 /*kind='pay'*/");
    until("it is raised again", || standing(pid) != ordinary);
    drop(talk);
    drop(gate);
    // With the gate its sessions go; what stays is of no class.
    end(&mut child, Signal::TERM);
    assert!(!socket.exists());
}

/// What a gate writes of a process.
fn frame(pid: u32, priority: u8) -> [u8; 8] {
    let [a, b, c, d] = pid.to_le_bytes();
    [a, b, c, d, priority, 0, 0, 0]
}

#[test]
fn only_what_tells_of_a_process_stands_above_it_and_until_it_leaves() {
    let test = "only_what_tells_of_a_process_stands_above_it_and_until_it_leaves";
    let Some((database, _turn)) = database(test) else {
        return;
    };
    let socket: PathBuf = database.folder().join("gate.sock");
    let path = socket.display().to_string();
    let child = attached(&database, CLASSES, &["--gate", &path, "--cost", "0.01"]);
    let (_talk, pid) = session(&database, "rest");
    let own = std::process::id();
    let [gate_before, before] = [own, pid].map(standing);
    let mut gate = UnixStream::connect(&socket).unwrap();
    until("it is there", || status_of(&child)["gates"] == 1);
    // It has not told of a process of the server yet.
    gate.write_all(&frame(1, 1)).unwrap();
    until("it was heard", || status_of(&child)["told"] == 1);
    assert_eq!(standing(own), gate_before);
    gate.write_all(&frame(pid, 1)).unwrap();
    until("the process is raised", || standing(pid) != before);
    until("and so is the gate", || standing(own) != gate_before);
    drop(gate);
    until("the process is put back", || standing(pid) == before);
    until("and so is the gate", || standing(own) == gate_before);
}

/// Where the processor is full an answer takes long; here it does not come at all.
#[test]
fn a_gate_is_heard_while_the_server_does_not_answer() {
    let test = "a_gate_is_heard_while_the_server_does_not_answer";
    let Some((database, _turn)) = database(test) else {
        return;
    };
    let socket: PathBuf = database.folder().join("gate.sock");
    let path = socket.to_string_lossy().into_owned();
    let child = attached(&database, CLASSES, &["--gate", &path]);
    let (_low, pid) = session(&database, "rest");
    let before = standing(pid);
    let asking =
        database.ask("SELECT pid FROM pg_stat_activity WHERE application_name = 'sooner attach'");
    let asking = Pid::from_raw(asking.parse().unwrap()).unwrap();
    kill_process(asking, Signal::STOP).unwrap();
    let looks = || status_of(&child)["looks"].clone();
    let mut last = looks();
    until("it waits for an answer", || {
        sleep(Duration::from_millis(200));
        std::mem::replace(&mut last, looks()) == last
    });
    let mut gate = UnixStream::connect(&socket).unwrap();
    for (priority, is_raised) in [(1, true), (2, false)] {
        gate.write_all(&frame(pid, priority)).unwrap();
        until("it is heard", || (standing(pid) != before) == is_raised);
    }
    kill_process(asking, Signal::CONT).unwrap();
}
