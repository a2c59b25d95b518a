//! A body between an upstream and a client that do as they like.

use super::*;
use http_body_util::{BodyExt, Full};
use std::convert::Infallible;

const IDLE: Duration = Duration::from_secs(5);

/// What an upstream sends; then the end, or silence.
struct Frames {
    frames: VecDeque<Frame<Bytes>>,
    is_silent_then: bool,
}

impl Body for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.frames.pop_front() {
            Some(frame) => Poll::Ready(Some(Ok(frame))),
            None if self.is_silent_then => Poll::Pending,
            None => Poll::Ready(None),
        }
    }
}

fn silence() -> Frames {
    Frames {
        frames: VecDeque::new(),
        is_silent_then: true,
    }
}

fn run(future: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future);
}

#[test]
fn all_of_it_arrives_and_the_budget_is_given_back() {
    run(async {
        let budget = BufferBudget::new(1 << 20, 1 << 20);
        let (feeder, read_ahead) = read_ahead(&budget, Some(5));
        assert_eq!(read_ahead.size_hint().exact(), Some(5));
        let mut body = Full::new(Bytes::from_static(b"hello"));
        assert_eq!(feeder.feed(&mut body, IDLE).await, Ok(()));
        assert!(budget.used_bytes() >= 5);
        assert_eq!(read_ahead.collect().await.unwrap().to_bytes(), "hello");
        assert_eq!(budget.used_bytes(), 0);
    });
}

#[test]
fn a_body_of_another_length_than_said_is_broken() {
    run(async {
        for said in [4, 6] {
            let budget = BufferBudget::new(1 << 20, 1 << 20);
            let (feeder, read_ahead) = read_ahead(&budget, Some(said));
            let mut body = Full::new(Bytes::from_static(b"hello"));
            let fed = feeder.feed(&mut body, IDLE).await;
            assert!(matches!(fed, Err(Truncation::Broken(_))));
            assert!(read_ahead.collect().await.is_err());
            assert_eq!(budget.used_bytes(), 0);
        }
    });
}

#[test]
fn reading_ahead_stops_at_the_bound_and_goes_on_when_the_client_takes() {
    run(async {
        let budget = BufferBudget::new(1 << 20, 3 << 10);
        let (feeder, mut read_ahead) = read_ahead(&budget, None);
        let piece = || Frame::data(Bytes::from(vec![7; 1 << 10]));
        let mut body = Frames {
            frames: (0..100).map(|_| piece()).collect(),
            is_silent_then: false,
        };
        let feeding = feeder.feed(&mut body, IDLE);
        let taking = async {
            tokio::task::yield_now().await;
            let ahead = budget.used_bytes();
            assert!(ahead <= (4 << 10) + 4 * PIECE_BYTES, "{ahead} bytes ahead");
            let mut taken = 0;
            while let Some(frame) = read_ahead.frame().await {
                taken += frame.unwrap().into_data().unwrap().len();
            }
            assert_eq!(taken, 100 << 10);
        };
        let (fed, ()) = tokio::join!(feeding, taking);
        assert_eq!(fed, Ok(()));
    });
}

#[test]
fn who_leaves_ends_the_reading() {
    run(async {
        let budget = BufferBudget::new(1 << 20, 1 << 20);
        let (feeder, read_ahead) = read_ahead(&budget, None);
        let mut body = silence();
        let leaving = async {
            tokio::task::yield_now().await;
            drop(read_ahead);
        };
        let (fed, ()) = tokio::join!(feeder.feed(&mut body, IDLE), leaving);
        assert_eq!(fed, Err(Truncation::Abandoned));
    });
}

#[test]
fn who_leaves_with_all_of_it_has_ended_it() {
    run(async {
        let budget = BufferBudget::new(1 << 20, 1 << 20);
        let (feeder, mut read_ahead) = read_ahead(&budget, Some(5));
        // Over HTTP/2 the end may come later than the last byte.
        let mut body = Frames {
            frames: [Frame::data(Bytes::from_static(b"hello"))].into(),
            is_silent_then: true,
        };
        let reading = async {
            let frame = read_ahead.frame().await.unwrap().unwrap();
            assert_eq!(frame.into_data().unwrap(), "hello");
            drop(read_ahead);
        };
        let (fed, ()) = tokio::join!(feeder.feed(&mut body, IDLE), reading);
        assert_eq!(fed, Ok(()));
    });
}

#[test]
fn an_upstream_that_pauses_too_long_is_given_up() {
    run(async {
        let budget = BufferBudget::new(1 << 20, 1 << 20);
        let (feeder, read_ahead) = read_ahead(&budget, None);
        let mut body = silence();
        let fed = feeder.feed(&mut body, Duration::from_millis(5)).await;
        assert_eq!(fed, Err(Truncation::Idle));
        assert!(read_ahead.collect().await.is_err());
    });
}

#[test]
fn trailers_come_without_what_they_may_not_carry() {
    run(async {
        let budget = BufferBudget::new(1 << 20, 1 << 20);
        let (feeder, read_ahead) = read_ahead(&budget, None);
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", hyper::header::HeaderValue::from_static("0"));
        trailers.insert(
            "content-length",
            hyper::header::HeaderValue::from_static("9"),
        );
        let mut body = Frames {
            frames: [
                Frame::data(Bytes::from_static(b"x")),
                Frame::trailers(trailers),
            ]
            .into(),
            is_silent_then: false,
        };
        assert_eq!(feeder.feed(&mut body, IDLE).await, Ok(()));
        let collected = read_ahead.collect().await.unwrap();
        let trailers = collected.trailers().unwrap();
        assert_eq!(trailers.len(), 1);
        assert_eq!(trailers["grpc-status"], "0");
    });
}
