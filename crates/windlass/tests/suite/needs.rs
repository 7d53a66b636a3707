//! Needs: asking starts a watch, an unknown answer is not "absent", and rounds end.

use std::sync::Arc;

use anyhow::Result;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::{Value, json};
use windlass::{Blueprint, Controls, Kinds, Known, Needs, Plan, PlanController, PlanError};
use windlass_runtime::cache::Shape;
use windlass_runtime::meta::Meta;
use windlass_testenv::proxy::{Action, Answer, Fault, Match, RequestVerb};
use windlass_testenv::{TestEnv, eventually, or_not_run};

use super::kit::bundle::{Bundle, BundleSpec};
use super::kit::{Corner, Operator};

const HERD: &str = "test.windlass.dev/herd";

fn map(name: &str, text: &str) -> Result<ConfigMap, PlanError> {
    Ok(serde_json::from_value(json!({"metadata": {"name": name}, "data": {"text": text}}))?)
}

async fn create(corner: &Corner, name: &str) -> Result<()> {
    let bundle = Bundle::new(name, BundleSpec::default());
    corner.namespace.api::<Bundle>().create(&PostParams::default(), &bundle).await?;
    Ok(())
}

async fn make(corner: &Corner, object: Value) -> Result<()> {
    let secrets: Api<Secret> = corner.namespace.api();
    secrets.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
    Ok(())
}

/// A blueprint that asks for one more Secret whenever it knows the previous ones: without end, once `only` is
/// set.
struct Endless;

impl Controls for Endless {
    type Owner = Bundle;
    const NAME: &'static str = "endless.test.windlass.dev";

    fn kinds(&self, kinds: &mut Kinds) {
        kinds.owns::<ConfigMap>().requires::<Secret>();
    }
}

impl Blueprint for Endless {
    fn draw(&self, bundle: &Bundle, needs: &mut Needs<'_>, plan: &mut Plan) -> Result<(), PlanError> {
        plan.add(map("always", "a")?);
        if bundle.spec.only.is_none() {
            plan.add(map("at-first", "b")?);
            return Ok(());
        }
        let mut link = 0;
        while link < 100 && needs.exists::<Secret>(format!("link-{link}")).is_known() {
            link += 1;
        }
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_never_stops_asking_waits_with_few_watches_and_changes_nothing() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "endless").await?;
    let proxy = corner.env.fault_proxy().await?;
    let config = corner.user.config_through(&proxy.url())?;
    let operator = Operator::with(config, corner.namespace.name(), PlanController::of(Endless))?;
    operator.ready().await?;
    create(&corner, "one").await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;

    let mark = corner.mark()?;
    corner.change("Bundle", "one", json!({"spec": {"only": 1}})).await?;
    let message = "Secret link-3 at last, for Secret link-2 before that";
    let (reason, _) = corner.until_message::<Bundle>("one", "Ready", "False", message).await?;
    assert_eq!(reason, "Waiting");
    let watched = Match::watches().resource("secrets");
    for _ in 0..3 {
        corner.look_again(&operator, "Bundle", "one").await?;
        assert_eq!(proxy.open_watches(&watched), 4, "it asks for the same few each time");
    }
    let writes = corner.writes_since(mark)?;
    assert!(writes.iter().all(|write| write.contains("bundles/status")), "{writes:#?}");
    corner.object("ConfigMap", "at-first").await?;

    // An object that it asked for changes: the plan is drawn again, and gets no further.
    let before = operator.reconciles();
    make(&corner, json!({"metadata": {"name": "link-0"}})).await?;
    operator.looked_after(before).await?;
    assert_eq!(proxy.open_watches(&watched), 4);

    corner.change("Bundle", "one", json!({"spec": {"only": null}})).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    proxy.wait_for_open_watches(&watched, 0).await?;
    operator.stop().await
}

/// A blueprint that asks for a Secret that need not exist, and ignores the answer.
struct Careless;

impl Controls for Careless {
    type Owner = Bundle;
    const NAME: &'static str = "careless.test.windlass.dev";

    fn kinds(&self, kinds: &mut Kinds) {
        kinds.owns::<ConfigMap>().requires::<Secret>();
    }
}

