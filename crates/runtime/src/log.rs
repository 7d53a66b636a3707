//! Log output for machines or for people.
//!
//! Every line that is logged within a reconcile, by this crate or by any other, carries the controller's
//! name, the object's key and the id of that reconcile, so that one `grep` finds all lines of an object.
//!
//! `RUST_LOG` sets the filter in `tracing`'s notation (`info,windlass_runtime=debug`); the default is `info`.
//! A program with a flag for it passes the filter to [`init_with`].

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::io::IsTerminal as _;

use serde::Serializer as _;
use serde::ser::SerializeMap as _;
use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::span::Record;
use tracing::{Event, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields, MakeWriter};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

/// The format of a log line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// One JSON object per line.
    #[default]
    Json,
    /// Text for a person at a terminal.
    Pretty,
}

/// The log was set up before.
#[derive(Debug, thiserror::Error)]
#[error("the log is already set up")]
pub struct AlreadySet;

/// Writes the log of this process to standard error.
///
/// Intended for programs; libraries should not call it.
pub fn init(format: Format) -> Result<(), AlreadySet> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    subscriber(format, filter, std::io::stderr, in_colour()).try_init().map_err(|_| AlreadySet)
}

/// The reason why the log cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum InvalidLog {
    /// The filter cannot be parsed.
    #[error(
        "{filter:?} is not a log filter: use error, warn, info, debug or trace, or `info,windlass_runtime=debug`"
    )]
    Level {
        /// The filter as it was passed.
        filter: String,
    },
    /// The log was set up before.
    #[error(transparent)]
    AlreadySet(#[from] AlreadySet),
}

/// Like [`init`], with a filter from the program in the notation of `RUST_LOG`.
pub fn init_with(format: Format, level: &str) -> Result<(), InvalidLog> {
    let filter = EnvFilter::try_new(level).map_err(|_| InvalidLog::Level { filter: level.to_owned() })?;
    Ok(subscriber(format, filter, std::io::stderr, in_colour()).try_init().map_err(|_| AlreadySet)?)
}

/// Colours are for terminals: in a file their escape codes are noise.
fn in_colour() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty())
}

fn subscriber<W>(
    format: Format,
    filter: EnvFilter,
    writer: W,
    colour: bool,
) -> impl tracing::Subscriber + Send + Sync
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let (json, pretty) = match format {
        Format::Json => {
            let layer = tracing_subscriber::fmt::layer().event_format(Flat).fmt_fields(Members);
            (Some(layer.with_writer(writer)), None)
        }
        Format::Pretty => {
            let layer = tracing_subscriber::fmt::layer().with_target(false).with_ansi(colour);
            (None, Some(layer.with_writer(writer)))
        }
    };
    tracing_subscriber::registry().with(filter).with(json).with(pretty)
}

/// Formats one JSON object per line, with the fields of all spans beside those of the event: `object` is
/// always at the same place, however deep in a reconcile the line was logged. If a name repeats, the
/// innermost value wins.
struct Flat;

impl<S, N> FormatEvent<S, N> for Flat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut fields = Fields::default();
        for span in context.event_scope().into_iter().flat_map(tracing_subscriber::registry::Scope::from_root)
        {
            let extensions = span.extensions();
            let written =
                extensions.get::<FormattedFields<N>>().map(|fields| format!("{{{}}}", fields.fields));
            if let Some(Ok(Value::Object(of_span))) = written.map(|text| serde_json::from_str(&text)) {
                fields.0.extend(of_span);
            }
        }
        event.record(&mut fields);
        let message = fields.0.remove("message");
        let line = line(event, message.as_ref(), &fields.0).map_err(|_| fmt::Error)?;
        writeln!(writer, "{line}")
    }
}

/// Writes the most important fields first.
fn line(
    event: &Event<'_>,
    message: Option<&Value>,
    fields: &BTreeMap<String, Value>,
) -> Result<String, serde_json::Error> {
    let mut bytes = Vec::with_capacity(256);
    let mut serializer = serde_json::Serializer::new(&mut bytes);
    let mut map = serializer.serialize_map(None)?;
    map.serialize_entry("timestamp", &jiff::Timestamp::now())?;
    map.serialize_entry("level", event.metadata().level().as_str())?;
    if let Some(message) = message {
        map.serialize_entry("message", message)?;
    }
    for (name, value) in
        fields.iter().filter(|(name, _)| !matches!(name.as_str(), "timestamp" | "level" | "target"))
    {
        map.serialize_entry(name, value)?;
    }
    map.serialize_entry("target", event.metadata().target())?;
    map.end()?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The fields of a line by name.
#[derive(Default)]
struct Fields(BTreeMap<String, Value>);

impl Fields {
    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }
}

/// Formats the fields of a span as the members of a JSON object.
///
/// Every reconcile has a span, and few spans log a line: so the fields are written directly, without a tree
/// of values, and parsed only when there is a line.
struct Members;

impl<'writer> FormatFields<'writer> for Members {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'writer>, fields: R) -> fmt::Result {
        Member::write_all(writer, true, |member| fields.record(member))
    }

    fn add_fields(&self, current: &'writer mut FormattedFields<Self>, fields: &Record<'_>) -> fmt::Result {
        let first = current.fields.is_empty();
        Member::write_all(current.as_writer(), first, |member| fields.record(member))
    }
}

