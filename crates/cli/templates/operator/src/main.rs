//! The operator as a program: `cargo run -- --help`. Written by `windlass new`; what it is made of is in `lib.rs`.

fn main() -> std::process::ExitCode {
    windlass_operator::main(&{{crate}}::operator())
}
