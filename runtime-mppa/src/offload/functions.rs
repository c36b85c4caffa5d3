//! The functions of the shim, and what their results mean.

#![allow(unsafe_code, reason = "loads and declares C functions")]

use std::ffi::{c_char, c_int, c_void};

use libloading::Library;
use runtime_core::{Error, ErrorKind, Result};

/// Codes of the shim's own, which the library never returns.
const OWN_CODES: [(c_int, &str); 4] = [
    (-1_000_001, "out of host memory"),
    (-1_000_002, "the board has no accelerator"),
    (-1_000_003, "a cluster has no queue"),
    (-1_000_005, "there is no such cluster"),
];

macro_rules! functions {
    ($($field:ident: $name:literal fn($($argument:ty),*) -> $result:ty;)+) => {
        /// The functions of a loaded shim.
        #[derive(Clone, Copy, Debug)]
        pub(super) struct Functions {
            $(pub(super) $field: unsafe extern "C" fn($($argument),*) -> $result,)+
        }

        impl Functions {
            /// # Safety
            /// The library was compiled from `shim.c`, and stays loaded.
            pub(super) unsafe fn bind(library: &Library) -> Result<Self> {
                Ok(Self { $($field: {
                    // SAFETY: the signature is that of `shim.c`.
                    let symbol = unsafe { library.get::<unsafe extern "C" fn($($argument),*) -> $result>($name) };
                    *symbol.map_err(|error| Error::new(ErrorKind::Driver, error.to_string()))?
                },)+ })
            }
        }
    };
}

functions! {
    open: b"shim_open" fn(u32, *mut c_char, *mut *mut c_void) -> c_int;
    close: b"shim_close" fn(*mut c_void) -> c_int;
    allocate: b"shim_allocate" fn(*mut c_void, i32, u64, u64, *mut u64, *mut u64) -> c_int;
    free: b"shim_free" fn(*mut c_void, i32, u64) -> c_int;
    write: b"shim_write" fn(*mut c_void, *mut c_void, u64, u64) -> c_int;
    read: b"shim_read" fn(*mut c_void, *mut c_void, u64, u64) -> c_int;
    load: b"shim_load" fn(*mut c_void, *mut c_void, u64, u64, u64, *mut u64) -> c_int;
    unload: b"shim_unload" fn(*mut c_void, u64) -> c_int;
    symbol: b"shim_symbol" fn(*mut c_void, u64, *const c_char, *mut u64) -> c_int;
    execute: b"shim_execute" fn(*mut c_void, u32, u64, u32) -> c_int;
    command_bytes: b"shim_command_bytes" fn() -> u64;
    common_structures: b"shim_common_structures" fn(*mut c_void) -> *mut c_void;
    command: b"shim_command" fn(*mut c_void, u64, u64) -> ();
}

/// The error for a result other than 0.
pub(super) fn check(kind: ErrorKind, function: &str, code: c_int) -> Result<()> {
    if code == 0 {
        return Ok(());
    }
    let own = OWN_CODES.iter().find(|(known, _)| *known == code).map(|(_, text)| *text);
    Err(match own {
        Some(text) => Error::new(kind, format!("{function}: {text}")),
        None => Error::new(kind, format!("{function} failed")).with_driver(function, i64::from(code)),
    })
}
