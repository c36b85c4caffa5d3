//! Bandwidth of each memory level.
//!
//! Reading, and copy and triad as STREAM defines them (J. D. `McCalpin` 1995): bytes read and written by the program, without those that
//! the hardware reads before it writes.

use runtime_core::code::ParallelRange;
use runtime_core::{Arg, CodeFormat, DType, DeviceInfo, LaunchConfig, ModuleSource, Result, Tensor};

use super::bench::{Bench, Timed};
use super::native::{native, unchecked};
use super::{Figure, MemoryLevel, Missing, Peak};
use crate::number_format::significant;

const MEMORY_WGSL: &str = include_str!("kernels/memory.wgsl");
const GROUP_MEMORY_WGSL: &str = include_str!("kernels/group_memory.wgsl");
const HOST_C: &str = include_str!("kernels/host.c");

/// Work-items of a group.
const GROUP: u32 = 256;
/// Groups per compute unit.
const GROUPS_PER_UNIT: u32 = 8;
/// Compute units of a device that does not tell them.
const UNITS: u32 = 32;
/// Floats of a vector of the portable kernels.
const VECTOR: usize = 4;
/// The smallest chunk in vectors, 16 KiB.
const MIN_CHUNK: usize = 4 * GROUP as usize;
/// Working sets that are measured on a device that does not tell its caches.
const PROBED_BYTES: [(&str, u64); 3] = [("4 MiB", 4 << 20), ("32 MiB", 32 << 20), ("64 MiB", 64 << 20)];
/// Sums of ones in `f32` are exact up to 2²⁴.
const EXACT: usize = 1 << 24;
/// The smallest array for the last level.
const MIN_DRAM_BYTES: u64 = 64 << 20;

/// A level to be measured.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Level {
    pub(super) name: String,
    /// As in [`MemoryLevel`].
    pub(super) keeps_bytes: Option<u64>,
    /// What all arrays together may occupy.
    pub(super) fits_bytes: u64,
    /// Each compute unit reads its own part.
    pub(super) is_private: bool,
}

fn property(info: &DeviceInfo, key: &str) -> Option<u64> {
    let bytes = info.properties.integer(key).and_then(|bytes| u64::try_from(bytes).ok());
    bytes.filter(|bytes| *bytes > 0)
}

/// The levels that a device's description tells, except work-group memory.
pub(super) fn levels(info: &DeviceInfo) -> Vec<Level> {
    let units = u64::from(info.compute_units.unwrap_or(1));
    let mut levels = Vec::new();
    let mut add = |name: &str, keeps_bytes: Option<u64>, fits_bytes: u64, is_private: bool| {
        levels.push(Level { name: name.to_owned(), keeps_bytes, fits_bytes, is_private });
    };
    let mut last_cache = 0;
    if info.accepts(&CodeFormat::C) {
        for (name, key, units) in
            [("L1", "l1d_bytes", units), ("L2", "l2_bytes", units), ("L3", "l3_bytes", 1)]
        {
            if let Some(bytes) = property(info, key) {
                last_cache = bytes * units;
                add(name, Some(last_cache), last_cache / 2, units > 1);
            }
        }
    } else if let Some(bytes) = property(info, "l2_bytes") {
        // The first-level caches of a GPU are not coherent, and are emptied between kernels.
        add("L1", Some(0), units * u64::from(GROUPS_PER_UNIT) * (MIN_CHUNK * VECTOR * 4) as u64, true);
        add("L2", Some(bytes), bytes / 2, false);
        last_cache = bytes;
    } else {
        for (name, bytes) in PROBED_BYTES {
            add(name, Some(bytes), bytes, false);
            last_cache = bytes / 2;
        }
    }
    let memory = info.spaces.first().and_then(|space| space.total_bytes).unwrap_or(u64::MAX);
    let allocation = info.limits.allocation_bytes.unwrap_or(u64::MAX);
    // STREAM asks for arrays of four times the last cache.
    let array = (4 * last_cache).max(MIN_DRAM_BYTES).min(memory / 12).min(allocation / 2);
    add("DRAM", None, 3 * array, false);
    levels
}

