//! Inputs: their content flows into the nodes that depend on them, and into no others.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use crate::kit;

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, OnceLock};

use anyhow::Result;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use parking_lot::Mutex;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tracing_subscriber::fmt::MakeWriter;
use windlass::PlanController;
use windlass_testenv::proxy::Match;
use windlass_testenv::{TestEnv, eventually, or_not_run};

use kit::bundle::{Bundle, BundleSpec, Bundles, Item};
use kit::shop::{Shop, Shops, password, shop};
use kit::{Corner, Operator};

/// A shop named `one` that is ready.
async fn open_shop(corner: &Corner) -> Result<()> {
    corner.namespace.api::<Secret>().create(&PostParams::default(), &password("first")).await?;
    corner.namespace.api::<Shop>().create(&PostParams::default(), &shop("one", "shop:1")).await?;
    corner.until::<Shop>("one", "Ready", "True").await?;
    Ok(())
}

/// Waits until the shop is ready again, with all of its objects at these generations.
async fn rolled(corner: &Corner, wanted: &BTreeMap<String, (String, i64)>) -> Result<()> {
    eventually("the change has been rolled out", || async {
        let standing = corner.standing().await.map_err(|error| error.to_string())?;
        if standing == *wanted { Ok(()) } else { Err(format!("{standing:#?}")) }
    })
    .await?;
    // The owner may report `Ready` for another second because of the debounce; its pods cannot.
    eventually("the new pods have taken over", || async {
        let web = corner.object("Deployment", "one-web").await.map_err(|error| error.to_string())?;
        let status = &web["status"];
        let is_seen = status["observedGeneration"] == web["metadata"]["generation"];
        let have = ["updatedReplicas", "readyReplicas", "replicas"].map(|count| status[count].as_i64());
        if is_seen && have == [Some(2); 3] { Ok(()) } else { Err(status.to_string()) }
    })
    .await?;
    corner.until::<Shop>("one", "Ready", "True").await?;
    Ok(())
}

/// The writes of a plan's objects, without those of the owner's own status.
fn of_plan(writes: Vec<String>) -> Vec<String> {
    writes.into_iter().filter(|write| !write.contains(" shops")).collect()
}

