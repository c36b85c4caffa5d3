//! The host table: forwards the log records of backends to `tracing`.

#![allow(unsafe_code, reason = "reads strings that a backend passes through the host table")]

use crate::abi::{self, Header, HostTable, Str};
use crate::end_of;
use crate::panics::contain;
use crate::plugin::convert;
use crate::process;

static HOST: HostTable = HostTable {
    header: Header {
        magic: abi::MAGIC,
        struct_size: end_of!(HostTable, log),
        major: abi::MAJOR,
        minor: abi::MINOR,
    },
    log: Some(log),
};

/// The table passed to every instance when it is opened.
pub(crate) fn host_table() -> &'static HostTable {
    &HOST
}

unsafe extern "C" fn log(level: u32, target: Str, message: Str) {
    // During process exit, the subscriber and its thread-local state may be gone.
    if process::exiting() {
        return;
    }
    // SAFETY: the backend's strings are readable during the call.
    let target = unsafe { utf8_lossy(target) };
    // SAFETY: as above.
    let message = unsafe { utf8_lossy(message) };
    // A `tracing` subscriber may panic; the panic must not cross the ABI.
    drop(contain(|| emit(level, &target, &message)));
}

/// Reads a string, replacing invalid UTF-8: a log record is never rejected.
unsafe fn utf8_lossy(text: Str) -> String {
    // SAFETY: guaranteed by the caller.
    let bytes =
        unsafe { convert::borrow_slice("text", text.ptr, text.len, abi::MAX_LOG_BYTES) }.unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}

fn emit(level: u32, backend: &str, message: &str) {
    const TARGET: &str = "runtime::backend";
    match level {
        1 => tracing::error!(target: TARGET, backend, "{message}"),
        2 => tracing::warn!(target: TARGET, backend, "{message}"),
        3 => tracing::info!(target: TARGET, backend, "{message}"),
        4 => tracing::debug!(target: TARGET, backend, "{message}"),
        _ => tracing::trace!(target: TARGET, backend, "{message}"),
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;
    use std::sync::{Arc, Mutex};

    use tracing::field::{Field, Visit};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Metadata, Subscriber};

    use super::*;

    #[derive(Clone, Default)]
    struct Collect(Arc<Mutex<String>>);

    struct Fields<'a>(&'a mut String);

    impl Visit for Fields<'_> {
        fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
            write!(self.0, " {}={value:?}", field.name()).unwrap();
        }
    }

    impl Subscriber for Collect {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }
        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }
        fn record(&self, _: &Id, _: &Record<'_>) {}
        fn record_follows_from(&self, _: &Id, _: &Id) {}
        fn event(&self, event: &Event<'_>) {
            let mut lines = self.0.lock().unwrap();
            write!(lines, "{}", event.metadata().level()).unwrap();
            event.record(&mut Fields(&mut lines));
            lines.push('\n');
            assert!(!lines.contains("poison"), "a subscriber that panics");
        }
        fn enter(&self, _: &Id) {}
        fn exit(&self, _: &Id) {}
    }

    #[test]
    fn log_records_become_tracing_events() {
        let collect = Collect::default();
        let log = host_table().log.unwrap();
        tracing::subscriber::with_default(collect.clone(), || {
            // SAFETY: static text.
            unsafe { log(2, Str::new("null"), Str::new("odd")) };
            // SAFETY: static text.
            unsafe { log(99, Str::EMPTY, Str { ptr: b"\xff".as_ptr(), len: 1 }) };
            // SAFETY: static text. The subscriber panics; the call returns.
            unsafe { log(1, Str::new("null"), Str::new("poison")) };
        });
        let lines = collect.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        assert!(
            lines.starts_with("WARN message=odd backend=\"null\"\nTRACE message=\u{fffd} backend=\"\"\n"),
            "{lines}"
        );
    }
}
