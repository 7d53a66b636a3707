//! Logs for machines or for people.
//!
//! Every line that is written within a reconcile, by this crate or by anybody else, carries the controller's name, the object's
//! key and the id of that reconcile, so that one `grep` tells the story of an object.
//!
//! What is logged is decided by `RUST_LOG` in `tracing`'s notation (`info,windlass_runtime=debug`); by default `info`.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// How a line looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// One JSON object per line.
    #[default]
    Json,
    /// For a person at a terminal.
    Pretty,
}

/// The log was set up before.
#[derive(Debug, thiserror::Error)]
#[error("the log was set up before, and cannot be set up twice")]
pub struct AlreadySet;

/// Writes the log of this process to standard error.
///
/// For programs; a library leaves it to them.
pub fn init(format: Format) -> Result<(), AlreadySet> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    subscriber(format, filter, std::io::stderr).try_init().map_err(|_| AlreadySet)
}

fn subscriber<W>(format: Format, filter: EnvFilter, writer: W) -> impl tracing::Subscriber + Send + Sync
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    // All spans, not only the innermost: a span of the user's inside of a reconcile must not hide whose it is.
    let (json, pretty) = match format {
        Format::Json => {
            let layer = tracing_subscriber::fmt::layer()
                .json()
                .flatten_event(true)
                .with_current_span(false)
                .with_span_list(true)
                .with_writer(writer);
            (Some(layer), None)
        }
        Format::Pretty => {
            (None, Some(tracing_subscriber::fmt::layer().with_target(false).with_writer(writer)))
        }
    };
    tracing_subscriber::registry().with(filter).with(json).with(pretty)
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;
    use std::io::Write;
    use std::sync::Arc;

    #[derive(Clone, Default)]
    struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl Write for Buffer {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn lines(format: Format, filter: &str) -> String {
        let buffer = Buffer::default();
        let writer = buffer.clone();
        let subscriber = subscriber(format, EnvFilter::new(filter), move || writer.clone());
        tracing::subscriber::with_default(subscriber, || {
            let reconcile = tracing::error_span!(
                "reconcile",
                controller = "foo",
                object = "shop/web",
                reconcile_id = "1f"
            );
            let _in_reconcile = reconcile.enter();
            let _deeper = tracing::info_span!("apply").entered();
            tracing::warn!(replicas = 3, "scaled");
            tracing::debug!("not shown");
        });
        let bytes = buffer.0.lock().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn every_json_line_within_a_reconcile_says_which_also_in_deeper_spans_and_when_little_is_logged() {
        for filter in ["info", "warn"] {
            let text = lines(Format::Json, filter);
            assert_eq!(text.lines().count(), 1, "{text}");
            let line: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!((&line["message"], &line["replicas"]), (&"scaled".into(), &3.into()));
            let span = &line["spans"][0];
            assert_eq!(span["object"], "shop/web");
            assert_eq!((&span["controller"], &span["reconcile_id"]), (&"foo".into(), &"1f".into()));
        }
    }

    #[test]
    fn every_pretty_line_within_a_reconcile_says_which() {
        let text = lines(Format::Pretty, "info");
        assert!(text.contains("shop/web") && text.contains("scaled"), "{text}");
    }
}
