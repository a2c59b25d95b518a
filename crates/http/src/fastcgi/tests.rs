//! Records byte for byte, and heads that scripts send.

use super::*;
use proptest::prelude::*;

fn record(kind: u8, content: &[u8], padding: u8) -> Vec<u8> {
    let length = (content.len() as u16).to_be_bytes();
    let mut record = vec![1, kind, 0, 1, length[0], length[1], padding, 0];
    record.extend_from_slice(content);
    record.resize(record.len() + usize::from(padding), 7);
    record
}

fn events(bytes: &[u8], step: usize) -> Result<Vec<Event>, RecordError> {
    let (mut decoder, mut buffer, mut events) = (Decoder::default(), BytesMut::new(), Vec::new());
    for part in bytes.chunks(step) {
        buffer.extend_from_slice(part);
        while let Some(event) = decoder.next(&mut buffer)? {
            match (event, events.last_mut()) {
                (Event::Output(more), Some(Event::Output(before))) => {
                    *before = [&before[..], &more[..]].concat().into();
                }
                (event, _) => events.push(event),
            }
        }
    }
    Ok(events)
}

#[test]
fn a_request_is_written_as_the_specification_says() {
    let mut out = Vec::new();
    push_begin(true, &mut out);
    assert_eq!(out, [1, 1, 0, 1, 0, 8, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0]);
    out.clear();
    let long = vec![b'x'; 200];
    push_parameters(
        &[(b"A".to_vec(), b"bc".to_vec()), (b"L".to_vec(), long)],
        &mut out,
    );
    let head = [
        1, 4, 0, 1, 0, 211, 0, 0, 1, 2, b'A', b'b', b'c', 1, 0x80, 0, 0, 200, b'L',
    ];
    assert_eq!(&out[..head.len()], head);
    assert_eq!(&out[out.len() - 8..], [1, 4, 0, 1, 0, 0, 0, 0]);
    out.clear();
    push_parameters(&[(b"A".to_vec(), vec![0; 70_000])], &mut out);
    assert_eq!(&out[4..6], [0xff, 0xff]);
    assert_eq!(out.len(), 70_000 + 6 + 3 * 8);
    out.clear();
    push_input(b"ab", &mut out);
    push_input(b"", &mut out);
    assert_eq!(
        out,
        [1, 5, 0, 1, 0, 2, 0, 0, b'a', b'b', 1, 5, 0, 1, 0, 0, 0, 0]
    );
}

#[test]
fn a_response_is_read_however_it_comes() {
    let stream = [
        record(6, b"Status: 404\r\n\r\nno", 6),
        record(7, b"warning", 1),
        record(6, b"ne", 0),
        record(6, b"", 0),
        record(3, &[0, 0, 1, 2, 0, 0, 0, 0], 3),
    ]
    .concat();
    let expected = vec![
        Event::Output(Bytes::from_static(b"Status: 404\r\n\r\nno")),
        Event::Error(Bytes::from_static(b"warning")),
        Event::Output(Bytes::from_static(b"ne")),
        Event::End { status: 258 },
    ];
    for step in [7, 9, 64, 1000] {
        let got = events(&stream, step).unwrap();
        let joined = got.iter().filter(|event| !matches!(event, Event::Error(_)));
        let wanted = expected
            .iter()
            .filter(|event| !matches!(event, Event::Error(_)));
        if step > 24 {
            assert_eq!(got, expected);
        }
        assert_eq!(joined.last(), wanted.last());
    }
}

#[test]
fn what_is_no_response_is_refused() {
    let end = |protocol| record(3, &[0, 0, 0, 0, protocol, 0, 0, 0], 0);
    for (bytes, error) in [
        (b"HTTP/1.1 200 OK\r\n".to_vec(), RecordError::Version(b'H')),
        (record(1, b"12345678", 0), RecordError::Kind(1)),
        (record(11, b"", 0), RecordError::Kind(11)),
        (vec![1, 6, 0, 2, 0, 0, 0, 0], RecordError::Request(2)),
        (record(3, b"1", 0), RecordError::EndLength(1)),
        (end(2), RecordError::Refused("it is overloaded")),
    ] {
        assert_eq!(events(&bytes, 1000), Err(error));
    }
}

