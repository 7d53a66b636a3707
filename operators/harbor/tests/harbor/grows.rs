//! A small Harbor that grows while it runs, and becomes small again: the objects of a component are created
//! and deleted with it, and of the others only Core changes, which has the URLs of some components.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use harbor_operator::api::{
    ChartMuseum, Core, Exporter, Harbor, JobService, NotaryServer, NotarySigner, Portal, Registry,
    RegistryController, Trivy,
};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use k8s_openapi::api::networking::v1::{Ingress, NetworkPolicy};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::ResourceExt as _;
use kube::api::ListParams;
use serde_json::{Value, json};
use windlass_testenv::world::{Namespaced, Running};
use windlass_testenv::{TestEnv, eventually, or_not_run};

use crate::world::{World, harbor};

/// Components that the test scales: two that every Harbor here has, and one that was added.
const SCALED: [&str; 3] = ["core", "portal", "trivy"];

/// The objects of a Harbor by kind and name, each with its uid, and with the number of its spec where it has
/// one.
type Standing = BTreeMap<String, (Option<String>, Option<i64>)>;

async fn add<K: Namespaced>(world: &World, all: &mut Standing) -> Result<()> {
    for object in world.namespace.api::<K>().list(&ListParams::default()).await?.items {
        let name = object.name_any();
        // Beside what users have, and what every namespace has.
        if name.starts_with("sample-harbor") {
            all.insert(format!("{} {name}", K::kind(&())), (object.uid(), object.meta().generation));
        }
    }
    Ok(())
}

async fn standing(world: &World) -> Result<Standing> {
    let mut all = Standing::new();
    add::<ConfigMap>(world, &mut all).await?;
    add::<Deployment>(world, &mut all).await?;
    add::<Ingress>(world, &mut all).await?;
    add::<NetworkPolicy>(world, &mut all).await?;
    add::<PodDisruptionBudget>(world, &mut all).await?;
    add::<Secret>(world, &mut all).await?;
    add::<Service>(world, &mut all).await?;
    add::<ChartMuseum>(world, &mut all).await?;
    add::<Core>(world, &mut all).await?;
    add::<Exporter>(world, &mut all).await?;
    add::<JobService>(world, &mut all).await?;
    add::<NotaryServer>(world, &mut all).await?;
    add::<NotarySigner>(world, &mut all).await?;
    add::<Portal>(world, &mut all).await?;
    add::<Registry>(world, &mut all).await?;
    add::<RegistryController>(world, &mut all).await?;
    add::<Trivy>(world, &mut all).await?;
    Ok(all)
}

/// Something that a Harbor can do without.
struct Extra {
    /// Field of the component in the spec.
    field: &'static str,
    /// Value that a user writes to have the component.
    wish: Value,
    /// Variables of Core's environment for the component, if Core has any: the one that enables it, and the
    /// one with its address.
    core_env: Option<[&'static str; 2]>,
    /// Deployments of the component. Core sends requests to the first one.
    parts: &'static [&'static str],
    /// Objects that are created and deleted with the component.
    own: BTreeSet<String>,
    /// Objects that are created with the component and kept: its data is worthless without them.
    kept: BTreeSet<String>,
}

impl Extra {
    /// Components whose spec changes when this one is added or removed: Core, where it must know the address.
    fn noticed(&self) -> Vec<&'static str> {
        let core = ["Core sample-harbor", "Deployment sample-harbor-core"];
        if self.core_env.is_some() { core.to_vec() } else { Vec::new() }
    }
}

/// The objects of these kinds that have the name of a part.
fn of(part: &str, kinds: &[&str]) -> BTreeSet<String> {
    kinds.iter().map(|kind| format!("{kind} sample-harbor-{part}")).collect()
}

/// Returns these objects as a set.
fn these<const N: usize>(ids: [&str; N]) -> BTreeSet<String> {
    ids.map(str::to_owned).into()
}

