//! Generic shims that expose the safe traits as the C function table.
//!
//! Every shim checks the pointers it receives, catches panics and converts errors to owned error objects. A
//! handle is `Box::into_raw` of the author's type.

#![allow(
    unsafe_code,
    reason = "the backend's side of the ABI: raw handles and structures received from core"
)]

mod compiled;
mod counters;
mod device;
mod embedded;
mod ffi;
mod graph;
mod instance;
mod manifest;
mod module;
mod native;
mod panic;
mod queue;

pub use manifest::manifest;
pub use panic::catch_panic;

use std::marker::PhantomData;

use super::{Backend, Device, Module};
use crate::abi::{self, BackendTable, Header, Manifest, Status, Str};
use crate::end_of;

/// The functions of backend `B` with the C calling convention.
#[derive(Debug)]
struct Shims<B>(PhantomData<B>);

type BufferOf<B> = <<B as Backend>::Device as Device>::Buffer;
type GraphOf<B> = <<B as Backend>::Device as Device>::Graph;
type KernelOf<B> = <<<B as Backend>::Device as Device>::Module as Module>::Kernel;
type ModuleOf<B> = <<B as Backend>::Device as Device>::Module;
type QueueOf<B> = <<B as Backend>::Device as Device>::Queue;

impl<B: Backend> Shims<B> {
    const TABLE: &'static BackendTable = &BackendTable {
        header: Header {
            magic: abi::MAGIC,
            struct_size: end_of!(BackendTable, native),
            major: abi::MAJOR,
            minor: abi::MINOR,
        },
        name: Str::new(B::NAME),
        version: Str::new(B::VERSION),
        instance: Self::INSTANCE,
        device: Self::DEVICE,
        memory: Self::MEMORY,
        module: Self::MODULE,
        queue: Self::QUEUE,
        graph: Self::GRAPH,
        embedded: Self::EMBEDDED,
        counters: Self::COUNTERS,
        native: Self::NATIVE,
    };
}

/// The function table of backend `B`.
pub(super) const fn table<B: Backend>() -> &'static BackendTable {
    Shims::<B>::TABLE
}

/// Body of a library's entry point. Takes `manifest` so that the linker keeps it.
///
/// # Safety
/// `out` is null, or writable for a pointer.
#[doc(hidden)]
pub unsafe fn enter(
    out: *mut *const BackendTable,
    table: &'static BackendTable,
    manifest: &'static Manifest,
) -> Status {
    std::hint::black_box(manifest);
    panic::set_dynamic_library();
    panic::guard("entry", || {
        // SAFETY: guaranteed by the caller.
        unsafe { ffi::out_param(out) }?.write(table);
        Ok(())
    })
}
