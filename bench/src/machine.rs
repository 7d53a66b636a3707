//! The machine of a measurement.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A machine, as far as it matters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) processor: String,
    pub(crate) cores: usize,
    pub(crate) memory_bytes: u64,
    pub(crate) kernel: String,
}

impl Machine {
    /// Describes the present machine.
    pub(crate) fn here() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let cpu = read("/proc/cpuinfo");
        let field = |text: &str, name: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':'))
                .map(|value| value.trim().to_owned())
        };
        let memory = field(&read("/proc/meminfo"), "MemTotal");
        let kilobytes = memory.and_then(|text| text.trim_end_matches(" kB").trim().parse::<u64>().ok());
        Self {
            processor: field(&cpu, "model name").unwrap_or_else(|| "unknown processor".to_owned()),
            cores: cpu.lines().filter(|line| line.starts_with("processor")).count(),
            memory_bytes: kilobytes.unwrap_or(0) * 1024,
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gigabytes = self.memory_bytes as f64 / f64::from(1 << 30);
        write!(f, "{}, {} cores, {gigabytes:.0} GiB, Linux {}", self.processor, self.cores, self.kernel)
    }
}
