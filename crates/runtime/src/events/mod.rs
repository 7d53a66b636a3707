//! Kubernetes events (`events.k8s.io/v1`), as `kubectl describe` shows them.
//!
//! It promises:
//! - **Recording never waits** and never fails: it puts the event into a bounded channel. If the channel is
//!   full, the event is dropped and counted.
//! - **Repetition is a count.** Equal events (object, type, reason, action, note) within a window are one
//!   Event object with a series: the count and the time of the last one. Its count is written from time to
//!   time, not for each event.
//! - **One object cannot flood the API server**: a burst of 25 writes, then one per five minutes, as with
//!   client-go. New events beyond that are dropped and counted; updates of series counts are delayed.
//! - **A stop loses little**: what waits is written within a deadline.
//!
//! It does not keep order between series, and does not guarantee delivery: state belongs into the status.
//!
//! A note can be read by everyone who may read events of the namespace. Never format the content of a Secret,
//! a token or a connection string into one; name the object that holds it.
//!
//! ```no_run
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use windlass_runtime::client::{Client, ClientOptions};
//! use windlass_runtime::events::{EventType, Recorder, RecorderOptions, Regarding};
//! use windlass_runtime::manager::{Manager, Stage};
//!
//! # async fn example(map: ConfigMap) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! let client = Client::new(kube::Config::infer().await?, ClientOptions::default())?;
//! let (recorder, publisher) = Recorder::new(&client, RecorderOptions::new("shop-operator"))?;
//! let mut manager = Manager::new();
//! recorder.show_in(manager.metrics());
//! manager.add(Stage::Everywhere, publisher.into_runnable())?;
//! recorder.event(&Regarding::of(&map), EventType::Normal, "Synced", "Apply", "the shop has its configuration");
//! # Ok(())
//! # }
//! ```

mod bucket;
mod event;
mod ledger;
mod metrics;
mod publisher;

use std::hash::RandomState;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::mpsc;

pub use self::bucket::Rate;
pub use self::event::{Event, EventType, Regarding};
use self::event::{LONGEST_WORD, clip};
use self::ledger::{Ledger, Rules};
pub use self::metrics::EventStats;
use self::metrics::{Counts, EventCollector};
pub use self::publisher::Publisher;
use self::publisher::{EventWriter, Recorded};
use crate::client::Client;
use crate::leader::hostname;
use crate::metrics::Metrics;

/// Options of a recorder.
#[derive(Clone, Debug)]
#[must_use = "pass it to Recorder::new"]
pub struct RecorderOptions {
    controller: String,
    instance: Option<String>,
    window: Duration,
    pause: Duration,
    rate: Rate,
    capacity: usize,
    flush: Duration,
}

impl RecorderOptions {
    /// Creates options for this reporting controller: letters, digits, `-`, `_` and `.`, at most 63,
    /// optionally after a domain and a slash (`example.com/shop-operator`), at most 128 in all.
    pub fn new(controller: impl Into<String>) -> Self {
        Self {
            controller: controller.into(),
            instance: None,
            window: Duration::from_mins(6),
            pause: Duration::from_secs(30),
            rate: Rate::default(),
            capacity: 1024,
            flush: Duration::from_secs(5),
        }
    }

    /// Sets the reporting instance; the default is the controller and the host name, which is the Pod's name.
    /// Cut at 128 bytes.
    pub fn instance(self, instance: impl Into<String>) -> Self {
        Self { instance: Some(instance.into()), ..self }
    }

    /// Sets the time after which a series without an equal event ends (default 6 minutes).
    pub fn window(self, window: Duration) -> Self {
        Self { window, ..self }
    }

    /// Sets the longest delay between two writes of one series (default 30 s). The first delay is 1/32 of it;
    /// it doubles with each write.
    pub fn pause(self, pause: Duration) -> Self {
        Self { pause, ..self }
    }

    /// Sets the rate limit of writes per object.
    pub fn rate(self, rate: Rate) -> Self {
        Self { rate, ..self }
    }

    /// Sets the capacity of the channel between recorders and the publisher (default 1024 events).
    pub fn capacity(self, capacity: usize) -> Self {
        Self { capacity, ..self }
    }

