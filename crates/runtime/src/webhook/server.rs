//! The webhook server: HTTPS around the webhooks.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use axum::routing::post;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use rustls::crypto::ring;
use serde_json::Value;

use super::certificates::Serving;
use super::denial::Denial;
use super::hooks::{Hook, Webhooks};
use super::metrics::{CertificateEnd, HookMetrics, WebhookMetrics};
use crate::manager::{BoxError, Context, Part};
use crate::metrics::Metrics;
use crate::serve::{Listener, Options};

/// The largest body that is read: what the API server can send (two objects of 3 MiB, and the review around them).
const LARGEST: usize = 7 * 1024 * 1024;

/// Serves webhooks over HTTPS, HTTP/2 or HTTP/1.1.
///
/// As a [part](Self::into_part) of a manager it belongs to [`Stage::Webhooks`](crate::manager::Stage::Webhooks), beside
/// what keeps its certificate.
#[must_use = "make it a part of a manager"]
pub struct WebhookServer {
    listener: Listener,
    router: Router,
    certificate: Serving,
    connection_age: Duration,
}

impl fmt::Debug for WebhookServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookServer").field("address", &self.listener.address()).finish_non_exhaustive()
    }
}

impl WebhookServer {
    /// A server of these webhooks at a port of ours, with a certificate that somebody keeps.
    pub fn new(listener: Listener, webhooks: Webhooks, certificate: &Serving, metrics: &Metrics) -> Self {
        metrics.register(CertificateEnd(certificate.clone()));
        let router = router(webhooks, metrics);
        Self { listener, router, certificate: certificate.clone(), connection_age: Duration::from_mins(5) }
    }

    /// How long a connection lives, other than 5 minutes. API servers keep one for ever if they are let: all would stay with
    /// one replica.
    pub fn connection_age(self, connection_age: Duration) -> Self {
        Self { connection_age, ..self }
    }

    /// The part `webhooks`: up when it has a certificate and listens.
    pub fn into_part(self) -> Part {
        let server = Arc::new(self);
        Part::new("webhooks", move |context: Context| {
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
        tracing::info!(address = %self.listener.address(), "webhooks are served");
        // The port is ours since the listener was made: who connects from here on is answered.
        context.ready();
        let options = Options { tls: Some(Arc::new(tls)), connection_age: Some(self.connection_age) };
        Ok(self.listener.serve(self.router.clone(), options, &context.stop).await?)
    }
}

fn router(webhooks: Webhooks, metrics: &Metrics) -> Router {
    let metrics = WebhookMetrics::register(metrics);
    let mut router = Router::new();
    for (path, hook) in webhooks.into_answers() {
        let metrics = metrics.of(&path);
        let answer = move |request: Request| {
            let (hook, metrics) = (hook.clone(), metrics.clone());
            async move { answer(&hook, &metrics, request).await }
        };
        router = router.route(&path, post(answer));
    }
    router
}

async fn answer(hook: &Hook, metrics: &HookMetrics, request: Request) -> Response {
    let in_flight = metrics.begin();
    let (head, body) = request.into_parts();
    let body = match expect_json(&head.headers) {
        Ok(()) => read(body).await,
        Err(denial) => Err(denial),
    };
    let (code, answer) = hook.answer(body, metrics).await;
    in_flight.end(code);
    respond(code, &answer)
}

fn expect_json(headers: &HeaderMap) -> Result<(), Denial> {
    let given = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media = given.split(';').next().unwrap_or_default().trim();
    if media.eq_ignore_ascii_case("application/json") {
        Ok(())
    } else {
        Err(Denial::content_type(format!("content type {given:?} is not understood; send application/json")))
    }
}

async fn read(body: Body) -> Result<Bytes, Denial> {
    match Limited::new(body, LARGEST).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            Err(Denial::too_large(format!("the request body has more than {LARGEST} bytes")))
        }
        Err(error) => Err(Denial::bad_request(format!("the request body cannot be read: {error}"))),
    }
}

fn respond(code: u16, answer: &Value) -> Response {
    let mut response = Response::new(Body::from(answer.to_string()));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
