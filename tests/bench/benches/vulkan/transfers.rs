//! Transfers in both directions, compared with the plain ways of a hand-written program.

#![allow(unsafe_code, reason = "copies to and from memory of the driver")]

use std::cell::RefCell;
use std::sync::atomic::{Ordering, fence};

use runtime_core::{DType, Placement, Tensor};

use crate::raw::{Buffer, Raw};
use crate::{Device, Pair, compare, rate, time};

/// Transfer sizes; the largest fits all known devices.
const SIZES: [usize; 3] = [64 << 10, 4 << 20, 64 << 20];

/// Prints a line for each size and direction.
pub(crate) fn transfers(device: &Device, raw: &mut Raw) {
    for bytes in SIZES {
        pageable(device, raw, bytes);
    }
    pinned(device, raw, SIZES[2]);
}

fn rounds(bytes: usize) -> usize {
    if bytes > 16 << 20 { 15 } else { 40 }
}

/// A line about GB/s.
fn line(what: &str, bytes: usize, pair: Pair) {
    rate(what, pair, (bytes as f64, " GB/s", 2), Some(0.95));
}

fn tensor(device: &Device, bytes: usize, space: &str) -> Tensor {
    device.allocate(DType::U8, &[bytes], &Placement::space(space)).expect("memory")
}

/// Pageable memory, to the device and back. The baseline is the faster of a staging buffer and, if device memory is
/// host-visible, direct writes.
fn pageable(device: &Device, raw: &mut Raw, bytes: usize) {
    let queue = device.queue().expect("a queue opens");
    let there = device.empty::<u8>([bytes]).expect("memory");
    let size = bytes as u64;
    let (staging, mine, reachable) =
        (raw.host_buffer(size), raw.device_buffer(size), raw.reachable_buffer(size));
    let commands = raw.command_buffers(1)[0];
    let data: Vec<u8> = (0..bytes).map(|index| (index % 251).to_le_bytes()[0]).collect();
    // The same vector for both: the speed of a copy depends on the page offsets of its two sides.
    let back = RefCell::new(vec![0u8; bytes]);
    let mut plain_up = |direct: bool| {
        time(|| match (&reachable, direct) {
            (Some(buffer), true) => {
                to(buffer, &data);
                // Until the bytes have arrived, as work on them would have to wait: the memory may be write-combining.
                fence(Ordering::SeqCst);
            }
            _ => {
                to(&staging, &data);
                raw.copy(commands, &mine, &staging, size);
            }
        })
    };
    let mut best: Option<Pair> = None;
    for direct in [false, true].into_iter().take(1 + usize::from(reachable.is_some())) {
        let ours = || time(|| queue.write(&there, &data).and_then(|()| queue.wait_idle()).expect("written"));
        better(&mut best, compare(rounds(bytes), || plain_up(direct), ours));
    }
    let name = if bytes < 1 << 20 { format!("{} KiB", bytes >> 10) } else { format!("{} MiB", bytes >> 20) };
    line(&format!("pageable {name} to the device"), bytes, best.take().unwrap_or_default());
    for direct in [false, true].into_iter().take(1 + usize::from(reachable.is_some())) {
        let plain = || {
            time(|| match (&reachable, direct) {
                (Some(buffer), true) => from(buffer, &mut back.borrow_mut()),
                _ => {
                    raw.copy(commands, &staging, &mine, size);
                    from(&staging, &mut back.borrow_mut());
                }
            })
        };
        let ours = || time(|| queue.read(&there, &mut back.borrow_mut()).expect("read"));
        better(&mut best, compare(rounds(bytes), plain, ours));
    }
    back.borrow_mut().fill(0);
    queue.read(&there, &mut back.borrow_mut()).expect("read");
    assert!(*back.borrow() == data, "what was written came back");
    line(&format!("pageable {name} back"), bytes, best.unwrap_or_default());
}

/// Selects the pair whose baseline is faster.
fn better(best: &mut Option<Pair>, pair: Pair) {
    if best.is_none_or(|best| pair.plain < best.plain) {
        *best = Some(pair);
    }
}

/// Between pinned and device memory; the baseline is the same copy.
fn pinned(device: &Device, raw: &mut Raw, bytes: usize) {
    let queue = device.queue().expect("a queue opens");
    if !device.info().spaces.iter().any(|space| space.name == "pinned") {
        return println!("| pinned | | the device has no such memory | | | |");
    }
    let (there, here) = (device.empty::<u8>([bytes]), tensor(device, bytes, "pinned"));
    let there = there.expect("memory");
    let size = bytes as u64;
    let (host, mine) = (raw.host_buffer(size), raw.device_buffer(size));
    let commands = raw.command_buffers(1)[0];
    let ours = |to: &Tensor, from: &Tensor| {
        time(|| queue.copy(to, from).and_then(|event| event.wait()).expect("copied"))
    };
    let up = compare(15, || time(|| raw.copy(commands, &mine, &host, size)), || ours(&there, &here));
    line("pinned 64 MiB to the device", bytes, up);
    let down = compare(15, || time(|| raw.copy(commands, &host, &mine, size)), || ours(&here, &there));
    line("pinned 64 MiB back", bytes, down);
}

fn to(buffer: &Buffer, data: &[u8]) {
    // SAFETY: the buffer is mapped, of at least this size, and the device does not use it now.
    unsafe { buffer.mapped.copy_from_nonoverlapping(data.as_ptr(), data.len()) };
}

fn from(buffer: &Buffer, data: &mut [u8]) {
    // SAFETY: as above.
    unsafe { data.as_mut_ptr().copy_from_nonoverlapping(buffer.mapped, data.len()) };
}
