//! Kernel statistics of a process.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use tokio::task::AbortHandle;

/// The sampling interval.
const EVERY: Duration = Duration::from_millis(100);
/// The kernel counts CPU time in these; the same on every Linux that we know of.
const TICKS_PER_SECOND: f64 = 100.0;

/// A process at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Usage {
    pub(crate) rss: u64,
    /// The most that it ever was.
    pub(crate) peak: u64,
    pub(crate) threads: u64,
    /// Seconds on a processor, of all threads that ever were; in hundredths.
    pub(crate) cpu: f64,
}

/// A process now.
pub(crate) fn usage(pid: u32) -> Result<Usage> {
    let status = read(pid, "status")?;
    let stat = read(pid, "stat")?;
    Ok(Usage {
        rss: kilobytes(&status, "VmRSS:").unwrap_or(0),
        peak: kilobytes(&status, "VmHWM:").unwrap_or(0),
        threads: number(&status, "Threads:").unwrap_or(0),
        cpu: ticks(&stat).context("the process's CPU time")? / TICKS_PER_SECOND,
    })
}

/// Seconds on a processor, of the threads that it has now; in nanoseconds.
pub(crate) fn cpu(pid: u32) -> Result<f64> {
    let mut sum = 0u64;
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread may have ended since.
        let Ok(text) = fs::read_to_string(thread?.path().join("schedstat")) else { continue };
        sum += text.split(' ').next().unwrap_or_default().parse::<u64>().unwrap_or(0);
    }
    Ok(sum as f64 / 1e9)
}

/// Memory with its share of what it has in common with others. The kernel walks through all pages for it: not
/// to be asked often.
pub(crate) fn proportional(pid: u32) -> Result<u64> {
    kilobytes(&read(pid, "smaps_rollup")?, "Pss:").context("the process's PSS")
}

fn read(pid: u32, file: &str) -> Result<String> {
    let path = format!("/proc/{pid}/{file}");
    fs::read_to_string(&path).with_context(|| format!("reading {path}"))
}

fn number(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().trim_end_matches(" kB").trim().parse().ok()
}

fn kilobytes(text: &str, name: &str) -> Option<u64> {
    number(text, name).map(|kilobytes| kilobytes * 1024)
}

/// Parses user and system time after the name, which may contain anything.
fn ticks(stat: &str) -> Option<f64> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |index: usize| fields.get(index)?.parse::<f64>().ok();
    Some(field(11)? + field(12)?)
}

/// Looks at a process every 100 ms for as long as it is kept.
pub(crate) struct Sampler {
    seen: Arc<std::sync::Mutex<Vec<(Instant, Usage)>>>,
    task: AbortHandle,
}

impl Sampler {
    pub(crate) fn start(pid: u32) -> Self {
        let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
        let kept = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            let mut every = tokio::time::interval(EVERY);
            loop {
                every.tick().await;
                // Gone: there is nothing more to see.
                let Ok(usage) = usage(pid) else { return };
                let Ok(mut seen) = kept.lock() else { return };
                seen.push((Instant::now(), usage));
            }
        });
        Self { seen, task: task.abort_handle() }
    }

    /// The resident memory since that moment, as a series.
    pub(crate) fn resident_since(&self, since: Instant) -> Vec<f64> {
        let Ok(seen) = self.seen.lock() else { return Vec::new() };
        seen.iter().filter(|(at, _)| *at >= since).map(|(_, usage)| usage.rss as f64).collect()
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_found_after_a_name_with_blanks_and_brackets() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 1 0 100 1000 10";
        assert_eq!(ticks(stat), Some(300.0));
    }

    #[test]
    fn memory_is_in_bytes() {
        let status = "Name:\tx\nVmHWM:\t     200 kB\nVmRSS:\t     100 kB\nThreads:\t4\n";
        assert_eq!(kilobytes(status, "VmRSS:"), Some(102_400));
        assert_eq!(number(status, "Threads:"), Some(4));
        assert_eq!(number(status, "Other:"), None);
    }

    #[test]
    fn this_process_can_be_seen() {
        let usage = usage(std::process::id()).unwrap();
        assert!(usage.rss > 0 && usage.peak >= usage.rss / 2 && usage.threads > 0);
    }
}
