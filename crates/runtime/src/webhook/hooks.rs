//! The webhooks of a process and their handlers, without HTTP.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use kube::Resource;
use serde_json::Value;

use super::admission::{Defaulter, Validator, default, validate};
use super::conversion::{self, Converter, ConverterOf};
use super::denial::Denial;
use super::metrics::HookMetrics;
use super::review::{Answer, Asked, Malformed, read};
use crate::panics::panic_message;

/// The path of conversions.
pub const CONVERT: &str = "/convert";

/// The webhooks of a process.
///
/// ```
/// # use windlass_runtime::webhook::{Defaulter, Validator, Webhooks, DuplicateHook};
/// # fn example(fill: impl Defaulter, rules: impl Validator) -> Result<(), DuplicateHook> {
/// let webhooks = Webhooks::new().defaulter(fill)?.validator(rules)?;
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
#[must_use = "pass them to a webhook server"]
pub struct Webhooks {
    admission: BTreeMap<String, Admit>,
    converters: BTreeMap<String, ConverterOf>,
}

type Admit = Arc<dyn Fn(Asked) -> BoxFuture<'static, Result<Answer, Denial>> + Send + Sync>;

impl fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhooks")
            .field("admission", &self.admission.keys())
            .field("conversion", &self.converters.keys())
            .finish()
    }
}

/// There are two webhooks for the same kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there are two webhooks for {0}; only one could answer")]
pub struct DuplicateHook(String);

/// An invalid path of a webhook.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// No webhook is served at this path.
    #[error("there is no webhook at {0}")]
    Unknown(String),
    /// The path has characters that are not allowed.
    #[error(
        "{0:?} is not a valid path of a webhook: it must begin with / and have only letters, digits, - and _ between its slashes"
    )]
    Invalid(String),
    /// Another webhook is served at this path.
    #[error("there is already a webhook at {0}")]
    Taken(String),
}

/// Returns the path of a kind's defaulter: `/mutate-<group, with dashes>-<version>-<kind>`.
pub fn mutate_path<K: Resource<DynamicType = ()>>() -> String {
    path::<K>("mutate")
}

/// Returns the path of a kind's validator: `/validate-<group, with dashes>-<version>-<kind>`.
pub fn validate_path<K: Resource<DynamicType = ()>>() -> String {
    path::<K>("validate")
}

fn path<K: Resource<DynamicType = ()>>(verb: &str) -> String {
    let group = K::group(&()).replace('.', "-");
    format!("/{verb}-{group}-{}-{}", K::version(&()), K::kind(&()).to_lowercase())
}

impl Webhooks {
    /// Creates an empty collection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a defaulter at the [path](mutate_path) of its kind.
    pub fn defaulter<D: Defaulter>(self, defaulter: D) -> Result<Self, DuplicateHook> {
        let defaulter = Arc::new(defaulter);
        self.add(mutate_path::<D::Object>(), move |asked| {
            let defaulter = Arc::clone(&defaulter);
            async move { default(&*defaulter, asked).await }.boxed()
        })
    }

    /// Adds a validator at the [path](validate_path) of its kind.
    pub fn validator<V: Validator>(self, validator: V) -> Result<Self, DuplicateHook> {
        let validator = Arc::new(validator);
        self.add(validate_path::<V::Object>(), move |asked| {
            let validator = Arc::clone(&validator);
            async move { validate(&*validator, asked).await }.boxed()
        })
    }

    /// Adds the conversions of a kind. All kinds share the path [`CONVERT`].
    pub fn converter<H>(mut self, converter: Converter<H>) -> Result<Self, DuplicateHook>
    where
        H: Resource<DynamicType = ()> + serde::de::DeserializeOwned + serde::Serialize + Send + 'static,
    {
        let converter = converter.of();
        let name = converter.name();
        match self.converters.insert(name.clone(), converter) {
            None => Ok(self),
            Some(_) => Err(DuplicateHook(format!("the conversion of {name}"))),
        }
    }

    /// Serves a webhook at another path than the default one.
    pub fn moved(mut self, from: &str, to: impl Into<String>) -> Result<Self, PathError> {
        let to = to.into();
        let letter = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let segments = to.strip_prefix('/').map(|rest| rest.split('/'));
        if !segments.is_some_and(|mut all| all.all(|part| !part.is_empty() && part.chars().all(letter))) {
            return Err(PathError::Invalid(to));
        }
        if self.admission.contains_key(&to) || to == CONVERT {
            return Err(PathError::Taken(to));
        }
        let hook = self.admission.remove(from).ok_or_else(|| PathError::Unknown(from.into()))?;
        self.admission.insert(to, hook);
        Ok(self)
    }

    /// Iterates over the paths that are served.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        let convert = (!self.converters.is_empty()).then_some(CONVERT);
        self.admission.keys().map(String::as_str).chain(convert)
    }

    fn add(
        mut self,
        path: String,
        hook: impl Fn(Asked) -> BoxFuture<'static, Result<Answer, Denial>> + Send + Sync + 'static,
    ) -> Result<Self, DuplicateHook> {
        match self.admission.insert(path.clone(), Arc::new(hook)) {
            None => Ok(self),
            Some(_) => Err(DuplicateHook(path)),
        }
    }

    /// Returns the handler of each path.
    pub(super) fn into_answers(self) -> Vec<(String, Hook)> {
        let mut all: Vec<_> =
            self.admission.into_iter().map(|(path, hook)| (path, Hook::Admission(hook))).collect();
        if !self.converters.is_empty() {
            all.push((CONVERT.to_owned(), Hook::Conversion(Arc::new(self.converters))));
        }
        all
    }
}

/// The handler of one path.
#[derive(Clone)]
pub(super) enum Hook {
    Admission(Admit),
    Conversion(Arc<BTreeMap<String, ConverterOf>>),
}

