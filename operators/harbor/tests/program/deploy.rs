//! The manifests: as they are checked in, applied to a cluster, and the program under exactly what they
//! grant.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context as _, Result};
use harbor_operator::api::Harbor;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use windlass_operator::manifests::{Install, Manifests};
use windlass_testenv::world::{Program, install, rights};
use windlass_testenv::{Options, TestEnv, eventually, or_not_run};

use crate::world::{furnish, harbor, is_ready};

pub(crate) const HOME: &str = "harbor-operator-system";

pub(crate) fn installation() -> Install {
    Install::of(&harbor_operator::operator())
}

pub(crate) fn manifests(install: &Install) -> Result<Manifests> {
    Ok(Manifests::of(&harbor_operator::operator(), install)?)
}

#[test]
fn the_manifests_that_are_checked_in_are_up_to_date() -> Result<()> {
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy");
    for (scope, install, flags) in
        [("cluster", installation(), ""), ("namespaced", installation().namespaced(), " --namespaced")]
    {
        if let Err(mut stale) = manifests(&install)?.check(&deploy.join(scope)) {
            let out = format!("operators/harbor/deploy/{scope}");
            stale.refresh = format!("cargo run -p harbor-operator -- manifests{flags} --out {out}");
            panic!("{stale}");
        }
    }
    Ok(())
}

/// Permissions that an installation grants to the operator: group, resource and verb of each.
fn granted(install: &Install) -> Result<BTreeSet<[String; 3]>> {
    let mut all = BTreeSet::new();
    for document in manifests(install)?.stream().split("---\n") {
        let object: Value = serde_saphyr::from_str(document)?;
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let for_users = matches!(name.rsplit_once('.'), Some((_, "edit" | "view" | "metrics-reader")));
        if for_users || !matches!(object["kind"].as_str(), Some("Role" | "ClusterRole")) {
            continue;
        }
        for rule in object["rules"].as_array().into_iter().flatten() {
            let words =
                |field: &str| -> Result<Vec<String>> { Ok(serde_json::from_value(rule[field].clone())?) };
            for group in words("apiGroups")? {
                for resource in words("resources")? {
                    let rights =
                        words("verbs")?.into_iter().map(|verb| [group.clone(), resource.clone(), verb]);
                    all.extend(rights);
                }
            }
        }
    }
    Ok(all)
}

#[test]
fn a_namespaced_install_has_the_same_rights_without_cluster_scoped_kinds() -> Result<()> {
    let (everywhere, there) = (granted(&installation())?, granted(&installation().namespaced())?);
    assert!(there.len() > 50 && !there.iter().flatten().any(|word| word == "*"), "{there:#?}");
    let more: Vec<_> = there.difference(&everywhere).collect();
    assert!(more.is_empty(), "only in one namespace: {more:#?}");
    let in_no_namespace = [
        "apiextensions.k8s.io",
        "admissionregistration.k8s.io",
        // Reviews of tokens and permissions, for readers of metrics.
        "authentication.k8s.io",
        "authorization.k8s.io",
    ];
    let lacking: Vec<_> =
        everywhere.difference(&there).filter(|[group, ..]| !in_no_namespace.contains(&&**group)).collect();
    assert!(lacking.is_empty(), "only in the whole cluster: {lacking:#?}");
    Ok(())
}

/// A cluster with an installation. The program runs in place of its Pod, with the arguments, the environment
/// and the account of the Pod. Webhooks are unchanged except for their address: no Service leads out of this
/// control plane.
pub(crate) struct Installation<'a> {
    env: &'a TestEnv,
    client: kube::Client,
    home: &'a str,
}

impl<'a> Installation<'a> {
    pub(crate) async fn apply(env: &'a TestEnv, home: &'a str, manifests: &Manifests) -> Result<Self> {
        let client = env.client();
        for document in manifests.stream().split("---\n") {
            install::apply(&client, document).await?;
        }
        Ok(Self { env, client, home })
    }

