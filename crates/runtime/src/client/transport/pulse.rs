//! Signs of life of a connection.
//!
//! Every successful read of the socket is a sign of life, also the answer to a ping, which the HTTP library
//! does not report.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::MaybeHttpsStream;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tower::{BoxError, Service};

use super::trust::Trusting;

/// Timeout for opening a connection, with the TLS handshake.
const CONNECT: Duration = Duration::from_secs(10);

/// The last sign of life of a connection, and the last suspicion.
pub(super) struct Pulse {
    created: Instant,
    /// Open HTTP/2 connections: mostly one.
    connections: AtomicUsize,
    /// The time of the last read, in microseconds since `created`.
    read: AtomicU64,
    /// The time of the last suspicion, likewise; 0 for none.
    suspected: AtomicU64,
}

impl Pulse {
    pub(super) fn new() -> Self {
        Self {
            created: Instant::now(),
            connections: AtomicUsize::new(0),
            read: AtomicU64::new(0),
            suspected: AtomicU64::new(0),
        }
    }

    /// Returns the last sign of life since `sent`, or `sent` if there was none; `None` without an open HTTP/2
    /// connection.
    pub(super) fn last_sign(&self, sent: Instant) -> Option<Instant> {
        let read = self.created + Duration::from_micros(self.read.load(Relaxed));
        (self.connections.load(Relaxed) > 0).then(|| read.max(sent))
    }

    /// Marks the connection as suspect until the next sign of life.
    pub(super) fn suspect(&self) {
        self.suspected.store(self.now(), Relaxed);
    }

    /// Returns true if there was no sign of life since the connection was marked as suspect.
    pub(super) fn is_suspect(&self) -> bool {
        self.connections.load(Relaxed) > 0 && self.suspected.load(Relaxed) > self.read.load(Relaxed)
    }

    fn beat(&self) {
        self.read.store(self.now(), Relaxed);
    }

    fn now(&self) -> u64 {
        u64::try_from(self.created.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

/// Opens connections and records their signs of life.
#[derive(Clone)]
pub(super) struct Connector {
    inner: Trusting,
    pulse: Arc<Pulse>,
}

impl Connector {
    pub(super) fn new(inner: Trusting, pulse: Arc<Pulse>) -> Self {
        Self { inner, pulse }
    }
}

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Stream, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let (opening, pulse) = (self.inner.call(uri), Arc::clone(&self.pulse));
        Box::pin(async move {
            let late =
                || io::Error::new(io::ErrorKind::TimedOut, "the connection could not be opened in time");
            let stream = timeout(CONNECT, opening).await.map_err(|_| late())??;
            Ok(Stream::new(stream, pulse))
        })
    }
}

/// An open connection.
pub(super) struct Stream {
    stream: MaybeHttpsStream<TokioIo<TcpStream>>,
    /// `None` for HTTP/1.1, which has no pings.
    pulse: Option<Arc<Pulse>>,
}

impl Stream {
    fn new(stream: MaybeHttpsStream<TokioIo<TcpStream>>, pulse: Arc<Pulse>) -> Self {
        let pulse = stream.connected().is_negotiated_h2().then_some(pulse);
        if let Some(pulse) = &pulse {
            pulse.beat();
            pulse.connections.fetch_add(1, Relaxed);
        }
        Self { stream, pulse }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Some(pulse) = &self.pulse {
            pulse.connections.fetch_sub(1, Relaxed);
        }
    }
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        self.stream.connected()
    }
}

impl Read for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if let (Poll::Ready(Ok(())), Some(pulse)) = (&read, &self.pulse) {
            pulse.beat();
        }
        read
    }
}

impl Write for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
