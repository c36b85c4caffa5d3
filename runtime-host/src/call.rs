//! Calls C functions whose signature is known only at run time.
//!
//! In the System V x86-64 and `AArch64` calling conventions, the location of an argument depends only on its class:
//! integers and pointers fill the integer registers in order, and floating-point values the vector registers. Setting
//! more registers than the function has parameters is harmless. So for up to 6 integers and 8 floats, one function type
//! can call every function. Everything else goes through `libffi`.

#![allow(unsafe_code, reason = "calls foreign code")]

use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, OnceLock};

use libffi::low::CodePtr;
use libffi::middle::{Arg, Cif, Type, arg};
use runtime_core::{Error, ErrorKind, Result};

use crate::convention::Convention;
use crate::group_time::GroupTime;
use crate::library::Library;
use crate::register::{RegClass, RegValue};
use crate::{packed_func, tvm};

const INTEGERS: usize = 6;
const FLOATS: usize = 8;
/// Whether the calling convention is one of those described above.
const DIRECT: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

/// The registers of a call.
#[derive(Debug, Default)]
pub(crate) struct Registers {
    integers: [u64; INTEGERS],
    floats: [f64; FLOATS],
    integer_count: usize,
    float_count: usize,
}

impl Registers {
    /// Adds the next argument; returns false if there is no register for it.
    #[inline]
    pub(crate) fn push(&mut self, word: RegValue) -> bool {
        if word.class.is_float() {
            let Some(register) = self.floats.get_mut(self.float_count) else { return false };
            *register = f64::from_bits(word.bits);
            self.float_count += 1;
        } else if let RegClass::Record(_) = word.class {
            return false;
        } else {
            let Some(register) = self.integers.get_mut(self.integer_count) else { return false };
            *register = word.bits;
            self.integer_count += 1;
        }
        DIRECT
    }
}

type Integers = unsafe extern "C" fn(u64, u64, u64, u64, u64, u64);
#[rustfmt::skip]
type Mixed = unsafe extern "C" fn(u64, u64, u64, u64, u64, u64, f64, f64, f64, f64, f64, f64, f64, f64);

type Groups = unsafe extern "C" fn(*const u64, *const u32, i64, i64);

/// A C function; keeps its library loaded.
#[derive(Debug)]
pub(crate) struct Function {
    address: *const c_void,
    convention: Convention,
    /// The symbol, for error messages; empty for a plain function, which cannot report failures.
    symbol: String,
    /// The first signature called through `libffi`; a function rarely has a second one.
    prepared: OnceLock<Prepared>,
    group_time: GroupTime,
    /// The variable in which the code reports a failure: a `const char *volatile`, null if there is none.
    failure: Option<*const AtomicPtr<c_char>>,
    library: Option<Arc<Library>>,
}

// SAFETY: code may be called from any thread; whoever loaded it guarantees what it does.
unsafe impl Send for Function {}
// SAFETY: the same holds for several threads at once.
unsafe impl Sync for Function {}

impl Function {
    /// A function of `library` at `address`.
    pub(crate) const fn new(address: *const c_void, library: Option<Arc<Library>>) -> Self {
        Self {
            address,
            convention: Convention::Plain,
            symbol: String::new(),
            prepared: OnceLock::new(),
            group_time: GroupTime::new(),
            failure: None,
            library,
        }
    }

    /// The same function, which reports failures in a `const char *volatile` at this address.
    pub(crate) const fn with_failure(mut self, address: Option<*const c_void>) -> Self {
        self.failure = match address {
            Some(address) => Some(address.cast()),
            None => None,
        };
        self
    }

    /// Takes the failure that the code has reported since the last call.
    ///
    /// # Errors
    /// `Failed`, with the code's message.
    #[inline]
    pub(crate) fn outcome(&self) -> Result<()> {
        match self.failure {
            None => Ok(()),
            Some(failure) => self.reported(failure),
        }
    }

    #[cold]
    fn reported(&self, failure: *const AtomicPtr<c_char>) -> Result<()> {
        // SAFETY: the library is kept loaded, and whoever loaded it guarantees the variable's type.
        let words = unsafe { &*failure }.swap(std::ptr::null_mut(), Ordering::AcqRel);
        if words.is_null() {
            return Ok(());
        }
        // SAFETY: the code reports a literal, which is terminated and lives as long as the library.
        let words = unsafe { CStr::from_ptr(words) }.to_string_lossy();
        let message =
            format!("\"{}\": {words}: an index that was proven in range is out of range", self.symbol);
        Err(Error::new(ErrorKind::Failed, message))
    }

    /// The same function, with the symbol `symbol` and the calling convention `convention`.
    pub(crate) fn with_convention(mut self, convention: Convention, symbol: &str) -> Self {
        self.convention = convention;
        self.symbol = if convention == Convention::Plain { String::new() } else { symbol.to_owned() };
        self
    }

    /// How it takes its arguments.
    #[inline]
    pub(crate) const fn convention(&self) -> Convention {
        self.convention
    }

    /// The time per work-group of the last run.
    pub(crate) const fn group_time(&self) -> &GroupTime {
        &self.group_time
    }

    /// A function that does nothing.
    pub(crate) fn empty() -> Self {
        extern "C" fn nothing() {}
        Self::new(nothing as extern "C" fn() as *const c_void, None)
    }

