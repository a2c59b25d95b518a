//! The BPF programs beside the code they have to agree with: bands beside the policy's, lengths
//! beside an HTTP parser's.

use std::cell::{Cell, RefCell};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use sooner_kernel::capability;
use sooner_kernel::classifier::{Classifier, Direction, EventKind, Options};
use sooner_kernel::device;
use sooner_policy::Cutoffs;
use sooner_testbed::packet::Packet;
use sooner_testbed::skip;

const PORT: u16 = 8080;

/// Programs on no device; None, after saying why, where they cannot be loaded.
fn loaded(test: &str) -> Option<RefCell<Classifier>> {
    if !(capability::has_bpf() && capability::has_net_admin()) {
        // Written past the test harness, which would keep it to itself.
        let reason = "needs CAP_BPF and CAP_NET_ADMIN to load BPF programs";
        skip(test, reason);
        return None;
    }
    let device = device::by_name("lo").unwrap();
    let options = Options::for_ports(vec![PORT]);
    Some(RefCell::new(Classifier::load(&device, &options).unwrap()))
}

fn runner(cases: u32) -> TestRunner {
    TestRunner::new(Config {
        failure_persistence: None,
        ..Config::with_cases(cases)
    })
}

/// The band of a packet that leaves.
fn band(classifier: &mut Classifier, packet: &Packet) -> u8 {
    let shown = classifier.show(Direction::Leaves, &packet.bytes(), 1);
    shown.unwrap().band.unwrap()
}

#[test]
fn a_packet_has_the_band_that_the_policy_gives_what_was_sent() {
    let Some(classifier) = loaded("a_packet_has_the_band_that_the_policy_gives_what_was_sent")
    else {
        return;
    };
    let client_port = Cell::new(1000);
    let cutoffs = prop::collection::btree_set(1_u64..30_000, 7).prop_map(Vec::from_iter);
    let payloads = prop::collection::vec(1_usize..1448, 1..30);
    let outcome = runner(200).run(&(cutoffs, payloads), |(cutoffs, payloads)| {
        let mut classifier = classifier.borrow_mut();
        classifier.set_cutoffs(&cutoffs).unwrap();
        let policy = Cutoffs::fixed(&cutoffs);
        let mut sent_bytes = 0;
        for payload in payloads {
            let packet = Packet::tcp(PORT, client_port.get())
                .seq(sent_bytes as u32)
                .payload(&vec![0; payload]);
            prop_assert_eq!(band(&mut classifier, &packet), policy.band(sent_bytes));
            sent_bytes += payload as u64;
        }
        client_port.set(client_port.get() + 1);
        Ok(())
    });
    outcome.unwrap();
}

/// A field of a response's head that says nothing of its length.
fn other_field() -> impl Strategy<Value = String> {
    let names = prop_oneof![
        "[A-Za-z-]{1,10}",
        Just("Content-Length-Of-Another".to_owned()),
        Just("X-Content-Length".to_owned())
    ];
    (names, "[ -~]{0,40}").prop_map(|(name, value)| format!("{name}: {}", value.trim()))
}

fn length_field() -> impl Strategy<Value = String> {
    let names = prop_oneof![
        Just("Content-Length"),
        Just("content-length"),
        Just("CONTENT-LENGTH")
    ];
    (names, "[ \t]{0,3}", 0_u64..1 << 40)
        .prop_map(|(name, space, length)| format!("{name}:{space}{length}"))
}

/// What the head and its body are together, as a parser reads it; none where it does not say.
fn parsed_bytes(head: &[u8]) -> Option<u64> {
    let mut fields = [httparse::EMPTY_HEADER; 64];
    let mut response = httparse::Response::new(&mut fields);
    let head_bytes = match response.parse(head) {
        Ok(httparse::Status::Complete(bytes)) => bytes as u64,
        _ => return None,
    };
    let mut fields = response.headers.iter();
    let field = fields.find(|field| field.name.eq_ignore_ascii_case("content-length"))?;
    let length: u64 = std::str::from_utf8(field.value).ok()?.trim().parse().ok()?;
    Some(head_bytes + length)
}

/// The length that the programs find in the first packet of a response.
fn found_bytes(classifier: &mut Classifier, client_port: u16, payload: &[u8]) -> Option<u64> {
    band(classifier, &Packet::tcp(PORT, client_port).payload(payload));
    let event = classifier.next_event().expect("a response begins");
    assert_eq!(event.kind, EventKind::Started);
    event.flow.size_bytes
}

#[test]
fn a_length_is_what_a_parser_reads() {
    let Some(classifier) = loaded("a_length_is_what_a_parser_reads") else {
        return;
    };
    let client_port = Cell::new(1000);
    let others = || prop::collection::vec(other_field(), 0..6);
    let heads = (others(), prop::option::of(length_field()), others());
    let outcome = runner(400).run(&(heads, "[a-z]{0,200}"), |(head, body)| {
        let (before, length, after) = head;
        let fields = before.iter().chain(&length).chain(&after);
        let fields: String = fields.map(|field| format!("{field}\r\n")).collect();
        let head = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
        prop_assume!(head.len() <= 1024);
        let expected = parsed_bytes(head.as_bytes());
        prop_assert_eq!(expected.is_some(), length.is_some());
        client_port.set(client_port.get() + 1);
        let payload = (head + &body).into_bytes();
        let found = found_bytes(&mut classifier.borrow_mut(), client_port.get(), &payload);
        prop_assert_eq!(found, expected);
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn anything_can_be_sent() {
    let Some(classifier) = loaded("anything_can_be_sent") else {
        return;
    };
    let client_port = Cell::new(1000);
    let text = "(HTTP/1)?[ -~\r\n]{1,300}".prop_map(String::into_bytes);
    let bytes = prop_oneof![text, prop::collection::vec(any::<u8>(), 1..1400)];
    let outcome = runner(400).run(&bytes, |payload| {
        client_port.set(client_port.get() + 1);
        let found = found_bytes(&mut classifier.borrow_mut(), client_port.get(), &payload);
        prop_assert!(found.is_none_or(|bytes| bytes <= (1 << 53) + 1024));
        Ok(())
    });
    outcome.unwrap();
}