fn text(value: &str) -> Value {
    json!({"data": {"password": BASE64_STANDARD.encode(value)}})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_secret_rolls_its_dependents_once_and_nothing_else() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "rolls").await?;
    let operator = corner.operate(PlanController::of(Shops::default())).await?;
    open_shop(&corner).await?;
    corner.look_again(&operator, "Shop", "one").await?;

    // Labels and annotations are not content.
    let (mark, before) = (corner.mark()?, operator.reconciles());
    let beside = json!({"metadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}}});
    corner.change("Secret", "password", beside).await?;
    operator.looked_after(before).await?;
    assert_eq!(corner.writes_since(mark)?, [""; 0], "only its metadata has changed");

    let mut standing = corner.standing().await?;
    let mark = corner.mark()?;
    corner.change("Secret", "password", text("second")).await?;
    for rolled in ["StatefulSet one-db", "Deployment one-web"] {
        standing.get_mut(rolled).unwrap().1 += 1;
    }
    rolled(&corner, &standing).await?;
    corner.look_again(&operator, "Shop", "one").await?;
    let writes = of_plan(corner.writes_since(mark)?);
    assert_eq!(writes, ["patch statefulsets one-db", "patch deployments one-web"]);
    assert_eq!(corner.standing().await?, standing, "each of them once");
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_config_map_rolls_its_dependents_once_and_nothing_else() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "config").await?;
    let operator = corner.operate(PlanController::of(Shops::default())).await?;
    open_shop(&corner).await?;
    let mut standing = corner.standing().await?;
    let mark = corner.mark()?;
    corner.change("Shop", "one", json!({"metadata": {"annotations": {"greeting": "hello"}}})).await?;
    standing.get_mut("Deployment one-web").unwrap().1 += 1;
    rolled(&corner, &standing).await?;
    corner.look_again(&operator, "Shop", "one").await?;
    let writes = of_plan(corner.writes_since(mark)?);
    assert_eq!(writes, ["patch configmaps one-config", "patch deployments one-web"]);

    // An image is in the configuration and in the templates: each object is still written once.
    for rolled in ["Deployment one-web", "StatefulSet one-db"] {
        standing.get_mut(rolled).unwrap().1 += 1;
    }
    let mark = corner.mark()?;
    corner.change("Shop", "one", json!({"spec": {"image": "shop:2"}})).await?;
    let (job, _) = standing.iter().find(|(id, _)| id.starts_with("Job ")).unwrap();
    let (old, job) = (job.clone(), job.strip_prefix("Job ").unwrap().to_owned());
    standing.remove(&old);
    eventually("the change has been rolled out", || async {
        let mut now = corner.standing().await.map_err(|error| error.to_string())?;
        now.retain(|id, _| !id.starts_with("Job ") || *id == old);
        if now == standing { Ok(()) } else { Err(format!("{now:#?}")) }
    })
    .await?;
    corner.until::<Shop>("one", "Ready", "True").await?;
    corner.look_again(&operator, "Shop", "one").await?;
    let writes = of_plan(corner.writes_since(mark)?);
    let count = |start: &str| writes.iter().filter(|write| write.starts_with(start)).count();
    assert_eq!(count("patch configmaps one-config"), 1, "{writes:#?}");
    assert_eq!(count("patch statefulsets one-db"), 1, "{writes:#?}");
    assert_eq!(count("patch jobs one-migrate-"), 1, "{writes:#?}");
    assert_eq!(count("patch deployments one-web"), 1, "{writes:#?}");
    assert_eq!(count(&format!("delete jobs {job}")), 1, "{writes:#?}");
    assert_eq!(writes.len(), 5, "{writes:#?}");
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_secret_delays_only_its_dependents_and_its_creation_is_noticed_at_once() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "missing").await?;
    let operator = corner.operate(PlanController::of(Shops::default())).await?;
    corner.namespace.api::<Shop>().create(&PostParams::default(), &shop("one", "shop:1")).await?;
    let (reason, message) = corner.until_message::<Shop>("one", "Ready", "False", "Secret password").await?;
    assert_eq!(reason, "InputMissing");
    assert!(message.contains("create it, or change the reference to it"), "{message}");
    let standing = corner.standing().await?;
    let here: Vec<&str> = standing.keys().map(String::as_str).collect();
    assert_eq!(
        here,
        [
            "ConfigMap one-config",
            "Ingress one-web",
            "PersistentVolumeClaim one-data",
            "Secret one-key",
            "Service one-db",
            "Service one-web",
            "ServiceAccount one-runner"
        ]
    );
    // Waiting costs no request.
    corner.look_again(&operator, "Shop", "one").await?;
    let mark = corner.mark()?;
    corner.look_again(&operator, "Shop", "one").await?;
    assert_eq!(corner.requests_since(mark)?.count(), 0);

    corner.namespace.api::<Secret>().create(&PostParams::default(), &password("first")).await?;
    corner.until::<Shop>("one", "Ready", "True").await?;
    let asked = corner.requests_since(mark)?.filter(|request| !request.is_write());
    assert!(asked.is_empty(), "the watch reported it without a request: {asked}");

    // The Secret is deleted again: running workloads stay.
    let standing = corner.standing().await?;
    let mark = corner.mark()?;
    corner.delete("Secret", "password").await?;
    let (reason, _) = corner.until_message::<Shop>("one", "Ready", "False", "Secret password").await?;
    assert_eq!(reason, "InputMissing");
    corner.look_again(&operator, "Shop", "one").await?;
    assert_eq!(corner.writes_since(mark)?, ["patch shops/status one"]);
    let mut expected = standing;
    expected.remove("Secret password");
    assert_eq!(corner.standing().await?, expected, "nothing is pruned, nothing is touched");
    operator.stop().await
}

