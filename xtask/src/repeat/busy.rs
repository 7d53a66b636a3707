//! Processes that keep the processors busy while tests run.

use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::thread;

/// Busy loops, each a process of its own. They end when this is dropped, and when this process ends in any
/// other way: each of them reads from a pipe that closes then.
#[derive(Debug)]
pub(super) struct BusyLoops(Vec<Child>);

impl BusyLoops {
    pub(super) fn start(count: usize) -> std::io::Result<Self> {
        let mut started = Self(Vec::new());
        for _ in 0..count {
            let this = std::env::current_exe()?;
            started.0.push(Command::new(this).arg("spin").stdin(Stdio::piped()).spawn()?);
        }
        Ok(started)
    }
}

impl Drop for BusyLoops {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The hidden chore `spin`: uses one processor until its standard input closes.
pub(crate) fn spin() -> ! {
    let _ = thread::spawn(|| {
        loop {
            std::hint::spin_loop();
        }
    });
    let mut rest = Vec::new();
    let _ = std::io::stdin().read_to_end(&mut rest);
    std::process::exit(0)
}
