//! The password of a Harbor's database, checked before the first component is created.
//!
//! Core checks it again: its Secret may change later, and a Core may have no Harbor.

use k8s_openapi::api::core::v1::Secret;
use windlass::{Needs, PlanError};

use crate::api::Harbor;
use crate::workload::{DATABASE_KEYS, unusable_password};

use super::upgrade;

const FIELD: &str = "spec.database.passwordRef";

/// Checks that Harbor's components can use the password of the database.
///
/// A Harbor that was ready is not checked: Core reports the password there, and a plan that cannot be drawn
/// would block changes of everything else.
///
/// # Errors
/// The password cannot be used, or its Secret is not known yet. A missing Secret is no error: Core waits for
/// it.
pub(super) fn check(harbor: &Harbor, needs: &Needs<'_>) -> Result<(), PlanError> {
    let name = harbor.spec.database.as_ref().and_then(|database| database.password_ref.as_ref());
    let Some(name) = name.filter(|_| upgrade::standing(harbor).is_none()) else { return Ok(()) };
    let found = needs.look::<Secret>(name).or_wait()?;
    let data = found.and_then(|secret| secret.data).unwrap_or_default();
    let password = DATABASE_KEYS.into_iter().find_map(|key| Some((key, data.get(key)?)));
    let text = password.and_then(|(key, bytes)| Some((key, std::str::from_utf8(&bytes.0).ok()?)));
    match text.and_then(|(key, text)| unusable_password(FIELD, name, key, text)) {
        Some(unusable) => Err(PlanError::new(unusable)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use serde_json::{Value, json};

    use super::super::blueprint::HarborBlueprint;
    use super::super::blueprint::samples::harbor;
    use super::*;

    fn secret(key: &str, password: &str) -> Value {
        let password = base64::engine::general_purpose::STANDARD.encode(password);
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db", "namespace": "registry"},
            "data": {key: password},
        })
    }

    fn registries(harbor: &Harbor, secrets: &[Value]) -> Result<usize, String> {
        let sketch = windlass::sketch(&HarborBlueprint::default(), harbor, secrets);
        let sketch = sketch.map_err(|error| error.to_string())?;
        Ok(sketch.objects.iter().filter(|object| object.body()["kind"] == "Registry").count())
    }

    #[test]
    fn users_an_impossible_database_password_is_reported_before_the_first_component_is_created() {
        for (key, password, remedy) in [
            ("postgres-password", "two words", "choose one without"),
            ("postgres-password", "line\n", "choose one without"),
            ("password", "back\\slash", "choose one without"),
            ("postgresql-password", "", "Harbor needs a password"),
        ] {
            let error = registries(&harbor("2.15.2", false), &[secret(key, password)]).unwrap_err();
            for part in ["spec.database.passwordRef", "Secret db", &format!("key {key}"), remedy] {
                assert!(error.contains(part), "{part} in {error}");
            }
            assert!(password.is_empty() || !error.contains(password), "the password is not shown: {error}");
        }
    }

    #[test]
    fn users_a_possible_or_missing_database_password_does_not_stop_the_plan() {
        let fresh = harbor("2.15.2", false);
        assert_eq!(registries(&fresh, &[secret("postgres-password", "s3cr3t")]), Ok(1));
        assert_eq!(registries(&fresh, &[]), Ok(1), "Core waits for the Secret");
        assert_eq!(registries(&fresh, &[secret("other", "two words")]), Ok(1), "Core names the key");
    }

    #[test]
    fn users_a_harbor_that_was_ready_is_not_blocked_by_its_database_password() {
        let mut ready = harbor("2.15.2", false);
        ready.status = serde_json::from_value(json!({"version": "2.15.2"})).unwrap();
        assert_eq!(registries(&ready, &[secret("postgres-password", "two words")]), Ok(1));
    }
}