    /// Plays the Pod.
    pub(crate) async fn start(&self, more: &[&str]) -> Result<Program> {
        let deployments: Api<Deployment> = Api::namespaced(self.client.clone(), self.home);
        let deployment = deployments.get("harbor-operator").await?;
        let container = json!(deployment.spec)["template"]["spec"]["containers"][0].clone();
        let args: Vec<String> = serde_json::from_value(container["args"].clone())?;
        let replaced = ["--log-format", "--metrics-bind-address", "--health-probe-bind-address"];
        let kept = |arg: &&str| !replaced.iter().any(|flag| arg.starts_with(flag));
        let ours = [
            "--webhook-bind-address=127.0.0.1:0",
            "--webhook-name=127.0.0.1",
            "--health-probe-bind-address=127.0.0.1:0",
        ];
        let args: Vec<&str> =
            args.iter().map(String::as_str).filter(kept).chain(ours).chain(more.iter().copied()).collect();
        let variables: Vec<Value> = serde_json::from_value(container["env"].clone())?;
        let name = |variable: &Value| variable["name"].as_str().unwrap_or_default().to_owned();
        // Those without a value are the Pod's namespace.
        let value = |variable: &Value| variable["value"].as_str().unwrap_or(self.home).to_owned();
        let variables: Vec<(String, String)> =
            variables.iter().map(|variable| (name(variable), value(variable))).collect();
        let variables: Vec<(&str, &str)> =
            variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let directory = tempfile::tempdir()?;
        let kubeconfig = directory.path().join("kubeconfig");
        let account = install::account_config(self.env, self.home, "harbor-operator").await?;
        std::fs::write(&kubeconfig, account)?;
        let binary = env!("CARGO_BIN_EXE_harbor-operator");
        let program = Program::start(binary, &kubeconfig, &args, &variables)?;
        program.controller_ready("harbor.goharbor.io").await?;
        self.redirect(program.fact("webhooks")?).await?;
        Ok(program)
    }

    /// Waits until the operator has put its authority into all configurations, and has them call the program
    /// directly.
    async fn redirect(&self, webhooks: &str) -> Result<()> {
        let (api, name) = (
            Api::<ValidatingWebhookConfiguration>::all(self.client.clone()),
            format!("harbor-operator.{}", self.home),
        );
        let mut found = eventually("the authority in the validations", || async {
            let found = json!(api.get(&name).await.map_err(|error| error.to_string())?);
            let all = found["webhooks"].as_array().cloned().unwrap_or_default();
            let trusted = all.iter().all(|hook| hook["clientConfig"]["caBundle"].is_string());
            if trusted { Ok(found) } else { Err(found.to_string()) }
        })
        .await?;
        for hook in found["webhooks"].as_array_mut().context("no webhooks")? {
            let config = &mut hook["clientConfig"];
            // Another life of the program may have been there before.
            let path = match (config["service"]["path"].as_str(), config["url"].as_str()) {
                (Some(path), _) => path.to_owned(),
                (None, Some(url)) => format!("/{}", url.rsplit('/').next().unwrap_or_default()),
                (None, None) => anyhow::bail!("{config} leads nowhere"),
            };
            *config = json!({"url": format!("{webhooks}{path}"), "caBundle": config["caBundle"]});
        }
        api.replace(&name, &PostParams::default(), &serde_json::from_value(found)?).await?;

        let definitions = Api::<CustomResourceDefinition>::all(self.client.clone());
        let mut found = eventually("the authority in the definition", || async {
            let found = definitions.get("harbors.goharbor.io").await.map_err(|error| error.to_string())?;
            let conversion = &json!(found)["spec"]["conversion"]["webhook"]["clientConfig"];
            if conversion["caBundle"].is_string() { Ok(json!(found)) } else { Err(conversion.to_string()) }
        })
        .await?;
        let config = &mut found["spec"]["conversion"]["webhook"]["clientConfig"];
        *config = json!({"url": format!("{webhooks}/convert"), "caBundle": config["caBundle"]});
        let name = "harbors.goharbor.io";
        definitions.replace(name, &PostParams::default(), &serde_json::from_value(found)?).await?;
        Ok(())
    }

