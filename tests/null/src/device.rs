//! The device list, and opened devices.

use std::sync::Arc;
use std::time::{Duration, Instant};

use runtime_core::backend::{Allocate, CounterSet, Device, DeviceBytes, GraphNode, Program, Source};
use runtime_core::code::{CompiledCode, Fit, Register, RunReport};
use runtime_core::device::{
    Capabilities, CounterInfo, Limits, MemorySpace, MemoryUsage, Telemetry, ThrottleReasons,
};
use runtime_core::{DeviceInfo, DeviceKind, Error, ErrorKind, Options, QueueOptions, Result, abi};

use crate::counters::{self, NullCounters};
use crate::disturbance::Disturbances;
use crate::embedded::Embedded;
use crate::fault::{Faults, OnDrop};
use crate::graph::NullGraph;
use crate::memory::{NullBuffer, Usage};
use crate::module::{self, NullKernel, NullModule};
use crate::queue::NullQueue;
use crate::timeline::DeviceQueues;

const SPACE_BYTES: u64 = 2 << 30;
/// Clock of the simulated processor.
const CLOCK_HZ: u64 = 1_000_000_000;
/// Energy that a launch is said to use, and the step in which the energy counter advances.
const LAUNCH_MICROJOULES: u64 = 250;
const ENERGY_STEP_MICROJOULES: u64 = 1000;
const ALIGNMENT_BYTES: u64 = 256;
const UNUSABLE: &str = "it is only listed, as an example of a device that cannot be opened; use null:0";
const CAPABILITIES: u64 = abi::CAP_TIMESTAMPS
    | abi::CAP_WAIT_FOR
    | abi::CAP_NOOP_KERNEL
    | abi::CAP_GROUPS
    | abi::CAP_TELEMETRY
    | abi::CAP_PEERS
    | abi::CAP_F64
    | abi::CAP_IMPORT_DEVICE_MEMORY
    | abi::CAP_COPY_2D
    | abi::CAP_COUNTERS
    | abi::CAP_HOLD;

/// The device that code is compiled for without a device.
pub(crate) fn architecture(name: &str) -> Result<DeviceInfo> {
    match name {
        "" | "null" => Ok(describe(DeviceKind::Accelerator, 0, None)),
        other => Err(Error::new(
            ErrorKind::NotFound,
            format!("unknown architecture \"{other}\"; the only one is \"null\""),
        )),
    }
}

/// All devices, whole ones before their sub-devices.
pub(crate) fn list() -> Vec<DeviceInfo> {
    let mut unavailable = describe(DeviceKind::Accelerator, 3, None);
    unavailable.unavailable_reason = Some(UNUSABLE.to_owned());
    vec![
        describe(DeviceKind::Accelerator, 0, None),
        describe(DeviceKind::Accelerator, 1, None),
        describe(DeviceKind::Embedded, 2, None),
        unavailable,
        describe(DeviceKind::Accelerator, 0, Some(0)),
        describe(DeviceKind::Accelerator, 0, Some(1)),
    ]
}

fn describe(kind: DeviceKind, index: u32, sub: Option<u32>) -> DeviceInfo {
    let mut info = DeviceInfo::new(kind, index, "Null device");
    info.id.sub = sub;
    info.arch = Some("null".to_owned());
    info.vendor = Some("nobody".to_owned());
    info.driver_version = Some(env!("CARGO_PKG_VERSION").to_owned());
    let uuid = [u32::from_le_bytes(*b"null"), index, sub.map_or(0, |sub| sub + 1), 0];
    info.uuid = Some(std::array::from_fn(|byte| uuid[byte / 4].to_le_bytes()[byte % 4]));
    // DLPack's kDLExtDev: a device type that DLPack does not define.
    info.dlpack_type = 12;
    info.compute_units = Some(if sub.is_some() { 1 } else { 2 });
    info.clock_hz = Some(CLOCK_HZ);
    info.formats = module::FORMATS.map(Into::into).to_vec();
    info.properties = Options::new().with("simulated", true);
    if kind == DeviceKind::Embedded {
        info.spaces = vec![space("device", false)];
        return info;
    }
    info.capabilities = Capabilities(match (index, sub) {
        (1, _) => CAPABILITIES | abi::CAP_GRAPHS,
        (_, Some(0)) => CAPABILITIES | abi::CAP_INLINE,
        (_, Some(_)) => CAPABILITIES & !abi::CAP_WAIT_FOR,
        _ => CAPABILITIES,
    });
    info.limits = Limits {
        groups: [1 << 20, 1 << 16, 1 << 16],
        group_size: [1024, 1024, 64],
        group_items: 1024,
        shared_bytes: 48 << 10,
        allocation_bytes: Some(SPACE_BYTES),
    };
    info.properties.push("counter_clock_hz", CLOCK_HZ.cast_signed());
    info.spaces = vec![space("device", false), space("pinned", true), space("shared", true)];
    info
}

