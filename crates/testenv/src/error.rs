//! Errors of this crate, each with its remedy.

use std::path::PathBuf;

/// The result of most functions of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of the test environment. Its text names what is missing and the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is nowhere to keep the built control plane.
    #[error(
        "no cache directory: neither XDG_CACHE_HOME nor HOME is set; set one of them to a writable directory"
    )]
    NoCacheDirectory,

    /// `go` is not to be found.
    #[error(
        "the control plane is built from Go modules, and no `go` command was found in PATH; \
         install Go {needed} or newer (https://go.dev/dl), or point KUBEBUILDER_ASSETS at a directory with \
         etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok and kubectl"
    )]
    GoMissing {
        /// The oldest Go that will do.
        needed: String,
    },

    /// `go` is there, but too old.
    #[error(
        "Go {found} is too old to build the control plane: install Go {needed} or newer (https://go.dev/dl)"
    )]
    GoTooOld {
        /// The version that `go` reported.
        found: String,
        /// The oldest Go that will do.
        needed: String,
    },

    /// Modules could not be downloaded.
    #[error(
        "the Go modules of the control plane could not be downloaded; check the network and GOPROXY \
         (`go env GOPROXY`), then run `windlass testenv build`\n{output}"
    )]
    Download {
        /// The end of what `go` printed.
        output: String,
    },

    /// The disk is full.
    #[error(
        "no space left while building in {}: the first build needs about 4 GB there and in Go's own cache \
         (`go env GOCACHE`); free some, or set XDG_CACHE_HOME and GOCACHE to another disk",
        path.display()
    )]
    DiskFull {
        /// The directory whose file system is full.
        path: PathBuf,
    },

    /// `go build` failed.
    #[error("building the control plane failed; repeat it with `windlass testenv build`\n{output}")]
    BuildFailed {
        /// The end of what `go` printed.
        output: String,
    },

    /// The control plane did not come up, or broke down later.
    #[error("the control plane did not start: {0}")]
    Start(String),

    /// The supervisor refused a request.
    #[error("the control plane's supervisor says: {0}")]
    Refused(String),

    /// The control plane ended while it was in use.
    #[error("the control plane is gone: {0}")]
    Lost(String),

    /// envtest's variable by itself does not say which cluster.
    #[error(
        "USE_EXISTING_CLUSTER=true does not say which cluster, and tests must not run against whatever the current \
         context is; name it: WINDLASS_TEST_CONTEXT=<context> (see `kubectl config get-contexts`)"
    )]
    UnnamedCluster,

    /// The named context cannot be used.
    #[error("context {context:?} cannot be used: {reason}")]
    Context {
        /// The name that was given.
        context: String,
        /// The reason why the context cannot be used.
        reason: String,
    },

    /// The test needs something that this environment does not have.
    #[error("not run: it needs {needs}, and {has}")]
    NotRun {
        /// The feature that the test needs.
        needs: String,
        /// The reason why it is not available.
        has: String,
    },

    /// A custom resource definition that others use too would change under them.
    #[error(
        "CustomResourceDefinition {name} is already installed with another content, and the shared control plane \
         is used by other tests: take `TestEnv::private`, or another group or kind"
    )]
    CrdDiffers {
        /// The name of the definition.
        name: String,
    },

    /// A condition did not come true in time.
    #[error("timed out after {seconds} s waiting for {what}; last seen: {last}")]
    TimedOut {
        /// The condition that was waited for.
        what: String,
        /// The time that was waited.
        seconds: u64,
        /// The state at the last look.
        last: String,
    },

    /// The path of the run directory is too long for the sockets in it.
    #[error(
        "the run directory {} is too long: it has sockets, whose paths are limited, and may have {longest} \
         characters; choose a shorter one with WINDLASS_RUN_DIR",
        path.display()
    )]
    LongRunDirectory {
        /// The path of the directory.
        path: PathBuf,
        /// The number of characters that it may have.
        longest: usize,
    },

    /// The directory of an instance is not one that we have created.
    #[error(
        "{} is not used for a control plane, which would delete everything in it: {reason}; remove it, or choose \
         another run directory with WINDLASS_RUN_DIR",
        path.display()
    )]
    ForeignDirectory {
        /// The path of the directory.
        path: PathBuf,
        /// The reason why it is not ours.
        reason: String,
    },

    /// A file or directory could not be used.
    #[error("{}: {source}", path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },

    /// The Kubernetes API refused a call that sets up a test.
    #[error("{action}: {message}")]
    Api {
        /// The operation that was tried.
        action: String,
        /// The answer of the API server.
        message: String,
    },

    /// An operator under test did not start, or did not end well.
    #[error("the operator ended with an error: {0}")]
    Operator(String),

    /// An operator under test was refused requests for lack of rights.
    #[error("the operator lacks a right: {0}")]
    MissingRight(String),

    /// Objects were not written in the expected order.
    #[error("{0}")]
    Order(String),

    /// A manifest cannot be read, or lacks something.
    #[error("a manifest: {0}")]
    Manifest(String),

    /// The fault proxy could not start.
    #[error(transparent)]
    Proxy(#[from] crate::proxy::ProxyError),
}

impl Error {
    /// Wraps an error of the file system with the path it happened at.
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| match source.kind() {
            std::io::ErrorKind::StorageFull => Self::DiskFull { path },
            _ => Self::File { path, source },
        }
    }

    /// Wraps an error of the API. `kube::Error` would print the whole status.
    pub(crate) fn api(action: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let action = action.into();
        move |error| Self::Api {
            action,
            message: match error {
                kube::Error::Api(status) => format!("{} ({})", status.message, status.code),
                other => other.to_string(),
            },
        }
    }

    /// Returns true if the test should be reported as not run, rather than as failed.
    pub fn is_not_run(&self) -> bool {
        matches!(self, Self::NotRun { .. })
    }
}