/// Measures the memory levels of a device.
pub(super) fn measure(bench: &Bench<'_>, peak: &mut Peak) {
    let info = bench.device.info();
    if !info.accepts(&CodeFormat::C) && info.limits.shared_bytes >= u64::from(GROUP) * 32 {
        match group_memory(bench) {
            Ok(level) => peak.memory.push(level),
            Err(error) => peak.missing.push(Missing::new("work-group memory", &error)),
        }
    }
    measure_levels(bench, &source(info), levels(info).into_iter(), peak);
}

/// Measures a level again, and what a working set of this size gets, wherever the device keeps it.
pub(super) fn measure_again(bench: &Bench<'_>, (level, working_set_bytes): (&str, u64), peak: &mut Peak) {
    let again = levels(bench.device.info()).into_iter().filter(|other| other.name == level);
    let probed = Level {
        name: probed_name(working_set_bytes),
        keeps_bytes: Some(working_set_bytes),
        fits_bytes: working_set_bytes,
        is_private: false,
    };
    measure_levels(bench, &source(bench.device.info()), again.chain([probed]), peak);
}

/// The name of a level that is called by its size.
fn probed_name(bytes: u64) -> String {
    format!("{} MiB", significant(bytes as f64 / f64::from(1 << 20)))
}

fn source(info: &DeviceInfo) -> ModuleSource {
    match info.accepts(&CodeFormat::C) {
        true => native(CodeFormat::C, HOST_C),
        false => unchecked(MEMORY_WGSL).constant("GROUP", GROUP),
    }
}

fn measure_levels(
    bench: &Bench<'_>,
    source: &ModuleSource,
    levels: impl Iterator<Item = Level>,
    peak: &mut Peak,
) {
    for level in levels {
        let mut measured = MemoryLevel {
            name: level.name.clone(),
            keeps_bytes: level.keeps_bytes,
            working_set_bytes: 0,
            read_gbytes_per_s: None,
            copy_gbytes_per_s: None,
            triad_gbytes_per_s: None,
        };
        for pattern in [Pattern::Read, Pattern::Copy, Pattern::Triad] {
            // The first-level caches of a GPU keep nothing that is written.
            if pattern != Pattern::Read && level.keeps_bytes == Some(0) {
                continue;
            }
            match measure_pattern(bench, source, (&level, pattern)) {
                Ok((figure, bytes)) => {
                    measured.working_set_bytes = measured.working_set_bytes.max(bytes);
                    *pattern.figure_of(&mut measured) = Some(figure);
                }
                Err(error) => {
                    peak.missing.push(Missing::new(&format!("{} of {}", pattern.name(), level.name), &error));
                }
            }
        }
        if measured.best_gbytes_per_s() > 0.0 {
            peak.memory.push(measured);
        }
    }
}

/// An access pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pattern {
    Read,
    Copy,
    Triad,
}

impl Pattern {
    const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Copy => "copy",
            Self::Triad => "triad",
        }
    }

    /// Number of arrays that are read or written throughout.
    const fn arrays(self) -> usize {
        match self {
            Self::Read => 1,
            Self::Copy => 2,
            Self::Triad => 3,
        }
    }

    const fn figure_of(self, level: &mut MemoryLevel) -> &mut Option<Figure> {
        match self {
            Self::Read => &mut level.read_gbytes_per_s,
            Self::Copy => &mut level.copy_gbytes_per_s,
            Self::Triad => &mut level.triad_gbytes_per_s,
        }
    }
}

/// How the work is divided.
struct Division {
    /// Floats of a chunk.
    chunk: usize,
    chunks: usize,
    /// Whether a chunk is read by another group in each round.
    shift: u32,
    config: LaunchConfig,
    is_host: bool,
    /// Repeating would find the data in a cache.
    is_single_round: bool,
    /// An element per work-item, in a single round.
    is_flat: bool,
}

