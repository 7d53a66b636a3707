//! Who may read metrics: those whom the cluster says.
//!
//! A request brings a token; the API server says whose it is (TokenReview) and whether its owner may read that path
//! (SubjectAccessReview, verb `get`, say). Answers are remembered for a while, by the token's digest: tokens themselves are
//! not kept, nor logged.

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

/// How long a token's owner is believed.
const AUTHENTICATED: Duration = Duration::from_mins(1);
/// How long a yes is believed.
const ALLOWED: Duration = Duration::from_mins(5);
/// How long a no is believed.
const DENIED: Duration = Duration::from_secs(30);
/// How often, and after which first pause, a failed question is asked again.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(500);
/// How many answers are remembered. Beyond, old ones are forgotten, and asked for again.
const MOST: usize = 1024;

type Ask<Q, A> = Arc<dyn Fn(Q) -> BoxFuture<'static, Result<A, ClientError>> + Send + Sync>;
type TokenDigest = [u8; 32];
/// Whose token, which path, which verb.
type Question = (TokenDigest, String, String);

/// Asks the API server who may read. Clones share what was answered.
///
/// The process needs `create` on `tokenreviews` and `subjectaccessreviews` ([`Access::guard`](crate::access::Access::guard));
/// a scraper needs `get` on the non-resource URL `/metrics`.
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

/// Why a request is refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// No token, or nobody's.
    Unauthenticated,
    /// Somebody's, who may not.
    Forbidden(String),
    /// The API server does not answer.
    Unknown,
}

impl IntoResponse for Refusal {
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
            Self::Unknown => {
                (StatusCode::INTERNAL_SERVER_ERROR, "the API server could not be asked who may read this")
                    .into_response()
            }
        }
    }
}

impl Guard {
    /// A guard that asks with this client.
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

    /// Whether this request may be answered.
    pub(super) async fn admits(
        &self,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
    ) -> Result<(), Refusal> {
        let token = token(headers).ok_or(Refusal::Unauthenticated)?;
        let digest: TokenDigest = Sha256::digest(token.as_bytes()).into();
        let known = self.users.lock().get(&digest);
        let user = if let Some(user) = known {
            user
        } else {
            // Only a yes is remembered: a token that is not known yet may be in a second.
            let user = repeat(|| (self.whose)(token.to_owned())).await?.ok_or(Refusal::Unauthenticated)?;
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
            Err(Refusal::Forbidden(format!(
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

/// Asks until there is an answer, a few times.
async fn repeat<A>(ask: impl Fn() -> BoxFuture<'static, Result<A, ClientError>>) -> Result<A, Refusal> {
    let mut pause = PAUSE;
    for attempt in 1.. {
        match ask().await {
            Ok(answer) => return Ok(answer),
            Err(error) if attempt < ATTEMPTS && error.is_transient() => {
                tokio::time::sleep(pause).await;
                pause = pause.mul_f32(1.5);
            }
            Err(error) => {
                tracing::error!(%error, "the API server could not be asked who may read metrics");
                break;
            }
        }
    }
    Err(Refusal::Unknown)
}

/// Answers, each for its time.
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

    /// A guard whose API server knows `jane` (may read) and `joe` (may not), and counts what it is asked.
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

    async fn ask(guard: &Guard, token: &str, path: &str) -> Result<(), Refusal> {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
        guard.admits(&Method::GET, path, &headers).await
    }

    #[tokio::test(start_paused = true)]
    async fn answers_are_remembered_for_their_time() {
        let (guard, asked) = guard();
        let count = || asked.each_ref().map(|count| count.load(Ordering::Relaxed));
        for _ in 0..3 {
            assert_eq!(ask(&guard, "jane", "/metrics").await, Ok(()));
            assert!(matches!(ask(&guard, "joe", "/metrics").await, Err(Refusal::Forbidden(_))));
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
    async fn leave_for_one_path_is_no_leave_for_another() {
        let (guard, _) = guard();
        ask(&guard, "jane", "/metrics").await.unwrap();
        let refusal = ask(&guard, "jane", "/debug").await.unwrap_err();
        assert_eq!(
            refusal,
            Refusal::Forbidden("jane may not get /debug; grant it on the nonResourceURL /debug".into())
        );
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_is_refused_without_asking_and_unknown_tokens_after() {
        let (guard, asked) = guard();
        for value in ["", "Basic abc", "Bearer", "Bearer "] {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, value.parse().unwrap());
            let refused = guard.admits(&Method::GET, "/metrics", &headers).await;
            assert_eq!(refused, Err(Refusal::Unauthenticated), "{value}");
        }
        assert_eq!(asked[0].load(Ordering::Relaxed), 0);
        assert_eq!(ask(&guard, "mallory", "/metrics").await, Err(Refusal::Unauthenticated));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_remembered_is_bounded() {
        let mut remembered = Remembered::default();
        for question in 0..MOST * 3 {
            remembered.insert(question, (), ALLOWED);
            assert!(remembered.answers.len() <= MOST);
            assert!(remembered.get(&question).is_some());
        }
    }
}
