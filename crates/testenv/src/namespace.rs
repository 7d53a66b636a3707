//! A namespace of a test's own.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding, RoleRef, Subject};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use kube::api::{Api, PostParams};
use kube::{Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::env::TestEnv;
use crate::error::{Error, Result};
use crate::eventually::eventually;
use crate::user::{Rules, TestUser};

/// A fresh namespace. Dropping it deletes it in the background.
pub struct TestNamespace {
    env: TestEnv,
    name: String,
}

impl TestEnv {
    /// A fresh namespace, whose name begins with `hint`. It is deleted in the
    /// background when the value is dropped, or when this process ends, however
    /// it ends; no caller waits for that.
    pub async fn namespace(&self, hint: &str) -> Result<TestNamespace> {
        TestNamespace::create(self.clone(), hint).await
    }
}

impl TestNamespace {
    async fn create(env: TestEnv, hint: &str) -> Result<Self> {
        let name = unique_name(hint);
        let namespace = Namespace {
            metadata: ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() },
            ..Namespace::default()
        };
        // Told first, so that no moment is left in which a kill would leave it behind.
        let path = namespace_path(&name);
        if let Some(plane) = env.plane().cloned() {
            crate::env::blocking(move || plane.discard(&path)).await?;
        }
        let api: Api<Namespace> = Api::all(env.client());
        api.create(&PostParams::default(), &namespace)
            .await
            .map_err(Error::api(format!("creating namespace {name}")))?;
        // Pods need it, and the controller manager makes it a moment later.
        let accounts: Api<ServiceAccount> = Api::namespaced(env.client(), &name);
        eventually(format!("the default service account of namespace {name}"), || async {
            accounts.get("default").await.map_err(|error| error.to_string())
        })
        .await?;
        Ok(Self { env, name })
    }

    /// The name of the namespace.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The control plane that it is on.
    pub fn env(&self) -> &TestEnv {
        &self.env
    }

    /// An API for a kind in this namespace, with all rights.
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.env.client(), &self.name)
    }

    /// Selects this namespace alone. Webhooks of a test carry it, so that they are
    /// not asked about other tests' objects.
    pub fn selector(&self) -> LabelSelector {
        let label = ("kubernetes.io/metadata.name".to_owned(), self.name.clone());
        LabelSelector { match_labels: Some([label].into()), ..LabelSelector::default() }
    }

    /// Creates a user with exactly these rights (and those of all users: discovery).
    ///
    /// It is a service account of this namespace with a token, so that its calls
    /// pass a [`FaultProxy`](crate::proxy::FaultProxy). Returns when the API server
    /// grants what was given.
    pub async fn client_for(&self, user: &str, rules: &Rules) -> Result<TestUser> {
        let account = named::<ServiceAccount>(user, Some(&self.name));
        self.make(&self.api::<ServiceAccount>(), &account).await?;
        self.grant(user, rules).await?;
        let request = TokenRequest {
            spec: Some(TokenRequestSpec {
                expiration_seconds: Some(24 * 3600),
                ..TokenRequestSpec::default()
            }),
            ..TokenRequest::default()
        };
        let answer = self
            .api::<ServiceAccount>()
            .create_token_request(user, &PostParams::default(), &request)
            .await
            .map_err(Error::api(format!("requesting a token for {user}")))?;
        let token = answer.status.and_then(|status| status.token).unwrap_or_default();
        let name = format!("system:serviceaccount:{}:{user}", self.name);
        let user = TestUser::new(name, token, self.env.config().clone());
        self.until_granted(&user, rules).await?;
        Ok(user)
    }

    async fn grant(&self, user: &str, rules: &Rules) -> Result<()> {
        let subjects = vec![Subject {
            kind: "ServiceAccount".to_owned(),
            name: user.to_owned(),
            namespace: Some(self.name.clone()),
            ..Subject::default()
        }];
        let role_ref = |kind: &str, name: &str| RoleRef {
            api_group: Some("rbac.authorization.k8s.io".to_owned()),
            kind: kind.to_owned(),
            name: name.to_owned(),
        };
        if !rules.namespaced.is_empty() {
            let role = Role { rules: Some(rules.namespaced.clone()), ..named(user, Some(&self.name)) };
            let binding = RoleBinding {
                metadata: named::<RoleBinding>(user, Some(&self.name)).metadata,
                role_ref: role_ref("Role", user),
                subjects: Some(subjects.clone()),
            };
            self.make(&self.api::<Role>(), &role).await?;
            self.make(&self.api::<RoleBinding>(), &binding).await?;
        }
        let cluster_name = format!("{}-{user}", self.name);
        let role = if rules.everything { "cluster-admin" } else { &cluster_name };
        if !rules.cluster.is_empty() {
            let role = ClusterRole { rules: Some(rules.cluster.clone()), ..named(&cluster_name, None) };
            self.discard(format!("{RBAC}/clusterroles/{cluster_name}")).await?;
            self.make(&Api::<ClusterRole>::all(self.env.client()), &role).await?;
        }
        if rules.everything || !rules.cluster.is_empty() {
            let binding = ClusterRoleBinding {
                metadata: named::<ClusterRoleBinding>(&cluster_name, None).metadata,
                role_ref: role_ref("ClusterRole", role),
                subjects: Some(subjects),
            };
            self.discard(format!("{RBAC}/clusterrolebindings/{cluster_name}")).await?;
            self.make(&Api::<ClusterRoleBinding>::all(self.env.client()), &binding).await?;
        }
        Ok(())
    }

    async fn discard(&self, path: String) -> Result<()> {
        match self.env.plane().cloned() {
            Some(plane) => crate::env::blocking(move || plane.discard(&path)).await,
            None => Ok(()),
        }
    }

    async fn make<K>(&self, api: &Api<K>, object: &K) -> Result<()>
    where
        K: Resource<DynamicType = ()> + Clone + Serialize + DeserializeOwned + std::fmt::Debug,
    {
        match api.create(&PostParams::default(), object).await {
            Ok(_) => Ok(()),
            Err(error) => {
                let name = object.meta().name.as_deref().unwrap_or_default();
                Err(Error::api(format!("creating {} {name}", K::kind(&())))(error))
            }
        }
    }

    /// RBAC takes effect when the API server's own watch has seen it.
    async fn until_granted(&self, user: &TestUser, rules: &Rules) -> Result<()> {
        let reviews: Api<SubjectAccessReview> = Api::all(self.env.client());
        for (rule, namespace) in rules.samples(&self.name) {
            let first = |list: &Option<Vec<String>>| list.iter().flatten().next().cloned();
            let (resource, subresource) = match first(&rule.resources) {
                Some(resource) => match resource.split_once('/') {
                    Some((resource, sub)) => (resource.to_owned(), Some(sub.to_owned())),
                    None => (resource, None),
                },
                None => continue,
            };
            let review = SubjectAccessReview {
                spec: SubjectAccessReviewSpec {
                    user: Some(user.name().to_owned()),
                    resource_attributes: Some(ResourceAttributes {
                        group: first(&rule.api_groups),
                        resource: Some(resource),
                        subresource,
                        verb: rule.verbs.first().cloned(),
                        name: first(&rule.resource_names),
                        namespace,
                        ..ResourceAttributes::default()
                    }),
                    ..SubjectAccessReviewSpec::default()
                },
                ..SubjectAccessReview::default()
            };
            eventually(format!("the rights of {}", user.name()), || async {
                let answer =
                    reviews.create(&PostParams::default(), &review).await.map_err(|e| e.to_string())?;
                let status = answer.status.unwrap_or_default();
                if status.allowed {
                    Ok(())
                } else {
                    Err(format!("not yet allowed: {:?}", review.spec.resource_attributes))
                }
            })
            .await?;
        }
        Ok(())
    }
}

