//! What the BPF programs do with packets that are shown to them: the decisions as strings. Needs
//! CAP_BPF, and no device.

use std::fmt::Write as _;
use std::thread;
use std::time::Duration;

use sooner_kernel::capability;
use sooner_kernel::classifier::{Classifier, Direction, EventKind, Options};
use sooner_kernel::device::{self, Device};
use sooner_testbed::packet::Packet;
use sooner_testbed::skip;

/// A port of ours.
pub const PORT: u16 = 8080;

/// Programs with three cutoffs, not on any device; None, after saying why, where they cannot be
/// loaded.
pub fn loaded(test: &str, change: impl FnOnce(&mut Options)) -> Option<Classifier> {
    if !(capability::has_bpf() && capability::has_net_admin()) {
        // Written past the test harness, which would keep it to itself.
        skip(test, "needs CAP_BPF and CAP_NET_ADMIN to load BPF programs");
        return None;
    }
    let mut options = Options::for_ports(vec![PORT]);
    change(&mut options);
    let mut classifier = Classifier::load(&loopback(), &options).unwrap();
    classifier.set_cutoffs(&[1000, 2500, 5000]).unwrap();
    Some(classifier)
}

fn loopback() -> Device {
    device::by_name("lo").unwrap()
}

/// A conversation of one connection, written down as the bands of what leaves: `-` what was left
/// alone.
pub struct Talk<'a> {
    pub classifier: &'a mut Classifier,
    client_port: u16,
    /// Of the server: behind what it sent.
    pub seq: u32,
    pub bands: String,
}

impl<'a> Talk<'a> {
    pub fn new(classifier: &'a mut Classifier, client_port: u16) -> Talk<'a> {
        Talk {
            classifier,
            client_port,
            seq: u32::MAX - 3000,
            bands: String::new(),
        }
    }

    pub fn packet(&self) -> Packet {
        Packet::tcp(PORT, self.client_port)
    }

    pub fn leaves(&mut self, packet: &Packet) {
        let shown = self
            .classifier
            .show(Direction::Leaves, &packet.bytes(), 1)
            .unwrap();
        match shown.band {
            Some(band) => write!(self.bands, "{band}").unwrap(),
            None => self.bands.push('-'),
        }
    }

    pub fn comes(&mut self, packet: &Packet) {
        let packet = packet.clone().reversed();
        self.classifier
            .show(Direction::Comes, &packet.bytes(), 1)
            .unwrap();
    }

    /// The server sends a packet with this payload.
    pub fn sends(&mut self, payload: &[u8]) -> &mut Self {
        let packet = self.packet().seq(self.seq).payload(payload);
        self.leaves(&packet);
        self.seq = self.seq.wrapping_add(payload.len() as u32);
        self
    }

    /// The server sends so many packets of 500 bytes without meaning.
    fn sends_500(&mut self, packets: u32) -> &mut Self {
        for _ in 0..packets {
            self.sends(&[b'x'; 500]);
        }
        self
    }

    /// The client asks, and has all that was sent but so many bytes.
    pub fn asks_lacking(&mut self, request: &[u8], lacking_bytes: u32) -> &mut Self {
        let ack = self.seq.wrapping_sub(lacking_bytes);
        let packet = self.packet().ack(ack).payload(request);
        self.comes(&packet);
        self.bands.push(' ');
        self
    }

    pub fn asks(&mut self, request: &[u8]) -> &mut Self {
        self.asks_lacking(request, 0)
    }

    pub fn has_all(&mut self) -> &mut Self {
        self.asks_lacking(b"", 0)
    }
}

pub const GET: &[u8] = b"GET / HTTP/1.1\r\n\r\n";

/// A head of exactly 100 bytes.
pub fn head(length_field: &str) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 200 OK\r\n{length_field}X: ").into_bytes();
    head.resize(96, b'x');
    head.extend(b"\r\n\r\n");
    head
}

#[test]
fn what_says_no_length_goes_by_what_it_has_had() {
    let Some(mut classifier) = loaded("what_says_no_length_goes_by_what_it_has_had", |_| {}) else {
        return;
    };
    let mut talk = Talk::new(&mut classifier, 5000);
    talk.asks(GET).sends_500(14);
    assert_eq!(talk.bands, " 00011122222333");
}