impl Blueprint for Careless {
    fn draw(&self, bundle: &Bundle, needs: &mut Needs<'_>, plan: &mut Plan) -> Result<(), PlanError> {
        needs.read_if_there::<Secret>("extra");
        plan.add(map("always", "a")?);
        plan.add(map("at-first", "b")?).when(bundle.spec.only.is_none());
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_pruned_while_an_answer_is_unknown_even_if_the_blueprint_ignores_it() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "careless").await?;
    let proxy = corner.env.fault_proxy().await?;
    let start = || async {
        let config = corner.user.config_through(&proxy.url())?;
        let operator = Operator::with(config, corner.namespace.name(), PlanController::of(Careless))?;
        operator.ready().await?;
        anyhow::Ok(operator)
    };
    let operator = start().await?;
    create(&corner, "one").await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    operator.stop().await?;

    let unread = Match::verbs([RequestVerb::List, RequestVerb::Watch]).resource("secrets");
    proxy.add(Fault::on(unread).then(Answer::new(500, "InternalError", "etcd has a cold")));
    let operator = start().await?;
    let mark = corner.mark()?;
    corner.change("Bundle", "one", json!({"spec": {"only": 1}})).await?;
    let (reason, _) = corner.until_message::<Bundle>("one", "Ready", "False", "Secret extra").await?;
    assert_eq!(reason, "InputMissing");
    corner.look_again(&operator, "Bundle", "one").await?;
    let deletes = |mark| anyhow::Ok(corner.requests_since(mark)?.filter(|one| one.verb == "delete").count());
    assert_eq!(deletes(mark)?, 0);
    corner.object("ConfigMap", "at-first").await?;

    // Only the end of the first list wakes the owner.
    proxy.clear();
    corner.until::<Bundle>("one", "Ready", "True").await?;
    corner.gone("ConfigMap", "at-first").await?;
    assert_eq!(deletes(mark)?, 1);
    operator.stop().await
}

/// A blueprint that requires a Secret.
struct Patient;

impl Controls for Patient {
    type Owner = Bundle;
    const NAME: &'static str = "patient.test.windlass.dev";

    fn kinds(&self, kinds: &mut Kinds) {
        kinds.owns::<ConfigMap>().requires::<Secret>();
    }
}

impl Blueprint for Patient {
    fn draw(&self, bundle: &Bundle, needs: &mut Needs<'_>, plan: &mut Plan) -> Result<(), PlanError> {
        let secret = needs.require::<Secret>(bundle.name_any());
        plan.add(map(&bundle.name_any(), "a")?).after([secret]);
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_first_list_wakes_the_owners_that_asked_with_or_without_the_object() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "first-list").await?;
    let proxy = corner.env.fault_proxy().await?;
    let config = corner.user.config_through(&proxy.url())?;
    let operator = Operator::with(config, corner.namespace.name(), PlanController::of(Patient))?;
    operator.ready().await?;
    let lists = Match::verbs([RequestVerb::List, RequestVerb::Watch]).resource("secrets");
    let held = proxy.add(Fault::on(lists).then(Action::Hold));
    create(&corner, "with").await?;
    create(&corner, "without").await?;
    held.wait_for_hits(2).await?;
    // The pass ends before the list does.
    for name in ["with", "without"] {
        let message = format!("Secret {name}: it ");
        corner.until_message::<Bundle>(name, "Ready", "False", &message).await?;
    }
    make(&corner, json!({"metadata": {"name": "with"}})).await?;
    proxy.clear();
    held.release();
    corner.until::<Bundle>("with", "Ready", "True").await?;
    let message = "Secret without: it does not exist: create it, or change the reference to it";
    let (reason, _) = corner.until_message::<Bundle>("without", "Ready", "False", message).await?;
    assert_eq!(reason, "InputMissing");
    let before = operator.reconciles();
    make(&corner, json!({"metadata": {"name": "without"}})).await?;
    operator.looked_after(before).await?;
    corner.until::<Bundle>("without", "Ready", "True").await?;
    operator.stop().await
}

/// A blueprint that asks for the same Secret several times, in several ways.
struct Repeater;

impl Controls for Repeater {
    type Owner = Bundle;
    const NAME: &'static str = "repeater.test.windlass.dev";

    fn kinds(&self, kinds: &mut Kinds) {
        kinds.owns::<ConfigMap>().requires::<Secret>();
    }
}

