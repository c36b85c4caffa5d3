//! Descriptors of tensors for the bulk copy engine of Hopper and newer devices, to be passed to kernels by value.

#![allow(unsafe_code, reason = "encodes through the driver")]

use runtime_core::{DType, Error, Result};

use crate::context::Current;
use crate::driver::Driver;
use crate::driver::abi::{Code, Context, pointer_attribute};

/// Most dimensions of a tensor map.
const MOST_DIMENSIONS: usize = 5;
/// Most elements of a box in one dimension.
const MOST_BOX: u32 = 256;

/// How a tensor lies in memory, and which boxes of it are copied. Dimensions stand innermost first, the reverse of a
/// tensor's shape.
#[derive(Clone, Debug)]
pub struct Tiles<'a> {
    /// Element type.
    pub dtype: DType,
    /// Address of the first element on the device, a multiple of 16.
    pub address: u64,
    /// Extents in elements, innermost first; 1 to 5 of them.
    pub shape: &'a [u64],
    /// Bytes from one element to the next in every dimension but the innermost, multiples of 16.
    pub strides_bytes: &'a [u64],
    /// Extents of a box in elements, at most 256 each.
    pub box_shape: &'a [u32],
    /// Every how manieth element is copied, per dimension; as a rule all 1.
    pub element_strides: &'a [u32],
    /// Interleaved layout.
    pub interleave: Interleave,
    /// How the box is swizzled in work-group memory.
    pub swizzle: Swizzle,
    /// Bytes that are brought into the level-2 cache at once.
    pub promotion: Promotion,
    /// What stands for elements outside.
    pub fill: Fill,
}

/// Interleaved layouts, `CUtensorMapInterleave`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interleave {
    /// None.
    #[default]
    None = 0,
    /// Slices of 16 bytes.
    Bytes16 = 1,
    /// Slices of 32 bytes.
    Bytes32 = 2,
}

/// Swizzles, `CUtensorMapSwizzle`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Swizzle {
    /// None.
    #[default]
    None = 0,
    /// Within 32 bytes.
    Bytes32 = 1,
    /// Within 64 bytes.
    Bytes64 = 2,
    /// Within 128 bytes.
    Bytes128 = 3,
}

/// Promotions into the level-2 cache, `CUtensorMapL2promotion`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Promotion {
    /// None.
    #[default]
    None = 0,
    /// 64 bytes.
    Bytes64 = 1,
    /// 128 bytes.
    Bytes128 = 2,
    /// 256 bytes.
    Bytes256 = 3,
}

/// What stands for elements outside of the tensor, `CUtensorMapFloatOOBfill`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fill {
    /// Zeros.
    #[default]
    Zeros = 0,
    /// Not-a-numbers, which multiply-adds take for zero.
    NotANumber = 1,
}

/// An encoded descriptor, `CUtensorMap`: 128 bytes that a kernel takes as `const __grid_constant__ CUtensorMap`.
///
/// Pass it with `Arg::bytes(map.bytes())`.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorMap([u8; 128]);

impl TensorMap {
    /// Encodes a descriptor of a tiled tensor (`cuTensorMapEncodeTiled`).
    ///
    /// # Errors
    /// `InvalidArgument` for what no device can do; `Unavailable` without a driver; `Unsupported` by one that is older
    /// than CUDA 12.0.
    ///
    /// # Safety
    /// A kernel reads and writes memory through the map, of which core knows nothing. While a kernel that has it may run,
    /// the memory at `tiles.address`, of that shape and those strides, stays allocated, and the caller orders whatever
    /// else uses it.
    pub unsafe fn tiled(tiles: &Tiles<'_>) -> Result<Self> {
        let kind = element_kind(tiles.dtype)?;
        check(tiles)?;
        let driver = Driver::load()?;
        let encode = driver.tensor_maps.ok_or_else(|| {
            Error::unsupported("a driver older than CUDA 12.0 has no tensor maps; update it")
        })?;
        let mut map = Self([0; 128]);
        let rank = u32::try_from(tiles.shape.len()).unwrap_or(0);
        let address = std::ptr::with_exposed_provenance_mut(usize::try_from(tiles.address).unwrap_or(0));
        // SAFETY: the map is writable and aligned to 64 bytes, and the lists are as long as `check` has seen.
        let code = in_context(driver, tiles.address, || unsafe {
            (encode.cuTensorMapEncodeTiled)(
                map.0.as_mut_ptr().cast(),
                kind,
                rank,
                address,
                tiles.shape.as_ptr(),
                tiles.strides_bytes.as_ptr(),
                tiles.box_shape.as_ptr(),
                tiles.element_strides.as_ptr(),
                tiles.interleave as i32,
                tiles.swizzle as i32,
                tiles.promotion as i32,
                tiles.fill as i32,
            )
        })?;
        if code == Code(1) {
            return Err(Error::invalid(format!(
                "the driver refuses {tiles:?}; the innermost box must fit the swizzle, and the outer extents the limits of cuTensorMapEncodeTiled"
            )));
        }
        driver.check("cuTensorMapEncodeTiled", code)?;
        Ok(map)
    }

