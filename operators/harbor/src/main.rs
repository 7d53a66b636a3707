//! The Harbor operator as a program: `harbor-operator --help`.

use std::process::ExitCode;

use harbor_operator::settings::HarborSettings;
use harbor_operator::{operator, operator_with};

fn main() -> ExitCode {
    windlass_operator::main_with(&operator(), |values| {
        HarborSettings::read(values).map(|settings| operator_with(&settings))
    })
}
