//! What is read of a body, and that nothing of it is lost.

use super::*;
use crate::limits::ReceiveError;
use http_body_util::BodyExt;
use proptest::prelude::*;
use std::collections::VecDeque;
use std::task::Waker;

/// A body that comes in these pieces, and what comes behind them.
struct Pieces {
    left: VecDeque<Result<Frame<Bytes>, BodyError>>,
    bytes: Option<u64>,
}

fn body(pieces: &[&str], has_trailers: bool) -> RequestBody {
    let data = |piece: &&str| Ok(Frame::data(Bytes::copy_from_slice(piece.as_bytes())));
    let mut left: VecDeque<_> = pieces.iter().map(data).collect();
    if has_trailers {
        left.push_back(Ok(Frame::trailers(HeaderMap::new())));
    }
    in_pieces(left, (!has_trailers).then(|| pieces.concat().len() as u64))
}

fn in_pieces(left: VecDeque<Result<Frame<Bytes>, BodyError>>, bytes: Option<u64>) -> RequestBody {
    RequestBody::Tested(Box::pin(Pieces { left, bytes }))
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = self.left.pop_front();
        if let (Some(bytes), Some(Ok(frame))) = (&mut self.bytes, &frame) {
            *bytes -= frame.data_ref().map_or(0, |data| data.len() as u64);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        self.bytes
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

fn now<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    match future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("everything is there already"),
    }
}

fn look(bytes_max: usize, budget_bytes: usize) -> Look {
    Look {
        bytes_max,
        budget: BufferBudget::new(budget_bytes, budget_bytes),
    }
}

/// What `model` says in a body of these pieces, and all of the body.
fn model(look: &Look, headers: &HeaderMap, pieces: &[&str]) -> (Option<String>, String) {
    let paths = ["model".parse().unwrap()];
    let (fields, body) = now(look.at(headers, body(pieces, false), &paths));
    let all = now(body.collect()).unwrap().to_bytes();
    let all = String::from_utf8(all.to_vec()).unwrap();
    (fields.get("model").map(str::to_owned), all)
}

