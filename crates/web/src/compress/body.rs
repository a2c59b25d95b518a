//! A body that is compressed as it comes.

use super::encoder::{Encoder, Step};
use super::workshop::{Done, Reserved, SLICE_BYTES, Work, Workshop};
use crate::body::Source;
use crate::request_body::BodyError;
use bytes::Bytes;
use hyper::HeaderMap;
use hyper::body::Frame;
use sooner_http::negotiation::Coding;
use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// A source that gives nothing for so long pauses: what it gave is sent.
pub const PAUSE: Duration = Duration::from_millis(5);
/// What trickles in without a pause is sent after so long.
pub const HELD_MAX: Duration = Duration::from_millis(50);
/// An estimate that is too low by less is left.
const ESTIMATE_SLACK_BYTES: u64 = 4 << 10;

type FrameResult = Result<Frame<Bytes>, BodyError>;
type Job = Pin<Box<dyn Future<Output = io::Result<Done>> + Send>>;

/// What is compressed, and how.
pub struct Plan {
    /// The body.
    pub source: Source,
    /// Its length, if known.
    pub body_bytes: Option<u64>,
    /// How it is compressed.
    pub coding: Coding,
    /// Where.
    pub workshop: Arc<Workshop>,
    /// The memory of its compressor.
    pub reserved: Reserved,
}

/// The compressed form of a body. It holds one slice of the body at a time, and what became of it.
pub struct CompressedBody {
    plan: Plan,
    encoder: Option<Encoder>,
    job: Option<Job>,
    /// Came from the source and is in no slice yet.
    raw: VecDeque<Bytes>,
    raw_bytes: usize,
    /// In the slice under way.
    slice_bytes: usize,
    /// Compressed since the last flush.
    unflushed_bytes: usize,
    /// To be given.
    output: Bytes,
    pause: Option<(Instant, Pin<Box<Sleep>>)>,
    has_source_ended: bool,
    is_finished: bool,
    last: Option<Result<HeaderMap, BodyError>>,
    in_bytes: u64,
    out_bytes: u64,
    /// What the link was told, and is told next.
    promised_bytes: Option<u64>,
}

impl CompressedBody {
    /// Nothing is compressed yet.
    pub fn new(plan: Plan) -> Self {
        Self {
            plan,
            encoder: None,
            job: None,
            raw: VecDeque::new(),
            raw_bytes: 0,
            slice_bytes: 0,
            unflushed_bytes: 0,
            output: Bytes::new(),
            pause: None,
            has_source_ended: false,
            is_finished: false,
            last: None,
            in_bytes: 0,
            out_bytes: 0,
            promised_bytes: None,
        }
    }

    /// Compresses `beginning`, which came before what the source has still to give, and flushes:
    /// compressors that work in blocks would tell nothing of the ratio yet.
    pub async fn begin(&mut self, beginning: VecDeque<Bytes>) -> io::Result<()> {
        self.raw_bytes = beginning.iter().map(Bytes::len).sum();
        self.raw = beginning;
        if self.raw_bytes == 0 {
            return Ok(());
        }
        while self.raw_bytes > SLICE_BYTES {
            self.do_slice(Step::More).await?;
        }
        self.do_slice(Step::Flush).await?;
        self.promised_bytes = self.expected_bytes();
        Ok(())
    }

    async fn do_slice(&mut self, step: Step) -> io::Result<()> {
        let work = self.slice(step);
        let done = self.plan.workshop.clone().run(work).await?;
        let before = std::mem::take(&mut self.output);
        self.take_done(done);
        if !before.is_empty() {
            self.output = [before, std::mem::take(&mut self.output)].concat().into();
        }
        Ok(())
    }

    /// How long it will be, by what it has become so far; `None` where nothing tells.
    pub fn estimated_bytes(&self) -> Option<u64> {
        self.promised_bytes
    }

    /// How much longer than the last estimate it will be, where that is worth telling.
    pub fn take_growth(&mut self) -> Option<u64> {
        let (promised, expected) = (self.promised_bytes?, self.expected_bytes()?);
        let slack = ESTIMATE_SLACK_BYTES.max(promised / 8);
        if expected <= promised.saturating_add(slack) {
            return None;
        }
        self.promised_bytes = Some(expected);
        Some(expected - promised)
    }

    /// What has become of the part that is done, and the rest in the same ratio.
    fn expected_bytes(&self) -> Option<u64> {
        let body_bytes = self.plan.body_bytes?;
        if self.in_bytes == 0 {
            return None;
        }
        let left_bytes = u128::from(body_bytes.saturating_sub(self.in_bytes));
        let rest = left_bytes * u128::from(self.out_bytes) / u128::from(self.in_bytes);
        let rest = u64::try_from(rest).unwrap_or(u64::MAX);
        Some(self.out_bytes.saturating_add(rest))
    }

    /// Whether nothing more will come, not even trailers.
    pub fn is_end(&self) -> bool {
        self.is_finished && self.job.is_none() && self.output.is_empty() && self.last.is_none()
    }

