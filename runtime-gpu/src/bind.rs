//! Opens the libraries of NVIDIA's driver and binds their functions at run time. Functions return integers, wrapped in
//! a type of this backend. `cudarc`'s own declarations return Rust enums, in which a newer code is undefined behaviour.

#![allow(unsafe_code, reason = "loads foreign libraries")]

use std::path::{Path, PathBuf};

use libloading::Library;
use runtime_core::backend::open_library;

/// Where the libraries of NVIDIA's driver are: the system's search path, then the folders used by containers and WSL.
pub(crate) const FOLDERS: &[&str] =
    &["", "/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/usr/lib/wsl/lib"];

/// Opens the driver's library `name` from the first folder that has it.
///
/// # Errors
/// Why the system's search path does not give it.
///
/// # Safety
/// The library can be loaded at any time, on any thread.
pub(crate) unsafe fn open_driver_library(name: &str) -> Result<Library, String> {
    // SAFETY: the caller's promise.
    unsafe { open_first(FOLDERS.iter().map(|folder| Path::new(folder).join(name)), |library, _| Ok(library)) }
}

/// Opens the first of some libraries that has the functions which `bind` looks for; it returns the name of one that is missing.
///
/// # Errors
/// What is missing in the last library that could be opened, otherwise why the first could not.
///
/// # Safety
/// As for [`open_driver_library`].
pub(crate) unsafe fn open_first<T>(
    paths: impl IntoIterator<Item = PathBuf>,
    bind: impl Fn(Library, &Path) -> Result<T, &'static str>,
) -> Result<T, String> {
    let mut reason = String::new();
    for path in paths {
        // SAFETY: the caller's promise.
        match open_library(&path, |path| unsafe { Library::new(path) }) {
            Ok(library) => match bind(library, &path) {
                Ok(bound) => return Ok(bound),
                Err(symbol) => reason = format!("{}: it lacks {symbol}", path.display()),
            },
            Err(error) if reason.is_empty() => error.message().clone_into(&mut reason),
            Err(_) => {}
        }
    }
    Err(reason)
}

/// Declares groups of functions that return `$code`; a group is bound whole or not at all.
macro_rules! bind {
    ($code:ty; $($(#[$doc:meta])* $group:ident { $($symbol:ident: fn($($ty:ty),* $(,)?);)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $group {
            $(pub(crate) $symbol: unsafe extern "C" fn($($ty),*) -> $code,)*
        }

        impl $group {
            /// Binds the group.
            ///
            /// # Errors
            /// The name of the first function that the library lacks.
            fn bind(library: &libloading::Library) -> Result<Self, &'static str> {
                Ok(Self {$(
                    $symbol: {
                        // SAFETY: the library's function of this name has this signature.
                        let symbol = unsafe {
                            library.get::<unsafe extern "C" fn($($ty),*) -> $code>(stringify!($symbol).as_bytes())
                        };
                        *symbol.map_err(|_| stringify!($symbol))?
                    },
                )*})
            }
        }
    )*};
}

/// As [`bind!`], and fails to compile if a signature is not the one that `cudarc` generated from NVIDIA's header: `sys` is its
/// module, and `$result` the enum that its functions return.
macro_rules! bind_as_in_header {
    ($code:ty as $result:ty;
        $($(#[$doc:meta])* $group:ident { $($symbol:ident: fn($($ty:ty),* $(,)?);)* })*) => {
        bind! { $code; $($(#[$doc])* $group { $($symbol: fn($($ty),*);)* })* }
        $($(const _: unsafe fn($($ty),*) -> $result = sys::$symbol;)*)*
        const _: () = assert!(size_of::<$code>() == size_of::<$result>());
    };
}

pub(crate) use {bind, bind_as_in_header};
