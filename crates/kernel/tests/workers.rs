//! What the programs on the scheduler's tracepoints see of a thread of this process. Needs CAP_BPF
//! and CAP_PERFMON.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::gettid;
use sooner_kernel::clock::monotonic_ns;
use sooner_kernel::workers::{
    WorkerDoing, WorkerSeen, WorkerTold, Workers, WorkersWanted, lacks_for_workers,
};
use sooner_testbed::skip;

const PATIENCE: Duration = Duration::from_secs(10);

/// None, after saying why, where it cannot be done here.
pub fn workers(test: &str) -> Option<(tokio::runtime::Runtime, Workers)> {
    if let Some(lacks) = lacks_for_workers() {
        skip(test, &format!("needs {lacks}"));
        return None;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let workers = runtime.block_on(async { Workers::watch().unwrap() });
    Some((runtime, workers))
}

fn number_of_this_thread() -> u32 {
    gettid().as_raw_nonzero().get().cast_unsigned()
}

/// Waits until what is seen is so.
fn until(workers: &Workers, place: u32, is_so: impl Fn(&WorkerSeen) -> bool) -> WorkerSeen {
    let begin = Instant::now();
    loop {
        let seen = workers.see(place, monotonic_ns());
        if is_so(&seen) {
            return seen;
        }
        assert!(begin.elapsed() < PATIENCE, "{seen:?}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// A server of one thread: it accepts, and answers each request of a connection until that ends, or
/// once where the first byte is `1`.
fn serve(listener: &TcpListener) {
    while let Ok((mut stream, _)) = listener.accept() {
        let mut request = [0; 16];
        let mut is_shut = false;
        while let Ok(1..) = stream.read(&mut request) {
            match request[0] {
                b'0' => return,
                // What is read behind this is no request.
                _ if is_shut => continue,
                _ => stream.write_all(b"answer").unwrap(),
            }
            if request[0] == b'1' {
                stream.shutdown(Shutdown::Write).unwrap();
                is_shut = true;
            }
        }
    }
}

fn ask(stream: &mut TcpStream, request: &[u8]) {
    stream.write_all(request).unwrap();
    let mut answer = [0; 6];
    stream.read_exact(&mut answer).unwrap();
}

#[test]
fn each_request_is_seen_to_begin() {
    let Some((_runtime, mut workers)) = workers("each_request_is_seen_to_begin") else {
        return;
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, told) = mpsc::channel();
    let server = thread::spawn(move || {
        tell.send(number_of_this_thread()).unwrap();
        serve(&listener);
    });
    let thread = told.recv().unwrap();
    let place = workers.add(thread).unwrap().unwrap();
    // It may have been in accept before it was watched: the first connection wakes it.
    let mut requests = Vec::new();
    for kind in [b"2", b"2", b"1"] {
        let mut stream = TcpStream::connect(address).unwrap();
        ask(&mut stream, kind);
        if kind == b"2" {
            // A second one on the same connection, in two pieces: it begins once.
            stream.write_all(b"2").unwrap();
            let mut answer = [0; 6];
            stream.read_exact(&mut answer).unwrap();
        } else {
            // It is read, and is none.
            let _ = stream.write_all(b"rest");
        }
        drop(stream);
        let seen = until(&workers, place, |seen| seen.doing == WorkerDoing::Idle);
        requests.push(seen.requests);
    }
    assert_eq!(requests, [2, 4, 5]);
    let seen = workers.see(place, monotonic_ns());
    assert!(seen.sleeps >= 3 && seen.run_ns > 0 && seen.begin_run_ns <= seen.run_ns);
    assert!(workers.is_there(place));
    TcpStream::connect(address)
        .unwrap()
        .write_all(b"0")
        .unwrap();
    server.join().unwrap();
    // Its number may be another thread's now.
    until(&workers, place, |seen| seen.doing == WorkerDoing::Gone);
    assert!(!workers.is_there(place));
    workers.remove(thread, place);
}

#[test]
fn what_a_thread_uses_is_counted_and_its_level_is_told_of() {
    let test = "what_a_thread_uses_is_counted_and_its_level_is_told_of";
    let Some((runtime, mut workers)) = workers(test) else {
        return;
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, told) = mpsc::channel();
    let server = thread::spawn(move || {
        tell.send(number_of_this_thread()).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 1];
        stream.read_exact(&mut request).unwrap();
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(100) {
            std::hint::black_box(request);
        }
        stream.write_all(b"answer").unwrap();
        // Sleeps in a call that is no accept.
        let _ = stream.read(&mut request);
        let _ = listener.accept();
    });
    let thread = told.recv().unwrap();
    let place = workers.add(thread).unwrap().unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    workers.set_level(place, 2);
    ask(&mut stream, b"x");
    let seen = until(&workers, place, |seen| seen.doing == WorkerDoing::Asleep);
    assert!(seen.has_answered && seen.requests <= 1, "{seen:?}");
    // Another one may have had the processor meanwhile, but it was on it for some of the time.
    assert!(seen.run_ns > 1_000_000, "{seen:?}");
    // It goes to accept below the top while the reader sleeps: that is told.
    while workers.next_told().is_some() {}
    workers.set_wants(WorkersWanted::Rests);
    drop(stream);
    let told = runtime.block_on(async {
        tokio::time::timeout(PATIENCE, workers.told())
            .await
            .unwrap()
            .unwrap();
        workers.next_told()
    });
    assert_eq!(told, Some(WorkerTold::Look));
    drop(TcpStream::connect(address));
    server.join().unwrap();
}

#[test]
fn what_a_process_begins_is_told_and_places_are_used_again() {
    let test = "what_a_process_begins_is_told_and_places_are_used_again";
    let Some((_runtime, mut workers)) = workers(test) else {
        return;
    };
    workers.add_process(std::process::id()).unwrap();
    let child = std::process::Command::new("true").spawn().unwrap();
    let begin = Instant::now();
    // Other tests of this program begin threads.
    while workers.next_told() != Some(WorkerTold::Forked(child.id())) {
        assert!(begin.elapsed() < PATIENCE);
    }
    child.wait_with_output().unwrap();
    workers.remove_process(std::process::id());
    let thread = number_of_this_thread();
    let first = workers.add(thread).unwrap().unwrap();
    workers.remove(thread, first);
    assert_eq!(workers.add(thread).unwrap(), Some(first));
    let seen = workers.see(first, monotonic_ns());
    assert_eq!((seen.requests, seen.has_answered), (0, false));
    assert!(workers.behind().is_ok());
}