    /// The next piece, or the trailers of the source.
    pub fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<FrameResult>> {
        loop {
            if !self.output.is_empty() {
                let output = std::mem::take(&mut self.output);
                return Poll::Ready(Some(Ok(Frame::data(output))));
            }
            if let Some(job) = &mut self.job {
                let done = ready!(job.as_mut().poll(cx));
                self.job = None;
                match done {
                    Ok(done) => self.take_done(done),
                    Err(error) => return Poll::Ready(Some(Err(self.fail(error.into())))),
                }
                continue;
            }
            if self.is_finished {
                return Poll::Ready(self.last.take().map(|last| last.map(Frame::trailers)));
            }
            let mut step = ready!(self.poll_step(cx));
            if matches!(self.last, Some(Err(_))) {
                let has_rest = self.raw_bytes > 0 || self.unflushed_bytes > 0;
                if !has_rest && let Some(Err(error)) = self.last.take() {
                    return Poll::Ready(Some(Err(self.fail(error))));
                }
                // What came is given, and no end of it.
                step = Step::Flush;
            }
            let work = self.slice(step);
            if !work.is_little() {
                self.job = Some(Box::pin(self.plan.workshop.clone().run(work)));
                continue;
            }
            match self.plan.workshop.run_at_once(work) {
                Ok(done) => self.take_done(done),
                Err(error) => return Poll::Ready(Some(Err(self.fail(error.into())))),
            }
        }
    }

    /// Ready with what to do next when there is a slice, the source has ended, or it pauses after
    /// it gave something.
    fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<Step> {
        while self.raw_bytes < SLICE_BYTES && !self.has_source_ended {
            match self.plan.source.poll_frame(cx) {
                Poll::Pending => return self.poll_pause(cx),
                Poll::Ready(frame) => self.take_frame(frame),
            }
        }
        self.pause = None;
        Poll::Ready(if self.has_source_ended && self.raw_bytes <= SLICE_BYTES {
            Step::Finish
        } else {
            Step::More
        })
    }

    fn take_frame(&mut self, frame: Option<FrameResult>) {
        match frame.map(|frame| frame.map(Frame::into_data)) {
            Some(Ok(Ok(piece))) => {
                self.raw_bytes += piece.len();
                self.raw.push_back(piece);
                // A pause is counted from the last piece on.
                if let Some((held_since, sleep)) = &mut self.pause {
                    let due = (Instant::now() + PAUSE).min(*held_since + HELD_MAX);
                    sleep.as_mut().reset(due);
                }
                self.has_source_ended = self.plan.source.is_end();
            }
            Some(Ok(Err(frame))) => {
                self.last = frame.into_trailers().ok().map(Ok);
                self.has_source_ended = true;
            }
            Some(Err(error)) => {
                self.last = Some(Err(error));
                self.has_source_ended = true;
            }
            None => self.has_source_ended = true,
        }
    }

    /// Ready when the source has paused for long enough with something that it gave still here.
    fn poll_pause(&mut self, cx: &mut Context<'_>) -> Poll<Step> {
        if self.raw_bytes == 0 && self.unflushed_bytes == 0 {
            return Poll::Pending;
        }
        let (_, sleep) = self.pause.get_or_insert_with(|| {
            let now = Instant::now();
            (now, Box::pin(sleep_until(now + PAUSE)))
        });
        ready!(sleep.as_mut().poll(cx));
        self.pause = None;
        Poll::Ready(Step::Flush)
    }

    /// Takes a slice of what has come, with `step` behind it, if it is the last one.
    fn slice(&mut self, step: Step) -> Work {
        let mut input = Vec::new();
        self.slice_bytes = 0;
        while self.slice_bytes < SLICE_BYTES
            && let Some(mut piece) = self.raw.pop_front()
        {
            let room = SLICE_BYTES - self.slice_bytes;
            if piece.len() > room {
                self.raw.push_front(piece.split_off(room));
            }
            self.slice_bytes += piece.len();
            input.push(piece);
        }
        self.raw_bytes -= self.slice_bytes;
        let step = if self.raw_bytes == 0 {
            step
        } else {
            Step::More
        };
        self.is_finished = step == Step::Finish;
        let backlog_bytes = self.unflushed_bytes;
        self.unflushed_bytes = match step {
            Step::More => backlog_bytes + self.slice_bytes,
            Step::Flush | Step::Finish => 0,
        };
        Work {
            encoder: self.encoder.take(),
            coding: self.plan.coding,
            body_bytes: self.plan.body_bytes,
            input,
            backlog_bytes,
            step,
        }
    }

    fn take_done(&mut self, done: Done) {
        let (in_bytes, out_bytes) = (self.slice_bytes as u64, done.output.len() as u64);
        self.encoder = done.encoder;
        self.output = done.output.into();
        self.in_bytes += in_bytes;
        self.out_bytes += out_bytes;
        let counts = self.plan.workshop.counts();
        counts.compressed(self.plan.coding, in_bytes, out_bytes);
    }

    fn fail(&mut self, error: BodyError) -> BodyError {
        self.is_finished = true;
        self.last = None;
        self.encoder = None;
        error
    }

    /// The most that it holds of the body and of what became of it, now.
    #[cfg(test)]
    pub fn held_bytes(&self) -> usize {
        self.raw_bytes + self.output.len()
    }
}
