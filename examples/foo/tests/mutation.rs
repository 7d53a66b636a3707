//! Every property of a Foo is mutated: all cases, since there are few.
#![allow(clippy::disallowed_names)] // here, foo is a name: that of a kind

use std::path::Path;

use anyhow::{Context as _, Result};
use k8s_openapi::api::apps::v1::Deployment;
use serde_json::{Value, json};
use windlass_operator::Settings;
use windlass_runtime::manager::Stop;
use windlass_testenv::mutation::{Mutation, OwnerReport};
use windlass_testenv::torture::{Kind, OperatorRun};
use windlass_testenv::{TestEnv, or_not_run};

/// The text of a file in the directory beside this one.
fn read(name: &str) -> Result<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mutation").join(name);
    std::fs::read_to_string(&path).with_context(|| path.display().to_string())
}

/// Reads the state of a Foo. Its status has a number and no conditions.
fn report(foo: &Value) -> OwnerReport {
    let available = foo["status"]["availableReplicas"].as_i64();
    let wanted = foo["spec"]["replicas"].as_i64();
    let ready = available.is_some() && wanted.is_none_or(|wanted| available == Some(wanted));
    OwnerReport { current: available.is_some(), ready, ..OwnerReport::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_property_of_a_foo_is_mutated() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let operator = foo::operator();
    env.install_crds(operator.definitions()).await?;
    let base = json!({"metadata": {"name": "web"}, "spec": {"deploymentName": "web", "replicas": 2}});
    let start = |run: OperatorRun| async move {
        let settings = Settings::default().in_namespaces([run.namespace()]);
        let process = foo::operator().assemble(run.config(), &settings)?;
        let (_stopper, stop) = Stop::pair();
        process.run_until(stop).await?;
        anyhow::Ok(())
    };
    let mutation = Mutation::new("foo", &operator.definitions()[0], base, start)
        .exceptions(read("exceptions.txt")?)
        .watch(Kind::of::<Deployment>())
        .report(report)
        .lanes(3);
    let report = or_not_run!(mutation.run(&env).await);
    println!("{report}");
    report.assert_passed();
    Ok(())
}