    fn harbors(&self, namespace: &str) -> Api<Harbor> {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Creates a Harbor, and waits until it is ready.
    async fn bring_up(&self, namespace: &str) -> Result<()> {
        furnish(&self.client, namespace).await?;
        let harbors = self.harbors(namespace);
        // A Fail policy refuses it until the webhook is reached: then it has been asked.
        let sample: Harbor = serde_json::from_value(harbor())?;
        eventually("the webhooks to be reached", || async {
            harbors.create(&PostParams::default(), &sample).await.map_err(|error| error.to_string())
        })
        .await?;
        eventually("the Harbor to be ready", || async {
            let found = harbors.get("sample").await.map_err(|error| error.to_string())?;
            if is_ready(&found) { Ok(()) } else { Err(json!(found.status).to_string()) }
        })
        .await?;
        Ok(())
    }

    /// Creates a Harbor of a version that does not exist and returns the API server's answer.
    async fn create_unknown_version(&self, namespace: &str) -> Result<(), String> {
        let mut unknown = harbor();
        unknown["metadata"]["name"] = json!("unknown");
        unknown["spec"]["version"] = json!("9.9.9");
        let unknown = serde_json::from_value(unknown).map_err(|error| error.to_string())?;
        let created = self.harbors(namespace).create(&PostParams::default(), &unknown).await;
        created.map(drop).map_err(|error| error.to_string())
    }
}

pub(crate) async fn make_namespace(client: &kube::Client, name: &str) -> Result<()> {
    let namespace = serde_json::from_value(json!({"metadata": {"name": name}}))?;
    Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &namespace).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a16_the_program_works_with_exactly_what_its_manifests_grant_and_hears_its_flags() -> Result<()> {
    let env = or_not_run!(TestEnv::private(Options::private()).await);
    let log = env.requests()?;
    let begun = log.mark()?;

    // For the whole cluster, as it is checked in.
    let everywhere = Installation::apply(&env, HOME, &manifests(&installation())?).await?;
    let program = everywhere.start(&[]).await?;
    make_namespace(&everywhere.client, "team").await?;
    everywhere.bring_up("team").await?;
    let refused = everywhere.create_unknown_version("team").await.unwrap_err();
    assert!(refused.contains("spec.version") && refused.contains("9.9.9"), "{refused}");
    // The older version of the kind is served through the program.
    let kind = GroupVersionKind::gvk("goharbor.io", "v1alpha3", "Harbor");
    let older: Api<DynamicObject> =
        Api::namespaced_with(everywhere.client.clone(), "team", &ApiResource::from_gvk(&kind));
    eventually("the older version to be served", || async {
        older.get("sample").await.map_err(|error| error.to_string())
    })
    .await?;
    let deleted = everywhere.harbors("team").delete("sample", &DeleteParams::default()).await?;
    drop(deleted);
    eventually("the Harbor to be gone", || async {
        match everywhere.harbors("team").get_opt("sample").await {
            Ok(None) => Ok(()),
            Ok(Some(found)) => Err(json!(found.metadata).to_string()),
            Err(error) => Err(error.to_string()),
        }
    })
    .await?;
    program.stop()?;
    let validations = Api::<ValidatingWebhookConfiguration>::all(everywhere.client.clone());
    drop(validations.delete(&format!("harbor-operator.{HOME}"), &DeleteParams::default()).await?);
    // What the test has made of the conversion would stand beside what is applied.
    let without = Patch::Merge(json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}}));
    let definitions = Api::<CustomResourceDefinition>::all(everywhere.client.clone());
    definitions.patch("harbors.goharbor.io", &PatchParams::default(), &without).await?;

    // And in one namespace, with rights there only. The webhook of Harbors is turned off by a flag: it has
    // nothing against anything.
    let small = installation().namespace("registry").namespaced();
    let there = Installation::apply(&env, "registry", &manifests(&small)?).await?;
    let program = there.start(&["--harbor-webhook-disabled"]).await?;
    there.bring_up("registry").await?;
    there.create_unknown_version("registry").await.unwrap();
    program.stop()?;

    for home in [HOME, "registry"] {
        let account = format!("system:serviceaccount:{home}:harbor-operator");
        let requests = log.since(begun)?.by_user(&account);
        assert!(requests.count() > 50, "{home}: {requests}");
        let missing = rights::missing(&requests);
        assert!(missing.is_empty(), "{home} lacks a right: {missing}");
        let leases = requests.filter(|request| request.resource == "leases" && request.code < 300);
        assert!(!leases.is_empty(), "{home}: one of several works, elected by a Lease");
    }
    Ok(())
}
