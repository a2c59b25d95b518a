//! Bodies that lie in sealed files arrive as they are, whatever the socket, the client and the
//! grants are like.

use socket2::SockRef;
use sooner_kernel::sealed_file::SealedFile;
use sooner_link::ResponseStart;
use sooner_policy::PolicyName;
use sooner_uplink::{GatedStream, Mechanism, Uplink, UplinkConfig};
use std::io::IoSlice;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Grants of less than a sealed file is worth, of more, and no limit.
const RATES_BITS_PER_SEC: [Option<u64>; 3] = [Some(100_000_000), Some(1_000_000_000), None];

fn uplink(rate_bits_per_sec: Option<u64>) -> Uplink {
    let Some(rate_bits_per_sec) = rate_bits_per_sec else {
        return Uplink::unlimited();
    };
    let mut config = UplinkConfig::new(rate_bits_per_sec, PolicyName::Srpt);
    config.mechanism = Mechanism::UserSpace;
    Uplink::start(&config).expect("user space needs nothing")
}

/// Bytes a sender and a receiver keep in their sockets: as the kernel likes (none), less than one
/// slice, hardly anything.
const BUFFERS_BYTES: [Option<(usize, usize)>; 3] =
    [None, Some((30_000, 30_000)), Some((1, 30_000))];

async fn connect(buffers_bytes: Option<(usize, usize)>) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    let (client, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
    let (client, accepted) = (client.expect("connected"), accepted.expect("accepted").0);
    if let Some((send_bytes, receive_bytes)) = buffers_bytes {
        let (sender, receiver) = (SockRef::from(&accepted), SockRef::from(&client));
        sender.set_send_buffer_size(send_bytes).expect("a size");
        receiver
            .set_recv_buffer_size(receive_bytes)
            .expect("a size");
    }
    accepted.set_nodelay(true).expect("as servers do");
    (client, accepted)
}

/// Bytes that tell where they belong.
fn pattern(bytes: usize, seed: usize) -> Vec<u8> {
    (0..bytes)
        .map(|at| (at ^ (at >> 8) ^ (at >> 16) ^ seed) as u8)
        .collect()
}

/// Writes all of `parts` as hyper does, and gives the stream back.
async fn write(mut stream: GatedStream, parts: &[&[u8]]) -> GatedStream {
    let mut slices: Vec<_> = parts.iter().map(|part| IoSlice::new(part)).collect();
    let mut left = &mut slices[..];
    while !left.is_empty() {
        let written = stream.write_vectored(left).await.expect("written");
        assert!(written > 0);
        IoSlice::advance_slices(&mut left, written);
    }
    stream
}

async fn read(mut client: TcpStream, pause: Option<Duration>) -> Vec<u8> {
    let (mut received, mut buffer) = (Vec::new(), vec![0; 9_000]);
    loop {
        match client.read(&mut buffer).await.expect("a clean end") {
            0 => return received,
            count => received.extend_from_slice(&buffer[..count]),
        }
        if let Some(pause) = pause {
            tokio::time::sleep(pause).await;
        }
    }
}

#[tokio::test]
async fn arrive_in_order_among_other_slices() {
    let (first, second) = (pattern(300_000, 1), pattern(70_000, 2));
    let sealed = [&first, &second].map(|content| SealedFile::new(content).expect("a file"));
    let memory = pattern(40_000, 3);
    for rate in RATES_BITS_PER_SEC {
        for buffers_bytes in BUFFERS_BYTES {
            for pause in [None, Some(Duration::from_millis(1))] {
                let (client, accepted) = connect(buffers_bytes).await;
                let (stream, flow) = uplink(rate).wrap(accepted);
                let parts: [&[u8]; 8] = [
                    b"head",
                    sealed[0].as_ref(),
                    b"",
                    b"between",
                    &sealed[0].as_ref()[100_001..200_000],
                    &memory,
                    &sealed[1].as_ref()[..20_000],
                    b"tail",
                ];
                let expected: [&[u8]; 8] = [
                    b"head",
                    &first,
                    b"",
                    b"between",
                    &first[100_001..200_000],
                    &memory,
                    &second[..20_000],
                    b"tail",
                ];
                let reading = tokio::spawn(read(client, pause));
                let (ended, end) = tokio::sync::oneshot::channel();
                let bytes = expected.concat().len() as u64;
                let start = ResponseStart {
                    body_bytes: Some(bytes),
                    ..ResponseStart::default()
                };
                flow.start(start, move |report| {
                    let _ = ended.send(report);
                });
                let mut stream = write(stream, &parts).await;
                flow.body_done();
                stream.flush().await.expect("flushed");
                drop(stream);
                let received = reading.await.expect("no panic");
                assert!(received == expected.concat(), "{rate:?} {buffers_bytes:?}");
                let report = end.await.expect("reported");
                assert_eq!((report.completed, report.sent_bytes), (true, bytes));
            }
        }
    }
}

#[tokio::test]
async fn are_not_read_from_memory() {
    let content = pattern(100_000, 0);
    let sealed = SealedFile::new(&content).expect("a file");
    let (client, accepted) = connect(None).await;
    let (stream, _flow) = Uplink::unlimited().wrap(accepted);
    let reading = tokio::spawn(read(client, None));
    drop(write(stream, &[b"head", sealed.as_ref()]).await);
    assert!(reading.await.expect("no panic")[4..] == content);
    // No page was touched of the mapping.
    let address = format!("{:x}-", sealed.as_ref().as_ptr().addr());
    let maps = std::fs::read_to_string("/proc/self/smaps").expect("proc");
    let mut mapping = maps.lines().skip_while(|line| !line.starts_with(&address));
    let resident = mapping
        .find(|line| line.starts_with("Rss:"))
        .expect("mapped");
    assert_eq!(resident.split_whitespace().nth(1), Some("0"));
}

#[tokio::test]
async fn a_client_that_leaves_is_an_error_and_nothing_else() {
    let sealed = SealedFile::new(&pattern(200_000, 0)).expect("a file");
    let (client, accepted) = connect(None).await;
    let (mut stream, _flow) = Uplink::unlimited().wrap(accepted);
    drop(client);
    let error = loop {
        let slices = [IoSlice::new(b"head"), IoSlice::new(sealed.as_ref())];
        if let Err(error) = stream.write_vectored(&slices).await {
            break error;
        }
    };
    let kinds = [
        std::io::ErrorKind::BrokenPipe,
        std::io::ErrorKind::ConnectionReset,
    ];
    assert!(kinds.contains(&error.kind()), "{error}");
}
