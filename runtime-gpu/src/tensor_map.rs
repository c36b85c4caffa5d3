//! Tensor maps: descriptors for the Tensor Memory Accelerator (TMA) of Hopper and newer devices, passed to kernels by value.

#![allow(unsafe_code, reason = "encodes through the driver")]

use cudarc::driver::sys::{
    CUtensorMap, CUtensorMapDataType, CUtensorMapFloatOOBfill, CUtensorMapInterleave, CUtensorMapL2promotion,
    CUtensorMapSwizzle,
};
use runtime_core::backend::counted;
use runtime_core::{DType, Error, Result};

use crate::context::CurrentContext;
use crate::driver::Driver;
use crate::driver::abi::{CUpointer_attribute, Context, CuResult};

/// Maximum rank of a tensor map.
const MAX_DIMENSIONS: usize = 5;
/// Maximum extent of a box in any dimension, in elements.
const MAX_BOX_EXTENT: u32 = 256;

/// The layout of a tensor in memory, and the boxes that are copied. Dimensions are listed innermost first, the reverse of a
/// tensor's shape.
#[derive(Clone, Debug)]
pub struct TiledLayout<'a> {
    /// Element type.
    pub dtype: DType,
    /// Address of the first element on the device, a multiple of 16.
    pub address: u64,
    /// Extents in elements, innermost first; 1 to 5 of them.
    pub shape: &'a [u64],
    /// Strides in bytes of all dimensions but the innermost, multiples of 16.
    pub strides_bytes: &'a [u64],
    /// Extents of a box in elements, at most 256 each.
    pub box_shape: &'a [u32],
    /// Element stride per dimension: `n` copies every `n`-th element; usually all 1.
    pub element_strides: &'a [u32],
    /// Interleaved layout.
    pub interleave: Interleave,
    /// Swizzle of the box in work-group memory.
    pub swizzle: Swizzle,
    /// Promotion size in the level-2 cache.
    pub l2_promotion: L2Promotion,
    /// Value of out-of-bounds elements.
    pub oob_fill: OobFill,
}

/// Declares enums whose variants are those of the driver's enums.
macro_rules! driver_enums {
    ($($(#[$doc:meta])* $name:ident as $driver:ident {
        $($(#[$variant_doc:meta])* $variant:ident = $value:ident,)*
    })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
        }

        impl From<$name> for $driver {
            fn from(value: $name) -> Self {
                match value {
                    $($name::$variant => Self::$value,)*
                }
            }
        }
    )*};
}

