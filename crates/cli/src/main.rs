//! The `windlass` program: `up`, `down`, and the test environment behind them.

mod args;
mod ask;
mod completions;
mod console;
mod example;
mod failure;
mod kubectl;
mod new;
mod output;
mod testenv;
mod up;

use std::process::ExitCode;

use clap::Parser as _;

use args::{Cli, Command};
use failure::Failure;

fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Command::Operate(args) = &cli.command {
        return example::operate(args);
    }
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            console::complain(&failure);
            failure.code()
        }
    }
}

fn run(cli: Cli) -> Result<(), Failure> {
    match cli.command {
        Command::Up(up) => up::up(&up),
        Command::Down(down) => up::down(&down),
        Command::Testenv(command) => testenv::run(&command),
        Command::Manifests(args) => ask::operator("manifests", &args),
        Command::Graph(args) => ask::operator("graph", &args),
        // Dealt with before: it has exit codes of its own.
        Command::Operate(_) => Ok(()),
        Command::New(command) => new::run(&command),
        Command::Completions { shell } => {
            completions::print(shell);
            Ok(())
        }
    }
}
