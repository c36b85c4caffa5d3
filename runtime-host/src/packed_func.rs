//! TVM's packed convention: every argument is an 8-byte value with a separate type code; tensors are `DLTensor`s.

#![allow(unsafe_code, reason = "calls foreign code")]

use std::ffi::c_void;
use std::ptr::{null_mut, with_exposed_provenance_mut};

use half::{bf16, f16};
use runtime_core::dlpack::{DLDataType, DLDevice, DLTensor};
use runtime_core::{DType, DTypeClass};
use smallvec::SmallVec;

use crate::register::{RegClass, RegValue};

/// Arguments up to this many need no allocation.
pub(crate) const INLINE_ARGS: usize = 16;

impl RegValue {
    /// A scalar widened to the types that tagged values have: `i64`, `f64` or boolean; `None` if it cannot be.
    #[expect(clippy::cast_possible_truncation, reason = "the low bytes are the value")]
    pub(crate) fn wide(dtype: DType, bits: u64) -> Option<Self> {
        let float = |value: f64| Some(Self { bits: value.to_bits(), class: RegClass::F64 });
        match (dtype.class(), dtype.bytes()) {
            (DTypeClass::Float, 2) => float(f16::from_bits(bits as u16).to_f64()),
            (DTypeClass::BFloat, 2) => float(bf16::from_bits(bits as u16).to_f64()),
            (DTypeClass::Float, 4) => float(f64::from(f32::from_bits(bits as u32))),
            (DTypeClass::Int | DTypeClass::UInt, _) => {
                Self::scalar(dtype, bits).map(|word| Self { class: RegClass::Integer, ..word })
            }
            (DTypeClass::Float, 8) | (DTypeClass::Bool, _) => Self::scalar(dtype, bits),
            _ => None,
        }
    }
}

const _: () = assert!(size_of::<*const c_void>() == size_of::<u64>());

/// Descriptions of tensor arguments. Reused for many calls, so that it rarely allocates.
#[derive(Debug, Default)]
pub(crate) struct Tensors {
    descriptions: Vec<DLTensor>,
    /// Shape and strides of each, in order.
    extents: Vec<i64>,
}

// SAFETY: the pointers are only addresses here: the called function uses them, on whichever thread calls it.
unsafe impl Send for Tensors {}

impl Tensors {
    /// Describes the next tensor, whose first element is at `address`.
    ///
    /// `data` is that address and `byte_offset` is 0: TVM accepts no other offset, and code that ignores the offset
    /// works too.
    pub(crate) fn push(&mut self, address: u64, dtype: DType, shape: &[i64], strides: &[i64]) {
        self.extents.extend_from_slice(shape);
        self.extents.extend_from_slice(strides);
        let (code, bits, lanes) = dtype.dlpack();
        self.descriptions.push(DLTensor {
            data: with_exposed_provenance_mut(usize::try_from(address).unwrap_or(0)),
            device: DLDevice { device_type: DLDevice::CPU, device_id: 0 },
            ndim: i32::try_from(shape.len()).unwrap_or(i32::MAX),
            dtype: DLDataType { code, bits, lanes },
            shape: null_mut(),
            strides: null_mut(),
            byte_offset: 0,
        });
    }

    /// Removes all descriptions.
    pub(crate) fn clear(&mut self) {
        self.descriptions.clear();
        self.extents.clear();
    }

    /// Completes the descriptions, and stores their addresses in the words of class `Tensor`, in order.
    pub(crate) fn place(&mut self, words: &mut [RegValue]) {
        let mut extents = self.extents.as_mut_ptr();
        let tensors = words.iter_mut().filter(|word| word.class == RegClass::Tensor);
        for (word, tensor) in tensors.zip(&mut self.descriptions) {
            let ndim = usize::try_from(tensor.ndim).unwrap_or(0);
            (tensor.shape, tensor.strides) = (extents, extents.wrapping_add(ndim));
            extents = extents.wrapping_add(2 * ndim);
            word.bits = std::ptr::from_ref(tensor).expose_provenance() as u64;
        }
    }
}

/// Type codes: TVM's `TVMArgTypeCode` in `tvm/runtime/c_runtime_api.h`, up to 0.20.
mod code {
    pub(super) const INT: i32 = 0;
    pub(super) const FLOAT: i32 = 2;
    pub(super) const HANDLE: i32 = 3;
    pub(super) const NULL: i32 = 4;
    pub(super) const TENSOR: i32 = 13;
}

/// With the sixth parameter of TVM's `TVMBackendPackedCFunc`; a function without it ignores it.
type PackedFunc = unsafe extern "C" fn(
    values: *const u64,
    codes: *const i32,
    count: i32,
    value: *mut u64,
    code: *mut i32,
    resource: *mut c_void,
) -> i32;

/// Calls a function of the packed convention; a result other than 0 is its failure.
pub(crate) fn call(address: *const c_void, words: &[RegValue]) -> Result<(), i32> {
    let values: SmallVec<[u64; INLINE_ARGS]> = words.iter().map(|word| word.bits).collect();
    let codes: SmallVec<[i32; INLINE_ARGS]> = words.iter().map(|word| packed_code(word.class)).collect();
    let (mut value, mut code) = (0, code::NULL);
    // SAFETY: a data pointer and a function pointer have the same size on every supported platform.
    let function = unsafe { std::mem::transmute::<*const c_void, PackedFunc>(address) };
    let count = i32::try_from(words.len()).unwrap_or(i32::MAX);
    let (value, code, resource) = (&raw mut value, &raw mut code, null_mut());
    // SAFETY: whoever loaded the code guarantees that the function has this convention, and what it accesses.
    match unsafe { function(values.as_ptr(), codes.as_ptr(), count, value, code, resource) } {
        0 => Ok(()),
        code => Err(code),
    }
}

