//! The scanner finds the same PRIORITY_UPDATE frames however the bytes are cut, and only where the frame headers say they are.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sooner_web::http2::frame_scanner::{FrameScanner, PriorityUpdate, Violation};

type Found = Vec<Result<PriorityUpdate, Violation>>;

/// The first byte says how long the pieces are.
fuzz_target!(|input: &[u8]| {
    let Some((&piece_bytes, bytes)) = input.split_first() else {
        return;
    };
    let all_at_once = scan([bytes].into_iter());
    let in_pieces = scan(bytes.chunks(usize::from(piece_bytes).max(1)));
    assert_eq!(all_at_once, in_pieces);
    assert_eq!(all_at_once.len(), count_updates(bytes));
});

fn scan<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Found {
    let mut scanner = FrameScanner::default();
    let mut all = Found::new();
    for piece in pieces {
        scanner.feed(piece, |found| all.push(found));
    }
    all
}

/// The slow and obvious way.
fn count_updates(bytes: &[u8]) -> usize {
    let mut rest = bytes.get(24..).unwrap_or_default();
    let mut count = 0;
    while rest.len() >= 9 {
        let length = u32::from_be_bytes([0, rest[0], rest[1], rest[2]]) as usize;
        let is_update = rest[3] == 0x10;
        let is_on_stream_zero = rest[5] & 0x7f == 0 && rest[6..9] == [0, 0, 0];
        let is_known_by_its_header = !is_on_stream_zero || length < 4;
        let payload = &rest[9..];
        let is_whole = payload.len() >= length;
        count += usize::from(is_update && (is_known_by_its_header || is_whole));
        rest = if is_whole { &payload[length..] } else { &[] };
    }
    count
}
