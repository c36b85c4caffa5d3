//! The backend, its only device, and the sub-devices.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use runtime_core::backend::{
    Allocate, Backend, CounterSet, Device, HostBytesMut, Log, NoGraph, OptionSpec, Source,
};
use runtime_core::code::{CompiledCode, Fit};
use runtime_core::device::{CounterInfo, MemoryUsage, Telemetry, ThrottleReasons};
use runtime_core::{DeviceInfo, Error, ErrorKind, Options, QueueOptions, Result};

use crate::architecture::Architecture;
use crate::counters::{self, HostCounters};
use crate::describe::{describe, describe_architecture, node_space};
use crate::memory::HostBuffer;
use crate::module::HostModule;
use crate::options::{self, SERIAL_ITEMS};
use crate::pool::Pool;
use crate::queue::HostQueue;
use crate::telemetry::{SYSFS, Sensors};
use crate::throttle_counters::ThrottleCounters;
use crate::topology::{Node, SYSTEM, Topology};
use crate::{identity, native_code, platform};

/// The backend `host`: the processor that the program runs on.
#[derive(Debug)]
pub struct HostBackend {
    log: Log,
    epoch: Instant,
    /// The folder in which the system describes its NUMA nodes.
    nodes: PathBuf,
    /// Where the system describes its sensors.
    sysfs: PathBuf,
}

/// The opened host, or one of its nodes.
#[derive(Debug)]
pub struct HostDevice {
    log: Log,
    /// Zero of the timestamps.
    epoch: Instant,
    queues: AtomicU32,
    /// Prefix of the names of the queues' threads.
    name: String,
    pool: Arc<Pool>,
    /// The memory spaces: a node's memory, or `None` for memory of any node.
    spaces: Vec<Option<Node>>,
    sensors: Sensors,
    throttle_counters: ThrottleCounters,
}

impl HostDevice {
    fn new(
        backend: &HostBackend,
        (name, options): (String, &Options),
        cpus: &[usize],
        spaces: Vec<Option<Node>>,
    ) -> Self {
        let pool = Pool::new(format!("{name}-range"), cpus);
        let pool = Arc::new(if options.flag(SERIAL_ITEMS) { pool.without_helpers() } else { pool });
        let sensors = Sensors::new(&backend.sysfs, cpus);
        let throttle_counters = ThrottleCounters::new(&backend.sysfs, cpus);
        Self {
            log: backend.log,
            epoch: backend.epoch,
            queues: AtomicU32::new(0),
            name,
            pool,
            spaces,
            sensors,
            throttle_counters,
        }
    }

    fn space(&self, space: u32) -> Result<Option<&Node>> {
        self.spaces.get(space as usize).map(Option::as_ref).ok_or_else(|| {
            let names = self.spaces.iter().map(|node| node.as_ref().map_or("device".to_owned(), node_space));
            let names: Vec<_> = names.collect();
            Error::invalid(format!("memory space {space} does not exist; there are {}", names.join(", ")))
        })
    }
}

// SAFETY: buffers own or borrow their memory whole, queues run their work in order, and the program guarantees what its code does.
#[allow(unsafe_code, reason = "guarantees that the backend is sound")]
unsafe impl Backend for HostBackend {
    const NAME: &'static str = "host";
    type Device = HostDevice;

    unsafe fn open(log: Log) -> Result<Self> {
        Ok(Self { log, epoch: Instant::now(), nodes: PathBuf::from(SYSTEM), sysfs: PathBuf::from(SYSFS) })
    }

    fn options() -> Vec<OptionSpec> {
        options::all()
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        Ok(describe(&Topology::read(&self.nodes), &self.sysfs))
    }

    fn architecture(&self, architecture: &str) -> Result<DeviceInfo> {
        Ok(describe_architecture(Architecture::named(architecture)?))
    }

    fn compile_for(&self, architecture: &str, source: &Source<'_>) -> Result<CompiledCode> {
        native_code::compile(source, Architecture::named(architecture)?, self.log)
    }

    fn open_device(&self, index: u32, sub: Option<u32>, options: &Options) -> Result<HostDevice> {
        if index != 0 {
            let message = format!("there is no host:{index}; the only device is \"host:0\"");
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        let topology = Topology::read(&self.nodes);
        let Some(sub) = sub else {
            let spaces = std::iter::once(None).chain(topology.with_memory().cloned().map(Some)).collect();
            return Ok(HostDevice::new(self, ("rt-host".to_owned(), options), &[], spaces));
        };
        let node = topology.with_processors().find(|node| node.id == sub).ok_or_else(|| {
            let valid: Vec<_> =
                topology.with_processors().map(|node| format!("host:0.{}", node.id)).collect();
            let valid = if valid.is_empty() { "open \"host:0\"".to_owned() } else { valid.join(", ") };
            Error::new(ErrorKind::NotFound, format!("host:0 has no sub-device {sub}; {valid}"))
        })?;
        let own = (node.memory_usage().total_bytes > 0).then(|| node.clone());
        Ok(HostDevice::new(self, (format!("rt-host.{sub}"), options), &node.cpus, vec![own]))
    }
}

impl Device for HostDevice {
    type Buffer = HostBuffer;
    type Module = HostModule;
    type Queue = HostQueue;
    type Graph = NoGraph<HostBuffer>;

    const HUGE_PAGES: bool = true;

    fn memory_usage(&self, space: u32) -> Result<MemoryUsage> {
        Ok(self.space(space)?.map_or_else(platform::memory_usage, Node::memory_usage))
    }

    fn telemetry(&self) -> Result<Telemetry> {
        self.sensors.read()
    }

    fn throttle_reasons(&self) -> Result<ThrottleReasons> {
        self.throttle_counters.read()
    }

    fn allocate(&self, request: &Allocate<'_, HostQueue>) -> Result<HostBuffer> {
        let Allocate { bytes, alignment_bytes, huge_pages, .. } = *request;
        match self.space(request.space)? {
            None => HostBuffer::allocate(bytes, alignment_bytes, huge_pages),
            Some(node) => HostBuffer::allocate_on(node.id, bytes, alignment_bytes, huge_pages),
        }
    }

    fn import_host(&self, space: u32, memory: HostBytesMut) -> Result<HostBuffer> {
        self.space(space)?;
        Ok(HostBuffer::import(memory))
    }

    fn load(&self, source: &Source<'_>) -> Result<HostModule> {
        HostModule::load(source, self.log)
    }

    fn compiler_identity(&self, source: &Source<'_>) -> Result<String> {
        identity::of(source)
    }

    fn compile(&self, source: &Source<'_>) -> Result<CompiledCode> {
        native_code::compile(source, Architecture::Native, self.log)
    }

    fn fits(&self, code: &Source<'_>) -> Result<Fit> {
        native_code::fits(code)
    }

    fn counters(&self) -> Result<Vec<CounterInfo>> {
        Ok(counters::list())
    }

    fn open_counters(&self, names: &[&str]) -> Result<Box<dyn CounterSet>> {
        Ok(Box::new(HostCounters::open(names)?))
    }

    /// Ignores the priority: scheduling is up to the operating system.
    fn open_queue(&self, _options: &QueueOptions) -> Result<HostQueue> {
        let number = self.queues.fetch_add(1, Ordering::Relaxed);
        Ok(HostQueue::new(format!("{}-{number}", self.name), self.epoch, self.log, Arc::clone(&self.pool)))
    }
}

#[cfg(test)]
mod tests;