impl Drop for TestNamespace {
    fn drop(&mut self) {
        let path = namespace_path(&self.name);
        match self.env.plane() {
            Some(plane) => plane.release(&path),
            None => delete_elsewhere(self.env.config().clone(), path),
        }
    }
}

/// Deletes the namespace on a cluster without a supervisor. The test's own runtime is about to end, so this
/// uses a thread and a runtime of its own.
fn delete_elsewhere(config: kube::Config, path: String) {
    let sender = std::thread::spawn(move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
            return;
        };
        runtime.block_on(async {
            let Ok(client) = Client::try_from(config) else {
                return;
            };
            let Ok(request) = http::Request::delete(path).body(Vec::new()) else {
                return;
            };
            let _ =
                tokio::time::timeout(std::time::Duration::from_secs(5), client.request_text(request)).await;
        });
    });
    let _ = sender.join();
}

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

fn namespace_path(name: &str) -> String {
    format!("/api/v1/namespaces/{name}")
}

fn named<K: Resource<DynamicType = ()> + Default>(name: &str, namespace: Option<&str>) -> K {
    let mut object = K::default();
    object.meta_mut().name = Some(name.to_owned());
    object.meta_mut().namespace = namespace.map(str::to_owned);
    object
}

/// A name that no other test of this or another process has: the hint, shortened,
/// then process, time and count.
fn unique_name(hint: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let clock =
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() % 10_000_000);
    let mut hint: String = hint
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .take(35)
        .collect();
    if !hint.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        hint.insert(0, 't');
    }
    format!("{}-{}-{clock:x}{count}", hint.trim_end_matches('-'), std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespace_names_are_valid_and_unique() {
        let long = unique_name("A_Test::with a very long name that goes on and on and on");
        assert!(long.len() <= 63, "{long}");
        assert!(long.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'), "{long}");
        assert_ne!(unique_name("x"), unique_name("x"));
        assert!(unique_name("--x").starts_with('t'));
    }
}
