//! Calls a C function with arguments that are known only now.
//!
//! In the System V x86-64 and the `AArch64` calling conventions the place of an argument depends only on its class:
//! integers and pointers fill the integer registers in order, floating-point values the vector registers in order,
//! and setting more registers than the function has parameters harms nobody. So up to 6 integers and 8 floats, one
//! call of one type serves every function. What does not fit goes through `libffi`.

#![allow(unsafe_code, reason = "calls foreign code")]

use std::ffi::c_void;
use std::sync::{Arc, OnceLock};

use libffi::low::CodePtr;
use libffi::middle::{Arg, Cif, Type, arg};
use runtime_core::{DType, DTypeClass, Error, ErrorKind, Result};

use crate::module::Library;

/// How a value travels in a C call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    /// Pointers too.
    U64,
    /// 16 bits in a vector register.
    F16,
    F32,
    F64,
}

impl Class {
    const fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::F32 | Self::F64)
    }

    fn ffi_type(self) -> Type {
        match self {
            // A whole register or stack slot holds the extended value, as in the direct call; Apple packs the stack.
            _ if !self.is_float() && cfg!(not(target_vendor = "apple")) => Type::u64(),
            Self::I8 => Type::i8(),
            Self::I16 => Type::i16(),
            Self::I32 => Type::i32(),
            Self::I64 => Type::i64(),
            Self::U8 => Type::u8(),
            Self::U16 => Type::u16(),
            Self::U32 => Type::u32(),
            Self::U64 => Type::u64(),
            Self::F16 | Self::F32 => Type::f32(),
            Self::F64 => Type::f64(),
        }
    }
}

/// A value in the form of a register: extended to 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) bits: u64,
    pub(crate) class: Class,
}

impl Word {
    /// An address.
    pub(crate) const fn pointer(address: u64) -> Self {
        Self { bits: address, class: Class::U64 }
    }

    /// A scalar whose bytes stand in `bits`, the rest zero; `None` for a type that is not passed by value.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the low bytes are the value")]
    pub(crate) fn scalar(dtype: DType, bits: u64) -> Option<Self> {
        let signed = |value: i64, class| Some(Self { bits: value.cast_unsigned(), class });
        let plain = |class| Some(Self { bits, class });
        match (dtype.class(), dtype.bytes()) {
            (DTypeClass::Int, 1) => signed(i64::from(bits as i8), Class::I8),
            (DTypeClass::Int, 2) => signed(i64::from(bits as i16), Class::I16),
            (DTypeClass::Int, 4) => signed(i64::from(bits as i32), Class::I32),
            (DTypeClass::Int, 8) => plain(Class::I64),
            (DTypeClass::UInt | DTypeClass::Bool | DTypeClass::Opaque, 1) => plain(Class::U8),
            (DTypeClass::UInt, 2) => plain(Class::U16),
            (DTypeClass::UInt, 4) => plain(Class::U32),
            (DTypeClass::UInt, 8) => plain(Class::U64),
            (DTypeClass::Float | DTypeClass::BFloat, 2) => plain(Class::F16),
            (DTypeClass::Float, 4) => plain(Class::F32),
            (DTypeClass::Float, 8) => plain(Class::F64),
            // Two f32 in one register; elsewhere they take two.
            (DTypeClass::Complex, 8) if cfg!(target_arch = "x86_64") => plain(Class::F64),
            _ => None,
        }
    }
}

const INTEGERS: usize = 6;
const FLOATS: usize = 8;
/// Where the calling convention is one of those described above.
const DIRECT: bool = cfg!(all(unix, any(target_arch = "x86_64", target_arch = "aarch64")));

/// The registers of a call.
#[derive(Debug, Default)]
pub(crate) struct Registers {
    integers: [u64; INTEGERS],
    floats: [f64; FLOATS],
    integer_count: usize,
    float_count: usize,
}

