//! A toy operator under torture: the right one survives everything, and each wrong one is caught where it is wrong.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

mod toy;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt as _;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, PropagationPolicy};
use serde_json::json;
use toy::{Part, observed, toy};
use windlass_testenv::torture::{Family, Kind, Report, Scene, StepResult, Torture};
use windlass_testenv::{Rules, TestEnv, eventually, or_not_run, rule};

/// An owner is created.
fn created(name: &str, parts: &'static [Part]) -> Torture {
    Torture::new(name, move |run| toy(run, parts))
        .watch(Kind::of::<ConfigMap>())
        .watch(Kind::of::<Secret>().created_once())
        .watch(Kind::of::<Deployment>())
        .normalise(|object| {
            // Names that the server makes up, and noise.
            for annotation in ["generated", "restarted"] {
                object.annotations_mut().remove(annotation);
            }
        })
        .calm(Duration::from_millis(150))
        .step("create", create, |scene| is_observed(scene, "hello"))
}

/// And gets another greeting.
fn changed(torture: Torture) -> Torture {
    torture.step("change", |scene| greet(scene, "goodbye"), |scene| is_observed(scene, "goodbye"))
}

/// And is deleted.
fn deleted(torture: Torture) -> Torture {
    torture.step("delete", delete, is_gone)
}

async fn create(scene: Scene) -> StepResult {
    let owner =
        json!({"metadata": {"name": "owner", "labels": {"toy": "owner"}}, "data": {"greeting": "hello"}});
    scene.api::<ConfigMap>().create(&PostParams::default(), &serde_json::from_value(owner)?).await?;
    Ok(())
}

async fn greet(scene: Scene, greeting: &'static str) -> StepResult {
    let change = Patch::Merge(json!({"data": {"greeting": greeting}}));
    scene.api::<ConfigMap>().patch("owner", &PatchParams::default(), &change).await?;
    Ok(())
}

async fn delete(scene: Scene) -> StepResult {
    scene.api::<ConfigMap>().delete("owner", &DeleteParams::default()).await?;
    Ok(())
}

async fn is_observed(scene: Scene, greeting: &'static str) -> StepResult<bool> {
    Ok(observed(&scene.api::<ConfigMap>().get("owner").await?) == greeting)
}

/// Deletes the owner and leaves what it owned.
async fn orphan(scene: Scene) -> StepResult {
    let owners = scene.api::<ConfigMap>();
    let orphan =
        DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..DeleteParams::default() };
    owners.delete("owner", &orphan).await?;
    eventually("the end of the owner", || async {
        match owners.get_opt("owner").await {
            Ok(None) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    Ok(())
}

/// Creates an owner with the greeting that it had at last.
async fn create_again(scene: Scene) -> StepResult {
    create(scene.clone()).await?;
    greet(scene, "goodbye").await
}

/// The owner, and what it owned.
async fn is_gone(scene: Scene) -> StepResult<bool> {
    let maps = scene.api::<ConfigMap>().list(&ListParams::default()).await?;
    if maps.iter().any(|map| map.name_any() == "owner" || !map.owner_references().is_empty()) {
        return Ok(false);
    }
    Ok(scene.api::<Secret>().list(&ListParams::default()).await?.items.is_empty()
        && scene.api::<Deployment>().list(&ListParams::default()).await?.items.is_empty())
}

/// What was wrong at each point that failed.
fn failures(report: &Report) -> BTreeMap<String, String> {
    let name = |point: &Option<_>| point.as_ref().map_or("undisturbed".to_owned(), ToString::to_string);
    report.failures().into_iter().map(|failure| (name(&failure.point), failure.problems.join("; "))).collect()
}

/// Asserts that a wrong toy fails at exactly these points, for this reason.
fn assert_fails_at(report: &Report, points: &[&str], reason: &str) {
    let failures = failures(report);
    let failed: Vec<&str> = failures.keys().map(String::as_str).collect();
    assert_eq!(failed, points, "{report}");
    assert!(failures.values().all(|problems| problems.contains(reason)), "{report}");
    for point in points {
        assert!(report.to_string().contains(&format!("WINDLASS_TORTURE_POINT='{point}'")), "{report}");
    }
}

#[tokio::test]
async fn a_right_operator_survives_a_kill_at_every_point() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let parts = &[Part::Secret, Part::Child, Part::Deployment, Part::Outside];
    let torture = deleted(changed(created("toy", parts))).families(Family::KILLS);
    let report = or_not_run!(torture.run(&env).await);
    println!("{report}");
    report.assert_passed();
    assert_eq!((report.undisturbed_writes(), report.points()), (11, 33));
    Ok(())
}

#[tokio::test]
async fn a_right_operator_bears_lost_answers_and_old_views() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let torture = deleted(changed(created("bears", &[Part::Secret, Part::Outside])))
        .families([Family::Unanswered, Family::Stale, Family::Unobserved])
        .reversal("change", "another greeting", |scene| greet(scene, "hm"), |scene| greet(scene, "goodbye"));
    let report = or_not_run!(torture.run(&env).await);
    println!("{report}");
    report.assert_passed();
    assert_eq!((report.undisturbed_writes(), report.points()), (7, 15));
    Ok(())
}

