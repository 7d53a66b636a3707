//! The webhook server: HTTPS around the webhooks.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use axum::routing::post;
use bytes::{Bytes, BytesMut};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, StatusCode};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use rustls::crypto::ring;
use serde_json::Value;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::certificates::Serving;
use super::denial::Denial;
use super::hooks::{Hook, Webhooks};
use super::metrics::{CertificateEnd, HookMetrics, WebhookMetrics};
use crate::manager::{BoxError, Context, Runnable, Stop};
use crate::metrics::Metrics;
use crate::serve::{Listener, Options};

/// The largest body that is accepted: the most that the API server sends (two objects of 3 MiB, and the
/// review around them).
const LARGEST: usize = 7 * 1024 * 1024;
/// The bytes of bodies that are received or answered at one time, over all requests; further requests wait.
const IN_FLIGHT: usize = 2 * LARGEST;
/// Timeout for a body, including the wait for other bodies. API servers wait at most 30 s for an answer.
const BODY: Duration = Duration::from_secs(10);

/// Serves webhooks over HTTPS, HTTP/2 or HTTP/1.1.
///
/// Add the [runnable](Self::into_runnable) to [`Stage::Webhooks`](crate::manager::Stage::Webhooks), beside
/// the runnable that maintains the certificate.
#[must_use = "add it to a manager"]
pub struct WebhookServer {
    listener: Listener,
    router: Router,
    certificate: Serving,
    connection_age: Duration,
    linger: Duration,
}

impl fmt::Debug for WebhookServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookServer").field("address", &self.listener.address()).finish_non_exhaustive()
    }
}

impl WebhookServer {
    /// Creates a server of these webhooks with a bound port and a certificate.
    pub fn new(listener: Listener, webhooks: Webhooks, certificate: &Serving, metrics: &Metrics) -> Self {
        metrics.register(CertificateEnd(certificate.clone()));
        let router = router(webhooks, metrics);
        let connection_age = Duration::from_mins(5);
        Self { listener, router, certificate: certificate.clone(), connection_age, linger: Duration::ZERO }
    }

    /// Sets the maximum age of a connection (default 5 minutes). API servers keep connections open without
    /// end: all would stay with one replica.
    pub fn connection_age(self, connection_age: Duration) -> Self {
        Self { connection_age, ..self }
    }

    /// Sets the time for which it goes on answering after its stop was requested (default 0). API servers
    /// learn a little later that a process is gone, and calls to it would fail.
    pub fn linger(self, linger: Duration) -> Self {
        Self { linger, ..self }
    }

    /// Returns the runnable `webhooks`: up when it has a certificate and listens.
    pub fn into_runnable(self) -> Runnable {
        let server = Arc::new(self);
        Runnable::new("webhooks", move |context: Context| {
            let server = Arc::clone(&server);
            async move { server.run(&context).await }
        })
    }

    async fn run(&self, context: &Context) -> Result<(), BoxError> {
        let mut tls = rustls::ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(self.certificate.clone()));
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        tokio::select! {
            () = self.certificate.available() => {}
            () = context.stop.requested() => return Ok(()),
        }
        tracing::info!(address = %self.listener.address(), "webhook server listens");
        // The port is bound since the listener was created: connections are answered from here on.
        context.ready();
        let options = Options { tls: Some(Arc::new(tls)), connection_age: Some(self.connection_age) };
        let (stopper, stop) = Stop::pair();
        let linger = async {
            context.stop.requested().await;
            tokio::time::sleep(self.linger).await;
            stopper.request();
            std::future::pending().await
        };
        tokio::select! {
            served = self.listener.serve(self.router.clone(), options, &stop) => Ok(served?),
            never = linger => never,
        }
    }
}

fn router(webhooks: Webhooks, metrics: &Metrics) -> Router {
    let metrics = WebhookMetrics::register(metrics);
    let room = Arc::new(Semaphore::new(IN_FLIGHT));
    let mut router = Router::new();
    for (path, hook) in webhooks.into_answers() {
        let (metrics, room) = (metrics.of(&path), Arc::clone(&room));
        let answer = move |request: Request| {
            let (hook, metrics, room) = (hook.clone(), metrics.clone(), Arc::clone(&room));
            async move { answer(&hook, &metrics, &room, request).await }
        };
        router = router.route(&path, post(answer));
    }
    router
}

async fn answer(hook: &Hook, metrics: &HookMetrics, room: &Semaphore, request: Request) -> Response {
    let in_flight = metrics.begin();
    let (head, body) = request.into_parts();
    let body = match expect_json(&head.headers) {
        Ok(()) => match tokio::time::timeout(BODY, read(body, room)).await {
            Ok(read) => read,
            Err(_) => Err(Denial::timeout(format!("the request body did not arrive within {BODY:?}"))),
        },
        Err(denial) => Err(denial),
    };
    // The room is occupied until the answer is there.
    let (body, _permit) = match body {
        Ok((body, permit)) => (Ok(body), Some(permit)),
        Err(denial) => (Err(denial), None),
    };
    let (code, answer) = hook.answer(body, metrics).await;
    in_flight.end(code);
    respond(code, &answer)
}

fn expect_json(headers: &HeaderMap) -> Result<(), Denial> {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media = content_type.split(';').next().unwrap_or_default().trim();
    if media.eq_ignore_ascii_case("application/json") {
        Ok(())
    } else {
        Err(Denial::content_type(format!(
            "content type {content_type:?} is not supported; send application/json"
        )))
    }
}

