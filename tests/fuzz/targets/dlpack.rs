//! Arbitrary structures of another library: rejected, or imported and released exactly once.
//!
//! `shape` and `strides` are null or long enough; all values are arbitrary. A tensor whose elements are outside of the real
//! memory, which core cannot know, is not accessed.
#![no_main]

use std::ffi::c_void;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use runtime_core::dlpack::{
    DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor,
};
use runtime_core::{CommonRuntime, Result, Runtime, Tensor};

/// More than the maximum number of dimensions.
const NUMBERS: usize = 72;
const MEMORY_BYTES: usize = 1 << 16;
/// Common element types.
const DTYPES: [(u8, u8, u16); 6] = [(2, 32, 1), (0, 8, 1), (1, 64, 1), (4, 16, 1), (5, 128, 1), (6, 8, 1)];

#[derive(Arbitrary, Debug)]
struct Plan {
    /// The unversioned structure from before 1.0, without flags.
    unversioned: bool,
    version: Option<(u32, u32)>,
    flags: u64,
    device: Option<(i32, i32)>,
    dtype: Result<u8, (u8, u8, u16)>,
    /// `None`: the number of extents.
    ndim: Option<i32>,
    shape: Option<Vec<Number>>,
    strides: Option<Vec<Number>>,
    byte_offset: Number,
    /// First byte in the memory; `None`: null.
    data: Option<u16>,
}

/// Mostly small.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Number {
    Small(i8),
    Middle(i16),
    Any(i64),
}

impl Number {
    fn value(self) -> i64 {
        match self {
            Self::Small(value) => value.into(),
            Self::Middle(value) => value.into(),
            Self::Any(value) => value,
        }
    }
}

fn numbers(list: &Option<Vec<Number>>) -> Option<Vec<i64>> {
    let mut numbers: Vec<_> = list.as_ref()?.iter().take(NUMBERS).map(|number| number.value()).collect();
    numbers.resize(NUMBERS, 1);
    Some(numbers)
}

unsafe extern "C" fn delete(managed: *mut DLManagedTensorVersioned) {
    // SAFETY: `manager_ctx` leads to the counter of the run, which outlives the device.
    unsafe { *(*managed).manager_ctx.cast::<u32>() += 1 };
}

unsafe extern "C" fn delete_unversioned(managed: *mut DLManagedTensor) {
    // SAFETY: as above.
    unsafe { *(*managed).manager_ctx.cast::<u32>() += 1 };
}

/// The structure in both forms.
struct Managed {
    versioned: DLManagedTensorVersioned,
    unversioned: DLManagedTensor,
}

impl Managed {
    fn new(plan: &Plan, dl_tensor: DLTensor, deleted: &mut u32) -> Self {
        let (major, minor) = plan.version.unwrap_or((1, 1));
        let manager_ctx = std::ptr::from_mut(deleted).cast::<c_void>();
        Self {
            versioned: DLManagedTensorVersioned {
                version: DLPackVersion { major, minor },
                manager_ctx,
                deleter: Some(delete),
                flags: plan.flags,
                dl_tensor,
            },
            unversioned: DLManagedTensor { dl_tensor, manager_ctx, deleter: Some(delete_unversioned) },
        }
    }

    fn hand_over(&mut self, plan: &Plan, device: &dyn CommonRuntime) -> Result<Tensor> {
        if plan.unversioned {
            // SAFETY: as below.
            return unsafe { device.import_dlpack_unversioned(&raw mut self.unversioned) };
        }
        // SAFETY: a structure in the right form, whose memory outlives the device; elements outside are not touched.
        unsafe { device.import_dlpack(&raw mut self.versioned) }
    }
}

/// Exports a tensor, whose consumer calls the deleter; or the export is rejected.
fn lend(tensor: &Tensor, unversioned: bool) {
    let Ok(lent) = tensor.to_dlpack() else { return };
    if unversioned {
        if let Ok(managed) = lent.into_raw_unversioned() {
            // SAFETY: just exported; the deleter is called once.
            unsafe { (*managed).deleter.expect("what we lend has a deleter")(managed) };
        }
    } else {
        let managed = lent.into_raw();
        // SAFETY: as above.
        unsafe { (*managed).deleter.expect("what we lend has a deleter")(managed) };
    }
}

/// Whether all elements lie in the memory.
fn lies_inside(plan: &Plan, tensor: &Tensor) -> bool {
    let size = i128::try_from(tensor.dtype().bytes()).unwrap_or(0);
    let first = i128::from(plan.data.unwrap_or(0)) + i128::from(plan.byte_offset.value().cast_unsigned());
    let (mut low, mut high) = (first, first + size);
    for (&extent, &stride) in tensor.shape().iter().zip(tensor.strides()) {
        let reach = (extent as i128 - 1) * i128::from(stride) * size;
        (low, high) = (low + reach.min(0), high + reach.max(0));
    }
    tensor.len() == 0 || (low >= 0 && high <= MEMORY_BYTES as i128)
}

fuzz_target!(|plan: Plan| {
    let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
    let device = runtime.open("null:0").expect("null opens");
    let mut memory = vec![0u64; MEMORY_BYTES / 8];
    let (mut shape, mut strides) = (numbers(&plan.shape), numbers(&plan.strides));
    let start = memory.as_mut_ptr().cast::<u8>();
    let data = plan.data.map_or(std::ptr::null_mut(), |at| start.wrapping_add(at.into()).cast::<c_void>());
    let (device_type, device_id) = plan.device.unwrap_or((device.info().dlpack_type, 0));
    let extents = plan.shape.as_ref().map_or(0, Vec::len).min(NUMBERS);
    let (code, bits, lanes) =
        plan.dtype.map_or_else(|any| any, |common| DTYPES[usize::from(common) % DTYPES.len()]);
    let dl_tensor = DLTensor {
        data,
        device: DLDevice { device_type, device_id },
        ndim: plan.ndim.unwrap_or(extents as i32),
        dtype: DLDataType { code, bits, lanes },
        shape: shape.as_mut().map_or(std::ptr::null_mut(), Vec::as_mut_ptr),
        strides: strides.as_mut().map_or(std::ptr::null_mut(), Vec::as_mut_ptr),
        byte_offset: plan.byte_offset.value().cast_unsigned(),
    };
    let mut deleted = 0u32;
    let mut managed = Managed::new(&plan, dl_tensor, &mut deleted);
    let taken = managed.hand_over(&plan, &*device);
    let expected = u32::from(taken.is_ok());
    if let Ok(tensor) = taken {
        if tensor.size_bytes() <= MEMORY_BYTES && lies_inside(&plan, &tensor) {
            let bytes = tensor.to_array().map(|array| array.bytes().len()).unwrap_or(0);
            assert!(bytes == tensor.size_bytes() || bytes == 0);
            lend(&tensor, plan.unversioned);
        }
    }
    drop(device);
    drop(runtime);
    // SAFETY: read anew: the deleter wrote it.
    let deleted = unsafe { (&raw const deleted).read_volatile() };
    assert_eq!(deleted, expected, "the deleter is called once for an imported tensor, otherwise never");
});
