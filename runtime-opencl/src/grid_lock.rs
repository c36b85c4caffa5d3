//! Keeps launches apart that PoCL before 6.0 mistakes for each other.
//!
//! PoCL loads a function for a kernel, a group size and a largest number of work-items, and counts the launches that use it. When
//! a launch ends, it looks for the function by kernel and group size only: it finds another one if a larger launch of the kernel has
//! started meanwhile, or if the binary of the program was read, and aborts the process (`pocl_release_dlhandle_cache`:
//! `Assertion found->ref_count > 0`). Seen with PoCL 3.1 and 5.0; 6.0 finds the function by its address.
//!
//! So launches of kernels of one name and group size, but of different numbers of groups, do not overlap; nor does reading a
//! binary with launches of its kernels. This holds for the whole process, as the driver's functions do. On one queue, launches never
//! overlap, and those on a held queue have not begun. Can go with support for PoCL 5 (Ubuntu 24.04).

use std::ffi::{CStr, CString};
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, MutexGuard};

use crate::context::SharedContext;
use crate::driver::Raw;
use crate::driver::handle::{Event, Owned};

/// With this many entries, those that have ended are removed.
const PRUNE_THRESHOLD: usize = 64;

/// The launches that may be in flight.
static IN_FLIGHT: Mutex<Vec<InFlight>> = Mutex::new(Vec::new());

/// A kernel, and the groups and group size of a launch.
pub(crate) type Grid<'a> = (&'a CStr, [[u32; 3]; 2]);

/// The latest launch on a queue of a kernel with a group size.
#[derive(Debug)]
struct InFlight {
    kernel: CString,
    group_size: [u32; 3],
    /// `None` if launches before it had other numbers of groups, and may not have ended.
    groups: Option<[u32; 3]>,
    queue: usize,
    event: Arc<Owned<Event>>,
    /// Gone only when its work has ended.
    context: Weak<SharedContext>,
}

impl InFlight {
    fn is_same_kernel(&self, (kernel, [_, group_size]): &Grid<'_>) -> bool {
        self.kernel.as_c_str() == *kernel && self.group_size == *group_size
    }

    fn has_ended(&self) -> bool {
        self.context.upgrade().is_none_or(|context| context.status(self.event.raw()) <= 0)
    }
}

fn finish(context: &Weak<SharedContext>, event: &Owned<Event>) {
    if let Some(context) = context.upgrade() {
        context.synchronise(event.raw());
    }
}

/// Held while launches begin that no launch in flight can be mistaken for.
#[derive(Debug)]
pub(crate) struct GridGuard {
    in_flight: MutexGuard<'static, Vec<InFlight>>,
    queue: usize,
}

/// Waits for the launches in flight on other queues that the driver would mistake for these, which begin next.
pub(crate) fn acquire(queue: Raw, grids: &[Grid<'_>]) -> GridGuard {
    let queue = queue.addr();
    let mut in_flight = IN_FLIGHT.lock();
    let is_in_the_way = |other: &InFlight, grid: &Grid<'_>| {
        other.queue != queue && other.is_same_kernel(grid) && other.groups != Some(grid.1[0])
    };
    while let Some(at) =
        in_flight.iter().position(|other| grids.iter().any(|grid| is_in_the_way(other, grid)))
    {
        let other = &in_flight[at];
        if other.has_ended() {
            in_flight.swap_remove(at);
            continue;
        }
        let (context, event) = (other.context.clone(), other.event.clone());
        MutexGuard::unlocked(&mut in_flight, || finish(&context, &event));
    }
    GridGuard { in_flight, queue }
}

impl GridGuard {
    /// Notes launches, which have all ended when `event` has.
    pub(crate) fn note(
        &mut self,
        grids: &[Grid<'_>],
        event: &Arc<Owned<Event>>,
        context: &Arc<SharedContext>,
    ) {
        for grid @ &(kernel, [groups, group_size]) in grids {
            let queue = self.queue;
            let same = |other: &&mut InFlight| other.queue == queue && other.is_same_kernel(grid);
            if let Some(earlier) = self.in_flight.iter_mut().find(same) {
                if earlier.groups != Some(groups) {
                    earlier.groups = earlier.has_ended().then_some(groups);
                }
                earlier.event = Arc::clone(event);
                continue;
            }
            if self.in_flight.len() >= PRUNE_THRESHOLD {
                self.in_flight.retain(|other| !other.has_ended());
            }
            let (event, context) = (Arc::clone(event), Arc::downgrade(context));
            let (kernel, groups) = (kernel.to_owned(), Some(groups));
            self.in_flight.push(InFlight { kernel, group_size, groups, queue, event, context });
        }
    }
}

/// Reads a program's binary, by `read`, while none of its kernels runs.
pub(crate) fn while_idle<R>(
    context: &SharedContext,
    kernels: impl FnOnce() -> Vec<String>,
    read: impl FnOnce() -> R,
) -> R {
    if !context.caps.mistakes_grids {
        return read();
    }
    let kernels = kernels();
    // No launch begins while this is locked.
    let in_flight = IN_FLIGHT.lock();
    let is_one = |other: &InFlight| kernels.iter().any(|kernel| other.kernel.to_bytes() == kernel.as_bytes());
    for other in in_flight.iter().filter(|other| is_one(other)) {
        finish(&other.context, &other.event);
    }
    read()
}
