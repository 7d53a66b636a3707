//! The sample controller as a program: `cargo run -p foo -- --help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    windlass_operator::main(&foo::operator())
}