fn read(text: &str) -> Result<(u16, HeaderMap), HeadError> {
    let (head, length) = head(text.as_bytes())?.expect("a whole head");
    assert_eq!(&text[length..], "body");
    Ok((head.status.as_u16(), head.headers))
}

#[test]
fn a_head_is_fields_and_a_status() {
    for (text, status, count) in [
        ("\r\nbody", 200, 0),
        ("Content-type: text/html\r\n\r\nbody", 200, 1),
        ("Content-type: text/html\n\nbody", 200, 1),
        (
            "Status: 404 Not Found\r\nX-A: b\r\nX-A: c\r\n\r\nbody",
            404,
            2,
        ),
        ("Status: 503\r\n\r\nbody", 503, 0),
        ("Location: /x\r\n\r\nbody", 302, 1),
        ("Location: /x\r\nStatus: 201 Created\r\n\r\nbody", 201, 1),
    ] {
        let (got, headers) = read(text).unwrap();
        assert_eq!((got, headers.len()), (status, count), "{text:?}");
    }
    for text in ["", "Content", "Content-type: text/html\r\n", "A: b\r\nC"] {
        assert_eq!(head(text.as_bytes()), Ok(None), "{text:?}");
    }
}

#[test]
fn of_lines_that_are_there_twice_one_counts_as_in_nginx() {
    for (text, status, name, values) in [
        ("Status: 404\nStatus: 403\n\nbody", 404, "status", ""),
        ("Status: 404\nStatus: x\n\nbody", 404, "status", ""),
        (
            "Content-Type: a\nContent-Type: b\n\nbody",
            200,
            "content-type",
            "b",
        ),
        ("Location: /a\nLocation: /b\n\nbody", 302, "location", "/a"),
        ("ETag: a\nETag: b\n\nbody", 200, "etag", "a b"),
        ("Date: a\nDate: b\n\nbody", 200, "date", "a b"),
    ] {
        let (got, headers) = read(text).unwrap();
        let own = headers.get_all(name).iter();
        let own: Vec<&str> = own.map(|value| value.to_str().unwrap()).collect();
        assert_eq!((got, own.join(" ").as_str()), (status, values), "{text:?}");
    }
}

#[test]
fn a_head_that_could_be_read_in_two_ways_is_refused() {
    for text in [
        "Status: 99\r\n\r\n",
        "Status: 101\r\n\r\n",
        "Status: 2000\r\n\r\n",
        "Status: x\r\n\r\n",
        "Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "Content-Length: 1\r\nContent-Length: 1\r\n\r\n",
        "no field\r\n\r\n",
        "A b: c\r\n\r\n",
        " folded: a\r\n\r\n",
        "A: b\x01c\r\n\r\n",
        "<html><body>an error</body></html>\n",
    ] {
        assert!(head(text.as_bytes()).is_err(), "{text:?}");
    }
    let long = format!("A: {}", "x".repeat(HEAD_BYTES_MAX));
    assert_eq!(head(long.as_bytes()), Err(HeadError::TooLong));
    let many = "A: b\r\n".repeat(FIELDS_MAX + 1);
    assert_eq!(head(many.as_bytes()), Err(HeadError::TooLong));
}

#[test]
fn no_field_becomes_anothers_parameter() {
    let name = |text: &str| parameter_name(&text.parse().unwrap());
    assert_eq!(name("X-Real-Name"), Some(b"HTTP_X_REAL_NAME".to_vec()));
    for text in ["proxy", "x_real_name", "content-type", "content-length"] {
        assert_eq!(name(text), None, "{text}");
    }
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), step in 1usize..20) {
        _ = events(&bytes, step);
        _ = head(&bytes);
    }

    #[test]
    fn what_was_put_into_records_comes_out(
        parts in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..40), any::<u8>()), 0..8),
        step in 1usize..50,
    ) {
        let stream: Vec<u8> = parts.iter().flat_map(|(part, padding)| record(6, part, *padding)).collect();
        let whole: Vec<u8> = parts.iter().flat_map(|(part, _)| part.clone()).collect();
        let got: Vec<u8> = events(&stream, step).unwrap().into_iter().flat_map(|event| match event {
            Event::Output(bytes) => bytes.to_vec(),
            other => panic!("{other:?}"),
        }).collect();
        prop_assert_eq!(got, whole);
    }
}
