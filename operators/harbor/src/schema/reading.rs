//! The content of the migrations table, and its representation in a status.

use serde_json::{Value, json};

use crate::api::status::condition::SCHEMA_CLEAN;

/// The status field with the schema version.
pub(crate) const FIELD: &str = "schema";

/// The migration state of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schema {
    /// The number of the last migration that was started.
    pub version: i64,
    /// True if that migration has not finished.
    pub dirty: bool,
}

/// The result of reading the migrations table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// The database has no migrations table: it has never been migrated.
    Empty,
    /// The database has this migration state.
    At(Schema),
    /// The database could not be read, with the reason.
    Unread(String),
}

impl Reading {
    /// Returns a message that says what a person has to do, if the schema is dirty.
    pub fn trouble(&self, database: &str) -> Option<String> {
        match self {
            Self::At(Schema { version, dirty: true }) => Some(format!(
                "database {database} is dirty at schema {version}: a migration was interrupted, and Core will not start. Restore the \
                 backup from before the upgrade and set spec.version back; or, if you have verified that migration {version} is complete, \
                 set dirty to false in its table schema_migrations. The operator checks again by itself"
            )),
            _ => None,
        }
    }

    /// Returns a message that says what a person has to do, if a newer version has migrated the database.
    pub(crate) fn too_new(&self, database: &str, newest: u32) -> Option<String> {
        match self {
            Self::At(Schema { version, .. }) if *version > i64::from(newest) => Some(format!(
                "database {database} is at schema {version}, and the requested version of Harbor can read \
                 schemas up to {newest} only: set spec.version to the version that has migrated the \
                 database, or restore the backup from before the upgrade"
            )),
            _ => None,
        }
    }

    /// Returns the condition `SchemaClean`.
    pub fn condition(&self) -> Value {
        let (status, reason, message) = match self {
            Self::Empty => {
                ("True", "Empty", "the database has no schema yet: Core creates it when it starts".to_owned())
            }
            Self::At(Schema { version, dirty: false }) => {
                ("True", "Clean", format!("the database is at schema {version}"))
            }
            Self::At(Schema { version, dirty: true }) => (
                "False",
                "Dirty",
                format!("the database is dirty at schema {version}: a migration was interrupted"),
            ),
            Self::Unread(why) => {
                ("Unknown", "NotRead", format!("the schema of the database was not read: {why}"))
            }
        };
        json!({"type": SCHEMA_CLEAN, "status": status, "reason": reason, "message": message})
    }

    /// Returns the status field, if the schema is known.
    pub(crate) fn numbers(&self) -> Option<Value> {
        match self {
            Self::At(Schema { version, dirty }) => Some(json!({"version": version, "dirty": dirty})),
            Self::Empty | Self::Unread(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seam_m12_a_database_that_a_newer_version_has_migrated_is_not_handed_to_an_older_one() {
        let at = |version| Reading::At(Schema { version, dirty: false });
        assert_eq!(at(171).too_new("registry on db:5432", 171), None);
        assert_eq!(Reading::Empty.too_new("registry on db:5432", 171), None);
        assert_eq!(Reading::Unread("why".into()).too_new("registry on db:5432", 171), None);
        let message = at(180).too_new("registry on db:5432", 171).unwrap();
        for part in ["registry on db:5432", "schema 180", "up to 171", "spec.version", "backup"] {
            assert!(message.contains(part), "{part} in {message}");
        }
    }

    #[test]
    fn only_an_interrupted_migration_fails_and_its_message_has_number_and_remedy() {
        let dirty = Reading::At(Schema { version: 180, dirty: true });
        let message = dirty.trouble("registry on db:5432").unwrap();
        for part in ["registry on db:5432", "180", "backup", "schema_migrations"] {
            assert!(message.contains(part), "{part} in {message}");
        }
        assert_eq!(dirty.condition()["status"], "False");
        for (fine, status) in [
            (Reading::Empty, "True"),
            (Reading::At(Schema { version: 180, dirty: false }), "True"),
            (Reading::Unread("connection refused".to_owned()), "Unknown"),
        ] {
            assert_eq!(fine.trouble("registry"), None, "{fine:?}");
            assert_eq!(fine.condition()["status"], status, "{fine:?}");
        }
    }
}
