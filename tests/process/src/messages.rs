//! Collects log messages, by default those of backends and of the code cache.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, Once, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};

/// Warnings and errors that were logged. Clones share them.
#[derive(Clone, Debug)]
pub struct Messages {
    lines: Arc<Mutex<Vec<String>>>,
    targets: &'static [&'static str],
}

impl Default for Messages {
    /// Those of backends and the code cache.
    fn default() -> Self {
        Self::of_targets(&["runtime::backend", "runtime::cache"])
    }
}

impl Messages {
    fn of_targets(targets: &'static [&'static str]) -> Self {
        Self { lines: Arc::default(), targets }
    }

    /// What this thread logs under one of these targets while it does some work.
    pub fn during(targets: &'static [&'static str], work: impl FnOnce()) -> Vec<String> {
        // With a single subscriber, `tracing` asks only the first thread that reaches a message whether it is wanted.
        static LISTENS: Once = Once::new();
        LISTENS.call_once(|| drop(tracing::subscriber::set_global_default(Self::of_targets(&[]))));
        let messages = Self::of_targets(targets);
        tracing::subscriber::with_default(messages.clone(), work);
        messages.list()
    }

    /// Starts to collect those of this process.
    ///
    /// # Errors
    /// If another subscriber is installed.
    pub fn collect() -> Result<Self, String> {
        let messages = Self::default();
        tracing::subscriber::set_global_default(messages.clone()).map_err(|error| error.to_string())?;
        Ok(messages)
    }

    /// The messages so far.
    #[must_use]
    pub fn list(&self) -> Vec<String> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The text of an event.
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

impl Subscriber for Messages {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.targets.contains(&metadata.target()) && *metadata.level() <= Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        let line = format!("{}: {}", event.metadata().level(), text.0);
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
