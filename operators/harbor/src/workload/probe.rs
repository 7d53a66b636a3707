//! Probes of a container.

use k8s_openapi::api::core::v1::{HTTPGetAction, Probe, TCPSocketAction};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::api::component::Served;

/// The handler of a probe.
#[derive(Clone, Debug)]
pub(crate) enum Check {
    /// An HTTP GET request.
    Http {
        /// The path of the request.
        path: &'static str,
        /// The name of the port.
        port: &'static str,
        /// HTTP or HTTPS.
        served: Served,
    },
    /// A TCP connection.
    Tcp {
        /// The name of the port.
        port: &'static str,
    },
}

impl Check {
    fn probe(&self) -> Probe {
        match self {
            Self::Http { path, port, served } => Probe {
                http_get: Some(HTTPGetAction {
                    path: Some((*path).to_owned()),
                    port: IntOrString::String((*port).to_owned()),
                    scheme: Some(served.scheme().to_uppercase()),
                    ..HTTPGetAction::default()
                }),
                ..Probe::default()
            },
            Self::Tcp { port } => Probe {
                tcp_socket: Some(TCPSocketAction {
                    port: IntOrString::String((*port).to_owned()),
                    host: None,
                }),
                ..Probe::default()
            },
        }
    }
}

/// The three probes of a container. The startup probe runs first, so that no container is killed while it
/// migrates a database.
#[derive(Clone, Debug)]
pub(crate) struct Probes {
    /// Handler of the liveness and startup probes.
    pub live: Check,
    /// Handler of the readiness probe.
    pub ready: Check,
    /// Failure threshold of the startup probe, which runs every ten seconds.
    pub patience: i32,
}

impl Probes {
    /// Returns probes with the same handler and five minutes for the start.
    pub(crate) fn of(check: Check) -> Self {
        Self { live: check.clone(), ready: check, patience: 30 }
    }

    pub(super) fn startup(&self) -> Probe {
        timed(self.live.probe(), self.patience)
    }

    pub(super) fn liveness(&self) -> Probe {
        timed(self.live.probe(), 3)
    }

    pub(super) fn readiness(&self) -> Probe {
        timed(self.ready.probe(), 2)
    }
}

fn timed(probe: Probe, failures: i32) -> Probe {
    Probe { period_seconds: Some(10), timeout_seconds: Some(5), failure_threshold: Some(failures), ..probe }
}