impl Registers {
    /// Adds the next argument; `false` if there is no register for it.
    #[inline]
    pub(crate) fn push(&mut self, word: Word) -> bool {
        if word.class.is_float() {
            let Some(register) = self.floats.get_mut(self.float_count) else { return false };
            *register = f64::from_bits(word.bits);
            self.float_count += 1;
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

/// A C function; keeps its library loaded.
#[derive(Debug)]
pub(crate) struct Function {
    address: *const c_void,
    /// The first signature that needed `libffi`: a function rarely has two.
    prepared: OnceLock<Prepared>,
    _library: Option<Arc<Library>>,
}

// SAFETY: the address of code may be used from any thread; whoever loaded the code vouched for what it does.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

impl Function {
    /// A function of `library` at `address`.
    pub(crate) const fn new(address: *const c_void, library: Option<Arc<Library>>) -> Self {
        Self { address, prepared: OnceLock::new(), _library: library }
    }

    /// A function that does nothing.
    pub(crate) fn empty() -> Self {
        extern "C" fn nothing() {}
        Self::new(nothing as extern "C" fn() as *const c_void, None)
    }

    /// Calls with arguments that fit into registers.
    #[inline]
    pub(crate) fn call_registers(&self, registers: &Registers) {
        let [a, b, c, d, e, f] = registers.integers;
        if registers.float_count == 0 {
            // SAFETY: a data pointer and a function pointer have the same size on every supported platform.
            let function = unsafe { std::mem::transmute::<*const c_void, Integers>(self.address) };
            // SAFETY: who loaded the code vouched for its parameters; surplus registers are ignored.
            unsafe { function(a, b, c, d, e, f) };
            return;
        }
        let [p, q, r, s, t, u, v, w] = registers.floats;
        // SAFETY: a data pointer and a function pointer have the same size on every supported platform.
        let function = unsafe { std::mem::transmute::<*const c_void, Mixed>(self.address) };
        // SAFETY: who loaded the code vouched for its parameters; surplus registers are ignored.
        unsafe { function(a, b, c, d, e, f, p, q, r, s, t, u, v, w) };
    }

    /// Calls with any number and mix of arguments.
    ///
    /// # Errors
    /// `Unsupported` if `libffi` does not know the signature.
    pub(crate) fn call(&self, words: &[Word]) -> Result<()> {
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

/// A signature as `libffi` wants it.
#[derive(Debug)]
struct Prepared {
    classes: Box<[Class]>,
    cif: Cif,
}

// SAFETY: it is not changed after it was made: `ffi_call` only reads it.
unsafe impl Send for Prepared {}
// SAFETY: as above.
unsafe impl Sync for Prepared {}

/// Arguments up to this many need no allocation.
const FEW: usize = 16;

impl Prepared {
    fn new(words: &[Word]) -> Result<Self> {
        let types: Vec<_> = words.iter().map(|word| word.class.ffi_type()).collect();
        let cif = Cif::try_new(types, Type::void()).map_err(|error| {
            Error::new(ErrorKind::Unsupported, format!("libffi cannot call this signature: {error:?}"))
        })?;
        Ok(Self { classes: words.iter().map(|word| word.class).collect(), cif })
    }

    fn fits(&self, words: &[Word]) -> bool {
        self.classes.len() == words.len()
            && self.classes.iter().zip(words).all(|(&class, word)| class == word.class)
    }

    fn call(&self, address: *const c_void, words: &[Word]) {
        // Little-endian: the first bytes of a word are the value of any narrower type.
        const { assert!(cfg!(target_endian = "little")) };
        let code = CodePtr::from_ptr(address);
        match words {
            [] => {
                // SAFETY: the signature is that of `words`; who loaded the code vouched for its parameters.
                unsafe { self.cif.call::<()>(code, &[]) };
            }
            [first, ..] if words.len() <= FEW => {
                let pointers: [Arg<'_>; FEW] =
                    std::array::from_fn(|index| arg(&words.get(index).unwrap_or(first).bits));
                // SAFETY: the signature is that of `words`; who loaded the code vouched for its parameters.
                unsafe { self.cif.call::<()>(code, &pointers[..words.len()]) };
            }
            _ => {
                let pointers: Vec<_> = words.iter().map(|word| arg(&word.bits)).collect();
                // SAFETY: the signature is that of `words`; who loaded the code vouched for its parameters.
                unsafe { self.cif.call::<()>(code, &pointers) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(dtype: DType, bits: u64) -> Word {
        Word::scalar(dtype, bits).unwrap()
    }

    #[test]
    fn scalars_are_extended_to_a_register() {
        assert_eq!(word(DType::I8, 0xff).bits, u64::MAX);
        assert_eq!(word(DType::I32, 0x8000_0000).bits, 0xffff_ffff_8000_0000);
        assert_eq!(word(DType::U16, 0xffff), Word { bits: 0xffff, class: Class::U16 });
        assert_eq!(word(DType::BOOL, 1).class, Class::U8);
        assert_eq!(word(DType::BF16, 0x3f80).class, Class::F16);
        assert_eq!(word(DType::FP8_E4M3, 0x38).class, Class::U8);
        assert_eq!(Word::scalar(DType::COMPLEX128, 0), None);
        assert_eq!(Word::scalar(DType::from_dlpack(2, 32, 4), 0), None);
    }

    #[test]
    fn registers_fill_by_class() {
        let mut registers = Registers::default();
        for index in 0..INTEGERS as u64 {
            assert_eq!(registers.push(Word::pointer(index)), DIRECT);
        }
        for index in 0..FLOATS as u64 {
            assert_eq!(registers.push(word(DType::F64, index)), DIRECT);
        }
        assert!(!registers.push(Word::pointer(6)));
        assert!(!registers.push(word(DType::F32, 8)));
        assert_eq!(registers.integers, [0, 1, 2, 3, 4, 5]);
        assert_eq!(registers.floats[7].to_bits(), 7);
    }

    /// More of both than there are registers, in a mix, written in order into memory.
    extern "C" fn record(
        out: *mut f64,
        a: i8,
        b: f32,
        c: u16,
        d: f64,
        e: i64,
        f: f32,
        g: u8,
        h: i32,
        i: f64,
        j: f32,
        k: f64,
        l: f64,
        m: f32,
        n: f64,
        o: i16,
        p: f32,
        q: u64,
    ) {
        let values = [
            f64::from(a),
            f64::from(b),
            f64::from(c),
            d,
            e as f64,
            f64::from(f),
            f64::from(g),
            f64::from(h),
            i,
            f64::from(j),
            k,
            l,
            f64::from(m),
            n,
            f64::from(o),
            f64::from(p),
            q as f64,
        ];
        // SAFETY: the tests pass memory for all of them.
        unsafe { std::slice::from_raw_parts_mut(out, values.len()) }.copy_from_slice(&values);
    }

    fn f32_word(value: f32) -> Word {
        word(DType::F32, u64::from(value.to_bits()))
    }

    fn f64_word(value: f64) -> Word {
        word(DType::F64, value.to_bits())
    }

    #[test]
    fn what_does_not_fit_into_registers_arrives_too() {
        let mut out = [0.0_f64; 17];
        let words = [
            Word::pointer(out.as_mut_ptr() as u64),
            word(DType::I8, 0xfb),
            f32_word(1.5),
            word(DType::U16, 65535),
            f64_word(-2.25),
            word(DType::I64, (-77_i64).cast_unsigned()),
            f32_word(3.5),
            word(DType::U8, 200),
            word(DType::I32, 0xffff_fff0),
            f64_word(4.5),
            f32_word(5.5),
            f64_word(6.5),
            f64_word(7.5),
            f32_word(8.5),
            f64_word(9.5),
            word(DType::I16, 0x8000),
            f32_word(10.5),
            word(DType::U64, 1 << 40),
        ];
        let function = Function::new(record as *const c_void, None);
        for _ in 0..2 {
            out.fill(0.0);
            function.call(&words).unwrap();
            assert_eq!(
                out,
                [
                    -5.0,
                    1.5,
                    65535.0,
                    -2.25,
                    -77.0,
                    3.5,
                    200.0,
                    -16.0,
                    4.5,
                    5.5,
                    6.5,
                    7.5,
                    8.5,
                    9.5,
                    -32768.0,
                    10.5,
                    1_099_511_627_776.0
                ]
            );
        }
    }

    extern "C" fn sum(out: *mut u64, a: u64, b: u64, c: u64, d: u64, e: u64, f: u64, g: u64) {
        // SAFETY: the tests pass memory for it.
        unsafe { out.write([a, b, c, d, e, f, g].iter().zip(1..).map(|(value, place)| value * place).sum()) };
    }

    #[test]
    fn a_second_signature_does_not_take_the_first_ones_place() {
        let mut out = 0_u64;
        let function = Function::new(sum as *const c_void, None);
        let mut words = vec![Word::pointer(&raw mut out as u64)];
        words.extend((1..=7).map(|value| word(DType::U64, value)));
        function.call(&words).unwrap();
        assert_eq!(std::mem::take(&mut out), 140);
        let narrow: Vec<_> = words
            .iter()
            .map(|&Word { bits, class }| if bits < 8 { word(DType::U8, bits) } else { Word { bits, class } })
            .collect();
        function.call(&narrow).unwrap();
        // SAFETY: `out` is written behind the compiler's back.
        assert_eq!(unsafe { (&raw const out).read_volatile() }, 140);
    }
}
