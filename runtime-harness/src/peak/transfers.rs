//! Bandwidth of transfers between host and device.

use runtime_core::evaluate::Statistics;
use runtime_core::{DType, Placement, Result, Tensor};

use super::bench::Bench;
use super::{Direction, Figure, HostMemory, Missing, Peak, TransferPeak};

/// Bytes of a transfer: large enough that its fixed cost does not show.
const BYTES: usize = 64 << 20;

/// Measures transfers; a host has none.
pub(super) fn measure(bench: &Bench<'_>, peak: &mut Peak) {
    if bench.device.as_host().is_some() {
        return;
    }
    for (memory, name) in [(HostMemory::Pageable, "pageable"), (HostMemory::Pinned, "pinned")] {
        let measured = match memory {
            HostMemory::Pageable => pageable(bench),
            HostMemory::Pinned => pinned(bench),
        };
        match measured {
            Ok(transfers) => peak.transfers.extend(transfers),
            Err(error) => peak.missing.push(Missing::new(&format!("transfers of {name} memory"), &error)),
        }
    }
}

/// The bytes of a transfer: less on a device with little memory.
fn bytes(bench: &Bench<'_>) -> usize {
    let memory = bench.device.info().spaces.first().and_then(|space| space.total_bytes);
    let limit = memory.and_then(|bytes| usize::try_from(bytes / 16).ok()).unwrap_or(BYTES);
    BYTES.min(limit.max(4096))
}

fn pageable(bench: &Bench<'_>) -> Result<[TransferPeak; 2]> {
    let bytes = bytes(bench);
    let data: Vec<u8> = (0..bytes).map(|index| u8::try_from(index % 251).unwrap_or(0)).collect();
    let mut read = vec![0; bytes];
    let tensor = bench.device.allocate(DType::U8, &[bytes], &Placement::default())?;
    let up = bench.time_transfer(&mut || tensor.write_bytes(&data))?;
    let down = bench.time_transfer(&mut || tensor.read_bytes(&mut read))?;
    check(data == read)?;
    transfers(HostMemory::Pageable, bytes, [&up, &down])
}

fn pinned(bench: &Bench<'_>) -> Result<[TransferPeak; 2]> {
    let bytes = bytes(bench);
    let space = |name: &str| bench.device.allocate(DType::U8, &[bytes], &Placement::space(name));
    let (host, back) = (space("pinned")?, space("pinned")?);
    let device = bench.device.allocate(DType::U8, &[bytes], &Placement::default())?;
    host.fill(&[7])?;
    back.fill(&[0])?;
    let copy = |to: &Tensor, from: &Tensor| bench.queue.copy(to, from)?.wait();
    let up = bench.time_transfer(&mut || copy(&device, &host))?;
    let down = bench.time_transfer(&mut || copy(&back, &device))?;
    check(back.to_vec::<u8>()?.iter().all(|byte| *byte == 7))?;
    transfers(HostMemory::Pinned, bytes, [&up, &down])
}

fn check(is_right: bool) -> Result<()> {
    match is_right {
        true => Ok(()),
        false => Err(super::bench::wrong("the bytes that came back differ from those that were sent")),
    }
}

fn transfers(memory: HostMemory, bytes: usize, [up, down]: [&[f64]; 2]) -> Result<[TransferPeak; 2]> {
    let transfer = |direction, samples_ns: &[f64]| -> Result<TransferPeak> {
        let statistics = Statistics::of(samples_ns);
        let statistics = statistics.ok_or_else(|| super::bench::wrong("there are no samples"))?;
        let gbytes_per_s = Figure::rate(bytes as f64, &statistics, "host_wall");
        Ok(TransferPeak { direction, memory, bytes: bytes as u64, gbytes_per_s })
    };
    Ok([transfer(Direction::HostToDevice, up)?, transfer(Direction::DeviceToHost, down)?])
}
