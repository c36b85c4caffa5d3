//! The arguments of a function of a host-driven module, in C's calling convention.

use runtime_core::backend::{ArgRef, Buffer, unsupported_argument};
use runtime_core::{DTypeClass, Error, Result};

/// Addresses and integers of a call: more than any convention passes in registers, and the rest follow on the stack, in order.
const INTEGERS: usize = 16;
/// As many floats as every convention passes in registers.
const FLOATS: usize = 8;

/// A function with the most arguments that a call may have. Addresses and integers are passed apart from floats, so a function with
/// fewer ignores the rest.
pub(super) type Payload = unsafe extern "C" fn(
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    f64,
    f64,
    f64,
    f64,
    f64,
    f64,
    f64,
    f64,
);

/// Arguments of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct HostArguments {
    integers: [u64; INTEGERS],
    /// Their bits. A short float is in the low half.
    floats: [u64; FLOATS],
}

impl HostArguments {
    /// Takes addresses of tensors, integers, and floats of 32 and 64 bits.
    ///
    /// # Errors
    /// `Unsupported` for other arguments, and for more than 16 addresses and integers or 8 floats.
    pub(super) fn new<'a, B: Buffer>(args: impl Iterator<Item = ArgRef<'a, B>>) -> Result<Self> {
        let (mut integers, mut floats) = (Vec::new(), Vec::new());
        for (index, arg) in args.enumerate() {
            match arg {
                ArgRef::Tensor(tensor) => integers.push(tensor.address()),
                ArgRef::Scalar { dtype, bits } => match (dtype.class(), dtype.bytes()) {
                    (DTypeClass::UInt | DTypeClass::Bool, _) => integers.push(bits),
                    (DTypeClass::Int, bytes) => integers.push(extended(bits, bytes)),
                    (DTypeClass::Float, 4) => floats.push(bits | !u64::from(u32::MAX)),
                    (DTypeClass::Float, 8) => floats.push(bits),
                    _ => return Err(unsupported_argument(index)),
                },
                _ => return Err(unsupported_argument(index)),
            }
        }
        if integers.len() > INTEGERS || floats.len() > FLOATS {
            return Err(Error::unsupported(format!(
                "a function of a host-driven module takes at most {INTEGERS} tensors and integers, and {FLOATS} floats; put more into \
                 a tensor"
            )));
        }
        let mut arguments = Self::default();
        arguments.integers.iter_mut().zip(integers).for_each(|(place, value)| *place = value);
        arguments.floats.iter_mut().zip(floats).for_each(|(place, value)| *place = value);
        Ok(arguments)
    }

    /// Calls a function.
    ///
    /// # Safety
    /// It is a C function that takes these arguments.
    #[allow(unsafe_code, reason = "calls native code")]
    pub(super) unsafe fn call(&self, function: Payload) {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = self.integers;
        let [s, t, u, v, w, x, y, z] = self.floats.map(f64::from_bits);
        // SAFETY: as the caller's; it ignores arguments beyond its own.
        unsafe { function(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, s, t, u, v, w, x, y, z) }
    }
}

/// A signed number of `bytes` bytes, as one of 8.
pub(crate) fn extended(bits: u64, bytes: usize) -> u64 {
    let unused = u64::BITS.saturating_sub(u32::try_from(bytes * 8).unwrap_or(u64::BITS));
    ((bits << unused).cast_signed() >> unused).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use runtime_core::DType;

    use super::*;
    use crate::offload::OffloadBuffer;

    type Args = Vec<ArgRef<'static, OffloadBuffer>>;

    static SEEN: Mutex<Vec<f64>> = Mutex::new(Vec::new());

    #[allow(clippy::cast_precision_loss, reason = "the numbers are small")]
    extern "C" fn mixed(a: i8, x: f32, b: u64, c: u64, y: f64, d: u64, e: u64, f: u64, g: i32, h: u64) {
        let integers = [b, c, d, e, f, h].map(|value| value as f64);
        let first = [f64::from(a), f64::from(x), y, f64::from(g)];
        SEEN.lock().unwrap().extend(first.into_iter().chain(integers));
    }

    #[test]
    #[allow(unsafe_code, reason = "calls a function")]
    fn integers_and_floats_reach_their_parameters_in_registers_and_on_the_stack() {
        let int = |bits: u64| ArgRef::Scalar { dtype: DType::U64, bits };
        let of = |dtype, bits| ArgRef::Scalar { dtype, bits };
        let args: Args = vec![
            of(DType::I8, 0xfe),
            of(DType::F32, u64::from(1.5f32.to_bits())),
            int(1),
            int(2),
            of(DType::F64, (-2.5f64).to_bits()),
            int(3),
            int(4),
            int(5),
            of(DType::I32, 0xffff_fffd),
            int(6),
        ];
        let arguments = HostArguments::new(args.into_iter()).unwrap();
        let function = mixed as extern "C" fn(i8, f32, u64, u64, f64, u64, u64, u64, i32, u64);
        // SAFETY: C ignores arguments beyond its own.
        let function = unsafe {
            std::mem::transmute::<extern "C" fn(i8, f32, u64, u64, f64, u64, u64, u64, i32, u64), Payload>(
                function,
            )
        };
        // SAFETY: the function takes these arguments.
        unsafe { arguments.call(function) };
        assert_eq!(*SEEN.lock().unwrap(), [-2.0, 1.5, -2.5, -3.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let many = |dtype, count| -> Result<HostArguments> {
            let args: Args = (0..count).map(|_| ArgRef::Scalar { dtype, bits: 0 }).collect();
            HostArguments::new(args.into_iter())
        };
        assert!(many(DType::U32, 16).is_ok() && many(DType::F32, 8).is_ok());
        assert!(many(DType::U32, 17).unwrap_err().message().contains("at most 16"));
        assert!(many(DType::F64, 9).is_err() && many(DType::F16, 1).is_err());
        let local: Args = vec![ArgRef::Local(64)];
        assert!(HostArguments::new(local.into_iter()).is_err());
    }
}
