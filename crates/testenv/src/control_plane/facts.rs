//! The facts and the state that a supervisor reports of its instance.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The facts of a running control plane, as its supervisor reports them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Facts {
    /// The instance's name.
    pub name: String,
    /// The instance's directory, removed at the end.
    pub dir: PathBuf,
    /// The API server's address.
    pub server: String,
    /// etcd's address. It accepts clients with a certificate of an authority of its own, in `pki/etcd`.
    #[serde(default)]
    pub etcd: String,
    /// A kubeconfig with all rights.
    pub kubeconfig: PathBuf,
    /// Certificates and keys of this instance.
    pub pki: PathBuf,
    /// The API server's audit log.
    pub audit_log: PathBuf,
    /// The components' binaries.
    pub bin: PathBuf,
    /// The API server's version.
    pub version: String,
    /// The supervisor's process.
    pub pid: u32,
}

/// The state of an instance, as its supervisor reports it.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[non_exhaustive]
pub struct Status {
    /// The facts of the instance.
    pub facts: Facts,
    /// The number of users that are connected now.
    #[serde(default)]
    pub users: u32,
    /// True if the instance stays without users (`windlass up --detach`).
    #[serde(default)]
    pub keep: bool,
    /// True if the control plane is up.
    #[serde(default)]
    pub ready: bool,
    /// Seconds since its start.
    #[serde(default)]
    pub seconds: u64,
    /// The components' processes.
    #[serde(default)]
    pub pids: BTreeMap<String, u32>,
}
