//! Calls functions of TVM's FFI: tagged values of 16 bytes, and errors stored in TVM's runtime library.
//!
//! Layouts and constants are those of `tvm/ffi/c_api.h` in `apache-tvm-ffi` 0.1, a stable C interface:
//! `TVMFFIAny`, `TVMFFITypeIndex`, `TVMFFISafeCallType`, `TVMFFIObject`, `TVMFFIErrorCell`.

#![allow(unsafe_code, reason = "calls foreign code")]

use std::ffi::c_void;
use std::fmt;

use libloading::os::unix::Library as Handle;
use smallvec::SmallVec;

use crate::library::Library;
use crate::packed_func::INLINE_ARGS;
use crate::register::{RegClass, RegValue};

/// `TVMFFITypeIndex`.
mod index {
    pub(super) const NONE: i32 = 0;
    pub(super) const INT: i32 = 1;
    pub(super) const BOOL: i32 = 2;
    pub(super) const FLOAT: i32 = 3;
    pub(super) const OPAQUE_POINTER: i32 = 4;
    pub(super) const DL_TENSOR: i32 = 7;
    /// From this index on, values are reference-counted objects.
    pub(super) const OBJECTS: i32 = 64;
}

/// `TVMFFIAny`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Any {
    index: i32,
    padding: u32,
    value: u64,
}

impl Any {
    const NONE: Self = Self { index: index::NONE, padding: 0, value: 0 };

    const fn new(word: RegValue) -> Self {
        let index = match word.class {
            RegClass::Tensor => index::DL_TENSOR,
            RegClass::Pointer => index::OPAQUE_POINTER,
            RegClass::F64 => index::FLOAT,
            RegClass::Bool => index::BOOL,
            _ => index::INT,
        };
        Self { index, padding: 0, value: word.bits }
    }
}

/// `TVMFFISafeCallType`.
type SafeCall =
    unsafe extern "C" fn(handle: *mut c_void, args: *const Any, count: i32, result: *mut Any) -> i32;

/// Calls a function of TVM's FFI; a result other than 0 is its failure, with the error that TVM's runtime stores.
pub(crate) fn call(
    address: *const c_void,
    words: &[RegValue],
    scope: Scope<'_>,
) -> Result<(), (i32, Raised)> {
    let args: SmallVec<[Any; INLINE_ARGS]> = words.iter().map(|&word| Any::new(word)).collect();
    let mut result = Any::NONE;
    // SAFETY: a data pointer and a function pointer have the same size on every supported platform.
    let function = unsafe { std::mem::transmute::<*const c_void, SafeCall>(address) };
    let count = i32::try_from(words.len()).unwrap_or(i32::MAX);
    let place = &raw mut result;
    // SAFETY: whoever loaded the code guarantees that the function has this convention, and what it accesses.
    let code = unsafe { function(std::ptr::null_mut(), args.as_ptr(), count, place) };
    if result.index >= index::OBJECTS {
        scope.release(std::ptr::with_exposed_provenance_mut(usize::try_from(result.value).unwrap_or(0)));
    }
    if code == 0 { Ok(()) } else { Err((code, scope.raised())) }
}

/// Where the functions of TVM's runtime are looked up: in the module and its dependencies, then in the process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope<'a>(pub(crate) Option<&'a Library>);

/// The error of a failed function, as stored by TVM's runtime.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Raised {
    /// Kind and message.
    Message(String),
    /// The runtime stores no error.
    Nothing,
    /// The runtime is not loaded, or its version is not supported here.
    Unknown,
}

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(text) => f.write_str(text),
            Self::Nothing => f.write_str("returned an error without a message"),
            Self::Unknown => f.write_str(
                "returned an error; to read TVM's message, name its libtvm_ffi.so (0.1) in the load option \"libraries\"",
            ),
        }
    }
}

/// The beginning of an error object: `TVMFFIObject`, then `TVMFFIErrorCell`.
#[repr(C)]
#[derive(Debug)]
struct ErrorObject {
    counts: u64,
    index: i32,
    padding: u32,
    deleter: *const c_void,
    kind: Bytes,
    message: Bytes,
}

/// `TVMFFIByteArray`.
#[repr(C)]
#[derive(Debug)]
struct Bytes {
    data: *const u8,
    size: usize,
}

impl Bytes {
    fn text(&self) -> String {
        if self.data.is_null() {
            return String::new();
        }
        // SAFETY: TVM's byte arrays have `size` bytes, and live as long as their object.
        let bytes = unsafe { std::slice::from_raw_parts(self.data, self.size) };
        String::from_utf8_lossy(bytes).into_owned()
    }
}

type Version = unsafe extern "C" fn(*mut [u32; 3]);
type MoveFromRaised = unsafe extern "C" fn(*mut *mut c_void);
type DecRef = unsafe extern "C" fn(*mut c_void) -> i32;

impl Scope<'_> {
    fn address(self, symbol: &str) -> Option<*const c_void> {
        let in_module = self.0.and_then(|library| library.address(symbol));
        in_module.or_else(|| {
            // SAFETY: the symbol is only used as an address; TVM's runtime is never unloaded.
            let symbol = unsafe { Handle::this().get::<*const c_void>(symbol) }.ok()?;
            Some(symbol.as_raw_ptr().cast_const()).filter(|address| !address.is_null())
        })
    }

    /// Releases a reference to an object.
    #[cold]
    fn release(self, object: *mut c_void) {
        if let Some(address) = self.address("TVMFFIObjectDecRef") {
            // SAFETY: TVM's function of this name has this type.
            let release = unsafe { std::mem::transmute::<*const c_void, DecRef>(address) };
            // SAFETY: this owns one reference to the object.
            unsafe { release(object) };
        }
    }

    /// Takes the error that TVM's runtime stores for this thread.
    #[cold]
    fn raised(self) -> Raised {
        self.take().unwrap_or(Raised::Unknown)
    }

    fn take(self) -> Option<Raised> {
        let (version, take) = (self.address("TVMFFIGetVersion")?, self.address("TVMFFIErrorMoveFromRaised")?);
        let mut numbers = [0; 3];
        // SAFETY: TVM's function of this name has this type.
        let version = unsafe { std::mem::transmute::<*const c_void, Version>(version) };
        // SAFETY: it writes three numbers.
        unsafe { version(&raw mut numbers) };
        if numbers[..2] != [0, 1] {
            return None;
        }
        // SAFETY: TVM's function of this name has this type.
        let take = unsafe { std::mem::transmute::<*const c_void, MoveFromRaised>(take) };
        let mut object = std::ptr::null_mut();
        // SAFETY: it writes a pointer.
        unsafe { take(&raw mut object) };
        // SAFETY: it is null or an error object of a version whose layout this is.
        let Some(error) = (unsafe { object.cast::<ErrorObject>().as_ref() }) else {
            return Some(Raised::Nothing);
        };
        let text = format!("{}: {}", error.kind.text(), error.message.text());
        self.release(object);
        Some(Raised::Message(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_carry_their_type() {
        let any = |class| Any::new(RegValue { bits: 9, class });
        assert_eq!(size_of::<Any>(), 16);
        let classes = [RegClass::Integer, RegClass::Bool, RegClass::F64, RegClass::Pointer, RegClass::Tensor];
        assert_eq!(classes.map(|class| any(class).index), [1, 2, 3, 4, 7]);
        assert!(classes.iter().all(|&class| (any(class).padding, any(class).value) == (0, 9)));
    }

    #[test]
    fn without_tvm_the_remedy_is_named() {
        assert!(Scope(None).raised().to_string().contains("libraries"));
    }
}
