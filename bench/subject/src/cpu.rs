//! How much time this process has spent on a processor.

/// In nanoseconds: the sum over its threads, as the scheduler counts them.
pub(crate) fn spent_ns() -> anyhow::Result<u64> {
    let mut sum = 0;
    for thread in std::fs::read_dir("/proc/self/task")? {
        // A thread may have ended since.
        let Ok(text) = std::fs::read_to_string(thread?.path().join("schedstat")) else { continue };
        sum += text.split(' ').next().unwrap_or_default().parse::<u64>().unwrap_or(0);
    }
    Ok(sum)
}