impl Blueprint for Repeater {
    fn draw(&self, bundle: &Bundle, needs: &mut Needs<'_>, plan: &mut Plan) -> Result<(), PlanError> {
        let first = needs.require::<Secret>("shared");
        let second = needs.require::<Secret>("shared");
        let exists = needs.exists::<Secret>("shared");
        let text = format!("{:?}", exists.known());
        plan.add(map(&bundle.name_any(), &text)?).after([first, second]);
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn asking_twice_for_the_same_object_is_one_watch() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "repeater").await?;
    let proxy = corner.env.fault_proxy().await?;
    let config = corner.user.config_through(&proxy.url())?;
    let operator = Operator::with(config, corner.namespace.name(), PlanController::of(Repeater))?;
    operator.ready().await?;
    for name in ["one", "two"] {
        create(&corner, name).await?;
        corner.until_message::<Bundle>(name, "Ready", "False", "Secret shared").await?;
    }
    make(&corner, json!({"metadata": {"name": "shared"}})).await?;
    for name in ["one", "two"] {
        corner.until::<Bundle>(name, "Ready", "True").await?;
        assert_eq!(corner.object("ConfigMap", name).await?["data"]["text"], "Some(true)");
    }
    let watched = Match::watches().resource("secrets");
    assert_eq!(proxy.open_watches(&watched), 1, "one for all owners and all ways to ask");

    // The watch is shared: it ends with the last owner that asks, not with the first.
    corner.delete("Bundle", "one").await?;
    corner.gone("Bundle", "one").await?;
    corner.look_again(&operator, "Bundle", "two").await?;
    assert_eq!(proxy.open_watches(&watched), 1);
    corner.delete("Bundle", "two").await?;
    proxy.wait_for_open_watches(&watched, 0).await?;
    operator.stop().await
}

/// A blueprint that requires a Secret of another namespace.
struct Neighbour {
    namespace: String,
}

impl Controls for Neighbour {
    type Owner = Bundle;
    const NAME: &'static str = "neighbour.test.windlass.dev";

    fn kinds(&self, kinds: &mut Kinds) {
        kinds.owns::<ConfigMap>().requires::<Secret>();
    }
}

impl Blueprint for Neighbour {
    fn draw(&self, bundle: &Bundle, needs: &mut Needs<'_>, plan: &mut Plan) -> Result<(), PlanError> {
        let secret = needs.require_in::<Secret>(&self.namespace, "shared");
        plan.add(map(&bundle.name_any(), "a")?).after([secret]);
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_required_in_another_namespace_is_watched_and_awaited_there_only() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "neighbour").await?;
    let other = corner.env.namespace("neighbour-other").await?;
    let proxy = corner.env.fault_proxy().await?;
    let config = corner.user.config_through(&proxy.url())?;
    let blueprint = Neighbour { namespace: other.name().to_owned() };
    let operator = Operator::with(config, corner.namespace.name(), PlanController::of(blueprint))?;
    operator.ready().await?;
    // A Secret of the same name in the owner's namespace is another one.
    make(&corner, json!({"metadata": {"name": "shared"}})).await?;
    create(&corner, "one").await?;
    let missing = format!("Secret {}/shared: it does not exist", other.name());
    let (reason, _) = corner.until_message::<Bundle>("one", "Ready", "False", &missing).await?;
    assert_eq!(reason, "InputMissing");
    assert!(corner.object("ConfigMap", "one").await.is_err(), "it comes after the Secret");

    let secrets: Api<Secret> = other.api();
    let shared = serde_json::from_value(json!({"metadata": {"name": "shared"}}))?;
    secrets.create(&PostParams::default(), &shared).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    corner.object("ConfigMap", "one").await?;
    let watched = Match::watches().resource("secrets");
    assert_eq!(proxy.open_watches(&watched.clone().namespace(other.name())), 1);
    assert_eq!(proxy.open_watches(&watched), 1, "none in the owner's namespace");

    // Its deletion wakes the owner.
    secrets.delete("shared", &DeleteParams::default()).await?;
    corner.until_message::<Bundle>("one", "Ready", "False", &missing).await?;
    operator.stop().await
}

/// The shape in which a member of a herd is kept.
#[derive(serde::Deserialize)]
struct Member {
    metadata: Meta,
}

impl Shape for Member {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

/// A blueprint that lists the objects that carry the owner's name in a label.
struct Shepherd;

impl Controls for Shepherd {
    type Owner = Bundle;
    const NAME: &'static str = "shepherd.test.windlass.dev";