    /// The bytes to pass by value.
    #[must_use]
    pub const fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Runs `encode` in the primary context of the device that has the memory at `address`, as far as the driver knows it: it encodes
/// in a context only, though it asks the device nothing.
fn in_context(driver: &Driver, address: u64, encode: impl FnOnce() -> Code) -> Result<Code> {
    let ordinal = driver.pointer_attribute(pointer_attribute::DEVICE_ORDINAL, address).unwrap_or(0);
    let mut context = Context::NULL;
    // SAFETY: the out-parameter is writable; a device that is not there is answered with an error.
    let code = unsafe { (driver.cuDevicePrimaryCtxRetain)(&raw mut context, ordinal) };
    driver.check("cuDevicePrimaryCtxRetain", code)?;
    let entered = Current::push(driver, context);
    let outcome = match entered {
        Ok(_entered) => Ok(encode()),
        Err(code) => Err(driver.error("cuCtxPushCurrent", code)),
    };
    // SAFETY: it was retained once, and is no longer current.
    let _ = unsafe { (driver.cuDevicePrimaryCtxRelease_v2)(ordinal) };
    outcome
}

fn check(tiles: &Tiles<'_>) -> Result<()> {
    let rank = tiles.shape.len();
    if !(1..=MOST_DIMENSIONS).contains(&rank) {
        return Err(Error::invalid(format!("shape has {rank} dimensions; valid: 1 to {MOST_DIMENSIONS}")));
    }
    let lengths = [
        ("strides_bytes", tiles.strides_bytes.len(), rank - 1),
        ("box_shape", tiles.box_shape.len(), rank),
        ("element_strides", tiles.element_strides.len(), rank),
    ];
    if let Some((name, given, wanted)) = lengths.into_iter().find(|(_, given, wanted)| given != wanted) {
        return Err(Error::invalid(format!(
            "{name} has {given} entries for {rank} dimensions; pass {wanted}"
        )));
    }
    if !tiles.address.is_multiple_of(16) {
        return Err(Error::invalid(format!("address {:#x} is no multiple of 16", tiles.address)));
    }
    if let Some(stride) = tiles.strides_bytes.iter().find(|stride| !stride.is_multiple_of(16)) {
        return Err(Error::invalid(format!("strides_bytes has {stride}, which is no multiple of 16")));
    }
    match tiles.box_shape.iter().find(|extent| !(1..=MOST_BOX).contains(*extent)) {
        Some(extent) => Err(Error::invalid(format!("box_shape has {extent}; valid: 1 to {MOST_BOX}"))),
        None => Ok(()),
    }
}

/// `CUtensorMapDataType` of an element type.
fn element_kind(dtype: DType) -> Result<i32> {
    let (code, bits, _) = dtype.dlpack();
    Ok(match (code, bits) {
        (_, 8) => 0,
        (1, 16) => 1,
        (1, 32) => 2,
        (0, 32) => 3,
        (1, 64) => 4,
        (0, 64) => 5,
        (2, 16) => 6,
        (2, 32) => 7,
        (2, 64) => 8,
        (4, 16) => 9,
        _ => return Err(Error::unsupported(format!("a tensor map of {dtype} is not supported"))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiles<'a>(shape: &'a [u64], strides_bytes: &'a [u64]) -> Tiles<'a> {
        Tiles {
            dtype: DType::F16,
            address: 4096,
            shape,
            strides_bytes,
            box_shape: &[64, 64],
            element_strides: &[1, 1],
            interleave: Interleave::None,
            swizzle: Swizzle::Bytes128,
            promotion: Promotion::Bytes256,
            fill: Fill::Zeros,
        }
    }

    #[test]
    fn what_no_device_can_do_is_refused_before_the_driver_is_asked() {
        check(&tiles(&[1024, 1024], &[2048])).unwrap();
        for (shape, strides, words) in [
            (&[][..], &[][..], "dimensions"),
            (&[1024, 1024], &[2048, 2048], "strides_bytes"),
            (&[1024, 1024], &[2040], "multiple of 16"),
            (&[1024], &[], "box_shape"),
        ] {
            let error = check(&tiles(shape, strides)).unwrap_err();
            assert!(error.message().contains(words), "{error}");
        }
        assert!(element_kind(DType::BOOL).is_ok());
        assert!(element_kind(DType::I16).is_err());
    }

    #[test]
    fn a_map_is_aligned_for_the_driver() {
        assert_eq!((align_of::<TensorMap>(), size_of::<TensorMap>()), (64, 128));
    }
}
