//! The macro that exports a backend's function table from a library.

/// Exports a [`Backend`](crate::backend::Backend) from a dynamic library: defines the entry point and the
/// manifest.
///
/// Use it in the `cdylib` crate. A program that links several backends statically needs their crates
/// *without* the symbol; put the macro in a separate crate that depends on the backend (`tests/null/plugin`).
/// It also defines `pub fn backend() -> LinkedBackend`, for
/// [`RuntimeBuilder::register`](crate::RuntimeBuilder::register).
#[macro_export]
macro_rules! export_backend {
    ($backend:ty) => {
        #[cfg(panic = "abort")]
        compile_error!("build backends with panic = \"unwind\", so that panics become errors");

        #[allow(unsafe_code, reason = "exports the library's entry point and manifest")]
        const _: () = {
            #[used]
            #[unsafe(link_section = ".runtime_manifest")]
            static MANIFEST: $crate::abi::Manifest =
                $crate::backend::manifest(<$backend as $crate::backend::Backend>::NAME);

            #[unsafe(no_mangle)]
            unsafe extern "C" fn runtime_backend_v1(
                out: *mut *const $crate::abi::BackendTable,
            ) -> $crate::abi::Status {
                // SAFETY: the caller of the entry point passes a writable pointer for the table's address.
                unsafe { $crate::backend::enter(out, backend().table(), &MANIFEST) }
            }
        };

        /// This backend, for registration in a program that links it statically.
        #[must_use]
        pub const fn backend() -> $crate::backend::LinkedBackend {
            $crate::backend::LinkedBackend::of::<$backend>()
        }
    };
}
