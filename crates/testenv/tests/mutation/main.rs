//! A toy operator under mutation: the sound one passes, and each flaw of the other one is found out by the id
//! of its field.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod toy;

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use toy::{definition, toy};
use windlass_testenv::mutation::Mutation;
use windlass_testenv::torture::Kind;
use windlass_testenv::{TestEnv, or_not_run};

const FLAWS: [(&str, &str); 4] = [
    ("spec.ignored=change", "IGNORED"),
    ("spec.restless=change", "HOT-LOOP"),
    ("spec.slow=change", "HANG"),
    ("spec.sticky=change", "WAY-BACK"),
];

fn mutation(name: &str, flawed: bool) -> Mutation {
    let base = json!({"metadata": {"name": "toy"}, "spec": {"greeting": "hello", "size": 2}});
    Mutation::new(name, &definition(), base, move |run| toy(run, flawed))
        .watch(Kind::of::<ConfigMap>())
        .grace(Duration::from_secs(3))
        .patience(Duration::from_secs(20))
        .lanes(4)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sound_operator_passes_every_case() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    env.install_crds(&[definition()]).await?;
    let report = mutation("mutation-sound", false).run(&env).await?;
    println!("{report}");
    report.assert_passed();
    assert_eq!(report.cases(), report.total());
    for (id, finding) in [
        ("spec.greeting=change", "effect"),
        ("spec.greeting=invalid:!not-valid!", "reported"),
        ("spec.greeting=removed", "effect"),
        ("spec.labels=change", "effect"),
        ("spec.size=invalid:11", "refused"),
        ("spec.sticky=change", "effect"),
        ("spec.sticky=invalid:seven", "refused"),
    ] {
        assert_eq!(report.finding(id), Some(finding), "{id}\n{report}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ignored_field_a_hang_a_hot_loop_and_a_way_back_that_differs_are_found_out() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    env.install_crds(&[definition()]).await?;
    let report = mutation("mutation-flawed", true).run(&env).await?;
    println!("{report}");
    let found: Vec<(&str, &str)> = report.failures().iter().map(|(id, word, _)| (*id, *word)).collect();
    assert_eq!(found, FLAWS, "{report}");
    let message = |id: &str| report.failures().iter().find(|one| one.0 == id).unwrap().2.to_owned();
    assert!(message("spec.sticky=change").contains("ConfigMap switch-sticky is left over"), "{report}");
    assert!(message("spec.restless=change").contains("switch-restless"), "{report}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn flaws_that_the_file_of_exceptions_lists_fail_the_test_only_when_they_are_mended() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    env.install_crds(&[definition()]).await?;
    let exceptions = "no-effect spec.ignored the field is kept for old manifests
        defect spec.restless=change writes without end
        defect spec.slow=change hangs
        defect spec.sticky=change leaves a ConfigMap behind";
    let report = mutation("mutation-listed", true).exceptions(exceptions).run(&env).await?;
    report.assert_passed();
    assert_eq!(report.finding("spec.ignored=change"), Some("listed"));
    assert_eq!(report.finding("spec.slow=change"), Some("defect"));

    let report = mutation("mutation-mended", false).exceptions(exceptions).run(&env).await?;
    let found: Vec<(&str, &str)> = report.failures().iter().map(|(id, word, _)| (*id, *word)).collect();
    assert_eq!(found, FLAWS.map(|(id, _)| (id, "MENDED")), "{report}");
    Ok(())
}

#[tokio::test]
async fn a_mistake_in_a_file_is_told_before_anything_runs() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let mutation =
        mutation("mutation-mistakes", false).values("spec.gone = 1").exceptions("defect spec.size");
    let report = mutation.run(&env).await?;
    assert_eq!((report.cases(), report.mistakes().len(), report.passed()), (0, 2, false), "{report}");
    Ok(())
}
