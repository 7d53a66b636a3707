//! The 2048 game as a program: `cargo run -p game -- --help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    windlass_operator::main(&game::operator())
}