#[test]
fn what_says_its_length_goes_by_what_it_lacks() {
    let Some(mut classifier) = loaded("what_says_its_length_goes_by_what_it_lacks", |_| {}) else {
        return;
    };
    let mut talk = Talk::new(&mut classifier, 5000);
    // 6100 bytes with the head; all arrives before more is sent.
    talk.asks(GET).sends(&head("Content-Length: 6000\r\n"));
    for _ in 0..12 {
        talk.has_all().sends_500(1);
    }
    assert_eq!(talk.bands.replace(' ', ""), "3332222211100");
    let started = classifier.next_event().unwrap();
    assert_eq!(
        (started.kind, started.flow.size_bytes),
        (EventKind::Started, Some(6100))
    );
    assert!(started.flow.request_ns.is_some());
}

/// TCP would send those that are overtaken again.
#[test]
fn no_packet_overtakes_one_of_its_own_connection() {
    let test = "no_packet_overtakes_one_of_its_own_connection";
    let Some(mut classifier) = loaded(test, |_| {}) else {
        return;
    };
    let mut talk = Talk::new(&mut classifier, 5000);
    let short = head("Content-Length: 6000\r\n");
    talk.asks(GET).sends(&short).sends_500(6);
    talk.asks_lacking(b"", 1500).sends_500(1);
    talk.has_all().sends_500(5);
    assert_eq!(talk.bands, " 3333333 3 11111");
    // After 64 KiB in one band a few packets that are sent again do not count.
    let mut talk = Talk::new(&mut classifier, 5001);
    let long = head("Content-Length: 68000\r\n");
    talk.asks(GET).sends(&long).sends_500(136);
    assert_eq!(talk.bands, format!(" {}{}", "3".repeat(132), "1".repeat(5)));
}

#[test]
fn a_request_begins_anew_once_all_has_arrived_and_no_sooner() {
    let Some(mut classifier) = loaded(
        "a_request_begins_anew_once_all_has_arrived_and_no_sooner",
        |_| {},
    ) else {
        return;
    };
    let mut talk = Talk::new(&mut classifier, 5000);
    talk.asks(GET)
        .sends_500(6)
        .asks_lacking(b"x", 500)
        .sends_500(2);
    talk.asks(b"POST").asks(b"in two packets").sends_500(4);
    assert_eq!(talk.bands, " 000111 22  0001");
}

#[test]
fn no_request_ends_a_response_that_lacks_bytes_it_announced() {
    let Some(mut classifier) = loaded(
        "no_request_ends_a_response_that_lacks_bytes_it_announced",
        |_| {},
    ) else {
        return;
    };
    let mut talk = Talk::new(&mut classifier, 5000);
    talk.asks(GET)
        .sends(&head("Content-Length: 9000\r\n"))
        .asks(b"x")
        .sends_500(3);
    assert_eq!(talk.bands, " 3 333");
}

#[test]
fn what_has_no_body_ends_with_its_head() {
    let Some(mut classifier) = loaded("what_has_no_body_ends_with_its_head", |_| {}) else {
        return;
    };
    let mut talk = Talk::new(&mut classifier, 5000);
    talk.asks(b"HEAD / HTTP/1.1\r\n\r\n")
        .sends(&head("Content-Length: 9000\r\n"));
    talk.asks(GET).sends(&head("Content-Length: 900\r\n"));
    talk.sends_500(1).sends(&[0; 400]);
    let not_modified = String::from_utf8(head("Content-Length: 9000\r\n"))
        .unwrap()
        .replace("200", "304");
    talk.asks(GET).sends(not_modified.as_bytes());
    talk.asks(GET).sends_500(4);
    assert_eq!(talk.bands, " 0 000 0 0001");
}

#[test]
fn what_was_sent_again_keeps_its_place_and_is_not_counted() {
    let Some(mut classifier) = loaded(
        "what_was_sent_again_keeps_its_place_and_is_not_counted",
        |_| {},
    ) else {
        return;
    };
    let mut talk = Talk::new(&mut classifier, 5000);
    talk.asks(GET).sends_500(4);
    talk.seq = talk.seq.wrapping_sub(1000);
    talk.sends_500(2).sends_500(2);
    assert_eq!(talk.bands, " 00011111");
    assert_eq!(classifier.counted().unwrap().resent_packets, 2);
}

#[test]
fn packets_without_payload_go_first_and_an_end_behind_its_bytes() {
    let Some(mut classifier) = loaded(
        "packets_without_payload_go_first_and_an_end_behind_its_bytes",
        |_| {},
    ) else {
        return;
    };
    let mut talk = Talk::new(&mut classifier, 5000);
    let syn_ack = talk.packet().syn();
    talk.leaves(&syn_ack);
    let acknowledgement = talk.packet().seq(talk.seq);
    talk.leaves(&acknowledgement);
    talk.asks(GET).sends_500(4);
    let end = talk.packet().seq(talk.seq).fin();
    talk.leaves(&end);
    assert_eq!(talk.bands, "00 00011");
    talk.seq = talk.seq.wrapping_add(1);
    talk.has_all();
    let kinds: Vec<_> = std::iter::from_fn(|| classifier.next_event())
        .map(|event| event.kind)
        .collect();
    assert_eq!(kinds, [EventKind::Started, EventKind::Ended]);
    assert_eq!(
        classifier.flows().count(),
        0,
        "a connection that is over is forgotten"
    );
}

