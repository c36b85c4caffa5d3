//! Tensors of this project as C functions, for Python's `ctypes`. A test library: it trusts its callers.
//!
//! A function that fails returns null or -1; [`interop_error`] returns the reason.

#![allow(unsafe_code, reason = "is called from C")]

mod capsule;
mod device;
mod dlpack;
mod tensor;

pub use capsule::{interop_destroy_unversioned, interop_destroy_versioned, interop_python};
pub use device::{
    Device, interop_close, interop_error, interop_native, interop_open, interop_scale, interop_use_stream,
    interop_wait,
};
pub use dlpack::{interop_deletions, interop_export, interop_import};
pub use tensor::{
    Description, interop_describe, interop_drop, interop_drop_on_thread, interop_freeze, interop_load,
    interop_read, interop_save, interop_tensor, interop_view, interop_write,
};
