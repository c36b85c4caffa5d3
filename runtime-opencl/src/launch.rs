//! Launches: the geometry in the driver's form, and views that must be copied.

#![allow(unsafe_code, reason = "submits through the driver")]

use cl3::ext::cl_int;
use runtime_core::abi::Place;
use runtime_core::backend::{Launch, TensorArg};
use runtime_core::{Error, Result};

use crate::context::SharedContext;
use crate::driver::handle::{Event, Memory, Owned};
use crate::driver::{DispatchTable, Raw};
use crate::enqueuer::{Events, Location};
use crate::kernel::{KernelBinding, OpenClKernel};
use crate::memory::{OpenClBuffer, create_buffer};
use crate::queue::OpenClQueue;
use crate::sub_buffers::{ViewAccess, check_no_alias};

const ENQUEUE_KERNEL: &str = "clEnqueueNDRangeKernel";

/// Refuses what OpenCL has no launch for.
///
/// # Errors
/// `Unsupported`.
#[inline]
pub(crate) fn check_supported(launch: &Launch<'_, OpenClBuffer>) -> Result<()> {
    let plain = !launch.cooperative() && launch.cluster() == [1; 3] && launch.range().is_none();
    if plain { Ok(()) } else { Err(unsupported(launch)) }
}

#[cold]
fn unsupported(launch: &Launch<'_, OpenClBuffer>) -> Error {
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
pub(crate) fn nd_range([groups, group_size]: [[u32; 3]; 2]) -> (u32, [usize; 3], [usize; 3]) {
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
pub(crate) fn enqueue(
    context: &SharedContext,
    queue: Raw,
    function: Raw,
    geometry: [[u32; 3]; 2],
) -> Result<Owned<Event>> {
    context.enqueue(ENQUEUE_KERNEL, |cl, event| enqueue_nd_range(cl, queue, function, geometry, event))
}

/// Submits a kernel whose arguments are set, without an event.
#[inline]
pub(crate) fn enqueue_without_event(
    context: &SharedContext,
    queue: Raw,
    function: Raw,
    geometry: [[u32; 3]; 2],
) -> Result<()> {
    context.check(ENQUEUE_KERNEL, |cl| enqueue_nd_range(cl, queue, function, geometry, std::ptr::null_mut()))
}

#[inline]
fn enqueue_nd_range(
    cl: &DispatchTable,
    queue: Raw,
    function: Raw,
    geometry: [[u32; 3]; 2],
    event: *mut Raw,
) -> Option<cl_int> {
    let (dimensions, global, local) = nd_range(geometry);
    let (none, global, local) = (std::ptr::null(), global.as_ptr(), local.as_ptr());
    let no_events = std::ptr::null();
    // SAFETY: the arguments are set, and core keeps what they refer to until the ticket has ended; what the code does with
    // them is vouched for by whoever loaded it.
    Some(unsafe {
        (cl.clEnqueueNDRangeKernel?)(queue, function, dimensions, none, global, local, 0, no_events, event)
    })
}

/// A view that the kernel gets a copy of.
struct CopiedView<'a> {
    tensor: TensorArg<'a, OpenClBuffer>,
    location: Location,
    bytes: usize,
    copy: Owned<Memory>,
}

/// Submits a kernel with copies of the views that the device does not take: in before the launch, back behind it.
#[cold]
pub(crate) fn launch_with_copies(
    queue: &OpenClQueue,
    place: Place,
    kernel: &OpenClKernel,
    binding: &mut KernelBinding,
    launch: &Launch<'_, OpenClBuffer>,
) -> Result<()> {
    let copies = create_copies(queue, kernel, binding, launch)?;
    let mut events = Vec::with_capacity(2 * copies.len() + 1);
    let shape = [launch.groups(), launch.group_size()];
    let launched = copy_in(queue, &copies, &mut events).and_then(|()| {
        let event = enqueue(&queue.context, queue.raw(), binding.function(), shape);
        event.map_err(|error| kernel.with_name(error))
    });
    match launched {
        Ok(event) => events.push(event),
        Err(error) => {
            // Core may free what a refused launch uses.
            events.iter().for_each(|event| queue.context.synchronise(event.raw()));
            return Err(error);
        }
    }
    for copied in copies.iter().filter(|copied| copied.bytes > 0 && copied.tensor.access().writes()) {
        match queue.enqueuer().copy(copied.location, Location::Object(copied.copy.raw(), 0), copied.bytes) {
            Ok(more) => events.extend(more),
            Err(error) => {
                queue.progress().fail(place.ticket, error);
                break;
            }
        }
    }
    queue.note_submitted_all(place, events);
    Ok(())
}

/// Submits the copies in. What is only written, too: the kernel need not write all of it.
fn copy_in(queue: &OpenClQueue, copies: &[CopiedView<'_>], events: &mut Events) -> Result<()> {
    for copied in copies.iter().filter(|copied| copied.bytes > 0) {
        events.extend(queue.enqueuer().copy(
            Location::Object(copied.copy.raw(), 0),
            copied.location,
            copied.bytes,
        )?);
    }
    Ok(())
}

/// Makes the copies, and sets the arguments to them. The driver keeps them until the work on them has ended.
fn create_copies<'a>(
    queue: &OpenClQueue,
    kernel: &OpenClKernel,
    binding: &mut KernelBinding,
    launch: &Launch<'a, OpenClBuffer>,
) -> Result<Vec<CopiedView<'a>>> {
    let mut copies: Vec<CopiedView<'a>> = Vec::new();
    let tensors = || launch.args().enumerate().filter_map(|(index, arg)| Some((index, arg.tensor()?)));
    for (index, tensor) in tensors() {
        if ViewAccess::of(&tensor, &mut Vec::new())? != ViewAccess::NeedsCopy {
            continue;
        }
        if let Some(known) = copies.iter_mut().find(|known| is_same_range(&known.tensor, &tensor)) {
            binding.set_copy(kernel, index, known.copy.raw())?;
            // It is copied back if any of them is written.
            if tensor.access().writes() {
                known.tensor = tensor;
            }
            continue;
        }
        let mut others = tensors().filter(|(_, other)| !is_same_range(other, &tensor));
        others.try_for_each(|(other, view)| check_no_alias((index, &tensor), (other, &view)))?;
        let (offset, bytes) = tensor.buffer().range("a tensor", tensor.byte_offset(), tensor.span_bytes())?;
        let copy = create_buffer(&queue.context, 0, bytes.max(1), std::ptr::null_mut())?;
        binding.set_copy(kernel, index, copy.raw())?;
        copies.push(CopiedView { tensor, location: tensor.buffer().location(offset), bytes, copy });
    }
    Ok(copies)
}

/// Whether two arguments are the same bytes.
fn is_same_range(a: &TensorArg<'_, OpenClBuffer>, b: &TensorArg<'_, OpenClBuffer>) -> bool {
    std::ptr::eq(a.buffer(), b.buffer())
        && (a.byte_offset(), a.span_bytes()) == (b.byte_offset(), b.span_bytes())
}
