//! The parts of a control plane, and what can be done to one of them.

/// A part of the control plane that can be stopped on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Component {
    /// etcd, the store.
    Etcd,
    /// The API server.
    ApiServer,
    /// Deployments, garbage collection, namespaces, and so on.
    ControllerManager,
    /// Puts pods on nodes.
    Scheduler,
    /// Plays the nodes and pods.
    Kwok,
}

impl Component {
    /// The name of the component's program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Kwok => "kwok",
        }
    }
}

/// An action on a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Kill the component.
    Stop,
    /// Start it again, and wait until it answers.
    Start,
    /// Kill the component and start it again.
    Restart,
    /// Freeze it where it is.
    Pause,
    /// Let it go on.
    Continue,
}

impl Action {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Start => "start",
            Self::Restart => "restart",
            Self::Pause => "pause",
            Self::Continue => "continue",
        }
    }
}
