//! The ways out: an installation is removed in every order, nothing hangs, and data stays.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, Result};
use harbor_operator::api::{Harbor, HarborCluster};
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{Namespace, PersistentVolumeClaim, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass_operator::manifests::{Install, Manifests};
use windlass_testenv::world::Program;
use windlass_testenv::{Options, TestEnv, eventually, or_not_run};

use crate::deploy::{HOME, Installation, installation, make_namespace, manifests};
use crate::samples::built_in;
use crate::world::furnish;

const CLAIMS: [&str; 3] = ["sample-database", "sample-redis", "sample-registry"];
const KEYS: [&str; 3] =
    ["sample-database-password", "sample-redis", "sample-harbor-harbor-core-encryptionkey"];
/// The finalizer that former versions of the operator set.
const FORMER: &str = "windlass.dev/teardown";

/// A cluster in which the operator comes and goes.
struct Scene<'a> {
    env: &'a TestEnv,
    home: &'a str,
    team: &'a str,
    install: Install,
}

impl Scene<'_> {
    fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.env.client(), self.team)
    }

    fn manifests(&self) -> Result<Manifests> {
        manifests(&self.install)
    }

    /// Installs the operator, and brings a HarborCluster up with it.
    async fn begin(&self) -> Result<Program> {
        let client = self.env.client();
        // What an earlier round has made of the conversion would stand beside what is applied.
        let definitions = Api::<CustomResourceDefinition>::all(client.clone());
        let without = Patch::Merge(json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}}));
        let _ = definitions.patch("harbors.goharbor.io", &PatchParams::default(), &without).await;
        let installed = Installation::apply(self.env, self.home, &self.manifests()?).await?;
        let program = installed.start(&[]).await?;
        if Api::<Namespace>::all(client.clone()).get_opt(self.team).await?.is_none() {
            make_namespace(&client, self.team).await?;
        }
        if self.api::<Secret>().get_opt("admin").await?.is_none() {
            furnish(&client, self.team).await?;
        }
        let sample: HarborCluster = serde_json::from_value(built_in())?;
        let clusters = self.api::<HarborCluster>();
        eventually("the webhooks to be reached", || async {
            clusters.create(&PostParams::default(), &sample).await.map_err(|error| error.to_string())
        })
        .await?;
        eventually("the HarborCluster to be healthy", || async {
            let found = clusters.get("sample").await.map_err(|error| error.to_string())?;
            let status = json!(found.status);
            if status["status"] == "healthy" { Ok(()) } else { Err(status.to_string()) }
        })
        .await?;
        Ok(program)
    }

    /// Runs a command of the program against the cluster.
    fn run(&self, args: &[&str]) -> Result<String> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_harbor-operator"));
        command.args(args).args(["--namespace", self.home, "--kubeconfig"]).arg(self.env.kubeconfig()?);
        succeeded(command.output()?)
    }

    /// Deletes everything that the manifests hold, as `kubectl delete` does.
    fn kubectl_delete(&self) -> Result<String> {
        use std::io::Write as _;
        let kubectl = self.env.facts("kubectl")?.bin.join("kubectl");
        let mut command = Command::new(kubectl);
        command.args(["delete", "--ignore-not-found", "--timeout=60s", "-f", "-", "--kubeconfig"]);
        command.arg(self.env.kubeconfig()?);
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = piped?;
        child.stdin.take().context("no standard input")?.write_all(self.manifests()?.stream().as_bytes())?;
        succeeded(child.wait_with_output()?)
    }

    /// The uids of all volumes and keys.
    async fn data(&self) -> Result<Vec<String>> {
        let mut uids = Vec::new();
        for name in CLAIMS {
            uids.push(self.api::<PersistentVolumeClaim>().get(name).await?.uid().unwrap_or_default());
        }
        for name in KEYS {
            uids.push(self.api::<Secret>().get(name).await?.uid().unwrap_or_default());
        }
        Ok(uids)
    }

    /// Waits until no workload of the HarborCluster is left.
    async fn stopped(&self) -> Result<()> {
        none_left::<StatefulSet>(&self.api()).await?;
        none_left::<Deployment>(&self.api()).await
    }

    /// Returns the objects of the manifests that exist, apart from those of these kinds.
    async fn left(&self, kept: &[&str]) -> Result<Vec<String>> {
        let mut left = Vec::new();
        for document in self.manifests()?.stream().split("---\n") {
            let object: Value = serde_saphyr::from_str(document)?;
            let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let (kind, meta) = (word(&object["kind"]), &object["metadata"]);
            if kept.contains(&&*kind) {
                continue;
            }
            let kind_of = kube::core::GroupVersionKind::try_from(kube::core::TypeMeta {
                api_version: word(&object["apiVersion"]),
                kind: kind.clone(),
            })?;
            let resource = kube::api::ApiResource::from_gvk(&kind_of);
            let name = word(&meta["name"]);
            let api: Api<kube::api::DynamicObject> = match meta["namespace"].as_str() {
                Some(namespace) => Api::namespaced_with(self.env.client(), namespace, &resource),
                None => Api::all_with(self.env.client(), &resource),
            };
            if api.get_opt(&name).await?.is_some() {
                left.push(format!("{kind} {name}"));
            }
        }
        Ok(left)
    }
}

