//! The fake of the offload library, as a test of the process that has loaded it sees it.

#![allow(unsafe_code, reason = "calls the fake library")]

use std::ffi::{CStr, c_char, c_int};
use std::path::Path;

use libloading::{Library, Symbol};

/// The fake library.
#[derive(Debug)]
pub struct FakeLibrary(Library);

impl FakeLibrary {
    /// The library of a fake SDK, loaded if it is not yet.
    ///
    /// # Panics
    /// If it cannot be loaded.
    #[must_use]
    pub fn of(sdk: &Path) -> Self {
        // SAFETY: the fake's initialisers do nothing.
        let library = unsafe { Library::new(sdk.join("lib/libmppa_offload_host.so")) };
        Self(library.expect("the fake library"))
    }

    /// The result of a function without arguments.
    ///
    /// # Panics
    /// If the fake does not have it.
    #[must_use]
    pub fn number(&self, name: &str) -> c_int {
        // SAFETY: the function is the fake's, and takes nothing.
        let function: Symbol<'_, extern "C" fn() -> c_int> =
            unsafe { self.0.get(name) }.expect("a function of the fake");
        function()
    }

    /// Forgets earlier calls, and lets call `fail_at` fail, counted from 1; none for 0.
    ///
    /// # Panics
    /// If the fake lacks a function.
    pub fn reset(&self, fail_at: c_int) {
        // SAFETY: the function is the fake's.
        let function: Symbol<'_, extern "C" fn(c_int)> =
            unsafe { self.0.get("fake_reset") }.expect("a function of the fake");
        function(fail_at);
    }

    /// Sets the addresses of the next blocks, and the first also of the next functions; none for [`u64::MAX`].
    ///
    /// # Panics
    /// If the fake lacks a function.
    pub fn set_addresses(&self, virt: u64, phys: u64) {
        // SAFETY: the function is the fake's.
        let function: Symbol<'_, extern "C" fn(u64, u64)> =
            unsafe { self.0.get("fake_addresses") }.expect("a function of the fake");
        function(virt, phys);
    }

    /// Frees all blocks.
    ///
    /// # Panics
    /// If the fake lacks the function.
    pub fn forget_blocks(&self) {
        // SAFETY: the function is the fake's.
        let function: Symbol<'_, extern "C" fn()> =
            unsafe { self.0.get("fake_forget_blocks") }.expect("a function of the fake");
        function();
    }

    /// The calls that it got, and what was wrong.
    ///
    /// # Panics
    /// If the fake lacks a function.
    #[must_use]
    pub fn log(&self) -> String {
        // SAFETY: the function is the fake's.
        let function: Symbol<'_, extern "C" fn() -> *const c_char> =
            unsafe { self.0.get("fake_log") }.expect("a function of the fake");
        // SAFETY: it returns a string that lives as long as the library.
        unsafe { CStr::from_ptr(function()) }.to_string_lossy().into_owned()
    }
}
