//! The properties, limits, features and queue families of a physical device, as plain data.

use std::fmt;

use ash::vk;

use super::enabled_features::EnabledFeatures;

/// The `kind` of a CPU device.
pub(super) const CPU: &str = "cpu";
/// The `kind` of a device with memory of its own.
pub(super) const DISCRETE: &str = "discrete";

/// A Vulkan version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version {
    pub(crate) major: u32,
    pub(crate) minor: u32,
    pub(crate) patch: u32,
}

impl Version {
    /// Unpacks `VK_MAKE_API_VERSION`.
    pub(crate) const fn from_packed(packed: u32) -> Self {
        Self {
            major: vk::api_version_major(packed),
            minor: vk::api_version_minor(packed),
            patch: vk::api_version_patch(packed),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// Everything queried of a physical device.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeviceCaps {
    pub(crate) name: String,
    /// `discrete`, `integrated`, `virtual`, `cpu` or `other`.
    pub(crate) kind: &'static str,
    pub(crate) version: Version,
    pub(crate) vendor_id: u32,
    pub(crate) device_id: u32,
    pub(crate) driver: DriverInfo,
    pub(crate) uuid: [u8; 16],
    /// Identifies pipeline caches that this driver accepts.
    pub(crate) cache_uuid: [u8; 16],
    /// Compute units, which only extensions of NVIDIA and AMD report.
    pub(crate) compute_units: Option<u32>,
    /// `dddd:bb:dd.f`; empty if unknown.
    pub(crate) pci_address: Option<String>,
    pub(crate) groups: [u32; 3],
    pub(crate) group_size: [u32; 3],
    pub(crate) group_items: u32,
    pub(crate) shared_bytes: u32,
    /// Most bytes of one binding (`maxStorageBufferRange`).
    pub(crate) binding_bytes: u64,
    /// Alignment of a binding's offset, a power of two.
    pub(crate) binding_alignment: u64,
    /// Most storage buffers of a kernel.
    pub(crate) bindings: u32,
    /// Most push descriptors of a kernel; 0 without push descriptors.
    pub(crate) max_push_descriptors: u32,
    pub(crate) push_constant_bytes: u32,
    pub(crate) allocation_bytes: u64,
    /// Alignment of imported host memory; 0 if it cannot be imported.
    pub(crate) import_alignment: u64,
    /// Nanoseconds per timestamp tick.
    pub(crate) timestamp_period_ns: f32,
    pub(crate) sub_group: SubGroup,
    pub(crate) heaps: Vec<Heap>,
    pub(crate) memory_types: Vec<MemoryType>,
    pub(crate) queue_families: Vec<QueueFamily>,
    pub(crate) features: Features,
    pub(crate) enabled: EnabledFeatures,
    pub(crate) extensions: Vec<String>,
    /// Such as `16x16x16 float16 * float16 + float32`.
    pub(crate) cooperative_matrix_shapes: Vec<String>,
    /// Why the device cannot be opened.
    pub(crate) unavailable_reason: Option<String>,
}

/// A driver's id (`VkDriverId`), name and version.
#[derive(Clone, Debug, Default)]
pub(crate) struct DriverInfo {
    pub(crate) id: i32,
    pub(crate) name: String,
    pub(crate) version: String,
}

/// Sub-groups: work-items that execute together.
#[derive(Clone, Debug, Default)]
pub(crate) struct SubGroup {
    pub(crate) size: u32,
    /// Smallest and largest size, where a kernel can choose.
    pub(crate) sizes: Option<(u32, u32)>,
    pub(crate) operations: Vec<&'static str>,
}

/// A memory heap.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Heap {
    pub(crate) bytes: u64,
    pub(crate) device_local: bool,
}

/// A memory type.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MemoryType {
    pub(crate) heap: usize,
    pub(crate) device_local: bool,
    /// Host-visible and coherent.
    pub(crate) host_visible: bool,
}

/// A queue family.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QueueFamily {
    pub(crate) index: u32,
    pub(crate) count: u32,
    pub(crate) compute: bool,
    pub(crate) graphics: bool,
    pub(crate) transfer: bool,
    /// Valid bits of a timestamp; 0 without timestamps.
    pub(crate) timestamp_bits: u32,
}

/// Features that kernels or the backend use.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Features {
    pub(crate) timeline_semaphores: bool,
    pub(crate) host_query_reset: bool,
    pub(crate) f16: bool,
    pub(crate) f64: bool,
    pub(crate) i8: bool,
    pub(crate) i16: bool,
    pub(crate) i64: bool,
    pub(crate) storage_8: bool,
    pub(crate) storage_16: bool,
    pub(crate) uniform_8: bool,
    pub(crate) uniform_16: bool,
    pub(crate) push_8: bool,
    pub(crate) push_16: bool,
    pub(crate) dot_product: bool,
    pub(crate) atomics_i64: bool,
    pub(crate) atomics_f32: bool,
    pub(crate) memory_model: bool,
    pub(crate) memory_model_device_scope: bool,
    pub(crate) scalar_layout: bool,
    pub(crate) variable_pointers: bool,
    pub(crate) cooperative_matrix: bool,
    pub(crate) memory_budget: bool,
    pub(crate) push_descriptors: bool,
    pub(crate) host_import: bool,
    pub(crate) executable_properties: bool,
    pub(crate) device_fault: bool,
    pub(crate) calibrated_timestamps: bool,
    pub(crate) synchronization2: bool,
    /// Bounds checks can be turned off for each pipeline (`VK_EXT_pipeline_robustness`).
    pub(crate) pipeline_robustness: bool,
}

