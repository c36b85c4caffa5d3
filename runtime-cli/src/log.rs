//! What backends have to say beside their results: warnings and errors, on standard error.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::crash_context::CrashContext;
use crate::output;

/// Shows them from now on.
pub(crate) fn install() {
    // Nobody else in this program listens.
    let log = Log { calls: Mutex::default(), next: AtomicU64::new(1) };
    let _ = tracing::subscriber::set_global_default(log);
}

struct Log {
    /// Calls into backends, by the number of their span: what is said if one crashes.
    calls: Mutex<HashMap<u64, Call>>,
    next: AtomicU64,
}

struct Call {
    what: String,
    context: Option<CrashContext>,
}

/// Calls into backends, which may crash.
const CALLS: &str = "runtime::call";

/// Who speaks, and what is said.
#[derive(Default)]
struct Words {
    backend: String,
    message: String,
}

impl Visit for Words {
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
        is_call || (metadata.target() == "runtime::backend" && *metadata.level() <= Level::WARN)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::DEBUG)
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut words = Words::default();
        span.record(&mut words);
        let what = format!(
            "while the backend \"{}\" {}; name others in RUNTIME_BACKENDS to go on without it",
            words.backend,
            span.metadata().name()
        );
        self.calls.lock().insert(id, Call { what, context: None });
        Id::from_u64(id)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut words = Words::default();
        event.record(&mut words);
        let Words { backend, message } = words;
        let kind = if *event.metadata().level() == Level::ERROR { "error" } else { "warning" };
        output::print_stderr(&format!("{kind}: {backend}: {message}"));
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
