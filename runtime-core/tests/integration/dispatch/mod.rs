//! The dispatcher, on null devices: overloads, the device and queue of a call, ranges, failures and threads.

#![allow(unsafe_code, clippy::unwrap_used, reason = "a test that constructs native code")]

mod arguments;
mod devices;
mod overloads;
mod ranges;
mod threads;

use runtime_core::dispatch::Dispatcher;
use runtime_core::{Device, ErrorKind, ModuleSource, Options, Result, Runtime};

/// A runtime that knows null devices only, without a code cache.
fn runtime() -> Runtime {
    let cache = runtime_core::cache::CodeCache::off();
    Runtime::builder().discover(false).register(runtime_null::backend()).code_cache(cache).build()
}

fn open() -> Device {
    runtime().open("null").unwrap()
}

fn open_with(key: &str, value: &str) -> Device {
    runtime().open_with("null", &Options::new().with(key, value)).unwrap()
}

fn source(code: &str) -> ModuleSource {
    // SAFETY: every launch passes what the builtins expect.
    unsafe { ModuleSource::native("null", code) }
}

fn dispatcher(entry: &str) -> Dispatcher {
    Dispatcher::new(source(entry), entry)
}

/// The message of an error of this kind.
fn refused<T: std::fmt::Debug>(result: Result<T>, kind: ErrorKind) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    error.to_string()
}