driver_enums! {
    /// Interleaved layouts, `CUtensorMapInterleave`.
    Interleave as CUtensorMapInterleave {
        /// None.
        #[default]
        None = CU_TENSOR_MAP_INTERLEAVE_NONE,
        /// Slices of 16 bytes.
        Bytes16 = CU_TENSOR_MAP_INTERLEAVE_16B,
        /// Slices of 32 bytes.
        Bytes32 = CU_TENSOR_MAP_INTERLEAVE_32B,
    }
    /// Swizzles, `CUtensorMapSwizzle`.
    Swizzle as CUtensorMapSwizzle {
        /// None.
        #[default]
        None = CU_TENSOR_MAP_SWIZZLE_NONE,
        /// Within 32 bytes.
        Bytes32 = CU_TENSOR_MAP_SWIZZLE_32B,
        /// Within 64 bytes.
        Bytes64 = CU_TENSOR_MAP_SWIZZLE_64B,
        /// Within 128 bytes.
        Bytes128 = CU_TENSOR_MAP_SWIZZLE_128B,
    }
    /// L2 promotion sizes, `CUtensorMapL2promotion`.
    L2Promotion as CUtensorMapL2promotion {
        /// None.
        #[default]
        None = CU_TENSOR_MAP_L2_PROMOTION_NONE,
        /// 64 bytes.
        Bytes64 = CU_TENSOR_MAP_L2_PROMOTION_L2_64B,
        /// 128 bytes.
        Bytes128 = CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
        /// 256 bytes.
        Bytes256 = CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
    }
    /// Values of out-of-bounds elements, `CUtensorMapFloatOOBfill`.
    OobFill as CUtensorMapFloatOOBfill {
        /// Zeros.
        #[default]
        Zeros = CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        /// NaNs, which multiply-adds treat as zero.
        NotANumber = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA,
    }
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
    /// `InvalidArgument` for a layout that no device supports; `Unavailable` without a driver; `Unsupported` if the driver is
    /// older than CUDA 12.0.
    ///
    /// # Safety
    /// Kernels read and write memory through the map, which core cannot track. While a kernel that takes the map may run, the
    /// memory at `layout.address`, with that shape and those strides, must stay allocated, and the caller must order all other
    /// uses of it.
    pub unsafe fn tiled(layout: &TiledLayout<'_>) -> Result<Self> {
        let kind = data_type(layout.dtype)?;
        check(layout)?;
        let driver = Driver::load()?;
        let encode = driver.tensor_maps.ok_or_else(|| {
            Error::unsupported("a driver older than CUDA 12.0 does not support tensor maps; update it")
        })?;
        let mut map = Self([0; 128]);
        let rank = u32::try_from(layout.shape.len()).unwrap_or(0);
        let address = std::ptr::with_exposed_provenance_mut(usize::try_from(layout.address).unwrap_or(0));
        // SAFETY: the map is writable and aligned to 64 bytes, and `check` has verified the lengths of the arrays.
        let code = in_context(driver, layout.address, || unsafe {
            (encode.cuTensorMapEncodeTiled)(
                (&raw mut map).cast::<CUtensorMap>(),
                kind,
                rank,
                address,
                layout.shape.as_ptr(),
                layout.strides_bytes.as_ptr(),
                layout.box_shape.as_ptr(),
                layout.element_strides.as_ptr(),
                layout.interleave.into(),
                layout.swizzle.into(),
                layout.l2_promotion.into(),
                layout.oob_fill.into(),
            )
        })?;
        if code == CuResult::CUDA_ERROR_INVALID_VALUE {
            return Err(Error::invalid(format!(
                "the driver rejects {layout:?}; the innermost box extent must fit the swizzle, and the other extents the limits of cuTensorMapEncodeTiled"
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

/// Runs `encode` in the primary context of the device that owns the memory at `address`, or of device 0 if the driver does not
/// report one: encoding requires a current context, although it does not use the device.
fn in_context(driver: &Driver, address: u64, encode: impl FnOnce() -> CuResult) -> Result<CuResult> {
    let ordinal = driver
        .pointer_attribute(CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address)
        .unwrap_or(0);
    let mut context = Context::NULL;
    // SAFETY: the out-parameter is writable; a missing device returns an error.
    let code = unsafe { (driver.cuDevicePrimaryCtxRetain)(&raw mut context.0, ordinal) };
    driver.check("cuDevicePrimaryCtxRetain", code)?;
    let current = CurrentContext::push(driver, context);
    let outcome = match current {
        Ok(_current) => Ok(encode()),
        Err(code) => Err(driver.error("cuCtxPushCurrent", code)),
    };
    // SAFETY: retained once above, and no longer current.
    let _ = unsafe { (driver.cuDevicePrimaryCtxRelease_v2)(ordinal) };
    outcome
}

fn check(layout: &TiledLayout<'_>) -> Result<()> {
    let rank = layout.shape.len();
    if !(1..=MAX_DIMENSIONS).contains(&rank) {
        return Err(Error::invalid(format!("shape has {rank} dimensions; valid: 1 to {MAX_DIMENSIONS}")));
    }
    let lengths = [
        ("strides_bytes", layout.strides_bytes.len(), rank - 1),
        ("box_shape", layout.box_shape.len(), rank),
        ("element_strides", layout.element_strides.len(), rank),
    ];
    if let Some((name, given, wanted)) = lengths.into_iter().find(|(_, given, wanted)| given != wanted) {
        return Err(Error::invalid(format!(
            "{name} has length {given} for {}; pass {wanted}",
            counted(rank, "dimension")
        )));
    }
    if !layout.address.is_multiple_of(16) {
        return Err(Error::invalid(format!("address {:#x} is not a multiple of 16", layout.address)));
    }
    if let Some(stride) = layout.strides_bytes.iter().find(|stride| !stride.is_multiple_of(16)) {
        return Err(Error::invalid(format!(
            "strides_bytes contains {stride}, which is not a multiple of 16"
        )));
    }
    match layout.box_shape.iter().find(|extent| !(1..=MAX_BOX_EXTENT).contains(*extent)) {
        Some(extent) => {
            Err(Error::invalid(format!("box_shape contains {extent}; valid: 1 to {MAX_BOX_EXTENT}")))
        }
        None => Ok(()),
    }
}

/// `CUtensorMapDataType` of an element type.
fn data_type(dtype: DType) -> Result<CUtensorMapDataType> {
    use CUtensorMapDataType as Type;
    let (code, bits, _) = dtype.dlpack();
    Ok(match (code, bits) {
        (_, 8) => Type::CU_TENSOR_MAP_DATA_TYPE_UINT8,
        (1, 16) => Type::CU_TENSOR_MAP_DATA_TYPE_UINT16,
        (1, 32) => Type::CU_TENSOR_MAP_DATA_TYPE_UINT32,
        (0, 32) => Type::CU_TENSOR_MAP_DATA_TYPE_INT32,
        (1, 64) => Type::CU_TENSOR_MAP_DATA_TYPE_UINT64,
        (0, 64) => Type::CU_TENSOR_MAP_DATA_TYPE_INT64,
        (2, 16) => Type::CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
        (2, 32) => Type::CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
        (2, 64) => Type::CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
        (4, 16) => Type::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
        _ => return Err(Error::unsupported(format!("a tensor map of {dtype} is not supported"))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiled<'a>(shape: &'a [u64], strides_bytes: &'a [u64]) -> TiledLayout<'a> {
        TiledLayout {
            dtype: DType::F16,
            address: 4096,
            shape,
            strides_bytes,
            box_shape: &[64, 64],
            element_strides: &[1, 1],
            interleave: Interleave::None,
            swizzle: Swizzle::Bytes128,
            l2_promotion: L2Promotion::Bytes256,
            oob_fill: OobFill::Zeros,
        }
    }

    #[test]
    fn invalid_layouts_are_rejected_before_the_driver_is_called() {
        check(&tiled(&[1024, 1024], &[2048])).unwrap();
        for (shape, strides, words) in [
            (&[][..], &[][..], "dimensions"),
            (&[1024, 1024], &[2048, 2048], "strides_bytes"),
            (&[1024, 1024], &[2040], "multiple of 16"),
            (&[1024], &[], "box_shape"),
        ] {
            let error = check(&tiled(shape, strides)).unwrap_err();
            assert!(error.message().contains(words), "{error}");
        }
        assert!(data_type(DType::BOOL).is_ok());
        assert!(data_type(DType::I16).is_err());
    }

    #[test]
    fn a_map_is_as_the_driver_lays_it_out() {
        assert_eq!((align_of::<TensorMap>(), size_of::<TensorMap>()), (64, 128));
        assert_eq!((align_of::<CUtensorMap>(), size_of::<CUtensorMap>()), (64, 128));
    }

    #[test]
    fn values_are_the_numbers_of_the_driver() {
        let interleaves = [Interleave::None, Interleave::Bytes16, Interleave::Bytes32];
        assert_eq!(interleaves.map(|value| CUtensorMapInterleave::from(value) as u32), [0, 1, 2]);
        let swizzles = [Swizzle::None, Swizzle::Bytes32, Swizzle::Bytes64, Swizzle::Bytes128];
        assert_eq!(swizzles.map(|value| CUtensorMapSwizzle::from(value) as u32), [0, 1, 2, 3]);
        let sizes = [L2Promotion::None, L2Promotion::Bytes64, L2Promotion::Bytes128, L2Promotion::Bytes256];
        assert_eq!(sizes.map(|value| CUtensorMapL2promotion::from(value) as u32), [0, 1, 2, 3]);
        let fills = [OobFill::Zeros, OobFill::NotANumber];
        assert_eq!(fills.map(|value| CUtensorMapFloatOOBfill::from(value) as u32), [0, 1]);
        assert_eq!(data_type(DType::BF16).unwrap() as u32, 9);
    }
}