impl Division {
    fn of(info: &DeviceInfo, level: &Level, pattern: Pattern) -> Self {
        let units = info.compute_units.unwrap_or(UNITS);
        let is_single_round = level.keeps_bytes.is_none();
        // Arrays of 4-byte elements; some devices bind no larger ones.
        let array = (level.fits_bytes / pattern.arrays() as u64)
            .min(property(info, "binding_bytes").unwrap_or(u64::MAX));
        let floats = usize::try_from(array / 4).unwrap_or(usize::MAX);
        if info.accepts(&CodeFormat::C) {
            let parts = if level.is_private || level.keeps_bytes.is_some() { 1 } else { 8 };
            let chunks = units as usize * parts;
            let chunk = (floats / chunks / 128).max(1) * 128;
            let config = ParallelRange::from(0..i64::try_from(chunks).unwrap_or(1)).grain(1).into();
            return Self { chunk, chunks, shift: 0, config, is_host: true, is_single_round, is_flat: false };
        }
        let groups = units as usize * GROUPS_PER_UNIT as usize;
        let (chunk, chunks) = match level.keeps_bytes {
            // One chunk per group, which is read in several rounds. Chunks are rounded down, so there may be more of them.
            Some(_) => {
                let chunk = floor_power(floats / VECTOR / groups).max(MIN_CHUNK);
                (chunk, (floats / VECTOR / chunk).clamp(1, 2 * groups))
            }
            None => (4 * MIN_CHUNK, (floats / VECTOR / (4 * MIN_CHUNK)).clamp(1, 65_535)),
        };
        let shift = if level.is_private || level.keeps_bytes.is_none() { 0 } else { 37 };
        let config = (u32::try_from(chunks).unwrap_or(1), GROUP).into();
        Self { chunk: chunk * VECTOR, chunks, shift, config, is_host: false, is_single_round, is_flat: false }
    }

    /// The same arrays, with an element per work-item.
    fn flat(self) -> Self {
        let groups = u32::try_from(self.floats() / VECTOR / GROUP as usize).unwrap_or(1);
        Self { config: (groups, GROUP).into(), is_flat: true, ..self }
    }

    /// As many as keep the sums exact.
    fn max_rounds(&self) -> u32 {
        let rounds = if self.is_flat || self.is_single_round { 1 } else { EXACT / self.sum(1).max(1) };
        u32::try_from(rounds).unwrap_or(u32::MAX).max(1)
    }

    fn floats(&self) -> usize {
        self.chunk * self.chunks
    }

    /// Floats of the result of `read`.
    fn sums(&self) -> usize {
        if self.is_host { 16 * self.chunks } else { self.chunks * GROUP as usize }
    }

    /// What each element of the result of `read` is, if all elements are 1.
    fn sum(&self, rounds: u32) -> usize {
        let per_round = if self.is_host { self.chunk / host_lanes() } else { self.chunk / GROUP as usize };
        per_round * rounds as usize
    }

    fn args<'a>(&self, [c, a, b]: [&'a Tensor; 3], rounds: u32, pattern: Pattern) -> Vec<Arg<'a>> {
        let factor = 3.0f32;
        if self.is_host {
            let chunk = i64::try_from(self.chunk).unwrap_or(i64::MAX);
            let scalars = [Arg::scalar(chunk), Arg::scalar(i64::from(rounds)), Arg::scalar(factor)];
            return [Arg::write(c), Arg::read(a), Arg::read(b)].into_iter().chain(scalars).collect();
        }
        let chunk = u32::try_from(self.chunk / VECTOR).unwrap_or(u32::MAX);
        let tensors = [Arg::write(c), Arg::read(a), Arg::read(b)].into_iter().take(pattern.arrays().max(2));
        if self.is_flat && pattern == Pattern::Copy {
            return tensors.collect();
        }
        tensors
            .chain([Arg::scalar(chunk), Arg::scalar(rounds), Arg::scalar(self.shift), Arg::scalar(factor)])
            .collect()
    }
}

