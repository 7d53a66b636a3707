//! Tests that a controller runs under exactly the rules generated from its declared access.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use std::collections::BTreeSet;

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use windlass_runtime::access::Access;
use windlass_runtime::cache::{Cache, Full, Selection};
use windlass_runtime::client::{Apply, Client, ClientOptions, Patch};
use windlass_runtime::controller::{Controller, Error, Reconcile, Requeue};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::manager::{Manager, Stop};
use windlass_runtime::object::{finalizers, owner::Owner};
use windlass_testenv::{Rules, TestEnv, TestNamespace, eventually, or_not_run};

const FINALIZER: &str = "access.windlass.dev/last-words";
const MANAGER: &str = "access-test";

/// A kind with an owned ConfigMap, a status and a finalizer.
#[derive(CustomResource, Clone, Debug, JsonSchema, Serialize, Deserialize)]
#[kube(group = "access.windlass.dev", version = "v1", kind = "Chest", namespaced, status = "ChestStatus")]
struct ChestSpec {
    content: String,
}

#[derive(Clone, Debug, Default, JsonSchema, Serialize, Deserialize)]
struct ChestStatus {
    filled: bool,
}

struct Filler {
    client: Client,
    chests: windlass_runtime::cache::Reader<Full<Chest>>,
}

impl Filler {
    /// The declared access of the controller, beside its code.
    fn access(controller: &Controller) -> Access {
        Access::none()
            .watched_by(controller)
            .owns::<Chest>()
            .finalizes::<Chest>()
            .status::<Chest>()
            .applies::<ConfigMap>()
    }
}

impl Reconcile for Filler {
    async fn reconcile(&self, key: ObjectKey) -> Result<Requeue, Error> {
        let Some(chest) = self.chests.get(&key) else { return Ok(Requeue::OnChange) };
        let chests = self.client.objects::<Chest>();
        if chest.metadata.deletion_timestamp.is_some() {
            if let Some(patch) = finalizers::removal(&chest.metadata, FINALIZER) {
                chests.patch(&key, &Patch::Json(patch), MANAGER).await?;
            }
            return Ok(Requeue::OnChange);
        }
        if let Some(patch) = finalizers::addition(&chest.metadata, FINALIZER).map_err(Error::terminal)? {
            chests.patch(&key, &Patch::Json(patch), MANAGER).await?;
        }
        let owner = Owner::of(chest.object()).map_err(Error::terminal)?;
        let reference = owner.controller_reference(key.namespace()).map_err(Error::terminal)?;
        assert_eq!(reference.block_owner_deletion, Some(true), "otherwise nothing is enforced");
        let child = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": key.name(), "ownerReferences": [reference]}, "data": {"content": chest.spec.content}});
        self.client.objects::<ConfigMap>().apply(&key, &child, &Apply::by(MANAGER).force()).await?;
        if !chest.status.as_ref().is_some_and(|status| status.filled) {
            let status = json!({"apiVersion": "access.windlass.dev/v1", "kind": "Chest",
                "metadata": {"name": key.name()}, "status": {"filled": true}});
            chests.apply_status(&key, &status, &Apply::by(MANAGER).force()).await?;
        }
        Ok(Requeue::OnChange)
    }
}

/// Returns the controller and its cache for all namespaces, or for one.
fn filler(client: &Client, selection: &Selection) -> (Cache, Controller) {
    let cache = Cache::new(client);
    let chests = cache.reader::<Full<Chest>>(selection);
    let maps = cache.reader::<Full<ConfigMap>>(selection);
    let reconciler = Filler { client: client.clone(), chests: chests.clone() };
    let controller = Controller::for_(&chests).owns(&maps).build(reconciler).unwrap();
    (cache, controller)
}

fn client(config: kube::Config) -> Client {
    Client::new(config, ClientOptions::default()).unwrap()
}

