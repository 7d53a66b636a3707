//! What is written for users, against what the program is.

use std::path::Path;

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
fn every_reason_is_told_with_what_to_do() {
    let page = page(TROUBLESHOOTING);
    for reason in windlass::Reason::ALL {
        let row = format!("| `{}` | ", reason.as_str());
        // With what happened and what to do: a table of three columns.
        let is_told = |line: &str| line.starts_with(&row) && line.split(" | ").count() == 3;
        assert_eq!(page.lines().filter(|line| is_told(line)).count(), 1, "{reason:?} in {TROUBLESHOOTING}");
    }
}