fn note(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}})
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_share_the_watch_of_an_input_and_it_ends_with_the_last_of_them() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "shared").await?;
    let proxy = corner.env.fault_proxy().await?;
    let mark = corner.mark()?;
    let config = corner.user.config_through(&proxy.url())?;
    let operator = Operator::with(config, corner.namespace.name(), PlanController::of(Bundles::default()))?;
    operator.ready().await?;
    corner.namespace.api::<Secret>().create(&PostParams::default(), &password("first")).await?;
    let bundles = corner.namespace.api::<Bundle>();
    for name in ["one", "two"] {
        let items = vec![Item::of(note(&format!("{name}-note"))).after("Secret password")];
        let spec = BundleSpec { items, secrets: vec!["password".into()], ..BundleSpec::default() };
        bundles.create(&PostParams::default(), &Bundle::new(name, spec)).await?;
        corner.until::<Bundle>(name, "Ready", "True").await?;
    }
    let watch = Match::watches().resource("secrets").name("password");
    assert_eq!(proxy.open_watches(&watch), 1);
    let opened = corner.requests_since(mark)?;
    let opened = opened.verb("watch").filter(|request| request.uri.contains("password"));
    assert_eq!(opened.count(), 1, "{opened}");

    let before = operator.reconciles();
    corner.delete("Bundle", "one").await?;
    corner.gone("Bundle", "one").await?;
    operator.looked_after(before).await?;
    corner.look_again(&operator, "Bundle", "two").await?;
    assert_eq!(proxy.open_watches(&watch), 1, "one of two still needs it");
    corner.delete("Bundle", "two").await?;
    proxy.wait_for_open_watches(&watch, 0).await?;
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_of_another_blueprint_needs_no_separate_watch_while_it_has_the_label() -> Result<()> {
    const MAKER: &str = "maker.test.windlass.dev";
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "made").await?;
    let proxy = corner.env.fault_proxy().await?;
    let config = corner.user.config_through(&proxy.url())?;
    let by_name = Match::watches().resource("secrets").name("password");
    let made = || async {
        let mut secret = password("first");
        secret.metadata.labels = Some([("windlass.dev/controller".to_owned(), MAKER.to_owned())].into());
        corner.namespace.api::<Secret>().create(&PostParams::default(), &secret).await
    };
    made().await?;
    let start = || async {
        let bundles = Bundles { maker: Some(MAKER), ..Bundles::default() };
        let operator = Operator::with(config.clone(), corner.namespace.name(), PlanController::of(bundles))?;
        operator.ready().await?;
        anyhow::Ok(operator)
    };
    let operator = start().await?;
    let items = vec![Item::of(note("one-note")).after("Secret password")];
    let spec = BundleSpec { items, secrets: vec!["password".into()], ..BundleSpec::default() };
    corner.namespace.api::<Bundle>().create(&PostParams::default(), &Bundle::new("one", spec)).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    let mark = corner.mark()?;
    let before = operator.reconciles();
    corner.change("Secret", "password", text("second")).await?;
    operator.looked_after(before).await?;
    assert_eq!(corner.requests_since(mark)?.filter(|request| !request.is_write()).count(), 0);
    assert_eq!(proxy.open_watches(&by_name), 0);

    operator.stop().await?;
    let operator = start().await?;
    corner.look_again(&operator, "Bundle", "one").await?;
    assert_eq!(proxy.open_watches(&by_name), 0, "nor after a restart");

    // Somebody removes the label. The object still exists under its name.
    let mark = corner.mark()?;
    corner
        .change("Secret", "password", json!({"metadata": {"labels": {"windlass.dev/controller": null}}}))
        .await?;
    proxy.wait_for_open_watches(&by_name, 1).await?;
    corner.look_again(&operator, "Bundle", "one").await?;
    assert_eq!(corner.writes_since(mark)?, [""; 0], "it was never missed");

    corner.delete("Secret", "password").await?;
    corner.until_message::<Bundle>("one", "Ready", "False", "Secret password").await?;
    made().await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    proxy.wait_for_open_watches(&by_name, 0).await?;

    // The same holds if a labelled object is deleted.
    corner.delete("Secret", "password").await?;
    corner.until_message::<Bundle>("one", "Ready", "False", "Secret password").await?;
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_digest_key_is_made_once_and_losing_it_restarts_nothing() -> Result<()> {
    const KEY: &str = "shop.test.windlass.dev-digest-key";
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "key").await?;
    let start = || async {
        let controller = PlanController::of(Shops::default());
        let operator = Operator::as_given(corner.user.config(), corner.namespace.name(), controller)?;
        operator.ready().await?;
        anyhow::Ok(operator)
    };
    let of_key = |mark| -> Result<usize> {
        let requests = corner.requests_since(mark)?.writes();
        Ok(requests.filter(|request| request.name == KEY).count())
    };
    let stamp = || async {
        let web = corner.object("Deployment", "one-web").await?;
        anyhow::Ok(web["metadata"]["annotations"]["windlass.dev/dependencies"].as_str().unwrap().to_owned())
    };
    let templates = || async {
        let web = corner.object("Deployment", "one-web").await?;
        let database = corner.object("StatefulSet", "one-db").await?;
        anyhow::Ok([web, database].map(|object| object["spec"]["template"].clone()))
    };
    let mark = corner.mark()?;
    let operator = start().await?;
    open_shop(&corner).await?;
    assert_eq!(of_key(mark)?, 1, "made when it was first needed");
    let key = corner.object("Secret", KEY).await?;
    assert_eq!(BASE64_STANDARD.decode(key["data"]["key"].as_str().unwrap())?.len(), 32);

    operator.stop().await?;
    let (mark, first, standing) = (corner.mark()?, stamp().await?, corner.standing().await?);
    let operator = start().await?;
    corner.look_again(&operator, "Shop", "one").await?;
    assert_eq!(corner.writes_since(mark)?, [""; 0], "a restart finds it, and changes nothing");

    operator.stop().await?;
    let before = templates().await?;
    corner.delete("Secret", KEY).await?;
    let mark = corner.mark()?;
    let operator = start().await?;
    eventually("the digests are keyed anew", || async {
        let now = stamp().await.map_err(|error| error.to_string())?;
        if now.split(':').next() == first.split(':').next() { Err(now) } else { Ok(()) }
    })
    .await?;
    corner.until::<Shop>("one", "Ready", "True").await?;
    corner.look_again(&operator, "Shop", "one").await?;
    assert_eq!(of_key(mark)?, 1, "and made once more");
    let mut now = corner.standing().await?;
    // The generation of a Deployment also changes with its annotations, so the template is compared.
    assert_eq!(templates().await?, before, "no pod is restarted");
    for changed in [&*format!("Secret {KEY}"), "Deployment one-web"] {
        now.insert(changed.to_owned(), standing[changed].clone());
    }
    assert_eq!(now, standing, "and nothing else is touched");

    // The new key still detects a change of content.
    let mut expected = corner.standing().await?;
    corner.change("Secret", "password", text("second")).await?;
    for rolled in ["StatefulSet one-db", "Deployment one-web"] {
        expected.get_mut(rolled).unwrap().1 += 1;
    }
    rolled(&corner, &expected).await?;
    assert_ne!(templates().await?, before);
    operator.stop().await
}

