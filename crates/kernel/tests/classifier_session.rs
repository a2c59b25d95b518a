//! What counts as a response and what does not: handshakes, tickets and alerts of TLS, lengths that
//! are none, and connections that are reset.

use sooner_kernel::classifier::{Classifier, EventKind};

use crate::classifier::{GET, Talk, head, loaded};

const CHANGE_CIPHER: u8 = 20;
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const DATA: u8 = 23;

/// Records of TLS, each of a kind with so many bytes.
fn records(all: &[(u8, u16)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (kind, length) in all {
        bytes.extend([*kind, 3, 3]);
        bytes.extend(length.to_be_bytes());
        bytes.resize(bytes.len() + usize::from(*length), b'x');
    }
    bytes
}

fn kinds(classifier: &mut Classifier) -> Vec<EventKind> {
    std::iter::from_fn(|| classifier.next_event())
        .map(|event| event.kind)
        .collect()
}

#[test]
fn under_tls_1_3_only_answers_to_requests_are_responses() {
    let test = "under_tls_1_3_only_answers_to_requests_are_responses";
    let Some(mut classifier) = loaded(test, |_| {}) else {
        return;
    };
    let finished = (DATA, 53);
    // Whether the second message and the tickets come alone, and tickets are acknowledged.
    for (port, is_hello_split, comes_with, lacks) in [
        (5000, false, false, 0),
        (5001, true, false, 255),
        (5002, false, true, 0),
    ] {
        let before = classifier.counted().unwrap().responses;
        let mut talk = Talk::new(&mut classifier, port);
        let hello = records(&[(HANDSHAKE, 1500)]);
        let (first, second) = hello.split_at(if is_hello_split { 1400 } else { 1505 });
        talk.asks(first);
        if is_hello_split {
            talk.asks(second);
        }
        talk.sends(&records(&[
            (HANDSHAKE, 90),
            (CHANGE_CIPHER, 1),
            (DATA, 900),
        ]));
        if comes_with {
            talk.asks(&records(&[(CHANGE_CIPHER, 1), finished, (DATA, 80)]));
        } else {
            talk.asks(&records(&[(CHANGE_CIPHER, 1), finished]));
            talk.sends(&records(&[(DATA, 250)]));
            talk.asks_lacking(&records(&[(DATA, 80)]), lacks);
        }
        talk.sends(&records(&[(DATA, 500)])).has_all();
        talk.asks(&records(&[(DATA, 80)]));
        talk.sends(&records(&[(DATA, 600)])).has_all();
        // It takes leave, and resets the connection when the server does.
        talk.asks(&records(&[(DATA, 19)]));
        talk.sends(&records(&[(DATA, 19)]));
        let reset = talk.packet().seq(7).rst();
        talk.comes(&reset);
        let (started, ended) = (EventKind::Started, EventKind::Ended);
        assert_eq!(
            kinds(&mut classifier),
            [started, ended, started, ended],
            "{port}"
        );
        assert_eq!(
            classifier.counted().unwrap().responses - before,
            2,
            "{port}"
        );
    }
}

#[test]
fn under_tls_1_2_as_well() {
    let Some(mut classifier) = loaded("under_tls_1_2_as_well", |_| {}) else {
        return;
    };
    let mut talk = Talk::new(&mut classifier, 5000);
    talk.asks(&records(&[(HANDSHAKE, 300)]));
    talk.sends(&records(&[
        (HANDSHAKE, 90),
        (HANDSHAKE, 900),
        (HANDSHAKE, 4),
    ]));
    talk.asks(&records(&[
        (HANDSHAKE, 70),
        (CHANGE_CIPHER, 1),
        (HANDSHAKE, 40),
    ]));
    talk.sends(&records(&[
        (HANDSHAKE, 200),
        (CHANGE_CIPHER, 1),
        (HANDSHAKE, 40),
    ]));
    talk.asks(&records(&[(DATA, 80)]));
    talk.sends(&records(&[(DATA, 500)])).has_all();
    talk.asks(&records(&[(ALERT, 26)]))
        .sends(&records(&[(ALERT, 26)]));
    let reset = talk.packet().seq(7).rst();
    talk.comes(&reset);
    assert_eq!(
        kinds(&mut classifier),
        [EventKind::Started, EventKind::Ended]
    );
    assert_eq!(classifier.counted().unwrap().responses, 1);
}

#[test]
fn what_is_no_length_is_not_taken_as_one() {
    let Some(mut classifier) = loaded("what_is_no_length_is_not_taken_as_one", |_| {}) else {
        return;
    };
    let none = [
        "Content-Length: -5\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: 5 5\r\n",
        "Content-Length: 5, 6\r\n",
        "Content-Length:\r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "transfer-encoding: chunked\r\nContent-Length: 5\r\n",
    ];
    for (port, field) in (5000..).zip(none) {
        Talk::new(&mut classifier, port)
            .asks(GET)
            .sends(&head(field));
        assert_eq!(classifier.counted().unwrap().sized, 0, "{field}");
    }
    let some = [
        "Content-Length: 5\r\n",
        "CONTENT-LENGTH:\t 0005 \r\n",
        "Content-Length: 5\r\nContent-Length: 5\r\n",
        "Transfer: 9\r\nContent-Length: 5\r\nTe: chunked\r\n",
    ];
    for (count, field) in (1..).zip(some) {
        let port = 6000 + count as u16;
        Talk::new(&mut classifier, port)
            .asks(GET)
            .sends(&head(field));
        assert_eq!(classifier.counted().unwrap().sized, count, "{field}");
    }
}

#[test]
fn a_length_that_was_too_large_ends_at_the_next_head() {
    let test = "a_length_that_was_too_large_ends_at_the_next_head";
    let Some(mut classifier) = loaded(test, |_| {}) else {
        return;
    };
    let mut talk = Talk::new(&mut classifier, 5000);
    let large = head("Content-Length: 9000000\r\n");
    talk.asks(GET).sends(&large).sends(&[0; 500]).asks(GET);
    talk.sends(&head("Content-Length: 500\r\n"))
        .sends(&[0; 500]);
    talk.has_all();
    assert_eq!(talk.bands, " 33 00 ");
    let (started, ended) = (EventKind::Started, EventKind::Ended);
    assert_eq!(kinds(&mut classifier), [started, ended, started, ended]);
    // Without a request it is what the response consists of.
    let mut talk = Talk::new(&mut classifier, 5001);
    talk.asks(GET).sends(&large).has_all().sends(&large);
    assert_eq!(kinds(&mut classifier), [started]);
}

#[test]
fn a_reset_breaks_only_what_lacks_something() {
    let Some(mut classifier) = loaded("a_reset_breaks_only_what_lacks_something", |_| {}) else {
        return;
    };
    let cases = [
        ("Content-Length: 500\r\n", false, EventKind::Ended),
        ("Content-Length: 501\r\n", false, EventKind::Broken),
        ("", false, EventKind::Broken),
        ("", true, EventKind::Ended),
    ];
    for (port, (field, is_closed, wanted)) in (5000..).zip(cases) {
        let mut talk = Talk::new(&mut classifier, port);
        talk.asks(GET).sends(&head(field)).sends(&[0; 500]);
        if is_closed {
            let end = talk.packet().seq(talk.seq).fin();
            talk.leaves(&end);
        }
        let reset = talk.packet().seq(7).rst();
        talk.comes(&reset);
        assert_eq!(
            kinds(&mut classifier),
            [EventKind::Started, wanted],
            "{field}"
        );
    }
}

/// A client that goes has what it acknowledged: what its server says at the end is no part of it.
#[test]
fn a_goodbye_to_a_client_that_has_gone_breaks_nothing() {
    let test = "a_goodbye_to_a_client_that_has_gone_breaks_nothing";
    let Some(mut classifier) = loaded(test, |_| {}) else {
        return;
    };
    let cases = [
        (17, true, EventKind::Ended),
        (17, false, EventKind::Broken),
        (500, true, EventKind::Broken),
    ];
    for (port, (goodbye_bytes, has_gone, wanted)) in (5000..).zip(cases) {
        let mut talk = Talk::new(&mut classifier, port);
        talk.asks(GET).sends(&head("")).sends(&[0; 500]);
        if has_gone {
            let end = talk.packet().ack(talk.seq).fin();
            talk.comes(&end);
        } else {
            talk.has_all();
        }
        talk.sends(&vec![0; goodbye_bytes]);
        let reset = talk.packet().seq(7).rst();
        talk.comes(&reset);
        let seen = kinds(&mut classifier);
        assert_eq!(seen, [EventKind::Started, wanted], "{goodbye_bytes}");
    }
}