#[test]
fn a_reset_that_the_server_does_not_believe_makes_nothing_young() {
    let Some(mut classifier) = loaded(
        "a_reset_that_the_server_does_not_believe_makes_nothing_young",
        |_| {},
    ) else {
        return;
    };
    let mut talk = Talk::new(&mut classifier, 5000);
    talk.asks(GET).sends_500(6);
    let reset = talk.packet().seq(7).rst();
    talk.comes(&reset);
    talk.sends_500(2);
    assert_eq!(talk.bands, " 00011122");
}

#[test]
fn a_new_connection_of_the_same_two_ends_begins_anew() {
    let Some(mut classifier) = loaded("a_new_connection_of_the_same_two_ends_begins_anew", |_| {})
    else {
        return;
    };
    let mut talk = Talk::new(&mut classifier, 5000);
    talk.asks(GET).sends_500(6);
    // Numbers that look like those of packets sent again.
    talk.seq = talk.seq.wrapping_sub(1_000_000);
    let syn_ack = talk.packet().syn();
    talk.leaves(&syn_ack);
    talk.asks(GET).sends_500(4);
    assert_eq!(talk.bands, " 0001110 0001");
}

#[test]
fn a_byte_that_keeps_a_connection_alive_is_no_request() {
    let Some(mut classifier) = loaded("a_byte_that_keeps_a_connection_alive_is_no_request", |_| {})
    else {
        return;
    };
    let mut talk = Talk::new(&mut classifier, 5000);
    talk.asks(GET).sends_500(1).asks(b"x");
    thread::sleep(Duration::from_millis(700));
    talk.asks(b"HEAD / HTTP/1.1\r\n\r\n");
    talk.sends(&head("Content-Length: 9000\r\n"));
    assert_eq!(talk.bands, " 0  0");
    let events: Vec<_> = std::iter::from_fn(|| classifier.next_event()).collect();
    let [.., last] = events[..] else {
        panic!("no events")
    };
    let waited_ns = last.at_ns - last.flow.request_ns.unwrap();
    assert!(waited_ns < 500_000_000, "{waited_ns} ns since the request");
}

#[test]
fn a_length_that_goes_on_in_the_next_packet_is_not_known() {
    let Some(mut classifier) = loaded(
        "a_length_that_goes_on_in_the_next_packet_is_not_known",
        |_| {},
    ) else {
        return;
    };
    let mut talk = Talk::new(&mut classifier, 5000);
    talk.asks(GET)
        .sends(b"HTTP/1.1 200 OK\r\nContent-Length: 12");
    let started = classifier.next_event().unwrap();
    assert_eq!(started.flow.size_bytes, None);
}

#[test]
fn ports_of_others_are_left_alone_and_versions_and_tags_are_not() {
    let Some(mut classifier) = loaded(
        "ports_of_others_are_left_alone_and_versions_and_tags_are_not",
        |_| {},
    ) else {
        return;
    };
    let mut band = |packet: Packet| {
        classifier
            .show(Direction::Leaves, &packet.bytes(), 1)
            .unwrap()
            .band
    };
    let payload = [0; 500];
    assert_eq!(band(Packet::tcp(22, 5000).payload(&payload)), None);
    assert_eq!(band(Packet::tcp(PORT, 5001).payload(&payload)), Some(0));
    assert_eq!(
        band(Packet::tcp(PORT, 5002).v6().payload(&payload)),
        Some(0)
    );
    assert_eq!(
        band(Packet::tcp(PORT, 5003).tagged().payload(&payload)),
        Some(0)
    );
    assert_eq!(
        band(Packet::tcp(PORT, 5004).fragment().payload(&payload)),
        None
    );
    assert_eq!(classifier.flows().count(), 3);
}

#[test]
fn a_pause_begins_a_new_response_of_datagrams() {
    let Some(mut classifier) = loaded("a_pause_begins_a_new_response_of_datagrams", |_| {}) else {
        return;
    };
    let mut bands = String::new();
    for pause_ms in [0, 0, 700, 0, 0, 0, 700, 1200, 0] {
        thread::sleep(Duration::from_millis(pause_ms));
        let packet = Packet::udp(PORT, 5000).payload(&[0; 500]);
        let shown = classifier
            .show(Direction::Leaves, &packet.bytes(), 1)
            .unwrap();
        write!(bands, "{}", shown.band.unwrap()).unwrap();
    }
    // In band 1 it takes twice as long.
    assert_eq!(bands, "000001100");
}