/// Everything that this process logs.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

impl Log {
    /// Returns the log of the process, captured from the first call on.
    fn captured() -> &'static Self {
        static LOG: OnceLock<Log> = OnceLock::new();
        LOG.get_or_init(|| {
            let log = Self::default();
            let subscriber = tracing_subscriber::fmt()
                .with_env_filter("debug,windlass=trace,windlass_runtime=trace")
                .with_writer(log.clone())
                .with_ansi(false)
                .finish();
            tracing::subscriber::set_global_default(subscriber).unwrap();
            log
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_value_and_no_plain_hash_of_one_is_logged_or_written() -> Result<()> {
    let log = Log::captured();
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "secrecy").await?;
    let operator = corner.operate(PlanController::of(Shops::default())).await?;
    let values = ["correct-horse-battery-staple", "the-second-word-of-the-house"];
    corner.namespace.api::<Secret>().create(&PostParams::default(), &password(values[0])).await?;
    corner.namespace.api::<Shop>().create(&PostParams::default(), &shop("one", "shop:1")).await?;
    corner.until::<Shop>("one", "Ready", "True").await?;
    let mut standing = corner.standing().await?;
    corner.change("Secret", "password", text(values[1])).await?;
    for rolled in ["StatefulSet one-db", "Deployment one-web"] {
        standing.get_mut(rolled).unwrap().1 += 1;
    }
    rolled(&corner, &standing).await?;
    let all = corner.everything().await?;
    let generated = all["Secret one-key"]["data"]["key"].as_str().unwrap();
    let generated = String::from_utf8(BASE64_STANDARD.decode(generated)?)?;
    operator.stop().await?;

    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
    let mut traces = Vec::new();
    for value in values.into_iter().chain([&*generated]) {
        let encoded = BASE64_STANDARD.encode(value);
        let data = json!({"password": encoded}).to_string();
        for hidden in [value, &*encoded, &*data] {
            let hash = Sha256::digest(hidden.as_bytes());
            // Written digests are cut, so their beginnings are searched.
            traces.extend([hidden.to_owned(), hex(&hash[..8]), BASE64_STANDARD.encode(&hash[..6])]);
        }
    }
    let log = String::from_utf8(log.0.lock().clone())?;
    assert!(log.contains("one-db"), "the log was captured: {} bytes", log.len());
    for trace in &traces {
        assert!(!log.contains(&**trace), "{trace} is in the log");
        for (id, object) in &all {
            let meant = matches!(&**id, "Secret password" | "Secret one-key");
            assert!(meant || !object.to_string().contains(&**trace), "{trace} is in {id}: {object:#}");
        }
    }
    Ok(())
}
