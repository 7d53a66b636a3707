//! `windlass completions`: a script with which a shell completes the command line.

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::args::Cli;
use crate::console;

pub(crate) fn print(shell: Shell) {
    // Into memory first: the generator panics if standard output is closed.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "windlass", &mut script);
    console::print(String::from_utf8_lossy(&script).trim_end());
}
