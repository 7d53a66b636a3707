//! Reading metrics in the text format of Prometheus.

/// The sum of all counts whose lines begin with this text.
pub fn sum(metrics: &str, start: &str) -> u64 {
    let lines = metrics.lines().filter(|line| line.starts_with(start));
    // Counts, be they written as 3 or as 3.0.
    let count = |line: &str| line.trim().rsplit_once(' ')?.1.split('.').next()?.parse::<u64>().ok();
    lines.filter_map(count).sum()
}

/// The value of the first sample whose line begins with this text.
pub(super) fn value(metrics: &str, start: &str) -> Option<f64> {
    metrics.lines().find(|line| line.starts_with(start))?.rsplit_once(' ')?.1.parse().ok()
}

/// `Ok` if at least this many reconciles have ended, and none is queued or under way.
pub(super) fn is_idle(metrics: &str, reconciles: u64) -> Result<(), String> {
    let done = sum(metrics, "controller_runtime_reconcile_total");
    let waiting = sum(metrics, "workqueue_depth") + sum(metrics, "controller_runtime_active_workers");
    if done >= reconciles && waiting == 0 { Ok(()) } else { Err(format!("{done} done, {waiting} waiting")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const METRICS: &str = "# TYPE depth gauge\ndepth{queue=\"a\"} 3\ndepth{queue=\"b\"} 4.0\ndeep 9\n";

    #[test]
    fn metric_counts_are_added_up_in_any_notation() {
        assert_eq!(
            (sum(METRICS, "depth"), sum(METRICS, "depth{queue=\"b\"}"), sum(METRICS, "none")),
            (7, 4, 0)
        );
    }

    #[test]
    fn a_value_is_that_of_the_first_line() {
        assert_eq!(value(METRICS, "depth"), Some(3.0));
        assert_eq!(value(METRICS, "none"), None);
    }

    #[test]
    fn an_operator_is_idle_when_enough_was_done_and_nothing_waits() {
        let metrics =
            "controller_runtime_reconcile_total{result=\"success\"} 2\nworkqueue_depth{name=\"x\"} 0\n";
        assert_eq!((is_idle(metrics, 2), is_idle(metrics, 3).is_err()), (Ok(()), true));
        assert!(is_idle(&metrics.replace("} 0", "} 1"), 2).is_err());
    }
}
