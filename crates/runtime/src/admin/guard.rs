//! Authorization of metrics requests by the cluster's RBAC.
//!
//! A request carries a bearer token. The API server authenticates it (TokenReview) and checks that the user
//! may read the path (SubjectAccessReview with verb `get`). Answers are cached for a while under the digest
//! of the token; tokens themselves are neither kept nor logged.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use axum::response::{IntoResponse, Response};
use futures::future::BoxFuture;
use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use crate::client::{Client, ClientError};
use crate::key::ObjectKey;

/// The time for which a successful TokenReview is cached.
const AUTHENTICATED: Duration = Duration::from_mins(1);
/// The time for which a positive SubjectAccessReview is cached.
const ALLOWED: Duration = Duration::from_mins(5);
/// The time for which a negative SubjectAccessReview is cached.
const DENIED: Duration = Duration::from_secs(30);
/// Attempts per review.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(500);
/// Maximum number of cached answers. Beyond it, old answers are evicted and requested again.
const MOST: usize = 1024;

type Ask<Q, A> = Arc<dyn Fn(Q) -> BoxFuture<'static, Result<A, ClientError>> + Send + Sync>;
type TokenDigest = [u8; 32];
/// Cache key: digest of the token, path, verb.
type Question = (TokenDigest, String, String);

/// Authenticates and authorizes requests through the API server. Clones share the cached answers.
///
/// The process needs `create` on `tokenreviews` and `subjectaccessreviews`
/// ([`Access::guard`](crate::access::Access::guard)); a scraper needs `get` on the non-resource URL
/// `/metrics`.
#[derive(Clone)]
pub struct Guard {
    whose: Ask<String, Option<UserInfo>>,
    may: Ask<(UserInfo, String, String), bool>,
    users: Arc<Mutex<Remembered<TokenDigest, UserInfo>>>,
    leaves: Arc<Mutex<Remembered<Question, bool>>>,
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").finish_non_exhaustive()
    }
}

/// The reason why a request is refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AuthError {
    /// The request has no token, or the token is not valid.
    Unauthenticated,
    /// The user is authenticated but not allowed to read the path.
    Forbidden(String),
    /// This process may not create TokenReviews or SubjectAccessReviews.
    NotGranted,
    /// The API server did not answer.
    Unknown,
}

impl IntoResponse for AuthError {
    fn into_response(self) -> Response {
        match self {
            Self::Unauthenticated => {
                let challenge = [(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))];
                (
                    StatusCode::UNAUTHORIZED,
                    challenge,
                    "send a service account's token as Authorization: Bearer <token>",
                )
                    .into_response()
            }
            Self::Forbidden(why) => (StatusCode::FORBIDDEN, why).into_response(),
            Self::NotGranted => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "this process cannot authorize requests: it lacks the right to create tokenreviews and \
                 subjectaccessreviews",
            )
                .into_response(),
            Self::Unknown => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "the API server did not answer the authorization of this request",
            )
                .into_response(),
        }
    }
}

impl Guard {
    /// Creates a guard that uses this client for its reviews.
    pub fn new(client: &Client) -> Self {
        let (tokens, accesses) = (client.clone(), client.clone());
        Self::asking(
            Arc::new(move |token| {
                let client = tokens.clone();
                Box::pin(async move {
                    let spec = TokenReviewSpec { token, ..TokenReviewSpec::default() };
                    let review = TokenReview { spec, ..TokenReview::default() };
                    let answer =
                        client.objects::<TokenReview>().create(&ObjectKey::cluster(""), &review).await?;
                    let status = answer.status.unwrap_or_default();
                    Ok(status.user.filter(|_| status.authenticated == Some(true)))
                })
            }),
            Arc::new(move |(user, path, verb)| {
                let client = accesses.clone();
                Box::pin(async move {
                    let attributes = NonResourceAttributes { path: Some(path), verb: Some(verb) };
                    let spec = SubjectAccessReviewSpec {
                        user: user.username,
                        uid: user.uid,
                        groups: user.groups,
                        extra: user.extra.map(BTreeMap::from_iter),
                        non_resource_attributes: Some(attributes),
                        ..SubjectAccessReviewSpec::default()
                    };
                    let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
                    let reviews = client.objects::<SubjectAccessReview>();
                    let answer = reviews.create(&ObjectKey::cluster(""), &review).await?;
                    Ok(answer.status.unwrap_or_default().allowed)
                })
            }),
        )
    }

    fn asking(whose: Ask<String, Option<UserInfo>>, may: Ask<(UserInfo, String, String), bool>) -> Self {
        Self { whose, may, users: Arc::default(), leaves: Arc::default() }
    }

    /// Checks that this request may be answered.
    pub(super) async fn admits(
        &self,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
    ) -> Result<(), AuthError> {
        let token = token(headers).ok_or(AuthError::Unauthenticated)?;
        let digest: TokenDigest = Sha256::digest(token.as_bytes()).into();
        let known = self.users.lock().get(&digest);
        let user = if let Some(user) = known {
            user
        } else {
            // Only positive answers are cached: a token that is unknown now may be valid a second later.
            let user = repeat(|| (self.whose)(token.to_owned())).await?.ok_or(AuthError::Unauthenticated)?;
            self.users.lock().insert(digest, user.clone(), AUTHENTICATED);
            user
        };
        let verb = method.as_str().to_lowercase();
        let name = user.username.clone().unwrap_or_default();
        let question = (digest, path.to_owned(), verb.clone());
        let known = self.leaves.lock().get(&question);
        let allowed = if let Some(allowed) = known {
            allowed
        } else {
            let allowed = repeat(|| (self.may)((user.clone(), path.to_owned(), verb.clone()))).await?;
            self.leaves.lock().insert(question, allowed, if allowed { ALLOWED } else { DENIED });
            allowed
        };
        if allowed {
            Ok(())
        } else {
            Err(AuthError::Forbidden(format!(
                "{name} may not {verb} {path}; grant it on the nonResourceURL {path}"
            )))
        }
    }
}

