//! Counters of a chip, read by functions of the program that is measured: only its own code reaches a processing element's counters.
//!
//! A program that counts has two more kernels, which run on each cluster of the device. `runtime_counters_start` gets
//! `struct { uint64_t count; struct { uint64_t slot, event; } slots[7]; }` and starts these events from 0 on every processing element.
//! `runtime_counters_stop` gets `struct { uint64_t (*values)[16]; }`, stops, and writes a row of values for each slot.

#![allow(unsafe_code, reason = "runs kernels")]

use std::ops::Range;
use std::sync::Arc;

use runtime_core::device::CounterInfo;
use runtime_core::{Error, ErrorKind, Result};

use super::command::Command;
use super::memory::{Memory, Space};
use super::open_chip::OpenChip;
use crate::config::Arch;
use crate::counters::{CLUSTERS, CounterSource, ELEMENTS, Event, RawValues, Reduction, Request, SLOTS};
use crate::unavailable;

const START: &str = "runtime_counters_start";
const STOP: &str = "runtime_counters_stop";
const WORD_BYTES: usize = 8;
/// Size of the values of a cluster.
const CLUSTER_BYTES: usize = SLOTS.len() * ELEMENTS * WORD_BYTES;

/// Every event with every named reduction. Indices are valid too.
pub(super) fn list(arch: Arch) -> Vec<CounterInfo> {
    let reductions = [Reduction::Sum, Reduction::Avg, Reduction::Min, Reduction::Max];
    let pairs =
        reductions.iter().flat_map(|clusters| reductions.iter().map(move |elements| (clusters, elements)));
    let requests = Event::all(arch).flat_map(|event| {
        pairs.clone().map(move |(clusters, elements)| Request {
            event,
            clusters: *clusters,
            elements: *elements,
        })
    });
    requests.map(describe).collect()
}

fn describe(request: Request) -> CounterInfo {
    let event = request.event;
    CounterInfo {
        name: request.to_string(),
        description: format!("{}; cluster and pe also take an index", event.description()),
        unit: event.unit().map(str::to_owned),
        unavailable_reason: None,
    }
}

/// Counts by the functions of the program that ran last.
#[derive(Debug)]
pub(super) struct Counting {
    chip: Arc<OpenChip>,
    clusters: Range<u32>,
    command: Command,
    started: Option<Started>,
}

/// The program that counts, the number of its slots, and memory for their values.
#[derive(Debug)]
struct Started {
    module: usize,
    slots: usize,
    values: Memory,
}

impl Counting {
    pub(super) fn new(chip: &Arc<OpenChip>, clusters: Range<u32>) -> Self {
        let command = Command::new(&chip.chip);
        Self { chip: Arc::clone(chip), clusters, command, started: None }
    }

    fn run(&mut self, module: usize, kernel: &str, cluster: u32, arguments: &[u8]) -> Result<()> {
        // SAFETY: the program provides this function with these arguments, and the memory in them lives until it ends.
        unsafe { self.chip.modules.execute((module, kernel), [cluster], &mut self.command, arguments) }
    }
}

impl CounterSource for Counting {
    fn start(&mut self, slots: &[(u8, Event)]) -> Result<()> {
        self.started = None;
        let module = self.chip.modules.last_used().ok_or_else(|| {
            unavailable("no program is loaded; counters are read by the program that ran last")
        })?;
        for function in [START, STOP] {
            self.chip.modules.find(module, function).map_err(|error| match error.kind() {
                ErrorKind::NotFound => unavailable(format!(
                    "the program has no function {function}; link one into it, as docs/mppa.md describes"
                )),
                _ => error,
            })?;
        }
        let values = Memory::allocate(&self.chip.chip, Space::Chip, (CLUSTERS * CLUSTER_BYTES) as u64)?;
        values.write(0, vec![0; CLUSTERS * CLUSTER_BYTES])?;
        let pairs = slots.iter().flat_map(|(slot, event)| [u64::from(*slot), u64::from(event.number())]);
        let words: Vec<u64> = std::iter::once(slots.len() as u64).chain(pairs).collect();
        let arguments: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        for cluster in self.clusters.clone() {
            self.run(module, START, cluster, &arguments)?;
        }
        self.started = Some(Started { module, slots: slots.len(), values });
        Ok(())
    }

    fn stop(&mut self) -> Result<Vec<RawValues>> {
        let Started { module, slots, values } =
            self.started.take().ok_or_else(|| Error::invalid("the counters were not started"))?;
        for cluster in self.clusters.clone() {
            let address = values.kernel_address() + u64::from(cluster) * CLUSTER_BYTES as u64;
            self.run(module, STOP, cluster, &address.to_le_bytes())?;
        }
        let bytes = values.read(0, vec![0; CLUSTERS * CLUSTER_BYTES])?;
        Ok((0..slots).map(|slot| raw_values(&bytes, slot)).collect())
    }

    fn is_simulated(&self) -> bool {
        self.chip.chip.is_simulated()
    }
}

/// The values of a slot, of all clusters.
fn raw_values(bytes: &[u8], slot: usize) -> RawValues {
    std::array::from_fn(|cluster| {
        std::array::from_fn(|element| {
            let at = cluster * CLUSTER_BYTES + (slot * ELEMENTS + element) * WORD_BYTES;
            let word = bytes.get(at..at + WORD_BYTES).and_then(|word| word.try_into().ok());
            word.map_or(0, u64::from_le_bytes)
        })
    })
}
