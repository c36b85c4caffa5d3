//! From safe traits to the seam's table: generic shims, one per function, and the macro that exports them.
//!
//! Every shim checks the pointers that it is handed, contains panics, and turns errors into owned objects. Objects
//! cross as boxes: a handle is `Box::into_raw` of the author's own type.

#![allow(
    unsafe_code,
    reason = "the backend's side of the seam: raw handles and structures of the other side"
)]

mod device;
mod embedded;
mod ffi;
mod graph;
mod instance;
mod manifest;
mod module;
mod panic;
mod queue;

pub use manifest::manifest;
pub use panic::catch_panic;

use std::marker::PhantomData;

use super::{Backend, Device, LinkedBackend, Module};
use crate::abi::{self, BackendTable, Header, Manifest, Status, Str};
use crate::end_of;

/// The functions of backend `B` in C's clothes.
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
            struct_size: end_of!(BackendTable, embedded),
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
    };
}

/// The table of backend `B`.
pub(super) const fn table<B: Backend>() -> &'static BackendTable {
    Shims::<B>::TABLE
}

/// Answers the entry point of a library. `manifest` is taken to keep it in the library.
///
/// # Safety
/// `out` is null or a place for the pointer.
#[doc(hidden)]
pub unsafe fn enter(
    out: *mut *const BackendTable,
    backend: LinkedBackend,
    manifest: &'static Manifest,
) -> Status {
    std::hint::black_box(manifest);
    panic::set_dynamic_library();
    panic::guard("entry", || {
        // SAFETY: the caller's promise.
        unsafe { ffi::out_param(out) }?.write(backend.table());
        Ok(())
    })
}

/// Exports a [`Backend`](crate::backend::Backend) from a dynamic library: the one symbol, and the manifest.
///
/// It stands in the crate that becomes the `cdylib`. A program that links several backends in statically needs
/// their crates *without* the symbol: then the macro stands in a crate of its own, which depends on the backend's
/// (`tests/null/plugin`). Also makes `pub fn backend() -> LinkedBackend`, for
/// [`RuntimeBuilder::register`](crate::RuntimeBuilder::register).
#[macro_export]
macro_rules! export_backend {
    ($backend:ty) => {
        #[cfg(panic = "abort")]
        compile_error!("build a backend with panic = \"unwind\": its panics must become errors");

        #[allow(unsafe_code, reason = "exports the library's entry point and manifest")]
        const _: () = {
            #[used]
            #[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__rt_manifest"))]
            #[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".runtime_manifest"))]
            static MANIFEST: $crate::abi::Manifest =
                $crate::backend::manifest(<$backend as $crate::backend::Backend>::NAME);

            #[unsafe(no_mangle)]
            unsafe extern "C" fn runtime_backend_v1(
                out: *mut *const $crate::abi::BackendTable,
            ) -> $crate::abi::Status {
                // SAFETY: whoever calls the entry point passes a place for the table's address.
                unsafe { $crate::backend::enter(out, backend(), &MANIFEST) }
            }
        };

        /// This backend, to register it in a program that links it in.
        #[must_use]
        pub const fn backend() -> $crate::backend::LinkedBackend {
            $crate::backend::LinkedBackend::of::<$backend>()
        }
    };
}