fn packed_code(class: RegClass) -> i32 {
    match class {
        RegClass::Tensor => code::TENSOR,
        RegClass::Pointer => code::HANDLE,
        RegClass::F64 => code::FLOAT,
        _ => code::INT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wide(dtype: DType, bits: u64) -> RegValue {
        RegValue::wide(dtype, bits).unwrap()
    }

    fn float(value: f64) -> RegValue {
        RegValue { bits: value.to_bits(), class: RegClass::F64 }
    }

    #[test]
    fn scalars_are_widened_by_value() {
        assert_eq!(
            wide(DType::I8, 0xfe),
            RegValue { bits: (-2_i64).cast_unsigned(), class: RegClass::Integer }
        );
        assert_eq!(wide(DType::U32, 0xffff_fffe), RegValue { bits: 0xffff_fffe, class: RegClass::Integer });
        assert_eq!(wide(DType::F32, u64::from(1.5_f32.to_bits())), float(1.5));
        assert_eq!(wide(DType::F16, 0x3e00), float(1.5));
        assert_eq!(wide(DType::BF16, 0x3fc0), float(1.5));
        assert_eq!(wide(DType::F64, (-0.1_f64).to_bits()), float(-0.1));
        assert_eq!(wide(DType::BOOL, 1), RegValue { bits: 1, class: RegClass::Bool });
        assert_eq!(RegValue::wide(DType::FP8_E4M3, 0x38), None);
        assert_eq!(RegValue::wide(DType::COMPLEX64, 0), None);
    }

    /// Checks codes and values, and writes the tensor's shape and strides through a pointer.
    unsafe extern "C" fn inspect(
        values: *const u64,
        codes: *const i32,
        count: i32,
        value: *mut u64,
        code: *mut i32,
        resource: *mut c_void,
    ) -> i32 {
        let count = usize::try_from(count).unwrap();
        // SAFETY: the caller passes `count` values.
        let values = unsafe { std::slice::from_raw_parts(values, count) };
        // SAFETY: the caller passes `count` codes.
        let codes = unsafe { std::slice::from_raw_parts(codes, count) };
        let scalars = [(-7_i64).cast_unsigned(), 2.5_f64.to_bits(), 1];
        if !resource.is_null() || codes != [code::HANDLE, code::INT, code::FLOAT, code::TENSOR, code::INT] {
            return 1;
        }
        if [values[1], values[2], values[4]] != scalars {
            return 2;
        }
        let tensor: *const DLTensor = std::ptr::with_exposed_provenance(usize::try_from(values[3]).unwrap());
        // SAFETY: the code says that it is a tensor.
        let tensor = unsafe { *tensor };
        let cpu = DLDevice { device_type: 1, device_id: 0 };
        if (tensor.data.addr(), tensor.device, tensor.ndim) != (4096, cpu, 2) {
            return 3;
        }
        if (tensor.dtype, tensor.byte_offset) != (DLDataType { code: 2, bits: 32, lanes: 1 }, 0) {
            return 4;
        }
        // SAFETY: the tensor has two dimensions.
        let extents = |extents: *mut i64| unsafe { std::slice::from_raw_parts(extents, 2) }.to_vec();
        let out: *mut i64 = with_exposed_provenance_mut(usize::try_from(values[0]).unwrap());
        for (index, extent) in extents(tensor.shape).into_iter().chain(extents(tensor.strides)).enumerate() {
            // SAFETY: the test passes memory for four.
            unsafe { out.wrapping_add(index).write(extent) };
        }
        // SAFETY: the caller passes a place for the returned value.
        unsafe { value.write(1) };
        // SAFETY: the caller passes a place for its code.
        unsafe { code.write(code::INT) };
        42
    }

    #[test]
    fn values_codes_and_tensors_arrive_and_a_failure_comes_back() {
        let mut out = [0_i64; 4];
        let mut tensors = Tensors::default();
        for _ in 0..2 {
            tensors.clear();
            tensors.push(8192, DType::I8, &[7, 8, 9], &[72, 9, 1]);
            tensors.push(4096, DType::F32, &[3, 5], &[10, 2]);
            let mut words = [
                RegValue { bits: 0, class: RegClass::Tensor },
                RegValue::pointer(out.as_mut_ptr().expose_provenance() as u64),
                wide(DType::I16, 0xfff9),
                wide(DType::F64, 2.5_f64.to_bits()),
                RegValue { bits: 0, class: RegClass::Tensor },
                wide(DType::BOOL, 1),
            ];
            tensors.place(&mut words);
            assert_eq!(call(inspect as *const c_void, &words[1..]), Err(42));
            // SAFETY: `out` is written behind the compiler's back.
            assert_eq!(unsafe { (&raw const out).read_volatile() }, [3, 5, 10, 2]);
        }
    }
}
