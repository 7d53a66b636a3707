//! The operator's process: a child of this one, with a token of its ServiceAccount.

use std::fs::{File, OpenOptions};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{Api, PostParams};
use serde_json::json;
use tokio::process::{Child, ChildStdin, Command};
use windlass_testenv::control_plane::Facts;
use windlass_testenv::within;

use crate::args;
use crate::console::Console;
use crate::failure::Failure;

/// How long the token is good for: longer than anybody looks at an example.
const TOKEN_SECONDS: i64 = 7 * 24 * 3600;

/// An operator at work. Dropped, it ends.
pub(crate) struct Running {
    child: Child,
    /// Held: the child ends when it is closed, however we end.
    _stdin: Option<ChildStdin>,
    pub(super) admin: SocketAddr,
    pub(super) log: PathBuf,
}

impl Running {
    pub(super) async fn start(
        client: &kube::Client,
        facts: &Facts,
        which: args::Example,
        account: &str,
        namespace: &str,
        webhooks: u16,
    ) -> Result<Self, Failure> {
        let kubeconfig = facts.dir.join("operator.kubeconfig");
        write_private(&kubeconfig, &kubeconfig_of(client, facts, account, namespace).await?)?;
        let log = facts.dir.join("operator.log");
        let file = File::create(&log)?;
        let admin = SocketAddr::from(([127, 0, 0, 1], free_port()?));
        let mut child = Command::new(std::env::current_exe()?)
            .arg("operate")
            .arg(which.to_string())
            .args(["--kubeconfig".as_ref(), kubeconfig.as_os_str()])
            .args(["--operator-namespace", namespace])
            .arg(format!("--metrics-bind-address={admin}"))
            .arg(format!("--webhook-bind-address=127.0.0.1:{webhooks}"))
            .args(["--webhook-name=127.0.0.1", "--log-format=text"])
            .env_remove("WATCH_NAMESPACE")
            .env_remove("KUBECONFIG")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(file)
            .kill_on_drop(true)
            .spawn()?;
        let stdin = child.stdin.take();
        Ok(Self { child, _stdin: stdin, admin, log })
    }

    /// Waits until it is ready, by its own word.
    pub(super) async fn ready(&self, console: &Console) -> Result<(), Failure> {
        within(Duration::from_mins(1), "the operator to be ready (its log says why it is not)", || async {
            self.asks("/readyz").await
        })
        .await?;
        console.line(&format!("the operator is ready (http://{}/readyz)", self.admin));
        Ok(())
    }

    async fn asks(&self, path: &str) -> Result<(), String> {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let text = |error: std::io::Error| error.to_string();
        let mut stream = tokio::net::TcpStream::connect(self.admin).await.map_err(text)?;
        let request = format!("GET {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", self.admin);
        stream.write_all(request.as_bytes()).await.map_err(text)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.map_err(text)?;
        let status = answer.lines().next().unwrap_or_default();
        if status.contains(" 200 ") { Ok(()) } else { Err(status.to_owned()) }
    }

    /// What a program that started `up` may want to know of it.
    pub(crate) fn facts(&self) -> serde_json::Value {
        json!({"pid": self.child.id(), "admin": self.admin, "log": self.log})
    }

    /// Waits until it ends by itself, which it should not.
    pub(crate) async fn ended(&mut self) -> Failure {
        let how = match self.child.wait().await {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        Failure::Running(format!("the operator has ended ({how}); its log: {}", self.log.display()))
    }

    /// Ends it: in order, if Ctrl-C reached it too.
    pub(crate) async fn stop(mut self) {
        if tokio::time::timeout(Duration::from_secs(2), self.child.wait()).await.is_err() {
            let _ = self.child.kill().await;
        }
    }
}

/// A port that nobody listens at.
pub(super) fn free_port() -> Result<u16, Failure> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// A kubeconfig with a token of the operator's account, and nothing else.
async fn kubeconfig_of(
    client: &kube::Client,
    facts: &Facts,
    account: &str,
    namespace: &str,
) -> Result<String, Failure> {
    let request = TokenRequest {
        spec: Some(TokenRequestSpec {
            expiration_seconds: Some(TOKEN_SECONDS),
            ..TokenRequestSpec::default()
        }),
        ..TokenRequest::default()
    };
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    let answer = accounts
        .create_token_request(account, &PostParams::default(), &request)
        .await
        .map_err(|error| Failure::Running(format!("ServiceAccount {account} gets no token: {error}")))?;
    let token = answer.status.map(|status| status.token);
    Ok(json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "operator",
        "clusters": [{"name": "up", "cluster": {"server": facts.server, "certificate-authority": facts.pki.join("ca.crt")}}],
        "users": [{"name": account, "user": {"token": token}}],
        "contexts": [{"name": "operator", "context": {"cluster": "up", "user": account}}],
    })
    .to_string())
}

fn write_private(path: &std::path::Path, text: &str) -> Result<(), Failure> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    std::io::Write::write_all(&mut file, text.as_bytes())?;
    Ok(())
}
