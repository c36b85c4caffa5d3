//! Binds functions of a library that is loaded at run time. Their results are numbers, of a type of this backend: `cudarc` returns
//! closed enums, where a newer code is undefined behaviour.

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