/// Writes one member after the other.
struct Member<'writer> {
    writer: Writer<'writer>,
    first: bool,
    done: fmt::Result,
}

impl<'writer> Member<'writer> {
    fn write_all(writer: Writer<'writer>, first: bool, record: impl FnOnce(&mut Self)) -> fmt::Result {
        let mut member = Self { writer, first, done: Ok(()) };
        record(&mut member);
        member.done
    }

    fn put(&mut self, field: &Field, value: impl FnOnce(&mut Writer<'writer>) -> fmt::Result) {
        let comma = if std::mem::take(&mut self.first) { "" } else { "," };
        // The name of a field is a Rust identifier with dots: it needs no escapes.
        let written =
            write!(self.writer, "{comma}\"{}\":", field.name()).and_then(|()| value(&mut self.writer));
        self.done = self.done.and(written);
    }

    fn text(&mut self, field: &Field, text: fmt::Arguments<'_>) {
        self.put(field, |writer| {
            writer.write_char('"')?;
            Escaped(writer).write_fmt(text)?;
            writer.write_char('"')
        });
    }
}

impl Visit for Member<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.text(field, format_args!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field, format_args!("{value}"));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, |writer| write!(writer, "{value}"));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, |writer| write!(writer, "{value}"));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        // JSON has no infinity.
        if value.is_finite() {
            self.put(field, |writer| write!(writer, "{value}"));
        } else {
            self.text(field, format_args!("{value}"));
        }
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, |writer| write!(writer, "{value}"));
    }
}

/// Writes text as the content of a JSON string.
struct Escaped<'a, 'writer>(&'a mut Writer<'writer>);

impl Write for Escaped<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let special = |byte: u8| byte < 0x20 || byte == b'"' || byte == b'\\';
        let mut rest = text;
        while let Some(at) = rest.bytes().position(special) {
            // Special characters are single ASCII bytes, so these are character boundaries.
            let (plain, after) = rest.split_at(at);
            let (found, after) = after.split_at(1);
            self.0.write_str(plain)?;
            match found {
                "\"" | "\\" => write!(self.0, "\\{found}")?,
                _ => write!(self.0, "\\u{:04x}", found.as_bytes()[0])?,
            }
            rest = after;
        }
        self.0.write_str(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;
    use std::sync::Arc;

    #[derive(Clone, Default)]
    struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Buffer {
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
        let subscriber = subscriber(format, EnvFilter::new(filter), move || writer.clone(), false);
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
    fn every_json_line_within_a_reconcile_names_it_in_deeper_spans_and_at_any_level() {
        for filter in ["info", "warn"] {
            let text = lines(Format::Json, filter);
            assert_eq!(text.lines().count(), 1, "{text}");
            let line: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!((&line["message"], &line["replicas"]), (&"scaled".into(), &3.into()));
            assert_eq!(line["object"], "shop/web");
            assert_eq!((&line["controller"], &line["reconcile_id"]), (&"foo".into(), &"1f".into()));
            assert_eq!((&line["level"], &line["target"]), (&"WARN".into(), &module_path!().into()));
            assert!(line["timestamp"].as_str().unwrap().parse::<jiff::Timestamp>().is_ok());
        }
    }

    #[test]
    fn span_fields_of_any_type_are_written_and_read_back() {
        let buffer = Buffer::default();
        let writer = buffer.clone();
        let subscriber = subscriber(Format::Json, EnvFilter::new("info"), move || writer.clone(), false);
        let odd = "a \"quoted\" \\ line\nand a\ttab\u{1}, ünï";
        tracing::subscriber::with_default(subscriber, || {
            let none = tracing::info_span!("none", late = tracing::field::Empty);
            none.record("late", 1_u64);
            let _around = none.enter();
            let span = tracing::info_span!(
                "odd",
                text = odd,
                shown = %odd,
                debugged = ?odd,
                less = -1,
                half = 0.5,
                endless = f64::INFINITY,
                yes = true,
                a.dotted = 1_u64,
                later = tracing::field::Empty,
            );
            span.record("later", odd);
            span.in_scope(|| tracing::info!("here"));
        });
        let bytes = buffer.0.lock().clone();
        let line: Value = serde_json::from_slice(&bytes).unwrap();
        for (name, value) in [
            ("late", Value::from(1)),
            ("text", odd.into()),
            ("shown", odd.into()),
            ("debugged", format!("{odd:?}").into()),
            ("less", (-1).into()),
            ("half", 0.5.into()),
            ("endless", "inf".into()),
            ("yes", true.into()),
            ("a.dotted", 1.into()),
            ("later", odd.into()),
        ] {
            assert_eq!(line[name], value, "{name} in {line}");
        }
    }

    #[test]
    fn every_pretty_line_within_a_reconcile_names_it() {
        let text = lines(Format::Pretty, "info");
        assert!(text.contains("shop/web") && text.contains("scaled"), "{text}");
        assert!(!text.contains('\u{1b}'), "colour is for terminals: {text:?}");
    }
}