fn extras() -> [Extra; 4] {
    let all = ["ConfigMap", "Deployment", "Secret", "Service"];
    let way_in = json!({"ingress": {"host": "notary.example.com"}, "tls": {"certificateRef": "public"}});
    let of_notary = these([
        "NotaryServer sample-harbor",
        "NotarySigner sample-harbor",
        "Ingress sample-harbor-notaryserver",
        "Secret sample-harbor-internal-tls-notaryserver",
        "Secret sample-harbor-notaryserver-authentication",
        "Secret sample-harbor-notarysigner-authentication",
        "Secret sample-harbor-notarysigner-authority",
    ]);
    let servers = &of("notaryserver", &all) | &of("notarysigner", &all);
    [
        Extra {
            field: "trivy",
            wish: json!({"trivy": {"storage": {}}}),
            core_env: Some(["WITH_TRIVY", "TRIVY_ADAPTER_URL"]),
            parts: &["trivy"],
            own: &these(["Trivy sample-harbor", "Secret sample-harbor-internal-tls-trivy"])
                | &of("trivy", &all),
            kept: BTreeSet::new(),
        },
        Extra {
            field: "exporter",
            wish: json!({"exporter": {}}),
            core_env: None,
            parts: &["exporter"],
            own: &these(["Exporter sample-harbor", "Secret sample-harbor-internal-tls-exporter"])
                | &of("exporter", &["Deployment", "Secret", "Service"]),
            kept: BTreeSet::new(),
        },
        Extra {
            field: "chartmuseum",
            wish: json!({"chartmuseum": {}}),
            core_env: Some(["WITH_CHARTMUSEUM", "CHART_REPOSITORY_URL"]),
            parts: &["chartmuseum"],
            own: &these(["ChartMuseum sample-harbor", "Secret sample-harbor-internal-tls-chartmuseum"])
                | &of("chartmuseum", &["ConfigMap", "Deployment", "Service"]),
            kept: BTreeSet::new(),
        },
        Extra {
            field: "notary",
            wish: json!({"notary": {}, "expose": {"notary": way_in}}),
            core_env: Some(["WITH_NOTARY", "NOTARY_URL"]),
            parts: &["notaryserver", "notarysigner"],
            own: &of_notary | &servers,
            kept: these(["Secret sample-harbor-notarysigner-encryption-key"]),
        },
    ]
}

/// A Harbor between two changes of its spec.
struct Growing<'a> {
    world: &'a World,
    operator: &'a Running,
    standing: Standing,
}

