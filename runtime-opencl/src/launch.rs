//! Launches: the geometry in the driver's form, and views that must be copied.

#![allow(unsafe_code, reason = "submits through the driver")]

use cl3::ext::cl_int;
use runtime_core::abi::Place;
use runtime_core::backend::{Launch, TensorArg};
use runtime_core::{Error, Result};

use crate::context::Primary;
use crate::driver::handle::{Event, Memory, Owned};
use crate::driver::{Calls, Raw};
use crate::kernel::{Bound, OpenClKernel};
use crate::memory::{OpenClBuffer, object};
use crate::queue::OpenClQueue;
use crate::transfer::{End, Events};
use crate::views::{View, check_apart};

const ENQUEUE: &str = "clEnqueueNDRangeKernel";

/// Refuses what OpenCL has no launch for.
///
/// # Errors
/// `Unsupported`.
#[inline]
pub(crate) fn check(launch: &Launch<'_, OpenClBuffer>) -> Result<()> {
    let plain = !launch.cooperative() && launch.cluster() == [1; 3] && launch.range().is_none();
    if plain { Ok(()) } else { Err(refusal(launch)) }
}

#[cold]
fn refusal(launch: &Launch<'_, OpenClBuffer>) -> Error {
    Error::unsupported(if launch.cooperative() {
        "a cooperative launch is not supported"
    } else if launch.range().is_some() {
        "a range is not supported"
    } else {
        "a cluster of groups is not supported"
    })
}

/// Dimensions, work-items in all and work-items of a group.
#[inline]
pub(crate) fn shape([groups, group_size]: [[u32; 3]; 2]) -> (u32, [usize; 3], [usize; 3]) {
    let local = group_size.map(|size| size as usize);
    let global: [usize; 3] = std::array::from_fn(|axis| groups[axis] as usize * local[axis]);
    // As many dimensions as are used: `get_work_dim` tells the kernel.
    let dimensions = match global {
        [_, 1, 1] => 1,
        [_, _, 1] => 2,
        _ => 3,
    };
    (dimensions, global, local)
}

/// Submits a kernel whose arguments are set.
#[inline]
pub(crate) fn submit(
    primary: &Primary,
    queue: Raw,
    function: Raw,
    geometry: [[u32; 3]; 2],
) -> Result<Owned<Event>> {
    primary.enqueue(ENQUEUE, |calls, event| call(calls, queue, function, geometry, event))
}

/// Submits a kernel whose arguments are set, without an event.
#[inline]
pub(crate) fn submit_unseen(
    primary: &Primary,
    queue: Raw,
    function: Raw,
    geometry: [[u32; 3]; 2],
) -> Result<()> {
    primary.check(ENQUEUE, |calls| call(calls, queue, function, geometry, std::ptr::null_mut()))
}

#[inline]
fn call(
    calls: &Calls,
    queue: Raw,
    function: Raw,
    geometry: [[u32; 3]; 2],
    event: *mut Raw,
) -> Option<cl_int> {
    let (dimensions, global, local) = shape(geometry);
    let (none, global, local) = (std::ptr::null(), global.as_ptr(), local.as_ptr());
    let no_events = std::ptr::null();
    // SAFETY: the arguments are set, and core keeps what they refer to until the ticket has ended; what the code does with
    // them is vouched for by whoever loaded it.
    Some(unsafe {
        (calls.clEnqueueNDRangeKernel?)(queue, function, dimensions, none, global, local, 0, no_events, event)
    })
}

/// A view that the kernel gets a copy of.
struct Copied<'a> {
    tensor: TensorArg<'a, OpenClBuffer>,
    end: End,
    bytes: usize,
    copy: Owned<Memory>,
}

/// Submits a kernel with copies of the views that the device does not take: in before the launch, back behind it.
#[cold]
pub(crate) fn submit_copied(
    queue: &OpenClQueue,
    place: Place,
    kernel: &OpenClKernel,
    bound: &mut Bound,
    launch: &Launch<'_, OpenClBuffer>,
) -> Result<()> {
    let copies = copies(queue, kernel, bound, launch)?;
    let mut events = Vec::with_capacity(2 * copies.len() + 1);
    let shape = [launch.groups(), launch.group_size()];
    let launched = copy_in(queue, &copies, &mut events).and_then(|()| {
        let event = submit(&queue.primary, queue.raw(), bound.function(), shape);
        event.map_err(|error| kernel.named(error))
    });
    match launched {
        Ok(event) => events.push(event),
        Err(error) => {
            // Core may free what a refused launch uses.
            events.iter().for_each(|event| queue.primary.synchronise(event.raw()));
            return Err(error);
        }
    }
    for copied in copies.iter().filter(|copied| copied.bytes > 0 && copied.tensor.access().writes()) {
        match queue.lane().copy(copied.end, End::Object(copied.copy.raw(), 0), copied.bytes) {
            Ok(more) => events.extend(more),
            Err(error) => {
                queue.progress().fail(place.ticket, error);
                break;
            }
        }
    }
    queue.took_all(place, events);
    Ok(())
}

/// Submits the copies in. What is only written, too: the kernel need not write all of it.
fn copy_in(queue: &OpenClQueue, copies: &[Copied<'_>], events: &mut Events) -> Result<()> {
    for copied in copies.iter().filter(|copied| copied.bytes > 0) {
        events.extend(queue.lane().copy(End::Object(copied.copy.raw(), 0), copied.end, copied.bytes)?);
    }
    Ok(())
}

/// Makes the copies, and sets the arguments to them. The driver keeps them until the work on them has ended.
fn copies<'a>(
    queue: &OpenClQueue,
    kernel: &OpenClKernel,
    bound: &mut Bound,
    launch: &Launch<'a, OpenClBuffer>,
) -> Result<Vec<Copied<'a>>> {
    let mut copies: Vec<Copied<'a>> = Vec::new();
    let tensors = || launch.args().enumerate().filter_map(|(index, arg)| Some((index, arg.tensor()?)));
    for (index, tensor) in tensors() {
        if View::of(&tensor, &mut Vec::new())? != View::Apart {
            continue;
        }
        if let Some(known) = copies.iter_mut().find(|known| is_same(&known.tensor, &tensor)) {
            bound.set_copy(kernel, index, known.copy.raw())?;
            // It is copied back if any of them is written.
            if tensor.access().writes() {
                known.tensor = tensor;
            }
            continue;
        }
        let mut others = tensors().filter(|(_, other)| !is_same(other, &tensor));
        others.try_for_each(|(other, view)| check_apart((index, &tensor), (other, &view)))?;
        let (offset, bytes) = tensor.buffer().range("a tensor", tensor.byte_offset(), tensor.span_bytes())?;
        let copy = object(&queue.primary, 0, bytes.max(1), std::ptr::null_mut())?;
        bound.set_copy(kernel, index, copy.raw())?;
        copies.push(Copied { tensor, end: tensor.buffer().end(offset), bytes, copy });
    }
    Ok(copies)
}

/// Whether two arguments are the same bytes.
fn is_same(a: &TensorArg<'_, OpenClBuffer>, b: &TensorArg<'_, OpenClBuffer>) -> bool {
    std::ptr::eq(a.buffer(), b.buffer())
        && (a.byte_offset(), a.span_bytes()) == (b.byte_offset(), b.span_bytes())
}