fn space(name: &str, host_visible: bool) -> MemorySpace {
    MemorySpace {
        name: name.to_owned(),
        total_bytes: Some(SPACE_BYTES),
        alignment_bytes: ALIGNMENT_BYTES,
        host_visible,
        kernel_visible: true,
    }
}

/// An opened device.
#[derive(Debug)]
pub struct NullDevice {
    faults: Arc<Faults>,
    disturbances: Disturbances,
    info: DeviceInfo,
    usage: Vec<Arc<Usage>>,
    queues: DeviceQueues,
    opened: Instant,
    embedded: Option<Embedded>,
    /// Whether its code is compiled before it is loaded.
    compiles: bool,
    _close: OnDrop,
}

impl NullDevice {
    /// Opens device `index`, or its sub-device.
    pub(crate) fn open(index: u32, sub: Option<u32>, options: &Options) -> Result<Self> {
        let faults = Faults::new(options)?;
        faults.call("open_device")?;
        let info = list().into_iter().find(|info| info.id.index == index && info.id.sub == sub);
        let info = info.ok_or_else(|| Error::new(ErrorKind::NotFound, "there are 0 to 3, 0.0 and 0.1"))?;
        if let Some(reason) = info.unavailable_reason {
            return Err(Error::new(ErrorKind::Unavailable, reason));
        }
        Ok(Self {
            usage: info.spaces.iter().map(|_| Usage::new(SPACE_BYTES)).collect(),
            embedded: (info.kind == DeviceKind::Embedded).then(Embedded::default),
            info,
            queues: DeviceQueues::default(),
            opened: Instant::now(),
            compiles: options.flag("compiler"),
            _close: OnDrop::new(&faults, "close_device"),
            disturbances: Disturbances::new(options)?,
            faults,
        })
    }

    fn space(&self, space: u32) -> Result<&Arc<Usage>> {
        self.usage.get(space as usize).ok_or_else(|| {
            Error::invalid(format!("space {space} does not exist; valid: 0 to {}", self.usage.len() - 1))
        })
    }

    fn accelerator(&self, what: &str) -> Result<()> {
        match self.embedded {
            Some(_) => Err(Error::unsupported(format!("{what} on an embedded device is not supported"))),
            None => Ok(()),
        }
    }

    fn embedded(&self, what: &str) -> Result<&Embedded> {
        self.embedded
            .as_ref()
            .ok_or_else(|| Error::unsupported(format!("{what} on an accelerator is not supported")))
    }
}

impl Device for NullDevice {
    type Buffer = NullBuffer;
    type Module = NullModule;
    type Queue = NullQueue;
    type Graph = NullGraph;

    fn memory_usage(&self, space: u32) -> Result<MemoryUsage> {
        self.faults.call("memory_usage")?;
        Ok(self.space(space)?.now())
    }

    fn peer_access(&self, other: &Self) -> Result<bool> {
        self.faults.call("peer_access")?;
        Ok(self.embedded.is_none() && other.embedded.is_none())
    }

    fn telemetry(&self) -> Result<Telemetry> {
        self.faults.call("telemetry")?;
        self.accelerator("telemetry")?;
        Ok(Telemetry {
            clock_hz: self.info.clock_hz,
            temperature_millicelsius: Some(42_000),
            energy_microjoules: Some(
                self.faults.launches() * LAUNCH_MICROJOULES / ENERGY_STEP_MICROJOULES
                    * ENERGY_STEP_MICROJOULES,
            ),
            ..Telemetry::default()
        })
    }

    fn throttle_reasons(&self) -> Result<ThrottleReasons> {
        self.faults.call("throttle_reasons")?;
        self.accelerator("throttle_reasons")?;
        Ok(self.disturbances.throttle_reasons())
    }

    fn processes(&self) -> Result<Vec<u32>> {
        self.faults.call("processes")?;
        self.accelerator("processes")?;
        Ok(self.disturbances.processes().to_vec())
    }

