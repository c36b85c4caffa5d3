//! Calls the null backend's table directly, as core does: the baseline of a launch.

#![allow(unsafe_code, reason = "calls the functions of a backend's table")]

use std::ptr;

use runtime_core::abi::{
    self, AllocateRequest, Allocation, Arg, ArgValue, BackendTable, DType, Handle, HostTable, Launch,
    ModuleSource, QueueOptions, QueueTable, Status, Str, SubmitInfo, TensorArg,
};
use runtime_core::backend::convert;
use runtime_core::end_of;

type LaunchCall = unsafe extern "C" fn(Handle, SubmitInfo, Handle, *const Launch) -> Status;

const SHAPE: [i64; 1] = [64];
const STRIDES: [i64; 1] = [1];
static HOST: HostTable = HostTable {
    header: abi::Header {
        magic: abi::MAGIC,
        struct_size: end_of!(HostTable, log),
        major: abi::MAJOR,
        minor: abi::MINOR,
    },
    log: None,
};

/// A queue of the null backend, and a launch with three tensors and a scalar. Never closed.
#[derive(Debug)]
pub struct RawQueue {
    queue: Handle,
    kernel: Handle,
    call: LaunchCall,
    launch: Box<Launch>,
    ticket: u64,
}

impl RawQueue {
    /// Opens everything through the table.
    ///
    /// # Panics
    /// If the backend refuses.
    #[must_use]
    pub fn open() -> Self {
        let table = runtime_null::backend().table();
        let device = open_device(table);
        let kernel = load(table, device);
        // SAFETY: the pointers of a backend's table are those of static tables.
        let queue_table: &QueueTable = unsafe { &*table.queue };
        let options = QueueOptions { struct_size: end_of!(QueueOptions, flags), priority: 0, flags: 0 };
        let mut queue = ptr::null_mut();
        // SAFETY: `device` is open, `options` and `queue` live during the call.
        check(unsafe { slot(queue_table.open)(device, &raw const options, &raw mut queue) });
        let tensors: Vec<_> = (0..3).map(|index| tensor(allocate(table, device), index)).collect();
        Self { queue, kernel, call: slot(queue_table.launch), launch: Box::new(launch(tensors)), ticket: 0 }
    }

    /// Submits a launch.
    ///
    /// # Panics
    /// If the backend refuses.
    #[inline]
    pub fn launch(&mut self) {
        self.ticket += 1;
        let place = SubmitInfo { ticket: self.ticket, after: self.ticket - 1 };
        // SAFETY: the handles are open, and what `launch` points to lives as long as this queue.
        check(unsafe { (self.call)(self.queue, place, self.kernel, &raw const *self.launch) });
    }
}

fn open_device(table: &BackendTable) -> Handle {
    // SAFETY: the pointers of a backend's table are those of static tables.
    let instances = unsafe { &*table.instance };
    let (mut instance, mut device) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: the host table is static.
    check(unsafe { slot(instances.open)(&raw const HOST, &raw mut instance) });
    // SAFETY: `instance` is open, and there are no options.
    check(unsafe {
        slot(instances.open_device)(instance, 0, abi::WHOLE_DEVICE, ptr::null(), 0, &raw mut device)
    });
    device
}

fn load(table: &BackendTable, device: Handle) -> Handle {
    // SAFETY: the pointers of a backend's table are those of static tables.
    let modules = unsafe { &*table.module };
    let code = crate::fixture::NULL_CODE;
    let source = ModuleSource {
        struct_size: end_of!(ModuleSource, option_count),
        reserved: 0,
        format: Str::new("null"),
        path: Str::EMPTY,
        code: code.as_ptr(),
        code_bytes: code.len(),
        options: ptr::null(),
        option_count: 0,
    };
    let (mut module, mut kernel) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: `device` is open and `source` lives during the call.
    check(unsafe { slot(modules.load)(device, &raw const source, &raw mut module) });
    // SAFETY: `module` is loaded.
    check(unsafe { slot(modules.kernel)(module, Str::new("touch"), &raw mut kernel) });
    kernel
}

fn allocate(table: &BackendTable, device: Handle) -> Allocation {
    // SAFETY: the pointers of a backend's table are those of static tables.
    let memory = unsafe { &*table.memory };
    let request = AllocateRequest {
        struct_size: end_of!(AllocateRequest, ticket),
        space: 0,
        bytes: 256,
        alignment_bytes: 0,
        flags: 0,
        queue: ptr::null_mut(),
        ticket: 0,
    };
    let struct_size = end_of!(Allocation, host_pointer);
    let mut allocation = Allocation {
        struct_size,
        reserved: 0,
        buffer: ptr::null_mut(),
        kernel_address: 0,
        host_pointer: ptr::null_mut(),
    };
    // SAFETY: `device` is open, `request` and `allocation` live during the call.
    check(unsafe { slot(memory.allocate)(device, &raw const request, &raw mut allocation) });
    allocation
}

/// The arguments live as long as the benchmark.
fn tensor(allocation: Allocation, index: usize) -> Arg {
    let tensor = Box::leak(Box::new(TensorArg {
        struct_size: end_of!(TensorArg, strides),
        ndim: 1,
        buffer: allocation.buffer,
        address: allocation.kernel_address,
        byte_offset: 0,
        span_bytes: 256,
        dtype: DType { code: 2, bits: 32, lanes: 1 },
        shape: SHAPE.as_ptr(),
        strides: STRIDES.as_ptr(),
    }));
    let access = if index < 2 { abi::ACCESS_READ } else { abi::ACCESS_WRITE };
    Arg { kind: abi::ARG_TENSOR, access, dtype_code: 0, dtype_bits: 0, bytes: 0, value: ArgValue { tensor } }
}

fn launch(mut args: Vec<Arg>) -> Launch {
    let scalar = ArgValue { scalar: u64::from(1.0f32.to_bits()) };
    args.push(Arg {
        kind: abi::ARG_SCALAR,
        access: 0,
        dtype_code: 2,
        dtype_bits: 32,
        bytes: 4,
        value: scalar,
    });
    let args = args.leak();
    Launch {
        struct_size: end_of!(Launch, arg_count),
        flags: 0,
        groups: [1; 3],
        group_size: [1; 3],
        cluster: [1; 3],
        grain: 0,
        range: [0; 2],
        args: args.as_ptr(),
        arg_count: args.len(),
    }
}

fn slot<F>(function: Option<F>) -> F {
    function.expect("the null backend fills every slot that is used here")
}

#[inline]
fn check(status: Status) {
    // SAFETY: a status of the table, read once.
    unsafe { convert::from_status(status) }.expect("the null backend rejects nothing here");
}

#[cfg(test)]
mod tests {
    use super::RawQueue;

    #[test]
    fn the_table_takes_launches_in_order() {
        let mut queue = RawQueue::open();
        queue.launch();
        queue.launch();
        assert_eq!(queue.ticket, 2);
    }
}
