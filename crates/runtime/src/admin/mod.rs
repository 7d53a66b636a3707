//! The admin server: health, readiness and metrics, for probes, scrapers and people.
//!
//! | path | answer |
//! | --- | --- |
//! | `/healthz` | `ok` while the process lives; with [liveness](AdminServer::liveness) checks, their result |
//! | `/readyz` | `ok` when the process is ready; otherwise 500 and every check with its reason |
//! | `/healthz/<check>`, `/readyz/<check>` | one check |
//! | `/metrics` | all metrics, as OpenMetrics text |
//!
//! `?verbose` lists all checks even if all pass, `?exclude=<check>` leaves one out (repeat it for more).
//!
//! It promises: the server starts first and stops last, so that start and stop can be observed; a port that
//! is not available is an error before anything runs; with a [`Guard`], only users with RBAC permission read
//! metrics.
//!
//! It does not guard health: probes carry no token. Messages of checks are public and must contain no
//! secrets.
//!
//! ```no_run
//! use windlass_runtime::admin::AdminServer;
//! use windlass_runtime::manager::{Manager, Stage};
//! use windlass_runtime::serve::Listener;
//!
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let mut manager = Manager::new();
//! let admin = AdminServer::new(Listener::bind(([0, 0, 0, 0], 8080))?, manager.readiness(), manager.metrics());
//! manager.add(Stage::Admin, admin.into_runnable())?;
//! # Ok(())
//! # }
//! ```

mod guard;
mod health;

use std::fmt;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, RawQuery, Request, State};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};
use rustls::crypto::ring;

pub use self::guard::Guard;
use self::health::Page;
use crate::manager::{BoxError, Context, Readiness, Runnable};
use crate::metrics::Metrics;
use crate::serve::{Listener, Options};
use crate::webhook::Serving;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Serves health, readiness and metrics. Belongs to [`Stage::Admin`](crate::manager::Stage::Admin).
#[must_use = "add it to a manager"]
pub struct AdminServer {
    listener: Listener,
    readiness: Readiness,
    liveness: Readiness,
    metrics: Metrics,
    more: Router,
    guard: Option<Guard>,
    certificate: Option<Serving>,
    health_only: bool,
}

impl fmt::Debug for AdminServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdminServer")
            .field("address", &self.listener.address())
            .field("guarded", &self.guard.is_some())
            .field("tls", &self.certificate.is_some())
            .finish_non_exhaustive()
    }
}

impl AdminServer {
    /// Creates a server for the readiness and metrics of a manager.
    pub fn new(listener: Listener, readiness: &Readiness, metrics: &Metrics) -> Self {
        Self {
            listener,
            readiness: readiness.clone(),
            liveness: Readiness::default(),
            metrics: metrics.clone(),
            more: Router::new(),
            guard: None,
            certificate: None,
            health_only: false,
        }
    }

    /// Serves health and readiness only: metrics have a server of their own.
    pub fn health_only(self) -> Self {
        Self { health_only: true, ..self }
    }

    /// Sets the checks for `/healthz`. The kubelet restarts a process that fails it, so add only checks that
    /// a restart can repair.
    pub fn liveness(self, liveness: &Readiness) -> Self {
        Self { liveness: liveness.clone(), ..self }
    }

    /// Serves additional pages, guarded like the metrics.
    pub fn pages(self, pages: Router) -> Self {
        Self { more: self.more.merge(pages), ..self }
    }

    /// Requires RBAC permission for metrics and [pages](Self::pages). Use it with [`tls`](Self::tls): tokens
    /// must not be sent unencrypted.
    pub fn guard(self, guard: Guard) -> Self {
        Self { guard: Some(guard), ..self }
    }

    /// Serves over TLS with this certificate.
    pub fn tls(self, certificate: &Serving) -> Self {
        Self { certificate: Some(certificate.clone()), ..self }
    }

    /// Returns the runnable `admin`.
    pub fn into_runnable(self) -> Runnable {
        let server = Arc::new(self);
        Runnable::new("admin", move |context: Context| {
            let server = Arc::clone(&server);
            async move { server.run(&context).await }
        })
    }

    async fn run(&self, context: &Context) -> Result<(), BoxError> {
        let tls = self.certificate.as_ref().map(|certificate| {
            let tls = rustls::ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
                .with_safe_default_protocol_versions()?
                .with_no_client_auth()
                .with_cert_resolver(Arc::new(certificate.clone()));
            Ok::<_, rustls::Error>(Arc::new(tls))
        });
        let options = Options { tls: tls.transpose()?, connection_age: None };
        context.ready();
        Ok(self.listener.serve(self.router(), options, &context.stop).await?)
    }

    fn router(&self) -> Router {
        let health = |name: &'static str, checks: &Readiness| {
            let all = get(move |State(checks): State<Readiness>, RawQuery(query): RawQuery| async move {
                let query = query.unwrap_or_default();
                let query: Vec<_> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
                page(Page::all(name, &checks.report(), &query))
            });
            let one = get(move |State(checks): State<Readiness>, Path(check): Path<String>| async move {
                page(Page::one(&checks.report(), &check))
            });
            Router::new()
                .route(&format!("/{name}"), all.clone())
                .route(&format!("/{name}/"), all)
                .route(&format!("/{name}/{{*check}}"), one)
                .with_state(checks.clone())
        };
        let health = health("healthz", &self.liveness).merge(health("readyz", &self.readiness));
        if self.health_only {
            return health;
        }
        let metrics = self.metrics.clone();
        let metrics = get(move || async move {
            ([(CONTENT_TYPE, HeaderValue::from_static(OPEN_METRICS))], metrics.encode())
        });
        let mut guarded = self.more.clone().route("/metrics", metrics);
        if let Some(guard) = self.guard.clone() {
            // The guard is a layer of the routes: paths that are not served answer 404 without authorization.
            guarded = guarded.route_layer(from_fn(move |request: Request, next: Next| {
                let guard = guard.clone();
                async move {
                    match guard.admits(request.method(), request.uri().path(), request.headers()).await {
                        Ok(()) => next.run(request).await,
                        Err(refusal) => refusal.into_response(),
                    }
                }
            }));
        }
        health.merge(guarded)
    }
}

fn page(page: Page) -> Response {
    let code = if page.fine { StatusCode::OK } else { page.code };
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    let headers = [(CONTENT_TYPE, plain), (CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    (code, headers, page.text).into_response()
}
