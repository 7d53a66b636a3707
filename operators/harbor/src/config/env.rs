//! Environment variables, in which secrets are references.

use k8s_openapi::api::core::v1::{EnvVar, EnvVarSource, SecretKeySelector};

/// A key of a Secret in the same namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SecretKey {
    /// The name of the Secret.
    pub name: String,
    /// The key in its data.
    pub key: String,
}

impl SecretKey {
    /// Returns a reference to a key of a Secret.
    pub(crate) fn new(name: impl Into<String>, key: impl Into<String>) -> Self {
        Self { name: name.into(), key: key.into() }
    }
}

/// The source of a variable's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnvValue {
    /// A literal value in the pod spec: never a secret.
    Literal(String),
    /// A key of a Secret that must exist.
    Secret(SecretKey),
}

/// An environment variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Env {
    /// The name of the variable.
    pub name: String,
    /// The value of the variable.
    pub value: EnvValue,
}

impl From<Env> for EnvVar {
    /// Converts the variable for a container. The kubelet expands `$(NAME)` in literals and replaces `$$` by
    /// `$`, so each `$` is doubled to arrive unchanged.
    fn from(env: Env) -> Self {
        match env.value {
            EnvValue::Literal(text) => {
                Self { name: env.name, value: Some(text.replace('$', "$$")), ..Self::default() }
            }
            EnvValue::Secret(SecretKey { name, key }) => Self {
                name: env.name,
                value_from: Some(EnvVarSource {
                    secret_key_ref: Some(SecretKeySelector { key, name, optional: None }),
                    ..EnvVarSource::default()
                }),
                ..Self::default()
            },
        }
    }
}

/// A builder of environments. The result is sorted by name, without duplicates.
#[derive(Debug, Default)]
pub(crate) struct Environment(Vec<Env>);

impl Environment {
    pub(crate) fn set(&mut self, name: &str, value: impl ToString) -> &mut Self {
        self.push(name, EnvValue::Literal(value.to_string()))
    }

    pub(crate) fn set_some(&mut self, name: &str, value: Option<impl ToString>) -> &mut Self {
        if let Some(value) = value {
            self.set(name, value);
        }
        self
    }

    pub(crate) fn secret(&mut self, name: &str, from: &SecretKey) -> &mut Self {
        self.push(name, EnvValue::Secret(from.clone()))
    }

    pub(crate) fn secret_some(&mut self, name: &str, from: Option<&SecretKey>) -> &mut Self {
        if let Some(from) = from {
            self.secret(name, from);
        }
        self
    }

    pub(crate) fn extend(&mut self, variables: &[Env]) {
        self.0.extend_from_slice(variables);
    }

    fn push(&mut self, name: &str, value: EnvValue) -> &mut Self {
        self.0.push(Env { name: name.to_owned(), value });
        self
    }

    pub(crate) fn finish(mut self) -> Vec<Env> {
        self.0.sort_by(|a, b| a.name.cmp(&b.name));
        debug_assert!(self.0.windows(2).all(|pair| pair[0].name != pair[1].name), "{:?}", self.0);
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dollar_in_a_literal_reaches_the_container_as_it_is() {
        let literal = |text: &str| {
            EnvVar::from(Env { name: "A".to_owned(), value: EnvValue::Literal(text.to_owned()) })
                .value
                .unwrap()
        };
        assert_eq!(literal("$(HOME)"), "$$(HOME)");
        assert_eq!(literal("$$x"), "$$$$x");
        assert_eq!(literal("plain"), "plain");
    }

    #[test]
    fn a_secret_is_a_reference_that_has_to_be_there() {
        let env =
            EnvVar::from(Env { name: "A".to_owned(), value: EnvValue::Secret(SecretKey::new("s", "k")) });
        let source = env.value_from.unwrap().secret_key_ref.unwrap();
        assert_eq!(
            (source.name.as_str(), source.key.as_str(), source.optional, env.value),
            ("s", "k", None, None)
        );
    }

    #[test]
    fn variables_come_out_in_the_order_of_their_names() {
        let mut environment = Environment::default();
        environment.set("B", 1).set("A", true).set_some("C", None::<&str>);
        assert_eq!(environment.finish().into_iter().map(|env| env.name).collect::<Vec<_>>(), ["A", "B"]);
    }
}
