//! A toy operator under torture: the right one survives everything, and each wrong one is caught where it is
//! wrong.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

mod election;
mod toy;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use election::LEASE;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt as _;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, PropagationPolicy};
use serde_json::json;
use toy::{Behaviour, observed, toy};
use windlass_testenv::torture::{Family, Kind, Report, Scene, StepResult, Torture};
use windlass_testenv::{Rules, TestEnv, eventually, or_not_run, rule};

/// An owner is created.
fn created(name: &str, behaviours: &'static [Behaviour]) -> Torture {
    Torture::new(name, move |run| toy(run, behaviours))
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

/// Adds a step that changes the greeting.
fn changed(torture: Torture) -> Torture {
    torture.step("change", |scene| greet(scene, "goodbye"), |scene| is_observed(scene, "goodbye"))
}

/// Adds a step that deletes the owner.
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

/// The problems at each point that failed.
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
    let behaviours = &[Behaviour::Secret, Behaviour::Child, Behaviour::Deployment, Behaviour::Outside];
    let torture = deleted(changed(created("toy", behaviours))).families(Family::KILLS);
    let report = or_not_run!(torture.run(&env).await);
    println!("{report}");
    report.assert_passed();
    assert_eq!((report.undisturbed_writes(), report.points()), (11, 33));
    Ok(())
}

#[tokio::test]
async fn a_right_operator_bears_lost_answers_and_old_views() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let torture = deleted(changed(created("bears", &[Behaviour::Secret, Behaviour::Outside])))
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
        or_not_run!(kill(&env, &Family::KILLS, created("regenerates", &[Behaviour::ForgottenSecret])).await);
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
    let report = or_not_run!(kill(&env, &Family::KILLS, created("twice", &[Behaviour::Generated])).await);
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
        kill(&env, &[Family::Before, Family::After], deleted(created("leaks", &[Behaviour::LeakyOutside])))
            .await
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
    let unrest = || created("unrest", &[Behaviour::Unrest]).calm(Duration::from_millis(500));
    let points = [
        "after:patch:configmaps/owner#1",
        "before:patch:configmaps/owner#1",
        "lost:patch:configmaps/owner#1",
    ];
    let report = or_not_run!(kill(&env, &Family::KILLS, unrest()).await);
    assert_fails_at(&report, &points, "writes so far, undisturbed 1 in all, and 1 more are allowed");
    let report = or_not_run!(kill(&env, &Family::KILLS, unrest().allowance(1_000_000)).await);
    assert_fails_at(&report, &points, "the operator did not come to rest within ");
    Ok(())
}

#[tokio::test]
async fn content_that_goes_back_in_time_is_caught() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let report = or_not_run!(
        kill(
            &env,
            &[Family::Before, Family::After],
            changed(created("restores", &[Behaviour::Child, Behaviour::Journal]))
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
    let torture = created("trusts", &[Behaviour::Cached]).calm(Duration::from_millis(1200));
    let torture = torture.families([Family::Stale]).allowance(100).patience(Duration::from_secs(6));
    let report = or_not_run!(torture.run(&env).await);
    let points = ["stale:create:configmaps/made-*#1", "stale:patch:configmaps/owner#1"];
    assert_fails_at(&report, &points, "ConfigMap made-* was created");
    Ok(())
}

#[tokio::test]
async fn an_owner_that_was_replaced_unobserved_is_not_mistaken_for_the_old_one() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let replaced = |name, behaviours| {
        let torture =
            changed(created(name, behaviours)).reversal("change", "another owner", orphan, create_again);
        torture.families([Family::Unobserved]).patience(Duration::from_secs(5))
    };
    // Who changes an owner reference must be allowed to delete the object.
    let verbs = ["get", "list", "watch", "patch", "create", "delete"];
    let rules = Rules::default().in_namespace(rule("", &["configmaps"], &verbs));
    let right = or_not_run!(replaced("adopts", &[Behaviour::Child]).rights(rules).run(&env).await);
    right.assert_passed();
    assert_eq!(right.points(), 1);
    let careless = or_not_run!(replaced("careless", &[Behaviour::CarelessChild]).run(&env).await);
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

#[tokio::test]
async fn a_standby_takes_over_at_every_write_of_a_leader_that_is_killed_or_suspended() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let behaviours = &[Behaviour::Elected, Behaviour::Secret, Behaviour::Child];
    let torture = changed(created("elected", behaviours)).lease(LEASE);
    let report = or_not_run!(torture.families([Family::Handover, Family::Frozen]).run(&env).await);
    report.assert_passed();
    assert!(report.not_reached().is_empty(), "{report}");
    assert_eq!(report.points(), 2 * report.undisturbed_writes(), "{report}");
    Ok(())
}