#[test]
fn a_flood_of_handshakes_goes_last_and_a_crowd_does_not() {
    let Some(mut classifier) = loaded(
        "a_flood_of_handshakes_goes_last_and_a_crowd_does_not",
        |_| {},
    ) else {
        return;
    };
    // Every one of a crowd asks and is answered.
    for client in 0..600 {
        let mut talk = Talk::new(&mut classifier, 10_000 + client);
        let syn_ack = talk.packet().syn();
        talk.leaves(&syn_ack);
        talk.asks(GET).sends_500(1);
        assert_eq!(talk.bands, "0 0");
    }
    let mut lowered = 0;
    for client in 0..6000 {
        let syn_ack = Packet::tcp(PORT, 20_000 + client).syn();
        let shown = classifier
            .show(Direction::Leaves, &syn_ack.bytes(), 1)
            .unwrap();
        lowered += u64::from(shown.band == Some(7));
    }
    let counted = classifier.counted().unwrap();
    assert!(lowered > 3000, "{counted:?}");
    assert_eq!(
        (counted.syn_acks, counted.lowered_syn_acks),
        (6600, lowered)
    );
    assert_eq!(classifier.flows().count(), 600, "a handshake is no flow");
}

#[test]
fn strangers_packets_make_no_flow_and_forgotten_ones_begin_again() {
    let Some(mut classifier) = loaded(
        "strangers_packets_make_no_flow_and_forgotten_ones_begin_again",
        |options| options.flows_max = 128,
    ) else {
        return;
    };
    for client in 0..1000 {
        Talk::new(&mut classifier, 1000 + client).asks(GET);
    }
    assert_eq!(classifier.flows().count(), 0);
    for client in 0..10_000 {
        let mut talk = Talk::new(&mut classifier, 1000 + client);
        talk.sends_500(1);
        assert_eq!(talk.bands, "0");
    }
    assert!(classifier.flows().count() <= 128);
}

#[test]
fn a_million_flows_take_no_more_memory_and_none_of_them_harm() {
    const FLOWS: u32 = 1_000_000;
    let test = "a_million_flows_take_no_more_memory_and_none_of_them_harm";
    let Some(mut classifier) = loaded(test, |_| {}) else {
        return;
    };
    let flow = |number: u32| {
        let net = (number >> 8) as u16;
        Packet::tcp(PORT, 1024 + (number & 0xff) as u16).client_net(net)
    };
    let ours = Packet::tcp(PORT, 60_000).payload(&[0; 60]);
    let mut bands = Vec::new();
    for number in 0..FLOWS {
        let packet = flow(number).payload(b"x").bytes();
        let shown = classifier.show(Direction::Leaves, &packet, 1).unwrap();
        assert_eq!(shown.band, Some(0), "{number}");
        // One that goes on all the while is not among those that give way.
        if number % 10_000 == 0 {
            let packet = ours.clone().seq(60 * (number / 10_000));
            let shown = classifier.show(Direction::Leaves, &packet.bytes(), 1);
            bands.push(shown.unwrap().band.unwrap());
        }
    }
    let remembered = classifier.flows().count();
    assert!((1000..=65_536).contains(&remembered), "{remembered}");
    // By the hundredth packet it has had 5940 bytes; had it been forgotten, it would have begun
    // again.
    assert!(bands.is_sorted(), "{bands:?}");
    assert_eq!(bands.last(), Some(&3), "{bands:?}");
}

#[test]
fn lengths_are_not_read_where_that_is_off() {
    let Some(mut classifier) = loaded("lengths_are_not_read_where_that_is_off", |options| {
        options.reads_heads = false
    }) else {
        return;
    };
    let mut talk = Talk::new(&mut classifier, 5000);
    talk.asks(GET)
        .sends(&head("Content-Length: 6000\r\n"))
        .sends_500(3);
    assert_eq!(talk.bands, " 0001");
}

#[test]
fn the_verifier_says_how_much_it_looked_at() {
    let Some(mut classifier) = loaded("the_verifier_says_how_much_it_looked_at", |_| {}) else {
        return;
    };
    for count in classifier
        .verified_instructions()
        .unwrap()
        .into_iter()
        .flatten()
    {
        // A tenth of what it takes at most, so that other kernels' verifiers have room.
        assert!((100..100_000).contains(&count), "{count}");
    }
}
