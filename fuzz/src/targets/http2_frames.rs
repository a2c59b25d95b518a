//! The scanners find the same PRIORITY_UPDATE frames, and the same ends of streams, however the
//! bytes are cut, and only where the frame headers say they are.

use sooner_http::frames::{FrameScanner, PriorityUpdate, StreamEnd, StreamEnds, Violation};

type Found = Vec<Result<PriorityUpdate, Violation>>;

// The first byte says how long the pieces are.
/// Tries one input.
pub fn run(input: &[u8]) {
    let Some((&piece_bytes, bytes)) = input.split_first() else {
        return;
    };
    let all_at_once = scan([bytes].into_iter());
    let in_pieces = scan(bytes.chunks(usize::from(piece_bytes).max(1)));
    assert_eq!(all_at_once, in_pieces);
    assert_eq!(all_at_once.len(), count_updates(bytes));
    let all_at_once = ends([bytes].into_iter());
    let in_pieces = ends(bytes.chunks(usize::from(piece_bytes).max(1)));
    assert_eq!(all_at_once, in_pieces);
    let resets = all_at_once.iter();
    let resets = resets.filter(|end| matches!(end, StreamEnd::Reset(_)));
    assert_eq!(resets.count(), count_resets(bytes));
}

fn ends<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<StreamEnd> {
    let mut scanner = StreamEnds::of_client();
    let mut all = Vec::new();
    for piece in pieces {
        scanner.feed(piece, |end| all.push(end));
    }
    all
}

/// The slow and obvious way.
fn count_resets(bytes: &[u8]) -> usize {
    let mut rest = bytes.get(24..).unwrap_or_default();
    let mut count = 0;
    while rest.len() >= 9 {
        let length = u32::from_be_bytes([0, rest[0], rest[1], rest[2]]) as usize;
        let payload = &rest[9..];
        let is_whole = payload.len() >= length;
        count += usize::from(rest[3] == 3 && is_whole);
        rest = if is_whole { &payload[length..] } else { &[] };
    }
    count
}

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
