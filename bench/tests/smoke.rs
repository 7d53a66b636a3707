//! Every workload once, tiny: both programs do what they are measured for, and every guard holds. No times
//! are looked at.

use std::process::Command;

#[test]
fn every_workload_passes_its_guards_with_every_subject() {
    let output = Command::new(env!("CARGO_BIN_EXE_bench"))
        .args(["smoke", "--debug-subject"])
        .output()
        .expect("the harness starts");
    let (tables, progress) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{progress}");
    for workload in ["W1", "W2", "W3", "W4", "W5", "W6", "W9", "W10", "SOAK"] {
        assert!(tables.contains(&format!("## {workload}: ")), "{workload} is missing:\n{progress}");
    }
    // A row with a dash was not measured.
    let empty: Vec<&str> =
        tables.lines().filter(|line| line.starts_with("| ") && line.contains("| – | – | – |")).collect();
    assert!(empty.is_empty(), "{empty:#?}");
}