/// Measures a pattern in one way, or the better of two.
fn measure_pattern(
    bench: &Bench<'_>,
    source: &ModuleSource,
    (level, pattern): (&Level, Pattern),
) -> Result<(Figure, u64)> {
    let info = bench.device.info();
    let division = Division::of(info, level, pattern);
    let bytes = 4 * division.floats() as u64 * pattern.arrays() as u64;
    let measured = measure_division(bench, source, (&division, pattern))?;
    let is_processor = info.properties.text("type") == Some("cpu");
    if division.is_host || pattern == Pattern::Read || !(is_processor || level.keeps_bytes.is_none()) {
        return Ok((measured, bytes));
    }
    let flat = measure_division(bench, source, (&division.flat(), pattern))?;
    Ok((if flat.best > measured.best { flat } else { measured }, bytes))
}

fn measure_division(
    bench: &Bench<'_>,
    source: &ModuleSource,
    (division, pattern): (&Division, Pattern),
) -> Result<Figure> {
    let suffix = if division.is_flat { "flat" } else { "memory" };
    let kernel = bench.device.kernel(source, &format!("{}_{suffix}", pattern.name()))?;
    let filled = |floats: usize, value: f32| {
        let tensor = bench.device.allocate(DType::F32, &[floats], &Default::default())?;
        tensor.fill(&value.to_ne_bytes()).map(|()| tensor)
    };
    let a = filled(division.floats(), 1.0)?;
    let b = filled(if pattern == Pattern::Triad { division.floats() } else { VECTOR }, 2.0)?;
    let c = filled(if pattern == Pattern::Read { division.sums() } else { division.floats() }, 0.0)?;
    let args = |rounds| division.args([&c, &a, &b], rounds, pattern);
    let timed = Timed { kernel: &kernel, config: division.config, args: &args };
    let rounds = bench.amount(&timed, division.max_rounds())?;
    let expected = match pattern {
        Pattern::Read => division.sum(rounds) as f32,
        Pattern::Copy => 1.0,
        Pattern::Triad => 7.0,
    };
    let measurement = bench.time_filling(&timed, rounds, (&c, expected))?;
    let bytes = (4 * division.floats() * pattern.arrays()) as f64;
    Ok(Figure::rate(bytes * f64::from(rounds), &measurement.statistics, measurement.clock.name()))
}

/// Floats of a vector of the host's kernels: `read` sums each lane on its own.
fn host_lanes() -> usize {
    super::compute::host_vector_bytes() as usize / 4
}

/// The largest power of two that is at most `value`.
fn floor_power(value: usize) -> usize {
    value.checked_ilog2().map_or(0, |exponent| 1 << exponent)
}

/// Memory that the invocations of a work-group share.
fn group_memory(bench: &Bench<'_>) -> Result<MemoryLevel> {
    let info = bench.device.info();
    let groups = info.compute_units.unwrap_or(UNITS) * GROUPS_PER_UNIT;
    let items = (groups * GROUP) as usize;
    let kernel = bench.device.kernel(unchecked(GROUP_MEMORY_WGSL).constant("GROUP", GROUP), "read_memory")?;
    let c = bench.device.allocate(DType::F32, &[items * VECTOR], &Default::default())?;
    let args = |rounds: u32| vec![Arg::write(&c), Arg::scalar(rounds)];
    let timed = Timed { kernel: &kernel, config: (groups, GROUP).into(), args: &args };
    let rounds = bench.amount(&timed, 1 << 20)?;
    // Four vectors of ones in each round.
    let measurement = bench.time_filling(&timed, rounds, (&c, 4.0 * rounds as f32))?;
    let bytes = 64.0 * items as f64 * f64::from(rounds);
    Ok(MemoryLevel {
        name: "work-group memory".to_owned(),
        keeps_bytes: Some(0),
        working_set_bytes: u64::from(groups) * u64::from(GROUP) * 32,
        read_gbytes_per_s: Some(Figure::rate(bytes, &measurement.statistics, measurement.clock.name())),
        copy_gbytes_per_s: None,
        triad_gbytes_per_s: None,
    })
}