/// Reads a body when there is room for it: in one buffer of its length, without a copy.
async fn read(body: Body, room: &Semaphore) -> Result<(Bytes, SemaphorePermit<'_>), Denial> {
    let too_large = || Denial::too_large(format!("the request body has more than {LARGEST} bytes"));
    let unreadable =
        |error: &dyn fmt::Display| Denial::bad_request(format!("the request body cannot be read: {error}"));
    let announced = body.size_hint().exact().map(usize::try_from);
    let length = match announced {
        Some(Ok(length)) if length <= LARGEST => length,
        Some(_) => return Err(too_large()),
        None => LARGEST,
    };
    let permits = u32::try_from(length).map_err(|_| too_large())?;
    let permit = room.acquire_many(permits).await.map_err(|error| unreadable(&error))?;
    let mut buffer = BytesMut::with_capacity(if announced.is_some() { length } else { 0 });
    let mut body = std::pin::pin!(body);
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|error| unreadable(&error))?.into_data() else { continue };
        if buffer.len() + data.len() > length {
            return Err(too_large());
        }
        buffer.extend_from_slice(&data);
    }
    Ok((buffer.freeze(), permit))
}

fn respond(code: u16, answer: &Value) -> Response {
    let mut response = Response::new(Body::from(answer.to_string()));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::process::Command;
    use std::sync::atomic::{AtomicBool, Ordering};

    use futures::{FutureExt as _, StreamExt as _, stream};
    use http::header::CONTENT_LENGTH;
    use k8s_openapi::api::core::v1::ConfigMap;
    use tower::ServiceExt as _;

    use super::*;
    use crate::webhook::{Findings, Request as Admission, Validator, validate_path};

    struct Anything;

    impl Validator for Anything {
        type Object = ConfigMap;

        async fn validate(&self, _: &Admission<ConfigMap>, _: &mut Findings) -> Result<(), Denial> {
            Ok(())
        }
    }

    fn service() -> Router {
        router(Webhooks::new().validator(Anything).unwrap(), &Metrics::new())
    }

    fn request(length: usize, body: Body) -> Request {
        Request::post(validate_path::<ConfigMap>())
            .header(CONTENT_TYPE, "application/json")
            .header(CONTENT_LENGTH, length)
            .body(body)
            .unwrap()
    }

    /// Returns an update of an object whose unknown fields take 7 MiB in both versions together.
    fn large_review() -> String {
        let mut object = String::from(r#"{"metadata":{"name":"a"},"unknown":{"a":1"#);
        while object.len() < 3_600_000 {
            let number = object.len();
            write!(object, r#","k{number}":[{number},"v"]"#).unwrap();
        }
        object.push_str("}}");
        format!(
            r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"u","name":"a",
            "operation":"UPDATE","object":{object},"oldObject":{object}}}}}"#
        )
    }

    /// The largest resident memory so far, in MiB.
    fn peak() -> usize {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() / 1024
    }

    /// Not a test of its own: with `REVIEW_MEMORY` set, it is the process that the next test measures.
    #[tokio::test]
    async fn seam_m5_the_program() {
        if std::env::var_os("REVIEW_MEMORY").is_none() {
            return;
        }
        let body = Bytes::from(large_review());
        let before = peak();
        let answer = service().oneshot(request(body.len(), Body::from(body))).await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        println!("grown by {} MiB", peak() - before);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn seam_m5_a_review_of_seven_mebibytes_takes_less_than_32_mebibytes() {
        let program = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "webhook::server::tests::seam_m5_the_program", "--nocapture"])
            .env("REVIEW_MEMORY", "1")
            .output()
            .unwrap();
        let output = String::from_utf8_lossy(&program.stdout);
        let grown = output.lines().find_map(|line| line.split_once("grown by ")?.1.strip_suffix(" MiB"));
        let grown: usize = grown.unwrap_or_else(|| panic!("{output}")).parse().unwrap();
        assert!(grown < 32, "the process grew by {grown} MiB");
    }

    #[tokio::test(start_paused = true)]
    async fn seam_m5_a_body_that_does_not_arrive_is_given_up() {
        let never = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
        let answer = service().oneshot(request(10, never));
        let answer = tokio::time::timeout(Duration::from_hours(1), answer).await.expect("an answer").unwrap();
        assert_eq!(answer.status(), StatusCode::REQUEST_TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn seam_m5_the_bytes_of_bodies_in_flight_are_bounded() {
        let service = service();
        let read = |read: &Arc<AtomicBool>| {
            let read = Arc::clone(read);
            let never = stream::poll_fn(move |_| {
                read.store(true, Ordering::SeqCst);
                std::task::Poll::<Option<Result<Bytes, std::io::Error>>>::Pending
            });
            service.clone().oneshot(request(LARGEST, Body::from_stream(never.fuse()))).boxed()
        };
        let flags: Vec<Arc<AtomicBool>> = (0..3).map(|_| Arc::default()).collect();
        let mut requests: Vec<_> = flags.iter().map(read).collect();
        for request in &mut requests {
            assert!(request.now_or_never().is_none());
        }
        let flags: Vec<bool> = flags.iter().map(|flag| flag.load(Ordering::SeqCst)).collect();
        assert_eq!(flags, [true, true, false], "the third waits for room");
    }
}
