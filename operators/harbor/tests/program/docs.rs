//! Compares the documentation for users with the program.

use std::path::Path;

use harbor_operator::api::status;
use harbor_operator::schema::{Reading, Schema};
use windlass::condition;

const REFERENCE: &str = "../../docs/harbor/reference.md";
const TROUBLESHOOTING: &str = "../../docs/harbor/troubleshooting.md";

fn page(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap_or_default()
}

#[test]
fn the_reference_is_up_to_date() {
    let made =
        windlass_operator::reference(&harbor_operator::operator(), &["HarborCluster", "Harbor"]).unwrap();
    assert!(
        page(REFERENCE) == made,
        "refresh it with: cargo run -p harbor-operator -- reference HarborCluster Harbor > docs/harbor/reference.md"
    );
}

#[test]
fn every_reason_is_documented_with_what_to_do() {
    let page = page(TROUBLESHOOTING);
    for reason in windlass::Reason::ALL {
        let row = format!("| `{}` | ", reason.as_str());
        // With what happened and what to do: a table of three columns.
        let is_told = |line: &str| line.starts_with(&row) && line.split(" | ").count() == 3;
        assert_eq!(page.lines().filter(|line| is_told(line)).count(), 1, "{reason:?} in {TROUBLESHOOTING}");
    }
}

#[test]
fn every_harbor_condition_and_reason_is_documented() {
    let page = page(TROUBLESHOOTING);
    let is_told = |row: &str| page.lines().any(|line| line.starts_with(row));
    let standard =
        [condition::READY, condition::PROGRESSING, condition::FAILED, condition::DEGRADED, condition::ADVICE];
    for name in standard.into_iter().chain(status::condition::ALL) {
        assert!(is_told(&format!("| `{name}` | ")), "the condition {name} in {TROUBLESHOOTING}");
    }
    assert!(is_told(&format!("| `{}` | ", status::NOT_READY)));
    let at = |dirty| Reading::At(Schema { version: 180, dirty });
    for reading in [Reading::Empty, at(false), at(true), Reading::Unread("no route".into())] {
        let condition = reading.condition();
        let (status, reason) = (condition["status"].as_str().unwrap(), condition["reason"].as_str().unwrap());
        assert!(is_told(&format!("| `{status}`, `{reason}` | ")), "{reading:?} in {TROUBLESHOOTING}");
    }
}
