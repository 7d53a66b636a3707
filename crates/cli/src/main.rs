//! The `windlass` program: local control planes, new projects, and commands of operators.

mod args;
mod ask;
mod cluster;
mod completions;
mod console;
mod example;
mod failure;
mod kubectl;
mod new;
mod output;
mod testenv;
mod turn;
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
            console::print_error(&failure);
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
        // Handled in `main`: it has exit codes of its own.
        Command::Operate(_) => Ok(()),
        Command::New(command) => new::run(&command),
        Command::Completions { shell } => {
            completions::print(shell);
            Ok(())
        }
    }
}
