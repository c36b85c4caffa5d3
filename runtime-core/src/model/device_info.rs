//! Device descriptions.

use std::fmt;

use serde::Serialize;

use crate::model::options::did_you_mean;
use crate::{CodeFormat, Error, Options, Result, abi};

/// The kind of a device. Each kind has its own implementation of `CommonRuntime`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeviceKind {
    /// Uses host memory and runs native code.
    Host,
    /// Has its own memory spaces and queues; transfers are explicit.
    Accelerator,
    /// An external processor that is flashed with an image.
    Embedded,
}

/// Identifies a device: target, index and sub-device. Its text is the device string, such as `cuda:0` or `cuda:0.1`.
///
/// ```
/// # use std::collections::HashMap;
/// # use runtime_core::Runtime;
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// let mut queues = HashMap::new(); // one per device
/// for name in ["null:0", "null:1"] {
///     let device = runtime.open(name)?;
///     queues.insert(device.device_id().clone(), device.queue()?);
/// }
/// let x = runtime.open("null:1")?.tensor([1], &[2.0f32])?;
/// let queue = &queues[x.device_id()]; // compute follows the data
/// # assert_eq!(queue.submitted(), 0);
/// assert_eq!(x.device_id().to_string(), "null:1"); // what `Runtime::open` takes
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceId {
    /// Target name, e.g. `cuda`.
    pub target: String,
    /// Index within the target.
    pub index: u32,
    /// Index of the sub-device; `None` for a whole device.
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

/// The capabilities of a device: a set of `abi::CAP_*` bits.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Capabilities(pub u64);

impl Capabilities {
    /// All bits with their names.
    pub const NAMES: [(u64, &'static str); 20] = [
        (abi::CAP_TIMESTAMPS, "timestamps"),
        (abi::CAP_GRAPHS, "graphs"),
        (abi::CAP_WAIT_FOR, "wait_for"),
        (abi::CAP_INLINE, "inline"),
        (abi::CAP_STREAM_ORDERED, "stream_ordered"),
        (abi::CAP_SERIAL, "serial"),
        (abi::CAP_IMPORT_HOST, "import_host"),
        (abi::CAP_NOOP_KERNEL, "noop_kernel"),
        (abi::CAP_RANGE, "range"),
        (abi::CAP_GROUPS, "groups"),
        (abi::CAP_TELEMETRY, "telemetry"),
        (abi::CAP_COOPERATIVE, "cooperative"),
        (abi::CAP_CLUSTERS, "clusters"),
        (abi::CAP_PEERS, "peers"),
        (abi::CAP_F16, "f16"),
        (abi::CAP_F64, "f64"),
        (abi::CAP_IMPORT_DEVICE_MEMORY, "import_device_memory"),
        (abi::CAP_COPY_2D, "copy_2d"),
        (abi::CAP_COUNTERS, "counters"),
        (abi::CAP_HOLD, "hold"),
    ];

    /// Whether all of `bits` are set.
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
    /// `device`, `pinned`, `shared`, or a backend-specific name.
    pub name: String,
    /// Capacity in bytes, if known.
    pub total_bytes: Option<u64>,
    /// Alignment of every allocation in bytes.
    pub alignment_bytes: u64,
    /// Whether the host can access the memory directly.
    pub host_visible: bool,
    /// Whether kernels can access the memory.
    pub kernel_visible: bool,
}

/// Limits on launches and allocations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// Maximum number of groups in a launch, per dimension.
    pub groups: [u64; 3],
    /// Maximum number of work-items in a group, per dimension.
    pub group_size: [u32; 3],
    /// Maximum number of work-items in a group, in total.
    pub group_items: u32,
    /// Maximum work-group memory in bytes.
    pub shared_bytes: u64,
    /// Maximum size of an allocation in bytes, if known.
    pub allocation_bytes: Option<u64>,
}

impl Default for Limits {
    /// A single work-item and no work-group memory: the limits of a device without work-groups.
    fn default() -> Self {
        Self { groups: [1; 3], group_size: [1; 3], group_items: 1, shared_bytes: 0, allocation_bytes: None }
    }
}

/// Everything that is known about a device before it is opened, including why it may be unusable.
///
/// ```
/// # use runtime_core::{DeviceInfo, DeviceKind, Runtime, abi};
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// // Which accelerators can be opened, and compute in f64?
/// let fits = |info: &DeviceInfo| {
///     info.kind == DeviceKind::Accelerator
///         && info.unavailable_reason.is_none()
///         && info.capabilities.has(abi::CAP_F64)
/// };
/// let found: Vec<_> = runtime.devices().into_iter().filter(fits).map(|info| info.id.to_string()).collect();
/// assert_eq!(found, ["null:0", "null:1", "null:0.0", "null:0.1"]);
/// ```
#[derive(Clone, Debug)]
pub struct DeviceInfo {
    /// The identity of the device. Backends leave `target` empty; core fills it in.
    pub id: DeviceId,
    /// The kind of the device.
    pub kind: DeviceKind,
    /// Human-readable name, e.g. `NVIDIA H200`.
    pub name: String,
    /// Architecture, e.g. `sm_90`, `x86-64-v4`, if known.
    pub arch: Option<String>,
    /// Name of the vendor, if known.
    pub vendor: Option<String>,
    /// Driver version, as the driver reports it, if known.
    pub driver_version: Option<String>,
    /// Why the device cannot be opened; `None` if it can.
    pub unavailable_reason: Option<String>,
    /// Stable identifier, if the driver has one.
    pub uuid: Option<[u8; 16]>,
    /// PCI address `dddd:bb:dd.f`, if there is one.
    pub pci_address: Option<String>,
    /// `DLDeviceType` of the device's memory.
    pub dlpack_type: i32,
    /// Compute units (cores, SMs, clusters), if known.
    pub compute_units: Option<u32>,
    /// Maximum clock of the compute units in Hz, if known.
    pub clock_hz: Option<u64>,
    /// Capabilities.
    pub capabilities: Capabilities,
    /// Limits.
    pub limits: Limits,
    /// Memory spaces; the first is the default.
    pub spaces: Vec<MemorySpace>,
    /// Accepted code formats, in order of preference.
    pub formats: Vec<CodeFormat>,
    /// Further attributes.
    pub properties: Options,
    /// The options that the device was opened with; empty before. Some change what code is lowered to.
    pub open_options: Options,
}

impl DeviceInfo {
    /// A description with all other fields empty, for a backend to fill in.
    #[must_use]
    pub fn new(kind: DeviceKind, index: u32, name: &str) -> Self {
        Self {
            id: DeviceId { target: String::new(), index, sub: None },
            kind,
            name: name.to_owned(),
            arch: None,
            vendor: None,
            driver_version: None,
            unavailable_reason: None,
            uuid: None,
            pci_address: None,
            dlpack_type: 1,
            compute_units: None,
            clock_hz: None,
            capabilities: Capabilities::default(),
            limits: Limits::default(),
            spaces: Vec::new(),
            formats: Vec::new(),
            properties: Options::new(),
            open_options: Options::new(),
        }
    }

    /// Whether an OpenCL or Vulkan device is a GPU, by its property `type`.
    #[must_use]
    pub fn is_gpu(&self) -> bool {
        let types = ["gpu", "discrete", "integrated", "virtual"];
        self.properties.texts("type").any(|kind| types.contains(&kind))
    }

    /// Whether the device accepts code of this format: to load, or to flash if it is embedded.
    #[must_use]
    pub fn accepts(&self, format: &CodeFormat) -> bool {
        self.formats.contains(format)
    }

    /// The names of the accepted formats, in order of preference.
    #[must_use]
    pub fn format_names(&self) -> Vec<&str> {
        self.formats.iter().map(CodeFormat::as_str).collect()
    }

    /// The index of the memory space of this name.
    ///
    /// # Errors
    /// `InvalidArgument`, with the names that exist.
    pub(crate) fn space_index(&self, name: &str) -> Result<usize> {
        let names: Vec<_> = self.spaces.iter().map(|space| space.name.as_str()).collect();
        names.iter().position(|known| *known == name).ok_or_else(|| {
            Error::invalid(format!("no memory space \"{name}\"; {}", did_you_mean(name, &names)))
        })
    }
}

/// Free and total bytes of a memory space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryUsage {
    /// Free bytes.
    pub free_bytes: u64,
    /// Total bytes.
    pub total_bytes: u64,
}

/// Current clocks, temperature, power and energy; `None` for values that the device does not report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Telemetry {
    /// Clock of the compute units in Hz.
    pub clock_hz: Option<u64>,
    /// Clock of the memory in Hz.
    pub memory_clock_hz: Option<u64>,
    /// Temperature in thousandths of a degree Celsius.
    pub temperature_millicelsius: Option<i64>,
    /// Power in milliwatts.
    pub power_milliwatts: Option<u64>,
    /// Energy in microjoules since an arbitrary point in time.
    pub energy_microjoules: Option<u64>,
}
