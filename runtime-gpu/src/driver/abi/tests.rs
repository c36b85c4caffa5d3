//! Checks the C layouts independently of the crate that declares them: a wrong size or field order would corrupt
//! memory.

use std::mem::offset_of;

use super::*;

#[test]
fn structures_have_the_sizes_and_alignments_of_c() {
    let layouts = [
        ("CUmemLocation", layout_of::<CUmemLocation>(), (8, 4)),
        ("CUmemPoolProps", layout_of::<CUmemPoolProps>(), (88, 8)),
        ("CUmemAccessDesc", layout_of::<CUmemAccessDesc>(), (12, 4)),
        ("CUlaunchAttribute", layout_of::<CUlaunchAttribute>(), (72, 8)),
        ("CUlaunchAttributeValue", layout_of::<CUlaunchAttributeValue>(), (64, 8)),
        ("CUlaunchConfig", layout_of::<CUlaunchConfig>(), (56, 8)),
        ("CUDA_KERNEL_NODE_PARAMS", layout_of::<KernelNodeParams>(), (72, 8)),
        ("CUDA_MEMCPY2D", layout_of::<Memcpy2D>(), (128, 8)),
        ("CUDA_MEMCPY3D", layout_of::<Memcpy3D>(), (200, 8)),
        ("CUDA_MEMSET_NODE_PARAMS", layout_of::<MemsetNodeParams>(), (40, 8)),
        ("CUuuid", layout_of::<CUuuid>(), (16, 1)),
        ("CUtensorMap", layout_of::<sys::CUtensorMap>(), (128, 64)),
        ("CUresult", layout_of::<CuResult>(), (4, 4)),
        ("CUstream", layout_of::<Stream>(), (8, 8)),
    ];
    for (name, actual, expected) in layouts {
        assert_eq!(actual, expected, "{name}");
    }
}

fn layout_of<T>() -> (usize, usize) {
    (size_of::<T>(), align_of::<T>())
}

#[test]
fn fields_have_the_offsets_of_c() {
    let pool = [offset_of!(CUmemPoolProps, location), offset_of!(CUmemPoolProps, win32SecurityAttributes)];
    assert_eq!(pool, [8, 16]);
    assert_eq!([offset_of!(CUmemPoolProps, maxSize), offset_of!(CUmemPoolProps, usage)], [24, 32]);
    assert_eq!([offset_of!(CUlaunchAttribute, id), offset_of!(CUlaunchAttribute, value)], [0, 8]);
    let config = [offset_of!(CUlaunchConfig, hStream), offset_of!(CUlaunchConfig, attrs)];
    assert_eq!((config, offset_of!(CUlaunchConfig, numAttrs)), ([32, 40], 48));
    let node = [offset_of!(KernelNodeParams, gridDimX), offset_of!(KernelNodeParams, kernelParams)];
    assert_eq!((node, offset_of!(KernelNodeParams, ctx)), ([8, 40], 64));
    let rows = [offset_of!(Memcpy2D, srcDevice), offset_of!(Memcpy2D, srcPitch)];
    assert_eq!(rows, [32, 48]);
    let rows = [offset_of!(Memcpy2D, dstDevice), offset_of!(Memcpy2D, dstPitch)];
    assert_eq!((rows, offset_of!(Memcpy2D, WidthInBytes)), ([88, 104], 112));
    let copy = [offset_of!(Memcpy3D, srcDevice), offset_of!(Memcpy3D, srcPitch)];
    assert_eq!(copy, [48, 72]);
    let copy = [offset_of!(Memcpy3D, dstDevice), offset_of!(Memcpy3D, dstPitch)];
    assert_eq!((copy, offset_of!(Memcpy3D, WidthInBytes)), ([136, 160], 176));
    let memset = [offset_of!(MemsetNodeParams, value), offset_of!(MemsetNodeParams, width)];
    assert_eq!(memset, [16, 24]);
}

#[test]
fn attributes_of_a_launch_are_where_the_driver_reads_them() {
    let cluster = cluster_attribute([2, 3, 4]);
    assert_eq!((cluster.id as u32, words(&cluster)), (4, [2, 3, 4, 0]));
    let cooperative = cooperative_attribute();
    assert_eq!((cooperative.id as u32, words(&cooperative)), (2, [1, 0, 0, 0]));
}

/// The first words of the value.
fn words(attribute: &CUlaunchAttribute) -> [u32; 4] {
    // SAFETY: all 64 bytes of the value are initialised.
    let bytes = unsafe { attribute.value.pad };
    std::array::from_fn(|word| {
        u32::from_ne_bytes(std::array::from_fn(|byte| bytes[4 * word + byte].to_ne_bytes()[0]))
    })
}

#[test]
fn numbers_are_those_of_the_header() {
    assert_eq!((HOST_MEMORY, COMPUTE_MODE_PROHIBITED, NON_BLOCKING, NO_TIMING), (1, 2, 1, 2));
    assert_eq!((PORTABLE_MAPPED, ATTACH_GLOBAL, LAUNCH_PARAM_BUFFER, LAUNCH_PARAM_BUFFER_SIZE), (3, 1, 1, 2));
    assert_eq!(crate::describe::MAX_GROUP_SIZE.map(|key| key as u32), [2, 3, 4]);
    assert_eq!(crate::describe::MAX_GROUPS.map(|key| key as u32), [5, 6, 7]);
    assert_eq!(
        (
            CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH as u32,
            CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED as u32
        ),
        (120, 115)
    );
    assert_eq!(CuResult::CUDA_ERROR_ILLEGAL_ADDRESS, CuResult(700));
}