/// Runs the controller as `user` with these rules through a chest's whole life; fails if a request was
/// forbidden, or if a granted rule was not used.
async fn live_under(
    namespace: &TestNamespace,
    rules: &[PolicyRule],
    granted: &Rules,
    selection: &Selection,
) -> Result<()> {
    let env = namespace.env();
    let user = namespace.client_for("filler", granted).await?;
    let before = env.requests()?.mark()?;
    let client = client(user.config());
    let (cache, controller) = filler(&client, selection);
    let mut manager = Manager::new();
    manager.cache(&cache)?;
    manager.controller(controller)?;
    let (stopper, stop) = Stop::pair();
    let running = tokio::spawn(manager.run_until(stop));

    let (chests, maps): (Api<Chest>, Api<ConfigMap>) = (namespace.api(), namespace.api());
    let chest = Chest::new("gold", ChestSpec { content: "coins".into() });
    chests.create(&PostParams::default(), &chest).await?;
    eventually("the chest to be filled", || async {
        let chest = chests.get("gold").await.map_err(|error| error.to_string())?;
        if chest.status.is_some_and(|status| status.filled) { Ok(()) } else { Err("it is not".to_owned()) }
    })
    .await?;
    assert_eq!(maps.get("gold").await?.data.unwrap()["content"], "coins");
    chests.delete("gold", &DeleteParams::default()).await?;
    eventually("the chest to be gone", || async {
        let chest = chests.get_opt("gold").await.map_err(|error| error.to_string())?;
        chest.map_or(Ok(()), |chest| Err(format!("{:?}", chest.metadata.finalizers)))
    })
    .await?;
    stopper.request();
    running.await??;

    let requests = env.requests()?.since(before)?.by_user(user.name());
    assert_eq!(requests.code(403).count(), 0, "{requests}");
    // The reverse: a rule that is granted and was not used is too much. Three exceptions are implied by other
    // rules.
    let mut exercised: BTreeSet<(String, String)> = requests
        .iter()
        .map(|request| {
            let slash = if request.subresource.is_empty() { "" } else { "/" };
            (format!("{}{slash}{}", request.resource, request.subresource), request.verb.clone())
        })
        .collect();
    // `get` is granted with every watch (a cached kind may be read live); `create` with every apply, which
    // the server checks and logs as a patch; the owner's finalizers are checked by admission, without a
    // request.
    exercised.extend([
        ("chests".to_owned(), "get".to_owned()),
        ("configmaps".to_owned(), "get".to_owned()),
        ("configmaps".to_owned(), "create".to_owned()),
        ("chests/finalizers".to_owned(), "update".to_owned()),
    ]);
    let allowed: BTreeSet<(String, String)> = rules
        .iter()
        .flat_map(|rule| {
            rule.resources
                .iter()
                .flatten()
                .flat_map(|resource| rule.verbs.iter().map(|verb| (resource.clone(), verb.clone())))
        })
        .collect();
    // A streaming list is a watch: if the server supports it, nothing is listed.
    let unused: Vec<_> = allowed.difference(&exercised).filter(|(_, verb)| verb != "list").collect();
    assert!(unused.is_empty(), "granted and not used: {unused:?}");
    Ok(())
}

#[tokio::test]
async fn a_controller_needs_exactly_its_generated_cluster_role() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    env.install_crds(&[Chest::crd()]).await?;
    let namespace = env.namespace("access-cluster").await?;
    let (_, controller) = filler(&client(env.config().clone()), &Selection::all());
    let rules = Filler::access(&controller).cluster_role("filler").rules.unwrap();
    // The selection keeps chests of other tests away; the role covers all namespaces.
    let granted = rules.iter().cloned().fold(Rules::default(), Rules::cluster_wide);
    let selection = Selection::all().fields(&format!("metadata.namespace={}", namespace.name()))?;
    live_under(&namespace, &rules, &granted, &selection).await
}

#[tokio::test]
async fn a_controller_of_one_namespace_needs_exactly_its_generated_role() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    env.install_crds(&[Chest::crd()]).await?;
    let namespace = env.namespace("access-namespace").await?;
    let selection = Selection::all().in_namespace(namespace.name());
    let (_, controller) = filler(&client(env.config().clone()), &selection);
    let (cluster, in_namespaces) = Filler::access(&controller).roles("filler", [namespace.name()]);
    assert!(cluster.is_none());
    let [role] = &in_namespaces[..] else { panic!("{in_namespaces:?}") };
    let rules = role.rules.clone().unwrap();
    let granted = rules.iter().cloned().fold(Rules::default(), Rules::in_namespace);
    live_under(&namespace, &rules, &granted, &selection).await
}

#[tokio::test]
async fn generated_rules_include_easily_forgotten_verbs() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    env.install_crds(&[Chest::crd()]).await?;
    let namespace = env.namespace("access-less").await?;
    let chest = Chest::new("gold", ChestSpec { content: "coins".into() });
    let chest = namespace.api::<Chest>().create(&PostParams::default(), &chest).await?;
    let key = ObjectKey::namespaced(namespace.name(), "gold");
    let reference = Owner::of(&chest)?.controller_reference(Some(namespace.name()))?;
    let child = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "gold", "ownerReferences": [reference]}});
    let whole = Access::none().applies::<ConfigMap>().owns::<Chest>();
    let cases = [
        ("create", Access::none().patches::<ConfigMap>().owns::<Chest>(), false),
        ("finalizers", Access::none().applies::<ConfigMap>(), false),
        ("nothing", whole, true),
    ];
    for (missing, access, enough) in cases {
        let granted = access.rules().into_iter().fold(Rules::default(), Rules::in_namespace);
        let user = namespace.client_for(&format!("without-{missing}"), &granted).await?;
        let maps = client(user.config()).objects::<ConfigMap>();
        let applied = maps.apply(&key, &child, &Apply::by(MANAGER).force()).await;
        match applied {
            Ok(_) => assert!(enough, "{missing} is not needed"),
            Err(error) => assert!(!enough && error.is_forbidden(), "without {missing}: {error}"),
        }
    }
    Ok(())
}
