//! Prints warnings and errors of backends and of the code cache to standard error, and records calls into backends for crash reports.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use runtime_harness::crash_context::CrashContext;
use runtime_harness::printable::indented;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::output;

/// Installs the subscriber.
pub(crate) fn install() {
    // Fails only if a subscriber is installed already; this program has no other.
    let log = Log { calls: Mutex::default(), next: AtomicU64::new(1) };
    let _ = tracing::subscriber::set_global_default(log);
}

struct Log {
    /// Calls into backends by span ID, for the report of a crash.
    calls: Mutex<HashMap<u64, Call>>,
    next: AtomicU64,
}

struct Call {
    what: String,
    context: Option<CrashContext>,
}

/// The tracing target of calls into backends, which may crash.
const CALLS: &str = "runtime::call";

/// The tracing target of the code cache.
const CACHE: &str = "runtime::cache";

/// The fields of a record.
#[derive(Default)]
struct LogFields {
    backend: String,
    message: String,
}

impl Visit for LogFields {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "backend" {
            value.clone_into(&mut self.backend);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
        }
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let is_call = metadata.is_span() && metadata.target() == CALLS;
        is_call
            || (matches!(metadata.target(), "runtime::backend" | CACHE) && *metadata.level() <= Level::WARN)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::DEBUG)
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut fields = LogFields::default();
        span.record(&mut fields);
        let what = format!(
            "while the backend \"{}\" {}; to continue without it, list the other backends in RUNTIME_BACKENDS",
            fields.backend,
            span.metadata().name()
        );
        self.calls.lock().insert(id, Call { what, context: None });
        Id::from_u64(id)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = LogFields::default();
        event.record(&mut fields);
        let LogFields { backend, message } = fields;
        let kind = if *event.metadata().level() == Level::ERROR { "error" } else { "warning" };
        output::print_stderr(&match event.metadata().target() {
            CACHE => format!("{kind}: {}", indented(&message)),
            _ => format!("{kind}: {backend}: {}", indented(&message)),
        });
    }

    fn enter(&self, id: &Id) {
        if let Some(call) = self.calls.lock().get_mut(&id.into_u64()) {
            call.context = Some(CrashContext::enter(call.what.clone()));
        }
    }

    fn exit(&self, id: &Id) {
        self.calls.lock().remove(&id.into_u64());
    }
}