    /// Calls the function with arguments that fit into registers.
    #[inline]
    pub(crate) fn call_registers(&self, registers: &Registers) {
        let [a, b, c, d, e, f] = registers.integers;
        if registers.float_count == 0 {
            // SAFETY: a data pointer and a function pointer have the same size on every supported platform.
            let function = unsafe { std::mem::transmute::<*const c_void, Integers>(self.address) };
            // SAFETY: whoever loaded the code guarantees its parameters; surplus registers are ignored.
            unsafe { function(a, b, c, d, e, f) };
            return;
        }
        let [p, q, r, s, t, u, v, w] = registers.floats;
        // SAFETY: a data pointer and a function pointer have the same size on every supported platform.
        let function = unsafe { std::mem::transmute::<*const c_void, Mixed>(self.address) };
        // SAFETY: whoever loaded the code guarantees its parameters; surplus registers are ignored.
        unsafe { function(a, b, c, d, e, f, p, q, r, s, t, u, v, w) };
    }

    /// Runs the work-groups `begin..end` of a grid of `groups`.
    #[inline]
    pub(crate) fn call_groups(&self, args: &[u64], groups: &[u32; 3], begin: i64, end: i64) {
        // SAFETY: a data pointer and a function pointer have the same size on every supported platform.
        let function = unsafe { std::mem::transmute::<*const c_void, Groups>(self.address) };
        // SAFETY: whoever loaded the code with the convention `groups` guarantees that it has it.
        unsafe { function(args.as_ptr(), groups.as_ptr(), begin, end) };
    }

    /// Calls the function with any number and mix of arguments, in its convention.
    ///
    /// # Errors
    /// `Unsupported` if `libffi` does not support the signature; `Failed` if the function reports a failure.
    pub(crate) fn call(&self, words: &[RegValue]) -> Result<()> {
        match self.convention {
            Convention::Plain => self.call_plain(words),
            Convention::Groups => Err(Error::unsupported("a call without groups is not supported")),
            Convention::Packed => {
                packed_func::call(self.address, words).map_err(|code| self.failure(code, None))
            }
            Convention::TvmFfi => {
                let scope = tvm::Scope(self.library.as_deref());
                tvm::call(self.address, words, scope)
                    .map_err(|(code, raised)| self.failure(code, Some(raised)))
            }
        }
    }

    #[cold]
    fn failure(&self, code: i32, raised: Option<tvm::Raised>) -> Error {
        let message = match raised {
            None => "returned an error".to_owned(),
            Some(raised) => raised.to_string(),
        };
        Error::new(ErrorKind::Failed, message).with_driver(&*self.symbol, i64::from(code))
    }

    fn call_plain(&self, words: &[RegValue]) -> Result<()> {
        let mut registers = Registers::default();
        if DIRECT && words.iter().all(|&word| registers.push(word)) {
            self.call_registers(&registers);
            return Ok(());
        }
        let other;
        let mut prepared = match self.prepared.get() {
            Some(prepared) => prepared,
            None => {
                let new = Prepared::new(words)?;
                self.prepared.get_or_init(|| new)
            }
        };
        if !prepared.fits(words) {
            other = Prepared::new(words)?;
            prepared = &other;
        }
        prepared.call(self.address, words);
        Ok(())
    }
}

/// A signature prepared for `libffi`.
#[derive(Debug)]
struct Prepared {
    classes: Box<[RegClass]>,
    cif: Cif,
}

// SAFETY: it is immutable: `ffi_call` only reads it.
unsafe impl Send for Prepared {}
// SAFETY: the same holds for several threads at once.
unsafe impl Sync for Prepared {}

/// Arguments up to this many need no allocation.
const INLINE_ARGS: usize = 16;

impl Prepared {
    fn new(words: &[RegValue]) -> Result<Self> {
        let types: Vec<_> = words.iter().map(|word| word.class.ffi_type()).collect();
        let cif = Cif::try_new(types, Type::void()).map_err(|error| {
            Error::new(ErrorKind::Unsupported, format!("libffi cannot call this signature: {error:?}"))
        })?;
        Ok(Self { classes: words.iter().map(|word| word.class).collect(), cif })
    }

    fn fits(&self, words: &[RegValue]) -> bool {
        self.classes.len() == words.len()
            && self.classes.iter().zip(words).all(|(&class, word)| class == word.class)
    }

    fn call(&self, address: *const c_void, words: &[RegValue]) {
        // On a little-endian machine, the first bytes of a word are the value of any narrower type.
        const { assert!(cfg!(target_endian = "little")) };
        let code = CodePtr::from_ptr(address);
        match words {
            [] => {
                // SAFETY: the signature matches `words`; whoever loaded the code guarantees its parameters.
                unsafe { self.cif.call::<()>(code, &[]) };
            }
            [first, ..] if words.len() <= INLINE_ARGS => {
                let pointers: [Arg<'_>; INLINE_ARGS] =
                    std::array::from_fn(|index| ffi_arg(words.get(index).unwrap_or(first)));
                // SAFETY: the signature matches `words`; whoever loaded the code guarantees its parameters.
                unsafe { self.cif.call::<()>(code, &pointers[..words.len()]) };
            }
            _ => {
                let pointers: Vec<_> = words.iter().map(ffi_arg).collect();
                // SAFETY: the signature matches `words`; whoever loaded the code guarantees its parameters.
                unsafe { self.cif.call::<()>(code, &pointers) };
            }
        }
    }
}

/// The argument as `libffi` takes it: the address of the value.
fn ffi_arg(word: &RegValue) -> Arg<'_> {
    match word.class {
        RegClass::Record(_) => {
            let record = std::ptr::with_exposed_provenance::<u8>(usize::try_from(word.bits).unwrap_or(0));
            // SAFETY: the packed arguments, which live during the call, hold the structure at this address.
            arg(unsafe { &*record })
        }
        _ => arg(&word.bits),
    }
}

#[cfg(test)]
mod tests;
