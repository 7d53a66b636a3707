//! How a container is probed.

use k8s_openapi::api::core::v1::{HTTPGetAction, Probe, TCPSocketAction};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::api::component::Served;

/// What a probe does.
#[derive(Clone, Debug)]
pub enum Check {
    /// Asks for a path.
    Http {
        /// The path.
        path: &'static str,
        /// The name of the port.
        port: &'static str,
        /// Over TLS or not.
        served: Served,
    },
    /// Opens a connection.
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

/// The three probes of a container. Until the startup probe has passed no other is made, so that nothing is killed while it
/// migrates a database.
#[derive(Clone, Debug)]
pub struct Probes {
    /// Whether it lives; also whether it has started.
    pub live: Check,
    /// Whether it can serve.
    pub ready: Check,
    /// How many times ten seconds it may take to start.
    pub patience: i32,
}

impl Probes {
    /// One check for all three, and five minutes to start.
    pub fn of(check: Check) -> Self {
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