fn succeeded(Output { status, stdout, stderr }: Output) -> Result<String> {
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    anyhow::ensure!(status.success(), "{status}: {stdout}{stderr}");
    Ok(stdout.into_owned())
}

async fn none_left<K>(api: &Api<K>) -> Result<()>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    eventually(format!("no {} to be left", K::kind(&())), || async {
        let found = api.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        let names: Vec<String> = found.iter().map(ResourceExt::name_any).collect();
        // The operator's own Deployment may be in the same namespace.
        if names.iter().all(|name| name == "harbor-operator") { Ok(()) } else { Err(format!("{names:?}")) }
    })
    .await?;
    Ok(())
}

async fn gone<K>(api: &Api<K>, name: &str) -> Result<()>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    eventually(format!("{} {name} to be gone", K::kind(&())), || async {
        match api.get_opt(name).await {
            Ok(None) => Ok(()),
            Ok(Some(found)) => Err(format!("{:?}", found.meta())),
            Err(error) => Err(error.to_string()),
        }
    })
    .await?;
    Ok(())
}

/// The operator is uninstalled first, and the HarborCluster deleted when there is none.
async fn the_operator_first(scene: &Scene<'_>) -> Result<()> {
    let program = Box::pin(scene.begin()).await?;
    let clusters = scene.api::<HarborCluster>();
    let held = Patch::Merge(json!({"metadata": {"finalizers": [FORMER]}}));
    assert_eq!(clusters.get("sample").await?.finalizers(), [""; 0]);
    assert_eq!(scene.api::<Harbor>().get("sample-harbor").await?.finalizers(), [""; 0]);
    // A HarborCluster of a former version, while the operator runs.
    clusters.patch("sample", &PatchParams::default(), &held).await?;
    eventually("the finalizer of a former version to be removed", || async {
        let found = clusters.get("sample").await.map_err(|error| error.to_string())?;
        if found.finalizers().is_empty() { Ok(()) } else { Err(format!("{:?}", found.finalizers())) }
    })
    .await?;
    program.stop()?;
    // And one that the operator has not seen before it is removed.
    clusters.patch("sample", &PatchParams::default(), &held).await?;

    let standing = scene.left(&[]).await?;
    let told = scene.run(&["uninstall", "--dry-run"])?;
    assert_eq!(scene.left(&[]).await?, standing, "{told}");
    let webhooks = format!("ValidatingWebhookConfiguration harbor-operator.{}", scene.home);
    let would = format!("would delete {webhooks}\n");
    assert!(told.starts_with(&would) && !told.contains("\ndeleted "), "{told}");

    let output = scene.run(&["uninstall"])?;
    let cluster = format!("HarborCluster {}/sample", scene.team);
    for line in [
        format!("deleted {webhooks}\n"),
        format!("deleted Deployment {}/harbor-operator\n", scene.home),
        format!("removed the finalizer of {cluster}\n"),
        format!("deleted ServiceAccount {}/harbor-operator\n", scene.home),
        "kept CustomResourceDefinition harborclusters.goharbor.io (objects: 1)\n".to_owned(),
        format!("kept Namespace {}\n", scene.home),
    ] {
        assert!(output.contains(&line), "{line} in {output}");
    }
    assert_eq!(scene.left(&["Namespace", "CustomResourceDefinition"]).await?, [""; 0], "{output}");
    let again = scene.run(&["uninstall"])?;
    assert!(again.starts_with("nothing of harbor-operator is left"), "{again}");

    // The Harbor runs on; what it keeps its data in outlives it.
    let data = scene.data().await?;
    assert!(!scene.api::<StatefulSet>().list(&ListParams::default()).await?.items.is_empty());
    drop(clusters.delete("sample", &DeleteParams::default()).await?);
    gone(&clusters, "sample").await?;
    gone(&scene.api::<Harbor>(), "sample-harbor").await?;
    scene.stopped().await?;
    assert_eq!(scene.data().await?, data);
    Ok(())
}

