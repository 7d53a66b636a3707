//! What was found in the table of migrations, and how a status says it.

use serde_json::{Value, json};

use crate::api::status::condition::SCHEMA_CLEAN;

/// The field of the status with the numbers.
pub const FIELD: &str = "schema";

/// Where the migrations stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schema {
    /// The number of the last migration that was begun.
    pub version: i64,
    /// Whether it was begun and not ended.
    pub dirty: bool,
}

/// What was found by whoever looked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Nobody has ever migrated this database.
    Empty,
    /// It is at this number.
    At(Schema),
    /// It could not be read: why.
    Unread(String),
}

impl Reading {
    /// What a person has to do, if nothing else helps.
    pub fn trouble(&self, database: &str) -> Option<String> {
        match self {
            Self::At(Schema { version, dirty: true }) => Some(format!(
                "database {database} is dirty at schema {version}: a migration was interrupted, and Core will not start. Restore the \
                 backup from before the upgrade and go back to its version; or, if you have seen that migration {version} is complete, \
                 set dirty to false in its table schema_migrations. It is looked at again by itself"
            )),
            _ => None,
        }
    }

    /// The condition that says it.
    pub fn condition(&self) -> Value {
        let (status, reason, message) = match self {
            Self::Empty => {
                ("True", "Empty", "the database has no schema yet: Core makes it when it starts".to_owned())
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

    /// The numbers, where there are any.
    pub fn numbers(&self) -> Option<Value> {
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
    fn only_an_interrupted_migration_is_trouble_and_its_number_and_the_remedy_are_said() {
        let dirty = Reading::At(Schema { version: 180, dirty: true });
        let said = dirty.trouble("registry on db:5432").unwrap();
        for part in ["registry on db:5432", "180", "backup", "schema_migrations"] {
            assert!(said.contains(part), "{part} in {said}");
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
