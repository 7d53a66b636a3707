//! The behaviour of KWOK's pods. Nothing runs; an annotation on the pod or its template chooses the sequence
//! of statuses that the pod goes through.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams, Patch, PatchParams};

use crate::error::{Error, Result};

/// The annotation that chooses the story of a pod.
pub const STORY: &str = "testenv.windlass.dev/pod";
/// The annotation with the delay of [`Story::ReadyAfter`].
pub const DELAY: &str = "testenv.windlass.dev/delay";
/// The annotation with the message of a story that has one.
pub const MESSAGE: &str = "testenv.windlass.dev/message";
/// The annotation on a PersistentVolumeClaim that keeps it unbound: `pending`.
pub const VOLUME: &str = "testenv.windlass.dev/volume";

/// The sequence of statuses that a pod goes through.
///
/// ```
/// use windlass_testenv::Story;
///
/// let annotations = Story::CrashLoop("no such database".to_owned()).annotations();
/// assert_eq!(annotations["testenv.windlass.dev/pod"], "crash-loop");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Story {
    /// Running and Ready at once; a Job's pod succeeds. The default.
    Ready,
    /// Runs, and never becomes Ready.
    NeverReady,
    /// Ready after a while.
    ReadyAfter(Duration),
    /// `CrashLoopBackOff`, with these last words.
    CrashLoop(String),
    /// The pod waits with the reason `ImagePullBackOff`.
    ImagePullError,
    /// The pod is not Ready, for the reason `NodeLost`, and its deletion does not complete.
    NodeLost,
    /// Runs, then fails with these last words: for Jobs.
    Fail(String),
}

impl Story {
    /// Returns the annotations that choose this story, for a pod template.
    pub fn annotations(&self) -> BTreeMap<String, String> {
        let (name, detail) = match self {
            Self::Ready => ("ready", None),
            Self::NeverReady => ("never-ready", None),
            Self::ReadyAfter(delay) => ("ready-after", Some((DELAY, format!("{}ms", delay.as_millis())))),
            Self::CrashLoop(words) => ("crash-loop", Some((MESSAGE, words.clone()))),
            Self::ImagePullError => ("image-pull-error", None),
            Self::NodeLost => ("node-lost", None),
            Self::Fail(words) => ("fail", Some((MESSAGE, words.clone()))),
        };
        let detail = detail.map(|(key, value)| (key.to_owned(), value));
        [(STORY.to_owned(), name.to_owned())].into_iter().chain(detail).collect()
    }

    /// Assigns this story to existing pods, by label selector; `""` selects all pods of the namespace.
    /// Returns the number of pods. [`Story::Ready`] releases a pod of [`Story::NeverReady`].
    pub async fn assign_to(&self, pods: &Api<Pod>, selector: &str) -> Result<usize> {
        let found = pods
            .list(&ListParams::default().labels(selector))
            .await
            .map_err(Error::api(format!("listing pods {selector}")))?;
        let patch = serde_json::json!({"metadata": {"annotations": self.annotations()}});
        for pod in &found.items {
            let name = pod.name_any();
            pods.patch_metadata(&name, &PatchParams::default(), &Patch::Merge(&patch))
                .await
                .map_err(Error::api(format!("annotating pod {name}")))?;
        }
        Ok(found.items.len())
    }
}
