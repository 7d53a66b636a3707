//! The Harbor operator as a program: `harbor-operator --help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    windlass_operator::main(&harbor_operator::operator())
}
