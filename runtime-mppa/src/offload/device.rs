//! A chip, or one of its clusters, as a device.

use std::sync::Arc;

use runtime_core::backend::{Allocate, CounterSet, Device, NoGraph, OptionSpec, Source};
use runtime_core::device::CounterInfo;
use runtime_core::{Error, ErrorKind, QueueOptions, Result};

use super::counting::{self, Counting};
use super::host_module::{HOST_MODULE, HostCode};
use super::kernel::{AddedModule, OffloadModule, Runs};
use super::loaded_modules::Code;
use super::memory::{MIN_ALIGNMENT_BYTES, Memory, OffloadBuffer, Space};
use super::open_chip::OpenChip;
use super::queue::OffloadQueue;
use crate::config::Arch;
use crate::counters::{CLUSTER_COUNT, Counters, Request};
use crate::elf::Elf;

/// Clusters that a kernel of a module runs on, in a module option.
const CLUSTERS_OPTION: &str = "clusters";

/// The options of modules.
pub(crate) fn module_options() -> Vec<OptionSpec> {
    vec![OptionSpec::module(
        CLUSTERS_OPTION,
        1,
        "Clusters that the kernels of an ELF file run on, one after the other, with the same arguments: 1 to 5, on whole chips.",
    )]
}

/// An opened chip or cluster.
#[derive(Debug)]
pub(crate) struct OffloadDevice {
    chip: Arc<OpenChip>,
    arch: Arch,
    /// `None`: the whole chip.
    cluster: Option<u32>,
}

impl OffloadDevice {
    pub(crate) const fn new(chip: Arc<OpenChip>, arch: Arch, cluster: Option<u32>) -> Self {
        Self { chip, arch, cluster }
    }

    /// The memory of a space of the device's list: the chip's, then that of each of its clusters.
    fn space(&self, number: u32) -> Result<Space> {
        match (number, self.cluster) {
            (0, _) => Ok(Space::Chip),
            (1, Some(cluster)) => Ok(Space::Cluster(cluster)),
            (local, None) if local <= CLUSTER_COUNT => Ok(Space::Cluster(local - 1)),
            _ => Err(Error::invalid(format!("no memory space {number}"))),
        }
    }

    /// The clusters that kernels of a module run on.
    fn clusters(&self, source: &Source<'_>) -> Result<std::ops::Range<u32>> {
        let count = source.options.integer_within(CLUSTERS_OPTION, 1, 1..=i64::from(CLUSTER_COUNT))?;
        let count = u32::try_from(count).unwrap_or(1);
        match self.cluster {
            None => Ok(0..count),
            Some(cluster) if count == 1 => Ok(cluster..cluster + 1),
            Some(_) => Err(Error::invalid(format!(
                "option \"{CLUSTERS_OPTION}\" is {count}, but this device is a single cluster; open the whole chip"
            ))),
        }
    }

    /// The code of a source, and how its functions run.
    #[allow(unsafe_code, reason = "core passes native code only from a caller who vouches for it")]
    fn code(&self, source: &Source<'_>) -> Result<(Code, Runs)> {
        let clusters = self.clusters(source)?;
        match source.format {
            "elf" => {
                let code = Elf::new(source.bytes()?.into_owned(), self.arch)
                    .map_err(|error| Error::new(ErrorKind::CompileFailed, error.message()))?;
                Ok((Code::Elf(code), Runs::OnClusters(clusters)))
            }
            HOST_MODULE if clusters == (0..1) && self.cluster.is_none() => {
                // SAFETY: core passes native code only from a caller who vouches for it.
                let code = unsafe { HostCode::new(source.bytes()?.into_owned()) };
                Ok((Code::Host(code), Runs::InThisProcess))
            }
            HOST_MODULE => Err(Error::unsupported(format!(
                "a host-driven module chooses its clusters itself; open the whole chip, without option \"{CLUSTERS_OPTION}\""
            ))),
            format => Err(Error::unsupported(format!(
                "code in format \"{format}\" is not supported by the offload library; link an ELF file"
            ))),
        }
    }
}

impl Device for OffloadDevice {
    type Buffer = OffloadBuffer;
    type Module = OffloadModule;
    type Queue = OffloadQueue;
    type Graph = NoGraph<OffloadBuffer>;

    fn allocate(&self, request: &Allocate<'_, OffloadQueue>) -> Result<OffloadBuffer> {
        if request.huge_pages {
            return Err(Error::unsupported("huge_pages are not supported by this device"));
        }
        let alignment = (request.alignment_bytes as u64).max(MIN_ALIGNMENT_BYTES);
        if !alignment.is_power_of_two() {
            return Err(Error::invalid(format!("an alignment of {alignment} bytes is not a power of two")));
        }
        let space = self.space(request.space)?;
        Memory::aligned(&self.chip.chip, space, request.bytes as u64, alignment)
            .map(|memory| OffloadBuffer(Arc::new(memory)))
    }

    fn load(&self, source: &Source<'_>) -> Result<OffloadModule> {
        let (code, runs) = self.code(source)?;
        let number = self.chip.modules.add(code)?;
        let code = Arc::new(AddedModule { chip: Arc::clone(&self.chip), number });
        self.chip.modules.prepare(number)?;
        Ok(OffloadModule { code, runs })
    }

    fn counters(&self) -> Result<Vec<CounterInfo>> {
        Ok(counting::list(self.arch))
    }

    fn open_counters(&self, names: &[&str]) -> Result<Box<dyn CounterSet>> {
        let requests =
            names.iter().map(|name| Request::parse(name, self.arch)).collect::<Result<Vec<_>>>()?;
        let clusters = self.cluster.map_or(0..CLUSTER_COUNT, |cluster| cluster..cluster + 1);
        let source = Counting::new(&self.chip, clusters);
        Ok(Box::new(Counters::new(source, &requests)))
    }

    fn open_queue(&self, _options: &QueueOptions) -> Result<OffloadQueue> {
        Ok(OffloadQueue::new(&self.chip))
    }
}
