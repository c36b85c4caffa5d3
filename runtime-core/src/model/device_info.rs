//! What is known of a device, as plain data.

use std::fmt;

use crate::{Options, abi};

/// What sort of device it is: which of the three implementations of `CommonRuntime` it opens as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeviceKind {
    /// Memory is the program's own, code is native.
    Host,
    /// Own memory spaces, explicit transfers, queues.
    Accelerator,
    /// An external processor that is flashed with an image.
    Embedded,
}

/// A device's place: backend, index, and sub-device.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceId {
    /// Name of the target, e.g. `cuda`.
    pub target: String,
    /// Index within the target.
    pub index: u32,
    /// Sub-device, if it is one.
    pub sub: Option<u32>,
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.target, self.index)?;
        self.sub.map_or(Ok(()), |sub| write!(f, ".{sub}"))
    }
}

impl fmt::Debug for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What a device can do: a set of the `abi::CAP_*` bits.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Capabilities(pub u64);

impl Capabilities {
    /// Bits and their names, for listings.
    pub const NAMES: [(u64, &'static str); 18] = [
        (abi::CAP_TIMESTAMPS, "timestamps"),
        (abi::CAP_GRAPHS, "graphs"),
        (abi::CAP_WAIT_FOR, "wait_for"),
        (abi::CAP_INLINE, "inline"),
        (abi::CAP_STREAM_ORDERED, "stream_ordered"),
        (abi::CAP_SERIAL, "serial"),
        (abi::CAP_IMPORT, "import"),
        (abi::CAP_EMPTY_KERNEL, "empty_kernel"),
        (abi::CAP_RANGE, "range"),
        (abi::CAP_GROUPS, "groups"),
        (abi::CAP_TELEMETRY, "telemetry"),
        (abi::CAP_COOPERATIVE, "cooperative"),
        (abi::CAP_CLUSTERS, "clusters"),
        (abi::CAP_PEERS, "peers"),
        (abi::CAP_F16, "f16"),
        (abi::CAP_F64, "f64"),
        (abi::CAP_ADOPT, "adopt"),
        (abi::CAP_ROWS, "rows"),
    ];

    /// Whether all of `bits` are there.
    #[must_use]
    pub const fn has(self, bits: u64) -> bool {
        self.0 & bits == bits
    }

    /// Names of the bits that are set.
    #[must_use]
    pub fn names(self) -> Vec<&'static str> {
        Self::NAMES.iter().filter(|(bit, _)| self.has(*bit)).map(|(_, name)| *name).collect()
    }
}

impl fmt::Debug for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names().join("|"))
    }
}

/// A memory space of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemorySpace {
    /// `device`, `pinned`, `shared`, or a name of the backend's own.
    pub name: String,
    /// Capacity in bytes, 0 if unknown.
    pub total_bytes: u64,
    /// Alignment of every allocation in bytes.
    pub alignment_bytes: u64,
    /// The program can reach the memory directly.
    pub host_visible: bool,
    /// Kernels can use it.
    pub kernel_visible: bool,
}

/// Limits that a launch and an allocation are checked against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most groups of one launch, per dimension.
    pub groups: [u64; 3],
    /// Most work-items of one group, per dimension.
    pub group_size: [u32; 3],
    /// Most work-items of one group, in all.
    pub group_items: u32,
    /// Most bytes of work-group memory.
    pub shared_bytes: u64,
    /// Most bytes of one allocation, 0 if unknown.
    pub allocation_bytes: u64,
}

impl Default for Limits {
    /// One plain call, no work-group memory: what a device without geometry has.
    fn default() -> Self {
        Self { groups: [1; 3], group_size: [1; 3], group_items: 1, shared_bytes: 0, allocation_bytes: 0 }
    }
}

/// Everything that is known of a device without opening it; enough to answer "why not this device?".
#[derive(Clone, Debug)]
pub struct DeviceInfo {
    /// Its place. A backend leaves `target` empty: core fills it in.
    pub id: DeviceId,
    /// What sort of device it is.
    pub kind: DeviceKind,
    /// Name for people, e.g. `NVIDIA H200`.
    pub name: String,
    /// Architecture, e.g. `sm_90`, `x86-64-v4`.
    pub arch: String,
    /// Vendor's name.
    pub vendor: String,
    /// Version of the driver, in its own words.
    pub driver_version: String,
    /// Why it cannot be opened; `None` when it can.
    pub unusable: Option<String>,
    /// Stable identity, all zero if the driver has none.
    pub uuid: [u8; 16],
    /// PCI address, empty if there is none.
    pub pci_address: String,
    /// `DLDeviceType` of its memory.
    pub dlpack_type: i32,
    /// Compute units (cores, SMs, clusters); 1 where the driver does not tell.
    pub compute_units: u32,
    /// Highest clock of the compute units in Hz, 0 if unknown.
    pub clock_hz: u64,
    /// What it can do.
    pub capabilities: Capabilities,
    /// Limits.
    pub limits: Limits,
    /// Memory spaces; the first is the default.
    pub spaces: Vec<MemorySpace>,
    /// Accepted code formats, preferred first.
    pub formats: Vec<String>,
    /// Whatever else the backend knows.
    pub properties: Options,
}

impl DeviceInfo {
    /// A description with empty fields, for a backend to fill in.
    #[must_use]
    pub fn new(kind: DeviceKind, index: u32, name: &str) -> Self {
        Self {
            id: DeviceId { target: String::new(), index, sub: None },
            kind,
            name: name.to_owned(),
            arch: String::new(),
            vendor: String::new(),
            driver_version: String::new(),
            unusable: None,
            uuid: [0; 16],
            pci_address: String::new(),
            dlpack_type: 1,
            compute_units: 1,
            clock_hz: 0,
            capabilities: Capabilities::default(),
            limits: Limits::default(),
            spaces: Vec::new(),
            formats: Vec::new(),
            properties: Options::new(),
        }
    }
}

/// Free and total bytes of a memory space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryUsage {
    /// Bytes that can still be allocated.
    pub free_bytes: u64,
    /// Bytes in all.
    pub total_bytes: u64,
}

/// Current clocks, temperature and energy; `None` where the device does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Telemetry {
    /// Clock of the compute units in Hz.
    pub clock_hz: Option<u64>,
    /// Clock of the memory in Hz.
    pub memory_clock_hz: Option<u64>,
    /// Temperature in thousandths of a degree Celsius.
    pub temperature_millicelsius: Option<i64>,
    /// Power draw in milliwatts.
    pub power_milliwatts: Option<u64>,
    /// Energy since an arbitrary point in microjoules.
    pub energy_microjoules: Option<u64>,
}