    /// Sets the deadline for writing what is left when the process stops (default 5 s).
    pub fn flush(self, flush: Duration) -> Self {
        Self { flush, ..self }
    }
}

/// The API server would reject every event of this reporting controller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} cannot be the name of a reporting controller: use letters, digits, '-', '_' and '.' (at most 63, the first and \
     the last a letter or a digit), optionally after a domain and a slash, at most 128 in all"
)]
pub struct InvalidController(String);

/// Records events. Clones share one publisher.
#[derive(Clone, Debug)]
pub struct Recorder {
    sender: mpsc::Sender<Recorded>,
    counts: Arc<Counts>,
}

/// Maximum number of series, and of objects, that are remembered.
const MOST: usize = 4096;

impl Recorder {
    /// Creates a recorder and the publisher that writes its events. The account of the client needs `create`
    /// and `patch` of `events` in `events.k8s.io`.
    pub fn new(client: &Client, options: RecorderOptions) -> Result<(Self, Publisher), InvalidController> {
        let RecorderOptions { controller, instance, window, pause, rate, capacity, flush } = options;
        if !is_qualified(&controller) {
            return Err(InvalidController(controller));
        }
        let instance = instance.unwrap_or_else(|| format!("{controller}-{}", hostname()));
        let (sender, recorded) = mpsc::channel(capacity.max(1));
        let counts = Arc::new(Counts::default());
        let publisher = Publisher {
            recorded,
            ledger: Ledger::new(Rules { window, pause, rate, most: MOST }),
            writer: EventWriter {
                client: client.clone(),
                controller,
                instance: clip(&instance, LONGEST_WORD).to_owned(),
                names: RandomState::new(),
            },
            counts: Arc::clone(&counts),
            flush,
            window,
        };
        Ok((Self { sender, counts }, publisher))
    }

    /// Records an event; see [`Event::new`]. Never waits.
    pub fn event(
        &self,
        regarding: &Regarding,
        kind: EventType,
        reason: impl AsRef<str>,
        action: impl AsRef<str>,
        note: impl AsRef<str>,
    ) {
        self.record(Event::new(regarding, kind, reason, action, note));
    }

    /// Records an event. Never waits.
    pub fn record(&self, event: Event) {
        self.counts.recorded.fetch_add(1, Ordering::Release);
        if self.sender.try_send((event, Timestamp::now())).is_err() {
            self.counts.overflown.fetch_add(1, Ordering::Relaxed);
            self.counts.taken.fetch_add(1, Ordering::Release);
        }
    }

    /// Counters of recorded, written and dropped events.
    pub fn stats(&self) -> EventStats {
        self.counts.stats()
    }

    /// Exposes these counters in the metrics as `windlass_events_*`. A registry shows one recorder and its
    /// clones.
    pub fn show_in(&self, metrics: &Metrics) {
        metrics.register(EventCollector(Arc::clone(&self.counts)));
    }
}

/// Returns true if the API server accepts this name of a reporting controller.
fn is_qualified(name: &str) -> bool {
    let (domain, word) = name.split_once('/').map_or((None, name), |(domain, word)| (Some(domain), word));
    let ends = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.ends_with(|c: char| c.is_ascii_alphanumeric())
    };
    let lower = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    name.len() <= LONGEST_WORD
        && word.len() <= 63
        && ends(word)
        && word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        && domain.is_none_or(|domain| {
            domain.split('.').all(|label| ends(label) && label.len() <= 63 && label.chars().all(lower))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_reporting_controller_names_are_accepted() {
        let long = "x".repeat(64);
        let (domain, far) =
            (format!("{}/x", "d.".repeat(20) + "d"), format!("{}/{}", "d.".repeat(40) + "d", &long[1..]));
        for good in ["shop-operator", "a", "A_b.C", "example.com/shop", &long[1..], &domain] {
            assert!(is_qualified(good), "{good}");
        }
        for bad in ["", "-a", "a-", "a b", "a/b/c", "/a", "a/", "Example.com/a", "a..b/c", &*long, &*far] {
            assert!(!is_qualified(bad), "{bad}");
        }
    }
}
