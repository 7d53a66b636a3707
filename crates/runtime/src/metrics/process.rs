//! Metrics of the process and its build, under the names of Prometheus' own client libraries.
//!
//! Read from `/proc` at scrape time; a figure that cannot be read is left out, as on other systems than
//! Linux.

use std::fmt;
use std::fs;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use rustix::time::{ClockId, clock_gettime};

/// The unit of times in `/proc/self/stat`: Linux has reported 100 ticks per second on all platforms since
/// 2.6.
const TICKS_PER_SECOND: f64 = 100.0;

/// The program and its version, as `windlass_build_info` shows them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Build {
    program: String,
    version: String,
    runtime_version: String,
}

#[derive(Clone, Debug)]
pub(super) struct ProcessCollector {
    build: Arc<Mutex<Build>>,
    /// The start time in seconds since 1970. It is read once, so that an adjusted clock does not look like a
    /// restart.
    started: Option<f64>,
}

impl ProcessCollector {
    pub(super) fn new() -> Self {
        let build = Build { runtime_version: env!("CARGO_PKG_VERSION").to_owned(), ..Build::default() };
        Self { build: Arc::new(Mutex::new(build)), started: started() }
    }

    pub(super) fn set_build(&self, program: String, version: String) {
        let mut build = self.build.lock();
        *build = Build { program, version, runtime_version: build.runtime_version.clone() };
    }
}

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mut gauge = |name: &str, help: &str, value: Option<f64>| match value {
            None => Ok(()),
            Some(value) => {
                let encoder = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
                ConstGauge::new(value).encode(encoder)
            }
        };
        gauge("process_resident_memory_bytes", "Resident memory size in bytes", bytes(&status, "VmRSS:"))?;
        gauge("process_virtual_memory_bytes", "Virtual memory size in bytes", bytes(&status, "VmSize:"))?;
        gauge("process_open_fds", "Number of open file descriptors", open_files())?;
        gauge("process_max_fds", "Maximum number of open file descriptors", most_files())?;
        gauge("process_start_time_seconds", "Start time of the process since 1970 in seconds", self.started)?;
        let cpu = encoder.encode_descriptor(
            "process_cpu_seconds",
            "User and system CPU time in seconds",
            None,
            MetricType::Counter,
        )?;
        ConstCounter::new(seconds(ClockId::ProcessCPUTime).as_secs_f64()).encode(cpu)?;
        let mut build = encoder.encode_descriptor(
            "windlass_build_info",
            "Program, version and version of the runtime; the value is 1",
            None,
            MetricType::Gauge,
        )?;
        ConstGauge::new(1_i64).encode(build.encode_family(&*self.build.lock())?)
    }
}

/// Reads a line of `/proc/self/status` in kB.
fn bytes(status: &str, name: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix(" kB")?.parse::<f64>().ok().map(|kib| kib * 1024.0)
}

fn open_files() -> Option<f64> {
    // Without the descriptor of the directory itself.
    let count = fs::read_dir("/proc/self/fd").ok()?.count().saturating_sub(1);
    u32::try_from(count).ok().map(f64::from)
}

fn most_files() -> Option<f64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Computes the start time from the age of the process, which the kernel counts from boot.
fn started() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program, in parentheses, may contain anything; the start is 20 fields after it.
    let ticks: f64 = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs_f64();
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let boot = ClockId::Boottime;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let boot = ClockId::Monotonic;
    Some(now - (seconds(boot).as_secs_f64() - ticks / TICKS_PER_SECOND))
}

fn seconds(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    let (seconds, nanos) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    Duration::new(seconds.unwrap_or_default(), nanos.unwrap_or_default())
}
