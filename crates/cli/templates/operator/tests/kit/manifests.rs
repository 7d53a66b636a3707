//! Test that the manifests in `deploy/` are those of the code. Written by `windlass new`.

use std::path::Path;

use anyhow::{Result, bail};
use windlass_operator::manifests::{Install, Manifests};

/// Writes the manifests if there are none yet, and compares them otherwise.
#[test]
fn the_manifests_are_up_to_date() -> Result<()> {
    let operator = {{crate}}::operator();
    let manifests = Manifests::of(&operator, &Install::of(&operator))?;
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy");
    if !directory.exists() {
        manifests.write(&directory)?;
    }
    if let Err(mut stale) = manifests.check(&directory) {
        stale.refresh = "cargo run -- manifests --out deploy".to_owned();
        bail!("{stale}");
    }
    Ok(())
}
