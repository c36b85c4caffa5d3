//! Exports and imports DLPack structures.

use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use runtime_core::Tensor;
use runtime_core::dlpack::{DLManagedTensor, DLManagedTensorVersioned};

use crate::device::{Device, store_error};
use crate::tensor::into_handle;

static DELETIONS: AtomicU64 = AtomicU64::new(0);
/// The deleters of core, the same for all structures.
static VERSIONED: OnceLock<unsafe extern "C" fn(*mut DLManagedTensorVersioned)> = OnceLock::new();
static UNVERSIONED: OnceLock<unsafe extern "C" fn(*mut DLManagedTensor)> = OnceLock::new();

/// The number of exported tensors whose deleter was called.
#[unsafe(no_mangle)]
pub extern "C" fn interop_deletions() -> u64 {
    DELETIONS.load(Ordering::SeqCst)
}

/// Exports a tensor: a `DLManagedTensorVersioned`, or a `DLManagedTensor`.
///
/// # Safety
/// Made here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn interop_export(tensor: &Tensor, versioned: bool) -> *mut c_void {
    let Some(lent) = store_error(tensor.to_dlpack()) else { return std::ptr::null_mut() };
    if versioned {
        let managed = lent.into_raw();
        // SAFETY: just made.
        let deleter = unsafe { &mut (*managed).deleter }.replace(count_versioned);
        let _ = deleter.map(|deleter| VERSIONED.set(deleter));
        return managed.cast();
    }
    let Some(managed) = store_error(lent.into_raw_unversioned()) else { return std::ptr::null_mut() };
    // SAFETY: just made.
    let deleter = unsafe { &mut (*managed).deleter }.replace(count_unversioned);
    let _ = deleter.map(|deleter| UNVERSIONED.set(deleter));
    managed.cast()
}

unsafe extern "C" fn count_versioned(managed: *mut DLManagedTensorVersioned) {
    DELETIONS.fetch_add(1, Ordering::SeqCst);
    if let Some(deleter) = VERSIONED.get() {
        // SAFETY: the structure's own deleter, which its consumer calls once.
        unsafe { deleter(managed) };
    }
}

unsafe extern "C" fn count_unversioned(managed: *mut DLManagedTensor) {
    DELETIONS.fetch_add(1, Ordering::SeqCst);
    if let Some(deleter) = UNVERSIONED.get() {
        // SAFETY: the structure's own deleter, which its consumer calls once.
        unsafe { deleter(managed) };
    }
}

/// Releases a managed tensor that was not consumed.
///
/// # Safety
/// Made by [`interop_export`].
pub(crate) unsafe fn delete(managed: *mut c_void, versioned: bool) {
    if versioned {
        // SAFETY: the caller's promise.
        unsafe { count_versioned(managed.cast()) };
    } else {
        // SAFETY: the caller's promise.
        unsafe { count_unversioned(managed.cast()) };
    }
}

/// Takes over a managed tensor; null leaves it to the caller.
///
/// # Safety
/// As `Tensor::from_dlpack`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn interop_import(
    device: &Device,
    managed: *mut c_void,
    versioned: bool,
) -> *mut Tensor {
    let device = &*device.runtime;
    into_handle(if versioned {
        // SAFETY: the caller's promise.
        unsafe { device.import_dlpack(managed.cast()) }
    } else {
        // SAFETY: the caller's promise.
        unsafe { device.import_dlpack_unversioned(managed.cast()) }
    })
}