    fn kinds(&self, kinds: &mut Kinds) {
        kinds.owns::<ConfigMap>().lists::<Secret, Member>(HERD);
    }
}

impl Blueprint for Shepherd {
    fn draw(&self, bundle: &Bundle, needs: &mut Needs<'_>, plan: &mut Plan) -> Result<(), PlanError> {
        let name = bundle.name_any();
        match needs.labelled::<Secret, Member>(HERD, &name) {
            Known::Known(members) => {
                let names = |member: &Arc<Member>| member.metadata.name().to_owned();
                let mut members: Vec<String> = members.iter().map(names).collect();
                members.sort();
                plan.add(map(&name, &members.join(" "))?);
            }
            Known::Unknown(why) => {
                plan.pending::<ConfigMap>(&name, why);
            }
        }
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_with_a_label_are_listed_by_its_value_from_one_watch() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "herd").await?;
    let proxy = corner.env.fault_proxy().await?;
    let config = corner.user.config_through(&proxy.url())?;
    let sheep = |name: &str, herd: &str| json!({"metadata": {"name": name, "labels": {HERD: herd}}});
    make(&corner, sheep("dolly", "one")).await?;
    let operator = Operator::with(config, corner.namespace.name(), PlanController::of(Shepherd))?;
    operator.ready().await?;
    for name in ["one", "two", "three"] {
        create(&corner, name).await?;
        corner.until::<Bundle>(name, "Ready", "True").await?;
    }
    let herd = |name: &'static str, members: &'static str| {
        let corner = &corner;
        async move {
            eventually(format!("the herd of {name} is {members:?}"), || async {
                let map = corner.object("ConfigMap", name).await.map_err(|error| error.to_string())?;
                let text = map["data"]["text"].as_str().unwrap_or_default();
                if text == members { Ok(()) } else { Err(text.to_owned()) }
            })
            .await
        }
    };
    herd("one", "dolly").await?;
    herd("two", "").await?;
    make(&corner, sheep("molly", "two")).await?;
    herd("two", "molly").await?;
    // The object moves from one herd to the other: both owners are woken.
    corner.change("Secret", "molly", json!({"metadata": {"labels": {HERD: "one"}}})).await?;
    herd("one", "dolly molly").await?;
    herd("two", "").await?;
    corner.delete("Secret", "dolly").await?;
    herd("one", "molly").await?;
    assert_eq!(proxy.open_watches(&Match::watches().resource("secrets")), 1, "one for all owners and values");
    operator.stop().await
}

/// A blueprint that keeps a ConfigMap that has left its plan, as long as the spec says so.
struct Keeper;

impl Controls for Keeper {
    type Owner = Bundle;
    const NAME: &'static str = "keeper.test.windlass.dev";

    fn kinds(&self, kinds: &mut Kinds) {
        kinds.owns::<ConfigMap>();
    }
}

impl Blueprint for Keeper {
    fn draw(&self, bundle: &Bundle, _: &mut Needs<'_>, plan: &mut Plan) -> Result<(), PlanError> {
        plan.add(map("always", "a")?);
        plan.add(map("another", "a")?);
        match bundle.spec.only {
            None => {
                plan.add(map("data", "b")?);
            }
            Some(1) => {
                let kept = plan.keep::<ConfigMap>("data");
                plan.add(map("later", "c")?).after([kept]);
            }
            Some(_) => {}
        }
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_object_is_neither_written_nor_pruned_and_delays_no_other_node() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "keep").await?;
    let operator = corner.operate(PlanController::of(Keeper)).await?;
    create(&corner, "one").await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    let mark = corner.mark()?;
    corner.change("Bundle", "one", json!({"spec": {"only": 1}})).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    corner.object("ConfigMap", "later").await?;
    corner.change("ConfigMap", "data", json!({"data": {"text": "theirs"}})).await?;
    corner.look_again(&operator, "Bundle", "one").await?;
    let of_it = corner.writes_since(mark)?.into_iter().filter(|write| write.ends_with(" data"));
    assert_eq!(of_it.collect::<Vec<_>>(), [""; 0]);
    assert_eq!(corner.object("ConfigMap", "data").await?["data"]["text"], "theirs");
    corner.change("Bundle", "one", json!({"spec": {"only": 2}})).await?;
    corner.gone("ConfigMap", "data").await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    operator.stop().await
}
