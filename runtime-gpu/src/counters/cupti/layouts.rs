//! Parameter structures of CUPTI's profiler, as in `cupti_range_profiler.h`, `cupti_profiler_host.h`,
//! `cupti_profiler_target.h` and `cupti_target.h` of CUDA 12.6. Newer versions append fields; they accept these sizes,
//! whereas an older version rejects a larger size.
//!
//! Handwritten: return codes must be integers, and a structure that ends with the newest fields fails on older versions.
//! A C compiler confirmed sizes and offsets with the headers of CUDA 12.6, 13.0 and 13.5.

use std::ffi::{c_char, c_int, c_void};

/// `CUpti_Profiler_Host_Object *`.
pub(crate) type HostHandle = *mut c_void;
/// `CUpti_RangeProfiler_Object *`.
pub(crate) type RangeHandle = *mut c_void;

/// A structure that a function of CUPTI takes.
pub(crate) trait Params: Sized {
    /// All fields zero, but for the size.
    fn new() -> Self;
}

const fn field_size<S, F>(_: fn(&S) -> &F) -> usize {
    size_of::<F>()
}

/// Declares structures with their sizes. CUPTI's sizes end with the last field, without padding.
macro_rules! params {
    ($($(#[$doc:meta])* $name:ident, $size:literal bytes to $last:ident { $($field:ident: $ty:ty,)* })*) => {$(
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $name {
            struct_size: usize,
            pub(crate) private: *mut c_void,
            $(pub(crate) $field: $ty,)*
        }

        const _: () = assert!(size_of::<$name>() == usize::next_multiple_of($size, align_of::<$name>()));
        const _: () =
            assert!(std::mem::offset_of!($name, $last) + field_size(|params: &$name| &params.$last) == $size);

        impl Params for $name {
            fn new() -> Self {
                // SAFETY: all fields are numbers or pointers, for which zero is valid.
                let zeroed: Self = unsafe { std::mem::zeroed() };
                Self { struct_size: $size, ..zeroed }
            }
        }
    )*};
}

params! {
    /// `CUpti_Profiler_Initialize_Params`, and `CUpti_Profiler_DeInitialize_Params`, which is the same.
    Initialize, 16 bytes to private {}
    /// `CUpti_Device_GetChipName_Params`.
    GetChipName, 32 bytes to chip_name { device_index: usize, chip_name: *const c_char, }
    /// `CUpti_Profiler_GetCounterAvailability_Params`.
    GetCounterAvailability, 40 bytes to image { context: *mut c_void, image_bytes: usize, image: *mut u8, }
    /// `CUpti_Profiler_Host_Initialize_Params`.
    HostInitialize, 48 bytes to host {
        profiler_type: c_int, chip_name: *const c_char, availability: *const u8, host: HostHandle,
    }
    /// `CUpti_Profiler_Host_Deinitialize_Params`.
    HostDeinitialize, 24 bytes to host { host: HostHandle, }
    /// `CUpti_Profiler_Host_GetBaseMetrics_Params`.
    GetBaseMetrics, 48 bytes to count {
        host: HostHandle, metric_type: c_int, names: *const *const c_char, count: usize,
    }
    /// `CUpti_Profiler_Host_GetMetricProperties_Params`.
    GetMetricProperties, 60 bytes to metric_type {
        host: HostHandle, name: *const c_char, description: *const c_char, hardware_unit: *const c_char,
        dimension: *const c_char, metric_type: c_int,
    }
    /// `CUpti_Profiler_Host_ConfigAddMetrics_Params`.
    ConfigAddMetrics, 40 bytes to count { host: HostHandle, names: *const *const c_char, count: usize, }
    /// `CUpti_Profiler_Host_GetConfigImageSize_Params`.
    GetConfigImageSize, 32 bytes to bytes { host: HostHandle, bytes: usize, }
    /// `CUpti_Profiler_Host_GetConfigImage_Params`.
    GetConfigImage, 40 bytes to image { host: HostHandle, bytes: usize, image: *mut u8, }
    /// `CUpti_Profiler_Host_GetNumOfPasses_Params`.
    GetNumOfPasses, 40 bytes to passes { bytes: usize, image: *const u8, passes: usize, }
    /// `CUpti_Profiler_Host_EvaluateToGpuValues_Params`.
    EvaluateToGpuValues, 72 bytes to values {
        host: HostHandle, image: *const u8, image_bytes: usize, range: usize, names: *const *const c_char,
        count: usize, values: *mut f64,
    }
    /// `CUpti_RangeProfiler_Enable_Params`.
    Enable, 32 bytes to profiler { context: *mut c_void, profiler: RangeHandle, }
    /// `CUpti_RangeProfiler_Disable_Params`, and those of `Start`, `PopRange`, which are the same.
    OfProfiler, 24 bytes to profiler { profiler: RangeHandle, }
    /// `CUpti_RangeProfiler_Stop_Params`.
    Stop, 41 bytes to is_all_submitted {
        profiler: RangeHandle, pass: usize, nesting_level: usize, is_all_submitted: u8,
    }
    /// `CUpti_RangeProfiler_PushRange_Params`.
    PushRange, 32 bytes to name { profiler: RangeHandle, name: *const c_char, }
    /// `CUpti_RangeProfiler_DecodeData_Params`.
    DecodeData, 32 bytes to dropped { profiler: RangeHandle, dropped: usize, }
    /// `CUpti_RangeProfiler_GetCounterDataSize_Params`.
    GetCounterDataSize, 64 bytes to bytes {
        profiler: RangeHandle, names: *const *const c_char, count: usize, max_ranges: usize, max_nodes: u32,
        bytes: usize,
    }
    /// `CUpti_RangeProfiler_CounterDataImage_Initialize_Params`.
    InitializeCounterData, 40 bytes to image { profiler: RangeHandle, bytes: usize, image: *mut u8, }
    /// `CUpti_RangeProfiler_GetCounterDataInfo_Params`.
    GetCounterDataInfo, 40 bytes to ranges { image: *const u8, bytes: usize, ranges: usize, }
    /// `CUpti_RangeProfiler_SetConfig_Params`.
    SetConfig, 90 bytes to target_nesting_level {
        profiler: RangeHandle, config_bytes: usize, config: *const u8, image_bytes: usize, image: *mut u8,
        range_mode: c_int, replay_mode: c_int, max_ranges_per_pass: usize, nesting_levels: u16,
        min_nesting_level: u16, pass: usize, target_nesting_level: u16,
    }
}
