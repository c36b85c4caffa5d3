//! Kernel launches: the ND-range of a geometry, and copies of views that a kernel cannot access.

#![allow(unsafe_code, reason = "submits through the driver")]

use cl3::ext::cl_int;
use runtime_core::backend::{Launch, TensorArg};
use runtime_core::{Error, Result};

use crate::allocation::create_buffer;
use crate::context::SharedContext;
use crate::driver::handle::{Event, Memory, Owned};
use crate::driver::{DispatchTable, Raw};
use crate::enqueuer::{Enqueuer, Events, Location};
use crate::kernel::OpenClKernel;
use crate::kernel_binding::KernelBinding;
use crate::memory::OpenClBuffer;
use crate::progress::Progress;
use crate::views::{ViewAccess, check_no_alias};

const ENQUEUE_KERNEL: &str = "clEnqueueNDRangeKernel";

/// Refuses launches that OpenCL cannot express.
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
        "cooperative launches are not supported"
    } else if launch.range().is_some() {
        "index ranges are not supported"
    } else {
        "clusters of groups are not supported"
    })
}

/// Number of dimensions, global size and local size.
#[inline]
pub(crate) fn nd_range([groups, group_size]: [[u32; 3]; 2]) -> (u32, [usize; 3], [usize; 3]) {
    let local = group_size.map(|size| size as usize);
    let global: [usize; 3] = std::array::from_fn(|axis| groups[axis] as usize * local[axis]);
    // No more dimensions than are used: kernels see the number through `get_work_dim`.
    let dimensions = match global {
        [_, 1, 1] => 1,
        [_, _, 1] => 2,
        _ => 3,
    };
    (dimensions, global, local)
}

/// Enqueues a kernel whose arguments are set.
#[inline]
pub(crate) fn enqueue(
    context: &SharedContext,
    queue: Raw,
    kernel: Raw,
    geometry: [[u32; 3]; 2],
) -> Result<Owned<Event>> {
    context.enqueue(ENQUEUE_KERNEL, |cl, event| enqueue_nd_range(cl, queue, kernel, geometry, event))
}

/// Enqueues a kernel whose arguments are set, without an event.
#[inline]
pub(crate) fn enqueue_without_event(
    context: &SharedContext,
    queue: Raw,
    kernel: Raw,
    geometry: [[u32; 3]; 2],
) -> Result<()> {
    context.check(ENQUEUE_KERNEL, |cl| enqueue_nd_range(cl, queue, kernel, geometry, std::ptr::null_mut()))
}

#[inline]
fn enqueue_nd_range(
    cl: &DispatchTable,
    queue: Raw,
    kernel: Raw,
    geometry: [[u32; 3]; 2],
    event: *mut Raw,
) -> Option<cl_int> {
    let (dimensions, global, local) = nd_range(geometry);
    let (none, global, local) = (std::ptr::null(), global.as_ptr(), local.as_ptr());
    let no_events = std::ptr::null();
    // SAFETY: the arguments are set, and core keeps what they refer to alive until the ticket ends; whoever loaded the code
    // guarantees what it does with them.
    Some(unsafe {
        (cl.clEnqueueNDRangeKernel?)(queue, kernel, dimensions, none, global, local, 0, no_events, event)
    })
}

/// A view of which the kernel gets a copy.
struct CopiedView<'a> {
    tensor: TensorArg<'a, OpenClBuffer>,
    location: Location,
    bytes: usize,
    copy: Owned<Memory>,
}

/// Enqueues a kernel with copies of the views that it cannot access: copied in before the launch, and back after it. If a copy back
/// fails, so does `ticket`.
#[cold]
pub(crate) fn launch_with_copies(
    queue: Enqueuer<'_>,
    (progress, ticket): (&Progress, u64),
    kernel: &OpenClKernel,
    binding: &mut KernelBinding,
    launch: &Launch<'_, OpenClBuffer>,
) -> Result<Events> {
    let copies = create_copies(queue.context, kernel, binding, launch)?;
    let mut events = Vec::with_capacity(2 * copies.len() + 1);
    let shape = [launch.groups(), launch.group_size()];
    let launched = copy_in(queue, &copies, &mut events).and_then(|()| {
        let event = enqueue(queue.context, queue.queue, binding.raw(), shape);
        event.map_err(|error| kernel.with_name(error))
    });
    match launched {
        Ok(event) => events.push(event),
        Err(error) => {
            // Core may free the memory of a refused launch.
            events.iter().for_each(|event| queue.context.synchronise(event.raw()));
            return Err(error);
        }
    }
    for copied in copies.iter().filter(|copied| copied.bytes > 0 && copied.tensor.access().writes()) {
        match queue.copy(copied.location, Location::Object(copied.copy.raw(), 0), copied.bytes) {
            Ok(more) => events.extend(more),
            Err(error) => {
                progress.fail(ticket, error);
                break;
            }
        }
    }
    Ok(events)
}

/// Enqueues the copies in. Includes views that are only written: the kernel need not write all of them.
fn copy_in(queue: Enqueuer<'_>, copies: &[CopiedView<'_>], events: &mut Events) -> Result<()> {
    for copied in copies.iter().filter(|copied| copied.bytes > 0) {
        events.extend(queue.copy(Location::Object(copied.copy.raw(), 0), copied.location, copied.bytes)?);
    }
    Ok(())
}

/// Creates the copies and sets them as arguments. The driver retains them until the commands on them have ended.
fn create_copies<'a>(
    context: &SharedContext,
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
            // Copied back if any of its arguments is written.
            if tensor.access().writes() {
                known.tensor = tensor;
            }
            continue;
        }
        let mut others = tensors().filter(|(_, other)| !is_same_range(other, &tensor));
        others.try_for_each(|(other, view)| check_no_alias((index, &tensor), (other, &view)))?;
        let (offset, bytes) = tensor.buffer().range("a tensor", tensor.byte_offset(), tensor.span_bytes())?;
        let copy = create_buffer(context, 0, bytes.max(1), std::ptr::null_mut())?;
        binding.set_copy(kernel, index, copy.raw())?;
        copies.push(CopiedView { tensor, location: tensor.buffer().location(offset), bytes, copy });
    }
    Ok(copies)
}

/// Whether two arguments are the same range of the same buffer.
fn is_same_range(a: &TensorArg<'_, OpenClBuffer>, b: &TensorArg<'_, OpenClBuffer>) -> bool {
    std::ptr::eq(a.buffer(), b.buffer())
        && (a.byte_offset(), a.span_bytes()) == (b.byte_offset(), b.span_bytes())
}