#[test]
fn a_body_says_what_it_says_however_it_comes() {
    let look = look(64, 1000);
    let plain = HeaderMap::new();
    let mut packed = HeaderMap::new();
    packed.insert(CONTENT_ENCODING, "gzip".parse().unwrap());
    let whole = [r#"{"model":"a"}"#];
    let long = [r#"{"model":"a","x":""#, &"x".repeat(90), "\"}"];
    let late = [r#"{"x":""#, &"x".repeat(90), r#"","model":"a"}"#];
    for (headers, pieces, wanted) in [
        (&plain, &whole[..], Some("a")),
        (&plain, &[" {\"mod", "el\":", "\"a\"", "}"], Some("a")),
        (&plain, &long, Some("a")),
        (&plain, &late, None),
        (&plain, &["model=a&b={\"model\":1}"], None),
        (&plain, &[r#"{"model":"a"#], None),
        (&plain, &[""], None),
        (&plain, &["\u{feff}", "{\"model\"", ":\"a\"}"], Some("a")),
        (&plain, &["  ", "\n", r#"{"model":"a"}"#], Some("a")),
        (&packed, &whole, None),
    ] {
        let (found, all) = model(&look, headers, pieces);
        assert_eq!(found.as_deref(), wanted, "{pieces:?}");
        assert_eq!(all, pieces.concat(), "nothing is lost");
        assert_eq!(look.budget.used_bytes(), 0, "all is given back");
    }
}

#[test]
fn where_memory_is_full_no_body_is_looked_at() {
    let look = look(64, 20);
    let paths = ["model".parse().unwrap()];
    let at = || {
        now(look.at(
            &HeaderMap::new(),
            body(&[r#"{"model":"abcdefgh"}"#], false),
            &paths,
        ))
    };
    let (fields, first) = at();
    assert_eq!(fields.get("model"), Some("abcdefgh"));
    let (fields, second) = at();
    assert_eq!(fields.get("model"), None);
    drop((first, second));
    assert_eq!(at().0.get("model"), Some("abcdefgh"), "it was given back");
}

#[test]
fn trailers_stay_and_a_fault_does() {
    let paths = ["model".parse().unwrap()];
    let look = look(1000, 1000);
    let (_, looked) = now(look.at(&HeaderMap::new(), body(&["{}"], true), &paths));
    assert_eq!(
        looked.size_hint().exact(),
        None,
        "or trailers could not follow"
    );
    assert!(now(looked.collect()).unwrap().trailers().is_some());
    let frames = [Ok(Frame::data("{".into())), Err("broke off".into())];
    let broken = in_pieces(frames.into(), None);
    let (fields, looked) = now(look.at(&HeaderMap::new(), broken, &paths));
    assert_eq!(fields.get("model"), None);
    let error = now(looked.collect()).unwrap_err();
    assert_eq!(error.to_string(), "broke off");
}

/// A body of these pieces of which the length is not known.
fn chunked(pieces: &[Bytes], then: Option<Result<Frame<Bytes>, BodyError>>) -> RequestBody {
    let data = pieces.iter().cloned().map(|piece| Ok(Frame::data(piece)));
    in_pieces(data.chain(then).collect(), None)
}

#[test]
fn a_body_has_a_length_when_all_of_it_was_read() {
    let look = look(4, 4 << 20);
    let piece = Bytes::from(vec![b'x'; HELD_BYTES_MAX / 2]);
    for (pieces, then) in [
        (vec![piece.clone()], None),
        (vec![piece.clone(), piece.clone()], None),
        (
            vec![piece.clone()],
            Some(Ok(Frame::trailers(HeaderMap::new()))),
        ),
    ] {
        let bytes = pieces.iter().map(Bytes::len).sum::<usize>();
        let whole = now(look.whole(chunked(&pieces, then)));
        assert_eq!(whole.size_hint().exact(), Some(bytes as u64));
        assert_eq!((whole.fault(), look.budget.used_bytes()), (None, bytes));
        assert_eq!(now(whole.collect()).unwrap().to_bytes().len(), bytes);
        assert_eq!(look.budget.used_bytes(), 0);
    }
    let longer = [piece.clone(), piece, Bytes::from_static(b"x")];
    let whole = now(look.whole(chunked(&longer, None)));
    assert_eq!(whole.fault(), Some(ClientFault::NeedsLength));
    // One that has a length is left as it is.
    let known = now(look.whole(body(&["{}"], false)));
    assert!(matches!(known, RequestBody::Tested(_)));
}

#[test]
fn where_memory_is_full_a_body_stays_without_a_length() {
    let look = look(4, 3);
    let pieces = ["ab", "cd", "ef"].map(Bytes::from);
    let whole = now(look.whole(chunked(&pieces, None)));
    assert_eq!((whole.size_hint().exact(), whole.fault()), (None, None));
    assert!(matches!(
        now(look.whole(chunked(&pieces, None))),
        RequestBody::Tested(_)
    ));
    assert_eq!(now(whole.collect()).unwrap().to_bytes(), "abcdef");
}

#[test]
fn what_is_known_to_be_broken_says_why() {
    let paths = ["model".parse().unwrap()];
    let look = look(1000, 1000);
    for (error, fault) in [
        (BodyError::from("broke off"), ClientFault::BrokeOff),
        (
            ReceiveError::TooLong { bytes_max: 1 }.into(),
            ClientFault::TooLong,
        ),
        (
            ReceiveError::TooSlow { bytes_per_sec: 1 }.into(),
            ClientFault::TooSlow,
        ),
    ] {
        let broken = chunked(&["{".into()], Some(Err(error)));
        let (_, looked) = now(look.at(&HeaderMap::new(), broken, &paths));
        assert_eq!(looked.fault(), Some(fault));
        // And where it was read before it is looked at.
        let (_, looked) = now(look.at(&HeaderMap::new(), looked, &paths));
        assert_eq!(looked.fault(), Some(fault));
    }
    let (_, looked) = now(look.at(&HeaderMap::new(), body(&["{}"], true), &paths));
    assert_eq!(looked.fault(), None);
}

proptest! {
    #[test]
    fn its_length_is_what_it_was(text in "[{}a-z]{0,80}", cut in 0..80_usize, bytes_max in 1..100_usize) {
        let cut = cut.min(text.len());
        let pieces = [&text[..cut], &text[cut..]];
        let look = look(bytes_max, 1000);
        let paths = ["model".parse().unwrap()];
        let before = body(&pieces, false);
        let hint = before.size_hint().exact();
        let (_, after) = now(look.at(&HeaderMap::new(), before, &paths));
        prop_assert_eq!(after.size_hint().exact(), hint);
        let all = now(after.collect()).unwrap().to_bytes();
        prop_assert_eq!(&all[..], text.as_bytes());
    }
}
