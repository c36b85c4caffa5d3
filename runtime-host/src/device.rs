//! The backend and its one device.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use runtime_core::backend::{Allocate, Backend, Device, HostBytesMut, Log, NoGraph, QueueOptions, Source};
use runtime_core::{DeviceInfo, Error, ErrorKind, MemoryUsage, OptionSpec, Options, Result};

use crate::compile;
use crate::describe::describe;
use crate::memory::HostBuffer;
use crate::module::HostModule;
use crate::platform;
use crate::queue::HostQueue;

/// The backend `host`: the processor that the program runs on.
#[derive(Debug)]
pub struct HostBackend {
    log: Log,
    epoch: Instant,
}

/// The opened host.
#[derive(Debug)]
pub struct HostDevice {
    log: Log,
    /// Zero of the timestamps.
    epoch: Instant,
    queues: AtomicU32,
}

impl Backend for HostBackend {
    const NAME: &'static str = "host";
    type Device = HostDevice;

    fn open(log: Log) -> Result<Self> {
        Ok(Self { log, epoch: Instant::now() })
    }

    fn options() -> Vec<OptionSpec> {
        compile::options()
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        Ok(vec![describe()])
    }

    fn open_device(&self, index: u32, sub: Option<u32>, _options: &Options) -> Result<HostDevice> {
        match (index, sub) {
            (0, None) => Ok(HostDevice { log: self.log, epoch: self.epoch, queues: AtomicU32::new(0) }),
            (0, Some(sub)) => Err(Error::new(
                ErrorKind::NotFound,
                format!("host:0 has no sub-device {sub}; open \"host:0\""),
            )),
            _ => Err(Error::new(
                ErrorKind::NotFound,
                format!("there is no host:{index}; the only device is \"host:0\""),
            )),
        }
    }
}

impl Device for HostDevice {
    type Buffer = HostBuffer;
    type Module = HostModule;
    type Queue = HostQueue;
    type Graph = NoGraph<HostBuffer>;

    fn memory_usage(&self, space: u32) -> Result<MemoryUsage> {
        only_space(space)?;
        Ok(platform::memory_usage())
    }

    fn allocate(&self, request: &Allocate<'_, HostQueue>) -> Result<HostBuffer> {
        only_space(request.space)?;
        HostBuffer::allocate(request.bytes, request.alignment_bytes, request.huge_pages)
    }

    fn import(&self, space: u32, memory: HostBytesMut) -> Result<HostBuffer> {
        only_space(space)?;
        Ok(HostBuffer::import(memory))
    }

    fn load(&self, source: &Source<'_>) -> Result<HostModule> {
        HostModule::load(source, self.log)
    }

    /// The priority is left to the operating system.
    fn open_queue(&self, _options: &QueueOptions) -> Result<HostQueue> {
        let number = self.queues.fetch_add(1, Ordering::Relaxed);
        Ok(HostQueue::new(format!("rt-host-{number}"), self.epoch, self.log))
    }
}

fn only_space(space: u32) -> Result<()> {
    if space == 0 {
        return Ok(());
    }
    Err(Error::invalid(format!("memory space {space} does not exist; the host has one, \"device\"")))
}
