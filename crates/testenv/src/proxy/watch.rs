//! The body of an answer, which obeys the [valve](super::valve) that others turn.
//!
//! Frames pass as they come; nothing is collected. A frozen stream is not read, so the bytes wait in the
//! sockets and, when those are full, at the server, as behind a real stalled network: memory stays bounded
//! and order is kept.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame};

use super::control::Control;
use super::fault::WatchFault;
use super::script::FaultId;
use super::valve::{Fate, Flow, Valve};

/// An error of a body or a connection.
pub(super) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A fault that waits in a stream for its event.
#[derive(Debug)]
pub(super) struct Pending {
    /// Events still to pass.
    pub(super) after_events: u64,
    pub(super) fault: FaultId,
    pub(super) then: WatchFault,
    /// The text sent before the end, with [`WatchFault::Error`].
    pub(super) last_words: Bytes,
}

/// The error that makes hyper close a connection without finishing the answer.
#[derive(Debug, thiserror::Error)]
#[error("the fault proxy cut the connection")]
struct CutOff;

/// A body that obeys a valve and carries at most one pending fault.
pub(super) struct StreamBody<B> {
    /// `None` once the server's side is closed.
    inner: Option<B>,
    /// Received and not yet passed on.
    rest: Bytes,
    pending: Option<Pending>,
    last_words: Option<Bytes>,
    /// Set when the bytes that were passed before a cut have reached the socket.
    flushed: bool,
    valve: Arc<Valve>,
    control: Arc<Control>,
    sequence: u64,
}

impl<B> StreamBody<B> {
    /// A body over one that the control knows under this number.
    pub(super) fn new(
        inner: B,
        pending: Option<Pending>,
        valve: Arc<Valve>,
        control: Arc<Control>,
        sequence: u64,
    ) -> Self {
        Self {
            inner: Some(inner),
            rest: Bytes::new(),
            pending,
            last_words: None,
            flushed: false,
            valve,
            control,
            sequence,
        }
    }

    /// The pending fault happens. Returns what still goes to the client at once.
    fn strike(&mut self, pending: Pending) -> Option<Bytes> {
        self.control.hit(pending.fault, self.sequence)?;
        let mut half = None;
        match pending.then {
            WatchFault::Freeze => {
                self.valve.freeze(pending.fault);
                return None;
            }
            WatchFault::Cut => self.valve.cut(),
            WatchFault::Tear => {
                let event = self.rest.iter().position(|byte| *byte == b'\n').unwrap_or(self.rest.len());
                half = Some(self.rest.split_to(event / 2));
                self.valve.cut();
            }
            WatchFault::HalfOpen => self.valve.half_open(),
            WatchFault::End | WatchFault::Error(_) => {
                self.inner = None;
                self.rest.clear();
                self.last_words = Some(pending.last_words);
            }
        }
        self.control.stream_broken(self.sequence);
        half
    }

    /// Returns true if the pending fault happens now, rather than after more events or with the next one.
    fn is_due(&self) -> bool {
        self.pending.as_ref().is_some_and(|pending| {
            pending.after_events == 0 && (pending.then != WatchFault::Tear || !self.rest.is_empty())
        })
    }
}

impl<B> Body for StreamBody<B>
where
    B: Body<Data = Bytes, Error = BoxError> + Unpin,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        loop {
            match this.valve.poll(cx) {
                Flow::Open => {}
                Flow::Frozen => return Poll::Pending,
                Flow::Broken(fate) => {
                    this.inner = None;
                    if fate == Fate::Dead {
                        return Poll::Pending;
                    }
                    // An error makes hyper drop what it has not written yet, so it gets one turn to write.
                    if std::mem::replace(&mut this.flushed, true) {
                        return Poll::Ready(Some(Err(Box::new(CutOff))));
                    }
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
            }
            if this.is_due()
                && let Some(pending) = this.pending.take()
            {
                if let Some(half) = this.strike(pending) {
                    return Poll::Ready(Some(Ok(Frame::data(half))));
                }
                continue;
            }
            if !this.rest.is_empty() {
                let passed = match &mut this.pending {
                    Some(pending) => split_events(&mut this.rest, &mut pending.after_events),
                    None => std::mem::take(&mut this.rest),
                };
                return Poll::Ready(Some(Ok(Frame::data(passed))));
            }
            if let Some(words) = this.last_words.take().filter(|words| !words.is_empty()) {
                return Poll::Ready(Some(Ok(Frame::data(words))));
            }
            let Some(inner) = &mut this.inner else {
                return Poll::Ready(None);
            };
            match std::task::ready!(Pin::new(inner).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => this.rest = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
    }
}

impl<B> Drop for StreamBody<B> {
    fn drop(&mut self) {
        self.control.stream_closed(self.sequence);
    }
}

/// Takes what may pass from the front of `bytes`: all of it, or up to the end of the last event that is still
/// to pass. Counts down `events`, which must not be 0.
fn split_events(bytes: &mut Bytes, events: &mut u64) -> Bytes {
    for (index, byte) in bytes.iter().enumerate() {
        if *byte == b'\n' {
            *events -= 1;
            if *events == 0 {
                return bytes.split_to(index + 1);
            }
        }
    }
    std::mem::take(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_counted_across_frames_and_split_within_one() {
        let mut left = 3;
        let mut passed = Vec::new();
        let mut bytes = Bytes::new();
        for frame in ["on", "e\ntwo\n", "three\nfour\n"] {
            bytes = Bytes::from(frame);
            passed.push(split_events(&mut bytes, &mut left));
        }
        assert_eq!(passed, ["on", "e\ntwo\n", "three\n"]);
        assert_eq!((left, bytes.as_ref()), (0, b"four\n".as_ref()));
    }
}