fn token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Repeats a review until it is answered, at most [`ATTEMPTS`] times.
async fn repeat<A>(ask: impl Fn() -> BoxFuture<'static, Result<A, ClientError>>) -> Result<A, AuthError> {
    let mut pause = PAUSE;
    for attempt in 1.. {
        match ask().await {
            Ok(answer) => return Ok(answer),
            Err(error) if attempt < ATTEMPTS && error.is_transient() => {
                tokio::time::sleep(pause).await;
                pause = pause.mul_f32(1.5);
            }
            Err(error) => {
                tracing::error!(%error, "TokenReview or SubjectAccessReview for metrics failed");
                return Err(if error.is_forbidden() { AuthError::NotGranted } else { AuthError::Unknown });
            }
        }
    }
    Err(AuthError::Unknown)
}

/// Cached answers, each with its expiry time.
struct Remembered<Q, A> {
    answers: HashMap<Q, (A, Instant)>,
}

impl<Q, A> Default for Remembered<Q, A> {
    fn default() -> Self {
        Self { answers: HashMap::new() }
    }
}

impl<Q: Eq + Hash, A: Clone> Remembered<Q, A> {
    fn get(&self, question: &Q) -> Option<A> {
        let (answer, until) = self.answers.get(question)?;
        (Instant::now() < *until).then(|| answer.clone())
    }

    fn insert(&mut self, question: Q, answer: A, lasts: Duration) {
        let now = Instant::now();
        if self.answers.len() >= MOST {
            self.answers.retain(|_, (_, until)| now < *until);
        }
        if self.answers.len() >= MOST {
            self.answers.clear();
        }
        self.answers.insert(question, (answer, now + lasts));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Returns a guard whose API server knows `jane` (allowed) and `joe` (not allowed), and counters of its
    /// reviews.
    fn guard() -> (Guard, Arc<[AtomicUsize; 2]>) {
        let asked = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
        let (whose, may) = (Arc::clone(&asked), Arc::clone(&asked));
        let guard = Guard::asking(
            Arc::new(move |token| {
                whose[0].fetch_add(1, Ordering::Relaxed);
                let known = ["jane", "joe"].contains(&&*token);
                let user = known.then(|| UserInfo { username: Some(token), ..UserInfo::default() });
                Box::pin(async move { Ok(user) })
            }),
            Arc::new(move |(user, path, verb)| {
                may[1].fetch_add(1, Ordering::Relaxed);
                let allowed = user.username.as_deref() == Some("jane") && path == "/metrics" && verb == "get";
                Box::pin(async move { Ok(allowed) })
            }),
        );
        (guard, asked)
    }

    async fn ask(guard: &Guard, token: &str, path: &str) -> Result<(), AuthError> {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
        guard.admits(&Method::GET, path, &headers).await
    }

    #[tokio::test(start_paused = true)]
    async fn review_answers_are_cached_until_they_expire() {
        let (guard, asked) = guard();
        let count = || asked.each_ref().map(|count| count.load(Ordering::Relaxed));
        for _ in 0..3 {
            assert_eq!(ask(&guard, "jane", "/metrics").await, Ok(()));
            assert!(matches!(ask(&guard, "joe", "/metrics").await, Err(AuthError::Forbidden(_))));
        }
        assert_eq!(count(), [2, 2]);
        tokio::time::advance(Duration::from_secs(31)).await;
        ask(&guard, "jane", "/metrics").await.unwrap();
        ask(&guard, "joe", "/metrics").await.unwrap_err();
        assert_eq!(count(), [2, 3], "a no lasts 30 s");
        tokio::time::advance(Duration::from_secs(30)).await;
        ask(&guard, "jane", "/metrics").await.unwrap();
        assert_eq!(count(), [3, 3], "who it is, a minute; a yes, longer");
        tokio::time::advance(Duration::from_mins(5)).await;
        ask(&guard, "jane", "/metrics").await.unwrap();
        assert_eq!(count(), [4, 4]);
    }

    #[tokio::test(start_paused = true)]
    async fn permission_for_one_path_does_not_extend_to_another() {
        let (guard, _) = guard();
        ask(&guard, "jane", "/metrics").await.unwrap();
        let refusal = ask(&guard, "jane", "/debug").await.unwrap_err();
        assert_eq!(
            refusal,
            AuthError::Forbidden("jane may not get /debug; grant it on the nonResourceURL /debug".into())
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_missing_token_is_refused_without_a_review_and_an_unknown_one_after_it() {
        let (guard, asked) = guard();
        for value in ["", "Basic abc", "Bearer", "Bearer "] {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, value.parse().unwrap());
            let refused = guard.admits(&Method::GET, "/metrics", &headers).await;
            assert_eq!(refused, Err(AuthError::Unauthenticated), "{value}");
        }
        assert_eq!(asked[0].load(Ordering::Relaxed), 0);
        assert_eq!(ask(&guard, "mallory", "/metrics").await, Err(AuthError::Unauthenticated));
    }

    #[tokio::test(start_paused = true)]
    async fn the_number_of_cached_answers_is_bounded() {
        let mut remembered = Remembered::default();
        for question in 0..MOST * 3 {
            remembered.insert(question, (), ALLOWED);
            assert!(remembered.answers.len() <= MOST);
            assert!(remembered.get(&question).is_some());
        }
    }
}
