//! The program of the operator: `cargo run -- --help`. Written by `windlass new`; the operator itself is in
//! `lib.rs`.

fn main() -> std::process::ExitCode {
    windlass_operator::main(&{{crate}}::operator())
}
