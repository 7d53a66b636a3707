//! Reading the output of a test binary.

/// The names in the output of `--list --format terse`.
pub(super) fn names(list: &str) -> impl Iterator<Item = &str> {
    list.lines().filter_map(|line| line.strip_suffix(": test"))
}

/// The tests that failed. Empty if the binary ended without a verdict, for example by a signal.
pub(super) fn failed(output: &str) -> Vec<String> {
    // Tests print too, and not always whole lines: the list at the end is reliable, the verdicts are not.
    let list = output.rsplit_once("\nfailures:\n").map_or("", |(_, list)| list);
    let names = list.lines().skip_while(|line| line.is_empty()).take_while(|line| line.starts_with("    "));
    names.map(|name| name.trim().to_owned()).collect()
}

/// The tests that were reported as slow and have no verdict.
pub(super) fn unfinished(output: &str) -> Vec<String> {
    let slow = output.lines().filter_map(|line| {
        let (name, rest) = line.split_once("test ")?.1.split_once(' ')?;
        rest.starts_with("has been running for over").then_some(name)
    });
    let ended = |name: &str| {
        ["ok", "FAILED"].iter().any(|verdict| output.contains(&format!("test {name} ... {verdict}")))
    };
    slow.filter(|name| !ended(name)).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tests_are_told_from_benches() {
        let list = "a::b: test\nc: test\nd: benchmark\n";
        assert_eq!(names(list).collect::<Vec<_>>(), ["a::b", "c"]);
    }

    #[test]
    fn failed_tests_are_those_of_the_last_list() {
        let output = "test a ... FAILED\ntest b ... ok\n\nfailures:\n\n---- a stdout ----\nfailures:\nno\n\n\n\
                      failures:\n    a\n    c::d\n\ntest result: FAILED. 1 passed; 2 failed\n";
        assert_eq!(failed(output), ["a", "c::d"]);
        assert!(failed("Segmentation fault\n").is_empty());
    }

    #[test]
    fn a_slow_test_without_a_verdict_is_unfinished() {
        let output = "test a has been running for over 60 seconds\ntest b has been running for over 60 seconds\n\
                      test a ... ok\n";
        assert_eq!(unfinished(output), ["b"]);
    }
}
