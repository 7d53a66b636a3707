//! Each kind of fault, between a real client and the real API server.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use std::time::Duration;

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use kube::api::{Api, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use serde_json::json;
use windlass_testenv::proxy::{Action, Answer, Fault, FaultProxy, Match, RequestVerb, Script, WatchFault};
use windlass_testenv::{Rules, TestEnv, TestNamespace, or_not_run};

/// A client whose calls pass a proxy, and one whose calls do not.
struct Setup {
    namespace: TestNamespace,
    proxy: FaultProxy,
    through: Api<ConfigMap>,
    direct: Api<ConfigMap>,
}

async fn setup(env: &TestEnv, hint: &str) -> Result<Setup> {
    let namespace = env.namespace(hint).await?;
    let user = namespace.client_for("proxied", &Rules::everything()).await?;
    let proxy = env.fault_proxy().await?;
    let through = Api::namespaced(user.client_through(&proxy.url())?, namespace.name());
    let direct = namespace.api();
    Ok(Setup { namespace, proxy, through, direct })
}

fn config_map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}))
        .unwrap()
}

fn code(error: &kube::Error) -> Option<u16> {
    match error {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    }
}

#[tokio::test]
async fn without_faults_the_proxy_is_not_noticed() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let Setup { namespace: _kept, proxy, through, direct } = setup(&env, "transparent").await?;
    through.create(&PostParams::default(), &config_map("m")).await?;
    through.patch("m", &PatchParams::apply("t"), &Patch::Apply(config_map("m"))).await?;
    assert_eq!(through.get("m").await?.uid(), direct.get("m").await?.uid());
    let verbs: Vec<RequestVerb> = proxy.seen().into_iter().map(|seen| seen.request.verb).collect();
    assert_eq!(verbs, [RequestVerb::Create, RequestVerb::Apply, RequestVerb::Get]);
    Ok(())
}

#[tokio::test]
async fn seam_m2_replicas_of_one_user_are_told_apart_in_the_audit_log() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("replicas").await?;
    let user = namespace.client_for("replicated", &Rules::everything()).await?;
    let mark = env.requests()?.mark()?;
    for replica in ["life-1", "life-2"] {
        let proxy = env.fault_proxy().await?;
        proxy.name_replica(replica);
        let maps: Api<ConfigMap> = Api::namespaced(user.client_through(&proxy.url())?, namespace.name());
        maps.create(&PostParams::default(), &config_map(replica)).await?;
    }
    let requests = env.requests()?.since(mark)?.in_namespace(namespace.name()).by_user(user.name());
    for replica in ["life-1", "life-2"] {
        let agents: Vec<&str> = requests
            .iter()
            .filter(|request| request.verb == "create" && request.name == replica)
            .map(|request| &*request.user_agent)
            .collect();
        assert!(matches!(agents[..], [agent] if agent.ends_with(&format!(" {replica}"))), "{agents:?}");
    }
    Ok(())
}

#[tokio::test]
async fn an_answer_of_the_proxys_own_never_reaches_the_server() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let Setup { namespace, proxy, through, direct } = setup(&env, "answers").await?;
    let creates = || Match::verb(RequestVerb::Create).resource("configmaps").namespace(namespace.name());
    proxy.set(Script::from([
        Fault::on(creates()).first().then(Answer::conflict()),
        Fault::on(creates()).nth(2).then(Answer::internal_error()),
    ]));
    for expected in [409, 500] {
        let error = through.create(&PostParams::default(), &config_map("m")).await.unwrap_err();
        assert_eq!(code(&error), Some(expected), "{error}");
        assert!(direct.get_opt("m").await?.is_none());
    }
    through.create(&PostParams::default(), &config_map("m")).await?;
    Ok(())
}

#[tokio::test]
async fn a_client_that_is_told_to_come_back_later_does() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let Setup { namespace: _kept, proxy, through, .. } = setup(&env, "later").await?;
    let list = || Match::verb(RequestVerb::List).resource("configmaps");
    let throttled =
        proxy.add(Fault::on(list()).times(1).then(Answer::too_many_requests(Duration::from_secs(1))));
    let unavailable = proxy.add(Fault::on(list()).times(2).then(Answer::unavailable()));
    through.list(&kube::api::ListParams::default()).await?;
    assert_eq!((throttled.hits(), unavailable.hits()), (1, 2));
    Ok(())
}

#[tokio::test]
async fn a_connection_dropped_before_the_request_changes_nothing() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let Setup { namespace: _kept, proxy, through, direct } = setup(&env, "drop-before").await?;
    proxy.add(Fault::on(Match::verb(RequestVerb::Create)).first().then(Action::DropBefore));
    let error = through.create(&PostParams::default(), &config_map("m")).await.unwrap_err();
    assert_eq!(code(&error), None, "{error}");
    assert!(direct.get_opt("m").await?.is_none());
    Ok(())
}

#[tokio::test]
async fn a_connection_dropped_after_the_commit_hides_it() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let Setup { namespace: _kept, proxy, through, direct } = setup(&env, "drop-after").await?;
    proxy.add(Fault::on(Match::verb(RequestVerb::Create)).first().then(Action::DropAfter));
    let error = through.create(&PostParams::default(), &config_map("m")).await.unwrap_err();
    assert_eq!(code(&error), None, "{error}");
    assert!(direct.get_opt("m").await?.is_some());
    Ok(())
}

