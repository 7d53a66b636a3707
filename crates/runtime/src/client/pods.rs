//! Operations that only Pods have: eviction and exec.

use std::time::Duration;

use bytes::Bytes;
use futures::future::{join3, try_join};
use http::Method;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, AttachParams};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

use super::call::{Call, root_cause};
use super::options::Delete;
use super::query::encode;
use super::retry::Repeat;
use super::{Client, ClientError, Failure, Operation};
use crate::fence::Fenced;
use crate::key::ObjectKey;
use crate::meta::Uid;
use crate::resource::ResourceType;

/// Options of an eviction.
#[derive(Debug, Clone, Default)]
pub struct Evict {
    uid: Option<Uid>,
    grace: Option<Duration>,
}

impl Evict {
    /// Evicts whatever Pod has that name.
    pub fn any() -> Self {
        Self::default()
    }

    /// Evicts only the Pod with this uid.
    pub fn incarnation(uid: Uid) -> Self {
        Self { uid: Some(uid), grace: None }
    }

    /// Sets the grace period, in whole seconds.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = Some(grace);
        self
    }
}

/// A command to run in a Pod.
#[derive(Debug, Clone)]
pub struct Exec {
    command: Vec<String>,
    container: Option<String>,
    stdin: Option<Bytes>,
    deadline: Option<Duration>,
}

impl Exec {
    /// Creates a command from a program and its arguments; no shell is involved.
    pub fn new(command: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            command: command.into_iter().map(Into::into).collect(),
            container: None,
            stdin: None,
            deadline: None,
        }
    }

    /// Runs the command in this container; the default is the Pod's first.
    #[must_use]
    pub fn container(mut self, name: impl Into<String>) -> Self {
        self.container = Some(name.into());
        self
    }

    /// Sets the standard input.
    #[must_use]
    pub fn stdin(mut self, input: impl Into<Bytes>) -> Self {
        self.stdin = Some(input.into());
        self
    }

    /// Sets the deadline of the command; the default is that of any call.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }
}

/// The result of a command.
#[derive(Clone, PartialEq, Eq)]
pub struct ExecOutput {
    /// The standard output.
    pub stdout: Vec<u8>,
    /// The standard error output.
    pub stderr: Vec<u8>,
    /// The exit code; 0 is success.
    pub code: i32,
}

// The output of commands may contain passwords.
impl std::fmt::Debug for ExecOutput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExecOutput")
            .field("stdout_bytes", &self.stdout.len())
            .field("stderr_bytes", &self.stderr.len())
            .field("code", &self.code)
            .finish()
    }
}

impl Client {
    /// Evicts a Pod: deletes it if its disruption budgets allow that. If they do not, the error is
    /// [`Throttled`](Failure::Throttled), and the caller decides when to retry.
    pub async fn evict(&self, key: &ObjectKey, evict: &Evict) -> Result<(), ClientError> {
        let resource = ResourceType::of::<Pod>();
        let mut options = evict.uid.map_or_else(Delete::any, Delete::incarnation);
        if let Some(grace) = evict.grace {
            options = options.grace(grace);
        }
        let body = json!({
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": key.name(), "namespace": key.namespace()},
            "deleteOptions": options.body(),
        });
        let call = Call {
            operation: Operation { verb: "evict", resource: resource.clone(), key: Some(key.clone()) },
            method: Method::POST,
            target: format!("{}/{}/eviction", resource.path(key.namespace()), encode(key.name())),
            content_type: Some("application/json"),
            body: body.to_string().into(),
            repeat: Repeat::Never,
        };
        self.call(&call).await?;
        self.refresh_caches(&resource, key, evict.uid).await;
        Ok(())
    }

    /// Runs a command in a Pod and waits for its end. A command that fails is not an error here: check
    /// [`code`](ExecOutput::code).
    ///
    /// Cancelling closes the connection; the command may continue to run.
    pub async fn exec(&self, key: &ObjectKey, exec: &Exec) -> Result<ExecOutput, ClientError> {
        let operation =
            Operation { verb: "exec in", resource: ResourceType::of::<Pod>(), key: Some(key.clone()) };
        let deadline = exec.deadline.unwrap_or(self.options().deadline);
        if let Ok(output) = tokio::time::timeout(deadline, self.run(key, exec, &operation)).await {
            return output;
        }
        self.stats().timed_out();
        let within = format!("within {} s", deadline.as_secs_f32());
        Err(ClientError::new(operation, Failure::Timeout, within))
    }