impl Hook {
    /// Answers a body: HTTP status and JSON.
    ///
    /// A denial is an answer: HTTP 200. Another status means that the webhook failed, and the API server
    /// follows the `failurePolicy` of the configuration; so a panic, which decides nothing, is a 500.
    pub(super) async fn answer(&self, body: Result<Bytes, Denial>, metrics: &HookMetrics) -> (u16, Value) {
        match self {
            Self::Admission(admit) => admission(admit, body, metrics).await,
            Self::Conversion(converters) => {
                let body = match body {
                    Ok(body) => body,
                    Err(denial) => return (denial.code(), conversion::refused(&denial.to_string())),
                };
                let converted = conversion::answer(converters, &body);
                if converted.panicked {
                    metrics.conversion_panicked();
                }
                (converted.code, converted.body)
            }
        }
    }
}

async fn admission(admit: &Admit, body: Result<Bytes, Denial>, metrics: &HookMetrics) -> (u16, Value) {
    let review = match body {
        Err(denial) => Err((Malformed::new(""), denial)),
        Ok(body) => read(&body).map_err(|malformed| {
            let denial = Denial::bad_request(malformed.why.clone());
            (malformed, denial)
        }),
    };
    let (version, asked) = match review {
        Ok(read) => read,
        Err((Malformed { uid, version, .. }, denial)) => {
            return (denial.code(), Answer::denied(denial).write(version, &uid));
        }
    };
    let uid = asked.uid.clone();
    // The handler's state is behind a shared reference; inconsistent state after a panic is its own concern,
    // as in a reconcile.
    match AssertUnwindSafe(async { admit(asked).await }).catch_unwind().await {
        Ok(answer) => (200, answer.unwrap_or_else(Answer::denied).write(version, &uid)),
        Err(panic) => {
            metrics.panicked();
            tracing::error!(panic = panic_message(&*panic), uid, "an admission handler panicked");
            let denial =
                Denial::internal("internal error: the admission handler panicked; its log says more");
            (500, Answer::denied(denial).write(version, &uid))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::admission::{Findings, Request};
    use super::super::metrics::WebhookMetrics;
    use super::*;
    use crate::metrics::Metrics;
    use k8s_openapi::api::apps::v1::Deployment;
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    struct Touchy;

    impl Validator for Touchy {
        type Object = ConfigMap;

        async fn validate(&self, request: &Request<ConfigMap>, _: &mut Findings) -> Result<(), Denial> {
            assert_ne!(request.name, "bomb");
            Ok(())
        }
    }

    #[test]
    fn webhook_paths_equal_those_of_controller_runtime() {
        assert_eq!(mutate_path::<Deployment>(), "/mutate-apps-v1-deployment");
        assert_eq!(validate_path::<ConfigMap>(), "/validate--v1-configmap");
        let hooks = Webhooks::new().validator(Touchy).unwrap();
        assert_eq!(hooks.validator(Touchy).unwrap_err(), DuplicateHook("/validate--v1-configmap".into()));
    }

    #[test]
    fn a_webhook_can_be_served_at_a_custom_path_that_is_valid() {
        let hooks = || Webhooks::new().validator(Touchy).unwrap();
        let from = validate_path::<ConfigMap>();
        assert_eq!(hooks().moved(&from, "/a/b_c-1").unwrap().paths().collect::<Vec<_>>(), ["/a/b_c-1"]);
        for bad in ["", "/", "a", "/a//b", "/a b", "/{a}", "/a?b"] {
            assert_eq!(hooks().moved(&from, bad).unwrap_err(), PathError::Invalid(bad.into()));
        }
        assert_eq!(hooks().moved(&from, CONVERT).unwrap_err(), PathError::Taken(CONVERT.into()));
        assert_eq!(hooks().moved("/b", "/a").unwrap_err(), PathError::Unknown("/b".into()));
    }

    #[tokio::test]
    async fn a_body_that_cannot_be_read_is_answered_by_a_review_of_the_right_kind() {
        let metrics = WebhookMetrics::register(&Metrics::new()).of("/");
        let hooks =
            Webhooks::new().validator(Touchy).unwrap().converter(Converter::<Deployment>::hub()).unwrap();
        let kinds = ["AdmissionReview", "ConversionReview"];
        for ((_, hook), kind) in hooks.into_answers().into_iter().zip(kinds) {
            let (code, body) = hook.answer(Err(Denial::too_large("it is too large")), &metrics).await;
            assert_eq!((code, &body["kind"]), (413, &json!(kind)));
            assert!(body.to_string().contains("it is too large"));
        }
    }

    #[tokio::test]
    async fn a_panicking_webhook_answers_500_with_the_uid_and_is_counted() {
        let metrics = Metrics::new();
        let hook_metrics = WebhookMetrics::register(&metrics).of("/v");
        let (_, hook) = Webhooks::new().validator(Touchy).unwrap().into_answers().remove(0);
        let ask = |name: &str| {
            let body = json!({"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview", "request": {
                "uid": "u", "name": name, "operation": "CREATE", "object": {}}});
            let (hook, metrics) = (hook.clone(), hook_metrics.clone());
            async move { hook.answer(Ok(body.to_string().into()), &metrics).await }
        };
        let (code, body) = ask("bomb").await;
        assert_eq!((code, &body["apiVersion"]), (500, &json!("admission.k8s.io/v1beta1")));
        assert_eq!((&body["response"]["uid"], &body["response"]["allowed"]), (&json!("u"), &json!(false)));
        assert!(metrics.encode().contains("controller_runtime_webhook_panics_total 1\n"));
        let (code, body) = ask("fine").await;
        assert_eq!((code, &body["response"]["allowed"]), (200, &json!(true)));
    }
}
