//! What a driver tells of a device, as plain data.

use std::fmt;

/// The kind of a device that is a processor.
pub(super) const CPU: &str = "cpu";

/// A version of Vulkan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version {
    pub(crate) major: u32,
    pub(crate) minor: u32,
    pub(crate) patch: u32,
}

impl Version {
    /// Unpacks the driver's form.
    pub(crate) const fn of(packed: u32) -> Self {
        Self { major: packed >> 22 & 0x7f, minor: packed >> 12 & 0x3ff, patch: packed & 0xfff }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// Everything that is asked of a physical device.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    pub(crate) name: String,
    /// `discrete`, `integrated`, `virtual`, `cpu` or `other`.
    pub(crate) kind: &'static str,
    pub(crate) version: Version,
    pub(crate) vendor_id: u32,
    pub(crate) device_id: u32,
    /// The driver's id, name and version, in its own words.
    pub(crate) driver: (i32, String, String),
    pub(crate) uuid: [u8; 16],
    /// What compiled code of this driver can be used by.
    pub(crate) cache_uuid: [u8; 16],
    /// Compute units, where the driver tells; else 0.
    pub(crate) units: u32,
    /// `dddd:bb:dd.f`, where the driver tells.
    pub(crate) pci_address: String,
    pub(crate) groups: [u32; 3],
    pub(crate) group_size: [u32; 3],
    pub(crate) group_items: u32,
    pub(crate) shared_bytes: u32,
    /// Most bytes that one binding of a kernel reaches.
    pub(crate) binding_bytes: u64,
    /// Alignment of a binding's first byte.
    pub(crate) binding_alignment: u64,
    /// Most storage buffers of one kernel.
    pub(crate) bindings: u32,
    /// Of those, how many fit into a launch without a descriptor set.
    pub(crate) pushed_bindings: u32,
    pub(crate) push_bytes: u32,
    pub(crate) allocation_bytes: u64,
    /// Alignment of host memory that kernels use in place; 0: they cannot.
    pub(crate) import_alignment: u64,
    /// Nanoseconds of a tick of the timestamps.
    pub(crate) tick_ns: f32,
    pub(crate) sub_group: SubGroup,
    pub(crate) heaps: Vec<Heap>,
    pub(crate) memory: Vec<MemoryKind>,
    pub(crate) families: Vec<Family>,
    pub(crate) features: Features,
    pub(crate) extensions: Vec<String>,
    /// Shapes that cooperative matrices come in, in words.
    pub(crate) matrices: Vec<String>,
    /// Why the device is of no use.
    pub(crate) unusable: Option<String>,
}

/// Sub-groups: work-items that run together.
#[derive(Clone, Debug, Default)]
pub(crate) struct SubGroup {
    pub(crate) size: u32,
    /// Least and most, where a kernel can choose.
    pub(crate) sizes: Option<(u32, u32)>,
    pub(crate) operations: Vec<&'static str>,
}

/// A heap of memory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Heap {
    pub(crate) bytes: u64,
    pub(crate) on_device: bool,
}

/// A type of memory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MemoryKind {
    pub(crate) heap: usize,
    pub(crate) on_device: bool,
    /// The program reaches it, and nobody needs to flush.
    pub(crate) on_host: bool,
}

/// A family of queues.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Family {
    pub(crate) index: u32,
    pub(crate) count: u32,
    pub(crate) compute: bool,
    pub(crate) graphics: bool,
    pub(crate) transfer: bool,
    /// Bits of a timestamp that count; 0: there are none.
    pub(crate) stamp_bits: u32,
}

/// What kernels and the backend may use.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Features {
    pub(crate) timeline: bool,
    pub(crate) host_reset: bool,
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
    pub(crate) memory_model_device: bool,
    pub(crate) scalar_layout: bool,
    pub(crate) variable_pointers: bool,
    pub(crate) cooperative_matrix: bool,
    pub(crate) memory_budget: bool,
    pub(crate) push_descriptors: bool,
    pub(crate) host_import: bool,
    pub(crate) executable_properties: bool,
    pub(crate) device_fault: bool,
    pub(crate) calibrated: bool,
    pub(crate) synchronization2: bool,
    /// A pipeline says whether the device checks what its kernel touches.
    pub(crate) pipeline_robustness: bool,
}

impl Features {
    /// Those that a program may ask about, with their names.
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

impl Facts {
    /// Whether the device is a processor of this machine, which needs its time itself.
    pub(crate) fn is_processor(&self) -> bool {
        self.kind == CPU
    }

    /// The family whose queues run kernels: one without graphics, where there is one.
    pub(crate) fn compute_family(&self) -> Option<Family> {
        let compute = || self.families.iter().filter(|family| family.compute);
        compute().find(|family| !family.graphics).or_else(|| compute().next()).copied()
    }

    /// The family that does nothing but copy.
    pub(crate) fn transfer_family(&self) -> Option<Family> {
        self.families.iter().find(|family| family.transfer && !family.compute && !family.graphics).copied()
    }

    /// Whether there is memory that is the device's and that the program reaches.
    pub(crate) fn has_shared(&self) -> bool {
        self.memory.iter().any(|kind| kind.on_device && kind.on_host)
    }

    /// Whether the program reaches all memory of the device, so that it can as well be allocated like that.
    pub(crate) fn reaches_all(&self) -> bool {
        let largest = self.heap_bytes(true);
        let heap = |kind: &MemoryKind| self.heaps.get(kind.heap).map_or(0, |heap| heap.bytes);
        self.memory.iter().any(|kind| kind.on_device && kind.on_host && heap(kind) == largest)
    }

    /// Bytes of the largest heap of the device, or of the host.
    pub(crate) fn heap_bytes(&self, on_device: bool) -> u64 {
        let of = |wanted: bool| self.heaps.iter().filter(move |heap| heap.on_device == wanted);
        of(on_device).map(|heap| heap.bytes).max().unwrap_or_else(|| {
            // One heap for both, as on a processor.
            self.heaps.iter().map(|heap| heap.bytes).max().unwrap_or(0)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_unpacked_and_ordered() {
        let version = Version::of(1 << 22 | 3 << 12 | 230);
        assert_eq!(version.to_string(), "1.3.230");
        assert!(
            Version { major: 1, minor: 1, patch: 999 } < super::super::FLOOR && super::super::FLOOR < version
        );
    }

    #[test]
    fn all_memory_is_reached_where_its_heap_is_the_large_one() {
        let heap = |bytes| Heap { bytes, on_device: true };
        let kind = |heap, on_host| MemoryKind { heap, on_device: true, on_host };
        let mut facts = Facts { heaps: vec![heap(80), heap(1)], ..Facts::default() };
        facts.memory = vec![kind(0, false), kind(1, true)];
        assert!(facts.has_shared() && !facts.reaches_all());
        facts.memory.push(kind(0, true));
        assert!(facts.reaches_all());
    }

    #[test]
    fn kernels_run_on_a_family_without_graphics_if_there_is_one() {
        let family = |index, compute, graphics| Family {
            index,
            compute,
            graphics,
            transfer: true,
            ..Family::default()
        };
        let mut facts =
            Facts { families: vec![family(0, true, true), family(1, false, false)], ..Facts::default() };
        assert_eq!(facts.compute_family().map(|family| family.index), Some(0));
        assert_eq!(facts.transfer_family().map(|family| family.index), Some(1));
        facts.families.push(family(2, true, false));
        assert_eq!(facts.compute_family().map(|family| family.index), Some(2));
    }
}