    async fn run(
        &self,
        key: &ObjectKey,
        exec: &Exec,
        operation: &Operation,
    ) -> Result<ExecOutput, ClientError> {
        let broke = |message: String| ClientError::new(operation.clone(), Failure::Unavailable, message);
        let pods: Api<Pod> = Api::namespaced(self.kube().clone(), key.namespace().unwrap_or_default());
        let mut params =
            AttachParams::default().stdin(exec.stdin.is_some()).stdout(true).stderr(true).tty(false);
        if let Some(container) = &exec.container {
            params = params.container(container);
        }
        if let Some(fence) = self.fence() {
            let fenced =
                |error: Fenced| ClientError::new(operation.clone(), Failure::Fenced, error.to_string());
            fence.check().map_err(fenced)?;
        }
        let mut process =
            pods.exec(key.name(), &exec.command, &params).await.map_err(|error| match error {
                kube::Error::Api(status) => {
                    let failure = Failure::classify(status.code, Some(&status), None);
                    ClientError::new(operation.clone(), failure, status.message)
                }
                error => broke(root_cause(&error)),
            })?;
        let status = process.take_status();
        let stdin = process.stdin();
        let (stdout, stderr) = (process.stdout(), process.stderr());
        let feed = async {
            if let (Some(mut stdin), Some(input)) = (stdin, &exec.stdin) {
                // A command may end without reading all of its input.
                let _ = stdin.write_all(input).await;
                let _ = stdin.shutdown().await;
            }
        };
        let read = try_join(read_all(stdout), read_all(stderr));
        let ended = async {
            match status {
                Some(status) => status.await,
                None => None,
            }
        };
        let ((), output, status) = join3(feed, read, ended).await;
        let (stdout, stderr) = output.map_err(|error| broke(root_cause(&error)))?;
        process.join().await.map_err(|error| broke(root_cause(&error)))?;
        let code = exit_code(status.as_ref()).map_err(broke)?;
        Ok(ExecOutput { stdout, stderr, code })
    }
}

async fn read_all(stream: Option<impl AsyncRead + Unpin>) -> std::io::Result<Vec<u8>> {
    let mut read = Vec::new();
    if let Some(mut stream) = stream {
        stream.read_to_end(&mut read).await?;
    }
    Ok(read)
}

/// Returns the exit code, which the server reports as a cause of a failure. A failure without that cause is
/// not the command's.
fn exit_code(status: Option<&k8s_openapi::apimachinery::pkg::apis::meta::v1::Status>) -> Result<i32, String> {
    let Some(status) = status else {
        return Err("the connection ended before the command did".to_owned());
    };
    if status.status.as_deref() == Some("Success") {
        return Ok(0);
    }
    let causes = status.details.as_ref().and_then(|details| details.causes.as_ref());
    causes
        .into_iter()
        .flatten()
        .find(|cause| cause.reason.as_deref() == Some("ExitCode"))
        .and_then(|cause| cause.message.as_deref()?.parse().ok())
        .ok_or_else(|| status.message.clone().unwrap_or_else(|| "the command could not be run".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_is_found_in_the_status() {
        let code = |text: &str| exit_code(Some(&serde_json::from_str(text).unwrap()));
        assert_eq!(code(r#"{"status":"Success"}"#), Ok(0));
        assert_eq!(
            code(r#"{"status":"Failure","details":{"causes":[{"reason":"ExitCode","message":"3"}]}}"#),
            Ok(3)
        );
        assert_eq!(
            code(r#"{"status":"Failure","message":"no such container"}"#),
            Err("no such container".to_owned())
        );
        assert!(exit_code(None).is_err());
    }

    #[test]
    fn debug_output_of_a_command_holds_none_of_its_output() {
        let output = ExecOutput { stdout: b"hunter2".to_vec(), stderr: vec![], code: 0 };
        assert!(!format!("{output:?}").contains("hunter2"));
    }
}