    fn allocate(&self, request: &Allocate<'_, NullQueue>) -> Result<NullBuffer> {
        self.faults.call("allocate")?;
        self.accelerator("allocate")?;
        let usage = self.space(request.space)?;
        self.faults.allocate(self.usage.iter().map(|usage| usage.bytes()).sum(), request.bytes)?;
        let alignment = request.alignment_bytes.max(usize::try_from(ALIGNMENT_BYTES).unwrap_or(1));
        let host_visible = self.info.spaces[request.space as usize].host_visible;
        NullBuffer::allocate(request.bytes, alignment, usage, host_visible)
    }

    fn free(&self, buffer: NullBuffer, _queue: Option<&NullQueue>) {
        // Work in flight holds the memory, so the buffer can be dropped now.
        self.faults.enter("free");
        drop(buffer);
    }

    fn import_device_memory(&self, space: u32, memory: DeviceBytes) -> Result<NullBuffer> {
        self.faults.call("import_device_memory")?;
        self.accelerator("import_device_memory")?;
        self.space(space)?;
        NullBuffer::import_device_memory(memory, self.info.spaces[space as usize].host_visible)
    }

    fn load(&self, source: &Source<'_>) -> Result<NullModule> {
        self.faults.call("load")?;
        self.accelerator("load")?;
        NullModule::load(source, &self.faults)
    }

    fn compiler_identity(&self, _source: &Source<'_>) -> Result<String> {
        self.faults.call("compiler_identity")?;
        match self.compiles {
            true => Ok(concat!("null compiler ", env!("CARGO_PKG_VERSION")).to_owned()),
            false => Err(Error::unsupported("the device option \"compiler\" is not set")),
        }
    }

    fn compile(&self, source: &Source<'_>) -> Result<CompiledCode> {
        self.faults.call("compile")?;
        module::compile(source)
    }

    fn fits(&self, code: &Source<'_>) -> Result<Fit> {
        self.faults.call("fits")?;
        module::fits(code)
    }

    fn open_queue(&self, _options: &QueueOptions) -> Result<NullQueue> {
        self.faults.call("open_queue")?;
        self.accelerator("open_queue")?;
        Ok(NullQueue::open(&self.faults, &self.queues, self.opened))
    }

    /// There is no driver: any handle but 0 stands for a queue of the program.
    fn open_native_queue(&self, native: u64) -> Result<NullQueue> {
        self.faults.call("open_native_queue")?;
        self.accelerator("queue_from_native")?;
        if native == 0 {
            return Err(Error::invalid("0 is no queue of the null driver"));
        }
        Ok(NullQueue::open(&self.faults, &self.queues, self.opened))
    }

    fn instantiate(&self, nodes: &[GraphNode<'_, NullBuffer, NullKernel>]) -> Result<NullGraph> {
        self.faults.call("instantiate")?;
        if !self.info.capabilities.has(abi::CAP_GRAPHS) {
            return Err(Error::unsupported("instantiate is not supported"));
        }
        NullGraph::new(nodes, &self.faults)
    }

    fn counters(&self) -> Result<Vec<CounterInfo>> {
        self.faults.call("counters")?;
        self.accelerator("counters")?;
        Ok(counters::list())
    }

    fn open_counters(&self, names: &[&str]) -> Result<Box<dyn CounterSet>> {
        self.faults.call("open_counters")?;
        self.accelerator("counters")?;
        Ok(Box::new(NullCounters::open(&self.faults, names)?))
    }

    fn flash(&self, image: &Source<'_>, program: &Program<'_>) -> Result<()> {
        self.faults.call("flash")?;
        self.embedded("flash")?.flash(&NullModule::load(image, &self.faults)?, program)
    }

    fn run(&self, deadline: Duration) -> Result<RunReport> {
        self.faults.call("run")?;
        self.embedded("run")?.run(deadline, CLOCK_HZ)
    }

    fn read(&self, tensor: u32, offset: u64, destination: &mut [u8]) -> Result<()> {
        self.faults.call("read")?;
        self.embedded("read")?.read(tensor, offset, destination)
    }

    fn read_memory(&self, address: u64, destination: &mut [u8]) -> Result<()> {
        self.faults.call("inspect")?;
        self.embedded("read memory")?.read_memory(address, destination)
    }

    fn registers(&self) -> Result<Vec<Register>> {
        self.faults.call("inspect")?;
        self.embedded("read registers")?.registers()
    }
}
