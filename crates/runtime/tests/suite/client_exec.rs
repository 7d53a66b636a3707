//! Tests of commands in Pods, which KWOK runs on a control plane configured for it.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use kube::api::PostParams;
use serde_json::json;
use windlass_runtime::client::{Client, ClientOptions, Exec};
use windlass_runtime::key::ObjectKey;
use windlass_testenv::{Options, Rules, TestEnv, eventually, or_not_run};

#[tokio::test]
async fn a_command_receives_its_input_and_returns_its_output() -> Result<()> {
    let env = or_not_run!(TestEnv::private(Options { exec: true, ..Options::private() }).await);
    let namespace = env.namespace("exec").await?;
    let pods = namespace.api::<Pod>();
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "example/image:1"}]}});
    pods.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
    eventually("the pod to run", || async {
        let phase =
            pods.get("p").await.map_err(|error| error.to_string())?.status.and_then(|status| status.phase);
        if phase.as_deref() == Some("Running") { Ok(()) } else { Err(format!("{phase:?}")) }
    })
    .await?;
    let user = namespace.client_for("runner", &Rules::everything()).await?;
    let key = ObjectKey::namespaced(namespace.name(), "p");
    let proxy = env.fault_proxy().await?;
    // Directly, and through the proxy's tunnel.
    for config in [user.config(), user.config_through(&proxy.url())?] {
        let client = Client::new(config, ClientOptions::default())?;
        let speaks = Exec::new(["sh", "-c", "echo word; echo complaint >&2"]).container("c");
        // KWOK reports a pod as running before it listens for commands.
        let output = eventually("a command to run", || async {
            client.exec(&key, &speaks).await.map_err(|error| error.to_string())
        })
        .await?;
        assert_eq!(String::from_utf8_lossy(&output.stdout), "word\n");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "complaint\n");
        assert_eq!(output.code, 0);
        // Exactly five bytes: KWOK does not signal the end of the input to a command (kubectl hangs there
        // too).
        let five = Exec::new(["head", "-c", "5"]).stdin("hello");
        assert_eq!(String::from_utf8_lossy(&client.exec(&key, &five).await?.stdout), "hello");
        // A kubelet would report the exit code; KWOK reports only the failure.
        let error = client.exec(&key, &Exec::new(["sh", "-c", "exit 7"])).await.unwrap_err();
        assert!(error.to_string().contains("exit status 7"), "{error}");
        let missing = ObjectKey::namespaced(namespace.name(), "nobody");
        assert!(client.exec(&missing, &Exec::new(["true"])).await.unwrap_err().is_not_found());
    }
    Ok(())
}