/// The namespace is deleted with the HarborCluster in it, when the operator is dead and its webhooks fail.
async fn the_namespace_first(scene: &Scene<'_>) -> Result<()> {
    drop(Box::pin(scene.begin()).await?);
    let namespaces = Api::<Namespace>::all(scene.env.client());
    drop(namespaces.delete(scene.team, &DeleteParams::default()).await?);
    gone(&namespaces, scene.team).await?;
    scene.run(&["uninstall"])?;
    assert_eq!(scene.left(&["Namespace", "CustomResourceDefinition"]).await?, [""; 0]);
    Ok(())
}

/// All that was applied is deleted at once, the definitions and the namespace of the operator included.
async fn everything_at_once(scene: &Scene<'_>) -> Result<()> {
    let program = Box::pin(scene.begin()).await?;
    let data = scene.data().await?;
    let output = scene.kubectl_delete()?;
    assert_eq!(scene.left(&[]).await?, [""; 0], "{output}");
    if scene.team != scene.home {
        scene.stopped().await?;
        assert_eq!(scene.data().await?, data);
    }
    // It may have noticed by now that it has lost all rights.
    drop(program);
    Ok(())
}

/// The definitions are deleted by the command, on request.
async fn the_definitions_on_request(scene: &Scene<'_>) -> Result<()> {
    let program = Box::pin(scene.begin()).await?;
    let data = scene.data().await?;
    program.stop()?;
    let output = scene.run(&["uninstall", "--delete-crds"])?;
    assert!(output.contains("deleted CustomResourceDefinition harborclusters.goharbor.io (objects: 1)\n"));
    assert_eq!(scene.left(&["Namespace"]).await?, [""; 0], "{output}");
    scene.stopped().await?;
    assert_eq!(scene.data().await?, data);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn seam_h2_an_installation_for_the_cluster_goes_in_every_order_and_leaves_the_data() -> Result<()> {
    let env = or_not_run!(TestEnv::private(Options::private()).await);
    let scene = Scene { env: &env, home: HOME, team: "team", install: installation() };
    the_operator_first(&scene).await?;
    the_namespace_first(&scene).await?;
    everything_at_once(&scene).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn seam_h2_an_installation_for_one_namespace_goes_in_every_order_and_leaves_the_data() -> Result<()> {
    let env = or_not_run!(TestEnv::private(Options::private()).await);
    let install = installation().namespace("registry").namespaced();
    let scene = Scene { env: &env, home: "registry", team: "registry", install };
    the_operator_first(&scene).await?;
    the_namespace_first(&scene).await?;
    the_definitions_on_request(&scene).await?;
    everything_at_once(&scene).await
}

#[test]
fn users_n12_the_page_on_installing_names_the_ways_out_that_are_tested() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/harbor/install.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, ways_out) = page.split_once("## Remove it").unwrap();
    for command in [
        "$ harbor-operator uninstall --dry-run\n",
        "$ harbor-operator uninstall\n",
        "$ harbor-operator uninstall --namespace harbor-operator-system --delete-crds\n",
        "$ kubectl delete -k operators/harbor/deploy/cluster\n",
    ] {
        assert!(ways_out.contains(command), "{command}");
    }
    assert!(!ways_out.contains("finalizers\":null"), "no finalizer has to be removed by hand");
}
