//! What backends have to say beside their results: warnings and errors, on standard error.

use std::fmt::Debug;

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::output;

/// Shows them from now on.
pub(crate) fn show() {
    // Nobody else in this program listens.
    let _ = tracing::subscriber::set_global_default(Log);
}

struct Log;

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
        metadata.target() == "runtime::backend" && *metadata.level() <= Level::WARN
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::WARN)
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut words = Words::default();
        event.record(&mut words);
        let Words { backend, message } = words;
        let kind = if *event.metadata().level() == Level::ERROR { "error" } else { "warning" };
        output::warn(&format!("{kind}: {backend}: {message}"));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