/// Kills a wrong toy at every write. What is wrong with it does not get better by waiting.
async fn kill(env: &TestEnv, families: &[Family], torture: Torture) -> windlass_testenv::Result<Report> {
    torture.families(families.iter().copied()).patience(Duration::from_secs(3)).run(env).await
}

#[tokio::test]
async fn a_secret_that_is_made_anew_after_a_restart_is_caught() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let report =
        or_not_run!(kill(&env, &Family::KILLS, created("regenerates", &[Part::ForgottenSecret])).await);
    assert_fails_at(
        &report,
        &[
            "after:apply:secrets/token#1",
            "after:patch:configmaps/owner#1",
            "before:patch:configmaps/owner#1",
            "lost:apply:secrets/token#1",
            "lost:patch:configmaps/owner#1",
        ],
        "Secret token is created once, and its content was changed later",
    );
    Ok(())
}

#[tokio::test]
async fn an_object_that_is_created_twice_is_caught() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let report = or_not_run!(kill(&env, &Family::KILLS, created("twice", &[Part::Generated])).await);
    assert_fails_at(
        &report,
        &[
            "after:create:configmaps/made-*#1",
            "before:patch:configmaps/owner#1",
            "lost:create:configmaps/made-*#1",
        ],
        "ConfigMap made-* was created 2 times, undisturbed 1 times",
    );
    Ok(())
}

#[tokio::test]
async fn an_object_that_stays_behind_is_caught() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let report = or_not_run!(
        kill(&env, &[Family::Before, Family::After], deleted(created("leaks", &[Part::LeakyOutside]))).await
    );
    assert_fails_at(
        &report,
        &["after:patch:configmaps/owner#3", "before:delete:configmaps/outside#1"],
        "step delete: ConfigMap outside is left over",
    );
    Ok(())
}

#[tokio::test]
async fn an_operator_that_never_rests_is_caught() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    // On a busy machine one of its rounds may take longer than the others wait.
    let unrest = || created("unrest", &[Part::Unrest]).calm(Duration::from_millis(500));
    let points = [
        "after:patch:configmaps/owner#1",
        "before:patch:configmaps/owner#1",
        "lost:patch:configmaps/owner#1",
    ];
    let report = or_not_run!(kill(&env, &Family::KILLS, unrest()).await);
    assert_fails_at(&report, &points, "writes so far, undisturbed 1 in all, and 1 more are allowed");
    let report = or_not_run!(kill(&env, &Family::KILLS, unrest().allowance(1_000_000)).await);
    assert_fails_at(&report, &points, "did not come to rest within 3 s; its last requests: ");
    Ok(())
}

#[tokio::test]
async fn content_that_goes_back_in_time_is_caught() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let report = or_not_run!(
        kill(
            &env,
            &[Family::Before, Family::After],
            changed(created("restores", &[Part::Child, Part::Journal]))
        )
        .await
    );
    assert_fails_at(
        &report,
        &["after:patch:configmaps/owner#2", "before:apply:configmaps/journal#2"],
        "step change: ConfigMap child: /data/greeting is \"hello\", undisturbed \"goodbye\"",
    );
    Ok(())
}

#[tokio::test]
async fn a_decision_that_rests_on_an_old_view_is_caught() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    // Longer than the toy waits for its own change to come back.
    let torture = created("trusts", &[Part::Cached]).calm(Duration::from_millis(1200));
    let torture = torture.families([Family::Stale]).allowance(100).patience(Duration::from_secs(6));
    let report = or_not_run!(torture.run(&env).await);
    let points = ["stale:create:configmaps/made-*#1", "stale:patch:configmaps/owner#1"];
    assert_fails_at(&report, &points, "ConfigMap made-* was created");
    Ok(())
}

#[tokio::test]
async fn an_owner_that_was_replaced_unobserved_is_not_mistaken_for_the_old_one() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let replaced = |name, parts| {
        let torture = changed(created(name, parts)).reversal("change", "another owner", orphan, create_again);
        torture.families([Family::Unobserved]).patience(Duration::from_secs(5))
    };
    // Who changes an owner reference must be allowed to delete the object.
    let verbs = ["get", "list", "watch", "patch", "create", "delete"];
    let rules = Rules::default().in_namespace(rule("", &["configmaps"], &verbs));
    let right = or_not_run!(replaced("adopts", &[Part::Child]).rights(rules).run(&env).await);
    right.assert_passed();
    assert_eq!(right.points(), 1);
    let careless = or_not_run!(replaced("careless", &[Part::CarelessChild]).run(&env).await);
    let reason = "ConfigMap child: /metadata/ownerReferences is not there";
    assert_fails_at(&careless, &["unobserved:change:another owner"], reason);
    Ok(())
}

#[tokio::test]
async fn an_operator_that_ends_by_itself_fails_without_any_disturbance() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let torture = Torture::new("ends", |_| async { Err::<(), _>("no leader") })
        .watch(Kind::of::<ConfigMap>())
        .step("create", create, |scene| is_observed(scene, "hello"));
    let report = or_not_run!(torture.run(&env).await);
    let problems = failures(&report);
    assert_eq!(
        problems,
        [("undisturbed", "step create: the operator ended by itself: Err(\"no leader\")")]
            .map(|(point, problem)| (point.to_owned(), problem.to_owned()))
            .into(),
    );
    Ok(())
}