impl Features {
    /// The features listed as device properties, by name.
    pub(crate) fn named(&self) -> [(&'static str, bool); 17] {
        [
            ("f16", self.f16),
            ("f64", self.f64),
            ("i8", self.i8),
            ("i16", self.i16),
            ("i64", self.i64),
            ("storage_8bit", self.storage_8),
            ("storage_16bit", self.storage_16),
            ("atomics_i64", self.atomics_i64),
            ("atomics_f32", self.atomics_f32),
            ("memory_model", self.memory_model),
            ("scalar_layout", self.scalar_layout),
            ("variable_pointers", self.variable_pointers),
            ("cooperative_matrix", self.cooperative_matrix),
            ("memory_budget", self.memory_budget),
            ("push_descriptors", self.push_descriptors),
            ("host_import", self.host_import),
            ("executable_properties", self.executable_properties),
        ]
    }
}

impl DeviceCaps {
    /// Whether the device is this machine's CPU, so that host threads compete with kernels.
    pub(crate) fn is_cpu(&self) -> bool {
        self.kind == CPU
    }

    /// The queue family for kernels: preferably one without graphics.
    pub(crate) fn compute_family(&self) -> Option<QueueFamily> {
        let compute = || self.queue_families.iter().filter(|family| family.compute);
        compute().find(|family| !family.graphics).or_else(|| compute().next()).copied()
    }

    /// The transfer-only queue family, if there is one.
    pub(crate) fn transfer_family(&self) -> Option<QueueFamily> {
        self.queue_families
            .iter()
            .find(|family| family.transfer && !family.compute && !family.graphics)
            .copied()
    }

    /// Whether some device-local memory is host-visible.
    pub(crate) fn has_shared_space(&self) -> bool {
        self.memory_types.iter().any(|kind| kind.device_local && kind.host_visible)
    }

    /// Whether two `VkQueue`s of a device that submit at once break the driver's own synchronisation, as NVIDIA's engineers report
    /// of theirs (<https://github.com/ggml-org/llama.cpp/pull/28830>). With 16 threads that ran new kernels on an H100 (driver
    /// 580.159), 3 of 13 processes saw another thread's kernel run in place of theirs, and one hung; with turns, none of 13. Can
    /// become a check of the driver's version once NVIDIA names a release with the fix, and go when all supported ones have it.
    pub(super) fn confuses_concurrent_submissions(&self) -> bool {
        self.driver.id == vk::DriverId::NVIDIA_PROPRIETARY.as_raw()
    }

    /// Whether all device-local memory is host-visible (resizable BAR, integrated GPU, CPU), so that it can be mapped
    /// at no cost.
    pub(crate) fn all_device_memory_is_host_visible(&self) -> bool {
        let largest = self.heap_bytes(true);
        let heap = |kind: &MemoryType| self.heaps.get(kind.heap).map_or(0, |heap| heap.bytes);
        self.memory_types.iter().any(|kind| kind.device_local && kind.host_visible && heap(kind) == largest)
    }

    /// Bytes of the largest device-local heap, or of the largest other one.
    pub(crate) fn heap_bytes(&self, device_local: bool) -> u64 {
        let of = |wanted: bool| self.heaps.iter().filter(move |heap| heap.device_local == wanted);
        of(device_local).map(|heap| heap.bytes).max().unwrap_or_else(|| {
            // One heap for both, as on a CPU.
            self.heaps.iter().map(|heap| heap.bytes).max().unwrap_or(0)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_unpacked_and_ordered() {
        let version = Version::from_packed(1 << 22 | 3 << 12 | 230);
        assert_eq!(version.to_string(), "1.3.230");
        assert!(
            Version { major: 1, minor: 1, patch: 999 } < super::super::MIN_VERSION
                && super::super::MIN_VERSION < version
        );
    }

    #[test]
    fn device_memory_is_host_visible_if_its_largest_heap_is() {
        let heap = |bytes| Heap { bytes, device_local: true };
        let kind = |heap, host_visible| MemoryType { heap, device_local: true, host_visible };
        let mut caps = DeviceCaps { heaps: vec![heap(80), heap(1)], ..DeviceCaps::default() };
        caps.memory_types = vec![kind(0, false), kind(1, true)];
        assert!(caps.has_shared_space() && !caps.all_device_memory_is_host_visible());
        caps.memory_types.push(kind(0, true));
        assert!(caps.all_device_memory_is_host_visible());
    }

    #[test]
    fn a_compute_family_without_graphics_is_preferred() {
        let family = |index, compute, graphics| QueueFamily {
            index,
            compute,
            graphics,
            transfer: true,
            ..QueueFamily::default()
        };
        let mut caps = DeviceCaps {
            queue_families: vec![family(0, true, true), family(1, false, false)],
            ..DeviceCaps::default()
        };
        assert_eq!(caps.compute_family().map(|family| family.index), Some(0));
        assert_eq!(caps.transfer_family().map(|family| family.index), Some(1));
        caps.queue_families.push(family(2, true, false));
        assert_eq!(caps.compute_family().map(|family| family.index), Some(2));
    }
}
