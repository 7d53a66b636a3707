//! The operator's process: a child process, with a token of its ServiceAccount.

use std::fs::{File, OpenOptions};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{Api, PostParams};
use serde_json::json;
use tokio::process::{Child, ChildStdin, Command};
use windlass_testenv::{HeldPort, within};

use crate::args;
use crate::cluster::Cluster;
use crate::console::Console;
use crate::failure::Failure;

/// Lifetime of the token: longer than an example is used.
const TOKEN_SECONDS: i64 = 7 * 24 * 3600;

/// A running operator. It ends when this is dropped.
pub(crate) struct Running {
    child: Child,
    /// Held open: the child ends when it is closed, however this process ends.
    _stdin: Option<ChildStdin>,
    /// Held: no other process can take the ports while the child starts.
    _ports: [HeldPort; 2],
    pub(super) admin: SocketAddr,
    pub(super) log: PathBuf,
    kubeconfig: PathBuf,
}

impl Running {
    pub(super) async fn start(
        cluster: &Cluster,
        which: args::Example,
        account: &str,
        namespace: &str,
        webhooks: HeldPort,
    ) -> Result<Self, Failure> {
        // Several of them may run on other clusters, and their files are in one directory.
        let name = if cluster.is_foreign {
            format!("operator-{}", std::process::id())
        } else {
            "operator".to_owned()
        };
        let kubeconfig = cluster.dir.join(format!("{name}.kubeconfig"));
        write_private(&kubeconfig, &kubeconfig_of(cluster, account, namespace).await?)?;
        let log = cluster.dir.join(format!("{name}.log"));
        let file = File::create(&log)?;
        let admin = HeldPort::any()?;
        let mut child = Command::new(std::env::current_exe()?)
            .arg("operate")
            .arg(which.to_string())
            .args(["--kubeconfig".as_ref(), kubeconfig.as_os_str()])
            .args(["--operator-namespace", namespace])
            .arg(format!("--metrics-bind-address={}", admin.address()))
            .arg(format!("--webhook-bind-address={}", webhooks.address()))
            .args(["--webhook-name=127.0.0.1", "--log-format=text"])
            .env_remove("WATCH_NAMESPACE")
            .env_remove("KUBECONFIG")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(file)
            .kill_on_drop(true)
            .spawn()?;
        let stdin = child.stdin.take();
        let address = admin.address();
        Ok(Self { child, _stdin: stdin, _ports: [admin, webhooks], admin: address, log, kubeconfig })
    }

    /// Waits until the operator reports that it is ready, or has exited.
    pub(super) async fn ready(&mut self, console: &Console) -> Result<(), Failure> {
        let admin = self.admin;
        let ready = within(Duration::from_mins(1), "the operator to be ready", || is_ready(admin));
        let late = tokio::select! {
            ready = ready => ready.err(),
            failure = self.ended() => return Err(failure),
        };
        if let Some(late) = late {
            return Err(Failure::Running(format!("{late}{}", last_words(&self.log))));
        }
        console.line(&format!("the operator is ready (http://{admin}/readyz)"));
        Ok(())
    }

    /// Returns the pid, address and log of the operator for `--output json`.
    pub(crate) fn facts(&self) -> serde_json::Value {
        json!({"pid": self.child.id(), "admin": self.admin, "log": self.log})
    }

    /// Waits until the operator exits by itself, which is a failure.
    pub(crate) async fn ended(&mut self) -> Failure {
        let how = match self.child.wait().await {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        Failure::Running(format!("the operator exited ({how}){}", last_words(&self.log)))
    }

    /// Stops the operator: gracefully, if Ctrl-C reached it too.
    pub(crate) async fn stop(mut self) {
        if tokio::time::timeout(Duration::from_secs(2), self.child.wait()).await.is_err() {
            let _ = self.child.kill().await;
        }
        // A token is in it.
        let _ = std::fs::remove_file(&self.kubeconfig);
    }
}

async fn is_ready(admin: SocketAddr) -> Result<(), String> {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let text = |error: std::io::Error| error.to_string();
    let mut stream = tokio::net::TcpStream::connect(admin).await.map_err(text)?;
    let request = format!("GET /readyz HTTP/1.1\r\nhost: {admin}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.map_err(text)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.map_err(text)?;
    let status = answer.lines().next().unwrap_or_default();
    if status.contains(" 200 ") { Ok(()) } else { Err(status.to_owned()) }
}

/// Returns the last lines of the log. The file is deleted with the control plane, so the message must contain
/// them.
fn last_words(log: &Path) -> String {
    const LINES: usize = 10;
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    match lines.get(lines.len().saturating_sub(LINES)..) {
        Some(last) if !last.is_empty() => format!("; its log ends with:\n{}", last.join("\n")),
        _ => "; its log is empty".to_owned(),
    }
}

/// Returns a kubeconfig with a token of the operator's ServiceAccount.
async fn kubeconfig_of(cluster: &Cluster, account: &str, namespace: &str) -> Result<String, Failure> {
    let request = TokenRequest {
        spec: Some(TokenRequestSpec {
            expiration_seconds: Some(TOKEN_SECONDS),
            ..TokenRequestSpec::default()
        }),
        ..TokenRequest::default()
    };
    let accounts: Api<ServiceAccount> = Api::namespaced(cluster.client.clone(), namespace);
    let answer =
        accounts.create_token_request(account, &PostParams::default(), &request).await.map_err(|error| {
            Failure::Running(format!("cannot get a token for ServiceAccount {account}: {error}"))
        })?;
    let token = answer.status.map(|status| status.token);
    Ok(json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "operator",
        "clusters": [{"name": "up", "cluster": cluster.entry}],
        "users": [{"name": account, "user": {"token": token}}],
        "contexts": [{"name": "operator", "context": {"cluster": "up", "user": account}}],
    })
    .to_string())
}

fn write_private(path: &Path, text: &str) -> Result<(), Failure> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    std::io::Write::write_all(&mut file, text.as_bytes())?;
    Ok(())
}
