//! A cycle that no server sees: it is thrown away and answered with an error, where its client
//! cancels it before it is admitted, or its transaction had to make room.
//!
//! The cycle is a query or a function call; where it begins with a message of the extended protocol
//! it goes up to the next Sync, as what comes before that is skipped after an error. A Sync alone
//! cannot be cancelled. The error comes first, because a client may wait for it before it sends the
//! rest of its cycle; the end of the cycle is answered when it has come.

use crate::client::departing::write_all;
use crate::client::handle::{ClientHandle, Termination};
use crate::client::refusal::{Departure, Refusal};
use crate::pool::admission::is_there;
use crate::stream::Stream;
use bytes::{Buf, BytesMut};
use sooner_postgres::wire::{
    ErrorReport, Splitter, TransactionStatus, look_at_frontend, write_error, write_ready,
};

/// What the server says of a statement that its client cancels.
pub const CANCELLED: ErrorReport<'_> = ErrorReport {
    severity: "ERROR",
    sqlstate: "57014",
    message: "canceling statement due to user request",
    hint: None,
    source: None,
};

/// Throws away what is in `input` up to the end of a cycle, and as much as has yet to come of it;
/// answers it with an error and what the transaction is then. Whether the client was told: an error
/// where it has left, sends what cannot be understood, or has to go.
pub async fn refuse_cycle(
    stream: &mut Stream,
    input: &mut BytesMut,
    handle: &ClientHandle,
    report: &ErrorReport<'_>,
    status: TransactionStatus,
) -> Result<bool, Departure> {
    let mut out = BytesMut::new();
    let tells = input.first() != Some(&b'S');
    if tells {
        write_error(&mut out, report);
        write_all(stream, &mut out, handle).await?;
    }
    // One that believes to be in a transaction may end it before the gate stops.
    let must_go = match status {
        TransactionStatus::Idle => Termination::WhenIdle,
        _ => Termination::Now,
    };
    let mut discard = Discard::new();
    while !discard.take(input)? {
        tokio::select! {
            biased;
            () = handle.terminated(must_go) => return Err(handle.refusal().into()),
            heard = stream.more(input) => if !is_there(&heard) {
                return Err(Departure::Left);
            },
        }
    }
    write_ready(&mut out, status);
    write_all(stream, &mut out, handle).await?;
    Ok(tells)
}

/// The rest of a cycle that is thrown away.
struct Discard {
    splitter: Splitter,
    /// Whether everything up to the next Sync belongs to it.
    is_extended: bool,
}

impl Discard {
    fn new() -> Self {
        Self {
            splitter: Splitter::new(look_at_frontend),
            is_extended: false,
        }
    }

    /// Takes away what there is of it; whether that was its end.
    fn take(&mut self, input: &mut BytesMut) -> Result<bool, Departure> {
        loop {
            let piece = self.splitter.next(input);
            let piece = piece.map_err(|error| Refusal::of_protocol(&error.to_string()))?;
            let Some(piece) = piece else {
                return Ok(false);
            };
            self.is_extended |= matches!(piece.tag, b'P' | b'B' | b'D' | b'E' | b'C');
            let is_simple = matches!(piece.tag, b'Q' | b'F') && !self.is_extended;
            let ends = piece.is_last && (is_simple || piece.tag == b'S');
            let is_goodbye = piece.tag == b'X';
            let count = piece.bytes.len();
            input.advance(count);
            if is_goodbye {
                return Err(Departure::Left);
            }
            if ends {
                return Ok(true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sooner_postgres::wire::{write_parse, write_query, write_sync};

    /// How many bytes are left of what comes in pieces of this size, once a cycle has been thrown
    /// away.
    fn left(all: &[u8], piece_bytes: usize) -> usize {
        let mut discard = Discard::new();
        let mut input = BytesMut::new();
        let mut rest = all;
        loop {
            if discard.take(&mut input).unwrap() {
                return input.len() + rest.len();
            }
            let (piece, after) = rest.split_at(piece_bytes.min(rest.len()));
            assert!(!piece.is_empty(), "it waits for more");
            input.extend_from_slice(piece);
            rest = after;
        }
    }

    #[test]
    fn one_cycle_is_thrown_away_and_not_the_next() {
        let mut all = BytesMut::new();
        write_parse(&mut all, b"a", b"SELECT 1\0\0\0");
        write_parse(&mut all, b"b", &[b'x'; 100_000]);
        write_sync(&mut all);
        let mut next = BytesMut::new();
        write_query(&mut next, b"SELECT 2");
        all.extend_from_slice(&next);
        for piece_bytes in [1, 7, 1000, 1 << 20] {
            assert_eq!(left(&all, piece_bytes), next.len());
        }
        assert_eq!(left(&next, 3), 0);
    }

    #[test]
    fn a_query_in_a_cycle_of_the_extended_protocol_is_thrown_away_with_it() {
        let mut all = BytesMut::new();
        write_parse(&mut all, b"a", b"SELECT 1\0\0\0");
        write_query(&mut all, b"SELECT 2");
        write_sync(&mut all);
        assert_eq!(left(&all, 1), 0);
        write_query(&mut all, b"SELECT 3");
        assert_eq!(left(&all, 7), b"Q....SELECT 3.".len());
    }
}