#[tokio::test]
async fn a_held_request_reaches_the_server_when_it_is_released() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let Setup { namespace: _kept, proxy, through, direct } = setup(&env, "hold").await?;
    let held = proxy.add(Fault::on(Match::verb(RequestVerb::Create)).first().then(Action::Hold));
    let create = tokio::spawn(async move { through.create(&PostParams::default(), &config_map("m")).await });
    held.wait_for_hits(1).await?;
    assert!(direct.get_opt("m").await?.is_none());
    held.release();
    create.await??;
    assert!(direct.get_opt("m").await?.is_some());
    Ok(())
}

#[tokio::test]
async fn a_held_answer_leaves_the_client_waiting_after_the_commit() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let Setup { namespace: _kept, proxy, through, direct } = setup(&env, "hold-answer").await?;
    let held = proxy.add(Fault::on(Match::verb(RequestVerb::Create)).first().then(Action::HoldAnswer));
    let create = tokio::spawn(async move { through.create(&PostParams::default(), &config_map("m")).await });
    held.wait_for_hits(1).await?;
    assert!(direct.get_opt("m").await?.is_some());
    assert!(!create.is_finished());
    held.release();
    create.await??;
    Ok(())
}

#[tokio::test]
async fn a_delayed_request_arrives() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let Setup { namespace: _kept, proxy, through, .. } = setup(&env, "delay").await?;
    let delayed = proxy.add(
        Fault::on(Match::verb(RequestVerb::Create)).first().then(Action::Delay(Duration::from_millis(50))),
    );
    through.create(&PostParams::default(), &config_map("m")).await?;
    assert_eq!(delayed.hits(), 1);
    Ok(())
}

type Watch = futures::stream::BoxStream<'static, kube::Result<WatchEvent<ConfigMap>>>;

async fn watch(api: &Api<ConfigMap>) -> Result<Watch> {
    Ok(api.watch(&WatchParams::default(), "0").await?.boxed())
}

async fn next_name(watch: &mut Watch) -> Result<String> {
    loop {
        match watch.try_next().await?.context("an event")? {
            WatchEvent::Added(object) if object.name_any() != "kube-root-ca.crt" => {
                return Ok(object.name_any());
            }
            WatchEvent::Error(status) => anyhow::bail!("{} {}", status.code, status.message),
            _ => {}
        }
    }
}

#[tokio::test]
async fn a_frozen_watch_delivers_in_order_when_it_is_released() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let Setup { namespace: _kept, proxy, through, direct } = setup(&env, "freeze").await?;
    let mut events = watch(&through).await?;
    direct.create(&PostParams::default(), &config_map("before")).await?;
    assert_eq!(next_name(&mut events).await?, "before");

    let frozen = proxy.freeze_watches(&Match::watches());
    for name in ["a", "b", "c"] {
        direct.create(&PostParams::default(), &config_map(name)).await?;
    }
    // Another watch of the same server has seen all three: only the frozen one is silent.
    let mut other = watch(&direct).await?;
    while next_name(&mut other).await? != "c" {}
    assert!(futures::poll!(events.next()).is_pending());
    frozen.release();
    for name in ["a", "b", "c"] {
        assert_eq!(next_name(&mut events).await?, name);
    }
    Ok(())
}

#[tokio::test]
async fn a_cut_watch_ends_and_the_next_one_works() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let Setup { namespace: _kept, proxy, through, direct } = setup(&env, "cut").await?;
    let mut events = watch(&through).await?;
    proxy.wait_for_open_watches(&Match::watches(), 1).await?;
    assert_eq!(proxy.cut_watches(&Match::watches()), 1);
    while let Some(Ok(_)) = events.next().await {}

    direct.create(&PostParams::default(), &config_map("after")).await?;
    let mut events = watch(&through).await?;
    assert_eq!(next_name(&mut events).await?, "after");
    Ok(())
}

#[tokio::test]
async fn a_half_open_watch_is_silent_for_ever() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let Setup { namespace: _kept, proxy, through, direct } = setup(&env, "half-open").await?;
    let mut events = watch(&through).await?;
    direct.create(&PostParams::default(), &config_map("before")).await?;
    assert_eq!(next_name(&mut events).await?, "before");
    assert_eq!(proxy.half_open(&Match::watches()), 1);
    direct.create(&PostParams::default(), &config_map("after")).await?;
    let mut other = watch(&through).await?;
    while next_name(&mut other).await? != "after" {}
    assert!(futures::poll!(events.next()).is_pending());
    Ok(())
}

#[tokio::test]
async fn a_watch_is_told_that_its_version_has_expired() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let Setup { namespace: _kept, proxy, through, direct } = setup(&env, "expired").await?;
    proxy.add(Fault::on(Match::watches()).first().then(WatchFault::Error(Answer::expired()).after_events(2)));
    let mut events = watch(&through).await?;
    direct.create(&PostParams::default(), &config_map("a")).await?;
    let mut last = None;
    while let Some(event) = events.next().await {
        last = Some(event?);
    }
    let Some(WatchEvent::Error(status)) = last else { panic!("{last:?}") };
    assert_eq!(status.code, 410);
    Ok(())
}
