//! Large transfers, compared with the faster plain way: a blocking call, or a mapped buffer and a CPU copy.

use std::time::Duration;

use cl3::memory::{
    CL_MAP_READ, CL_MAP_WRITE, CL_MAP_WRITE_INVALIDATE_REGION, CL_MEM_ALLOC_HOST_PTR, CL_MEM_READ_WRITE,
};
use runtime_core::Tensor;

use crate::raw::Raw;
use crate::{Device, median, tensor, time};

const ROUNDS: usize = 8;

/// The size of a transfer: the requested one, if a buffer can be that large.
fn bytes(device: &Device) -> usize {
    let wanted =
        std::env::var("OPENCL_BENCH_MIB").ok().and_then(|text| text.parse().ok()).unwrap_or(1024usize);
    let most =
        device.info().limits.allocation_bytes.and_then(|most| most.try_into().ok()).unwrap_or(usize::MAX);
    (wanted << 20).min(most / 4096 * 4096)
}

/// Medians of alternating operations.
fn turns(ways: &mut [(&str, &mut dyn FnMut())]) -> Vec<f64> {
    let mut samples = vec![Vec::new(); ways.len()];
    for round in 0..=ROUNDS {
        for ((_, way), samples) in ways.iter_mut().zip(&mut samples) {
            let took: Duration = time(way);
            if round > 0 {
                samples.push(took.as_nanos() as f64);
            }
        }
    }
    samples.into_iter().map(median).collect()
}

/// The last operation is ours.
fn report(what: &str, bytes: usize, ways: &mut [(&str, &mut dyn FnMut())]) {
    let medians = turns(ways);
    let Some((ours, plain)) = medians.split_last() else { return };
    let best = (0..plain.len()).min_by(|a, b| plain[*a].total_cmp(&plain[*b])).unwrap_or(0);
    let size = bytes as f64;
    println!(
        "| {what} {} MiB; plain: {} | {:.1} GB/s | {:.1} GB/s | {:.2}× |",
        bytes >> 20,
        ways[best].0,
        size / plain[best],
        size / ours,
        plain[best] / ours
    );
}

pub(crate) fn measure(device: &Device, raw: &Raw) {
    let bytes = bytes(device);
    let queue = device.queue().expect("a queue opens");
    let there = raw.allocate(bytes, CL_MEM_READ_WRITE);
    let ours = tensor(device, bytes / 4, "device");
    let (host, mut back) = (vec![1u8; bytes], vec![0u8; bytes]);
    report(
        "pageable, to the device,",
        bytes,
        &mut [
            ("`clEnqueueWriteBuffer`", &mut || raw.write(there, host.as_ptr(), bytes)),
            ("map, copy, unmap", &mut || {
                let place = raw.map(there, bytes, CL_MAP_WRITE_INVALIDATE_REGION);
                copy(host.as_ptr(), place, bytes);
                raw.unmap(there, place);
            }),
            ("", &mut || queue.write(&ours, &host).expect("written")),
        ],
    );
    let to = back.as_mut_ptr();
    report(
        "pageable, back,",
        bytes,
        &mut [
            ("`clEnqueueReadBuffer`", &mut || raw.read(there, to, bytes)),
            ("map, copy, unmap", &mut || {
                let place = raw.map(there, bytes, CL_MAP_READ);
                copy(place, to, bytes);
                raw.unmap(there, place);
            }),
            ("", &mut || {
                // SAFETY: the ways take turns, and nobody else has the memory.
                let back = unsafe { std::slice::from_raw_parts_mut(to, bytes) };
                queue.read(&ours, back).expect("read");
            }),
        ],
    );
    assert!(back.iter().all(|byte| *byte == 1), "what was written came back");
    drop((host, back));
    pinned(device, raw, (&ours, there), bytes);
    Raw::free(there);
}

/// Pinned host memory, on both sides of the comparison.
fn pinned(device: &Device, raw: &Raw, (ours, there): (&Tensor, cl3::types::cl_mem), bytes: usize) {
    if !device.info().spaces.iter().any(|space| space.name == "pinned") {
        return;
    }
    let queue = device.queue().expect("a queue opens");
    let here = tensor(device, bytes / 4, "pinned");
    let buffer = raw.allocate(bytes, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR);
    let place = raw.map(buffer, bytes, CL_MAP_READ | CL_MAP_WRITE);
    let copied =
        |to: &Tensor, from: &Tensor| queue.copy(to, from).and_then(|event| event.wait()).expect("copied");
    // Untouched memory maps to a single page of zeros, which would make transfers unrealistically fast.
    raw.read(there, place, bytes);
    copied(&here, ours);
    report(
        "pinned, to the device,",
        bytes,
        &mut [
            ("`clEnqueueWriteBuffer` of mapped memory", &mut || raw.write(there, place, bytes)),
            ("", &mut || copied(ours, &here)),
        ],
    );
    report(
        "pinned, back,",
        bytes,
        &mut [
            ("`clEnqueueReadBuffer` to mapped memory", &mut || raw.read(there, place, bytes)),
            ("", &mut || copied(&here, ours)),
        ],
    );
    raw.unmap(buffer, place);
    Raw::free(buffer);
}

fn copy(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: both have so many bytes, and they are not the same.
    unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) }
}