impl Growing<'_> {
    fn ids(&self) -> BTreeSet<String> {
        self.standing.keys().cloned().collect()
    }

    /// Changes the spec, and waits until the Harbor is ready and has these objects and no others. Wants all
    /// that were there before and still are to be the same ones, and tells which of them have another spec
    /// now.
    async fn change(&mut self, spec: Value, wanted: &BTreeSet<String>) -> Result<Vec<String>> {
        let world = self.world;
        world.change::<Harbor>("sample", json!({"spec": spec})).await?;
        world.ready().await?;
        // What a component had made of itself goes after it, by the garbage collector.
        eventually(format!("a Harbor of these objects: {wanted:#?}"), || async {
            let found = standing(world).await.map_err(|error| error.to_string())?;
            let found: BTreeSet<String> = found.into_keys().collect();
            let differ: Vec<_> = found.symmetric_difference(wanted).collect();
            if differ.is_empty() { Ok(()) } else { Err(format!("too many or too few: {differ:?}")) }
        })
        .await?;
        self.operator.settled().await?;
        let before = std::mem::replace(&mut self.standing, standing(world).await?);
        assert_eq!(self.ids(), *wanted, "and so it stays");
        let mut changed = Vec::new();
        for (id, (uid, generation)) in &self.standing {
            let Some((same, former)) = before.get(id) else { continue };
            assert_eq!(uid, same, "{id} is another one than before");
            if generation != former {
                changed.push(id.clone());
            }
        }
        Ok(changed)
    }

    /// Adds an optional component, and checks that it becomes ready.
    async fn grow(&mut self, extra: &Extra) -> Result<()> {
        let wanted = &(&self.ids() | &extra.own) | &extra.kept;
        let changed = self.change(extra.wish.clone(), &wanted).await?;
        assert_eq!(changed, extra.noticed(), "{}", extra.field);
        for part in extra.parts {
            assert_eq!(ready_replicas(&self.deployment(part).await?), 1, "{part}");
        }
        self.core_knows(extra, true).await
    }

    /// Takes it away again.
    async fn shrink(&mut self, extra: &Extra) -> Result<()> {
        let wanted = &self.ids() - &extra.own;
        let changed = self.change(json!({extra.field: null}), &wanted).await?;
        assert_eq!(changed, extra.noticed(), "{}", extra.field);
        self.core_knows(extra, false).await
    }

    /// Runs so many pods of what is scaled.
    async fn scale(&mut self, replicas: i64, wanted: &BTreeSet<String>) -> Result<()> {
        let spec: BTreeMap<&str, Value> = SCALED.map(|part| (part, json!({"replicas": replicas}))).into();
        let changed = self.change(json!(spec), wanted).await?;
        let scaled = [
            "Core sample-harbor",
            "Deployment sample-harbor-core",
            "Deployment sample-harbor-portal",
            "Deployment sample-harbor-trivy",
            "Portal sample-harbor",
            "Trivy sample-harbor",
        ];
        assert_eq!(changed, scaled);
        for part in SCALED {
            // Ready it is with a pod too many, too.
            let has = |deployment: &Deployment| {
                json!(deployment.spec)["replicas"] == replicas
                    && json!(deployment.status)["replicas"] == replicas
                    && ready_replicas(deployment) == replicas
            };
            let name = format!("sample-harbor-{part}");
            self.world.see(&name, &format!("of {replicas} pods"), has).await?;
        }
        let counted = |core: &Core| json!(core.status)["replicas"] == replicas;
        self.world.see("sample-harbor", &format!("counting {replicas} pods"), counted).await?;
        self.world.ready().await?;
        Ok(())
    }

    async fn deployment(&self, part: &str) -> Result<Deployment> {
        Ok(self.world.get(&format!("sample-harbor-{part}")).await?)
    }

    /// Wants Core's environment to say whether something is there, and where as long as it is.
    async fn core_knows(&self, extra: &Extra, is_there: bool) -> Result<()> {
        let Some([whether, place]) = extra.core_env else { return Ok(()) };
        let core = json!(self.deployment("core").await?.spec);
        let env = core["template"]["spec"]["containers"][0]["env"].as_array().cloned().unwrap_or_default();
        let value = |name: &str| env.iter().find(|one| one["name"] == name).map(|one| one["value"].clone());
        let url = json!(format!("https://sample-harbor-{}", extra.parts[0]));
        assert_eq!(value(whether), Some(json!(is_there.to_string())), "{whether}");
        assert_eq!(value(place), is_there.then_some(url), "{place}");
        Ok(())
    }
}

fn ready_replicas(deployment: &Deployment) -> i64 {
    json!(deployment.status)["readyReplicas"].as_i64().unwrap_or_default()
}

#[tokio::test]
async fn an_optional_component_comes_and_goes_with_its_objects_and_changes_no_other() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "grows").await?;
    let operator = world.operator().await?;
    let mut small = harbor();
    // Later ones have neither ChartMuseum nor Notary.
    small["spec"]["version"] = json!("2.6.2");
    world.put::<Harbor>(small).await?;
    world.ready().await?;
    operator.settled().await?;
    let first = standing(&world).await?;
    let mut harbor = Growing { world: &world, operator: &operator, standing: first.clone() };

    let extras = extras();
    for extra in &extras {
        harbor.grow(extra).await?;
    }

    // Several pods have a budget, and a single one has none: its node could never be drained.
    let single = harbor.ids();
    let budgets: BTreeSet<String> =
        SCALED.map(|part| format!("PodDisruptionBudget sample-harbor-{part}")).into();
    harbor.scale(3, &(&single | &budgets)).await?;
    for part in SCALED {
        let budget: PodDisruptionBudget = world.get(&format!("sample-harbor-{part}")).await?;
        let spec = json!(budget.spec);
        assert_eq!(spec["maxUnavailable"], 1, "{part}");
        let label = format!("{part}.goharbor.io/name");
        assert_eq!(spec["selector"]["matchLabels"][label], format!("sample-harbor-{part}"));
    }
    harbor.scale(1, &single).await?;

    for extra in &extras {
        harbor.shrink(extra).await?;
    }
    let kept: BTreeSet<String> = extras.into_iter().flat_map(|extra| extra.kept).collect();
    let left: BTreeSet<String> = harbor.ids().into_iter().filter(|id| !first.contains_key(id)).collect();
    assert_eq!(left, kept, "small as before, but for the keys that data needs");
    world.end(operator).await
}