#[tokio::test]
async fn seam_m3_a_suspended_leader_that_writes_after_another_led_is_caught() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let torture = created("unfenced", &[Behaviour::Unfenced, Behaviour::Child]).lease(LEASE);
    let report = or_not_run!(torture.families([Family::Frozen]).run(&env).await);
    // After the last write, the annotation of the owner, there is nothing more to write.
    assert_fails_at(
        &report,
        &["frozen:apply:configmaps/child#1"],
        "a suspended leader wrote after another led: patch configmaps {namespace}/owner",
    );
    Ok(())
}

#[tokio::test]
async fn a_standby_that_does_not_know_what_the_leader_made_is_caught() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let torture = created("forgets", &[Behaviour::Elected, Behaviour::ForgottenSecret]).lease(LEASE);
    let report = or_not_run!(torture.families([Family::Handover]).run(&env).await);
    assert_fails_at(&report, &["handover:patch:configmaps/owner#1"], "is created once");
    Ok(())
}

#[tokio::test]
async fn a_right_operator_survives_two_kills_in_a_row_and_one_that_gives_up_is_caught() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let right = created("perseveres", &[Behaviour::Secret, Behaviour::Child]).families([Family::Twice]);
    let report = or_not_run!(right.run(&env).await);
    report.assert_passed();
    assert_eq!((report.undisturbed_writes(), report.points()), (3, 3), "{report}");
    let families = [Family::Before, Family::Twice];
    let report = or_not_run!(kill(&env, &families, created("gives-up", &[Behaviour::GivesUp])).await);
    assert_fails_at(&report, &["twice:apply:configmaps/child#1"], "ConfigMap child is missing");
    Ok(())
}

#[tokio::test]
async fn an_object_that_is_taken_away_for_a_moment_is_caught() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let watched = |name, behaviours| {
        let children = Kind::of::<ConfigMap>().stays_available_where(|map| map.name_any() == "child");
        let torture = Torture::new(name, move |run| toy(run, behaviours)).watch(children);
        let torture = torture.step("create", create, |scene| is_observed(scene, "hello"));
        deleted(changed(torture)).disruptive("delete").families([Family::After])
    };
    let steady = or_not_run!(watched("steady", &[Behaviour::Child]).run(&env).await);
    steady.assert_passed();
    let torture = watched("interrupts", &[Behaviour::Recreated]).patience(Duration::from_secs(3));
    let report = or_not_run!(torture.run(&env).await);
    // Before the first write there is nothing to take away.
    assert_fails_at(
        &report,
        &[
            "after:apply:configmaps/child#1",
            "after:apply:configmaps/child#2",
            "after:patch:configmaps/owner#1",
            "after:patch:configmaps/owner#2",
        ],
        "ConfigMap child was available, and then it was not",
    );
    Ok(())
}

#[tokio::test]
async fn seam_m2_a_delete_without_another_look_at_the_owner_is_caught() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let torture = created("hasty", &[Behaviour::Scratch]).owners("configmaps");
    let report = or_not_run!(torture.families([Family::Before]).run(&env).await);
    let problems = failures(&report);
    let reason = "was deleted without a read of configmaps since its creation";
    assert!(problems["undisturbed"].contains(reason), "{report}");
    let looks = deleted(created("looks", &[Behaviour::Outside])).owners("configmaps");
    or_not_run!(looks.families([Family::Before]).run(&env).await).assert_passed();
    Ok(())
}
