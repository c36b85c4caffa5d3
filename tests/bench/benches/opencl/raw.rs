//! Plain `cl3` calls, the baseline of the comparison.

#![allow(unsafe_code, reason = "calls the driver: that is what is compared with")]

use std::ffi::{CString, c_void};
use std::ptr;

use cl3::command_queue::{
    CL_QUEUE_PROFILING_ENABLE, create_command_queue, enqueue_map_buffer, enqueue_read_buffer,
    enqueue_unmap_mem_object, enqueue_write_buffer, finish,
};
use cl3::context::create_context;
use cl3::device::{CL_DEVICE_NAME, CL_DEVICE_TYPE_ALL, CL_DEVICE_VENDOR, get_device_ids, get_device_info};
use cl3::event::{
    CL_PROFILING_COMMAND_END, CL_PROFILING_COMMAND_START, get_event_profiling_info, release_event,
    wait_for_events,
};
use cl3::kernel::{create_kernel, set_kernel_arg};
use cl3::load_library;
use cl3::memory::{CL_MEM_READ_WRITE, create_buffer, release_mem_object};
use cl3::platform::get_platform_ids;
use cl3::program::{build_program, create_program_with_source};
use cl3::types::{
    CL_TRUE, cl_command_queue, cl_context, cl_device_id, cl_event, cl_kernel, cl_mem, cl_program,
};

pub(crate) const CODE: &str = include_str!("kernels.cl");
/// Work-items of a launch of `touch`: one group.
pub(crate) const ITEMS: usize = 64;

/// A device with a queue and the kernels, opened for as long as the program runs.
#[derive(Debug)]
pub(crate) struct Raw {
    context: cl_context,
    device: cl_device_id,
    program: cl_program,
    pub(crate) queue: cl_command_queue,
    pub(crate) tensors: [cl_mem; 3],
}

/// A queue with its own kernel object, for one thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Enqueuer {
    pub(crate) queue: cl_command_queue,
    pub(crate) kernel: cl_kernel,
}

// SAFETY: OpenCL's objects may be used by any thread; a kernel's arguments are set by the one that has its enqueuer.
unsafe impl Send for Raw {}
// SAFETY: as above.
unsafe impl Sync for Raw {}
// SAFETY: as above.
unsafe impl Send for Enqueuer {}
// SAFETY: as above.
unsafe impl Sync for Enqueuer {}

fn text(device: cl_device_id, what: u32) -> String {
    get_device_info(device, what).map(String::from).unwrap_or_default()
}

/// The device of this name and vendor.
fn find(name: &str, vendor: &str) -> Option<cl_device_id> {
    let platforms = get_platform_ids().unwrap_or_default().into_iter();
    let mut devices =
        platforms.flat_map(|platform| get_device_ids(platform, CL_DEVICE_TYPE_ALL).unwrap_or_default());
    let is_it = |device: &cl_device_id| {
        text(*device, CL_DEVICE_NAME).trim() == name && text(*device, CL_DEVICE_VENDOR).trim() == vendor
    };
    devices.find(is_it)
}

impl Raw {
    pub(crate) fn open(name: &str, vendor: &str) -> Option<Self> {
        let device = find(name, vendor)?;
        let context = create_context(&[device], ptr::null(), None, ptr::null_mut()).expect("a context");
        let program = create_program_with_source(context, &[CODE]).expect("a program");
        build_program(program, &[device], c"", None, ptr::null_mut()).expect("it compiles");
        let mut raw =
            Self { context, device, program, queue: ptr::null_mut(), tensors: [ptr::null_mut(); 3] };
        raw.queue = raw.open_queue(false);
        raw.tensors = std::array::from_fn(|_| raw.allocate(4096, CL_MEM_READ_WRITE));
        Some(raw)
    }

    pub(crate) fn open_queue(&self, profiling: bool) -> cl_command_queue {
        let properties = if profiling { CL_QUEUE_PROFILING_ENABLE } else { 0 };
        // SAFETY: the device is the context's.
        unsafe { create_command_queue(self.context, self.device, properties) }.expect("a queue")
    }

    pub(crate) fn kernel(&self, name: &str) -> cl_kernel {
        create_kernel(self.program, &CString::new(name).expect("a name")).expect("the kernel is there")
    }

    pub(crate) fn enqueuer(&self) -> Enqueuer {
        Enqueuer { queue: self.open_queue(false), kernel: self.kernel("touch") }
    }

    pub(crate) fn allocate(&self, bytes: usize, flags: u64) -> cl_mem {
        // SAFETY: no memory of the program is given.
        unsafe { create_buffer(self.context, flags, bytes, ptr::null_mut()) }.expect("memory")
    }

    /// Sets every argument, and submits.
    #[inline]
    pub(crate) fn launch(&self, Enqueuer { queue, kernel }: Enqueuer, scale: f32) {
        for (index, tensor) in (0..).zip(&self.tensors) {
            set(kernel, index, tensor);
        }
        set(kernel, 3, &scale);
        submit(queue, kernel, ITEMS, ITEMS, ptr::null_mut());
    }

    pub(crate) fn wait(queue: cl_command_queue) {
        finish(queue).expect("the queue ends");
    }

    /// The time of a long kernel by the driver's profiling event.
    pub(crate) fn profile(queue: cl_command_queue, kernel: cl_kernel, items: usize) -> u64 {
        let mut event: cl_event = ptr::null_mut();
        submit(queue, kernel, items, ITEMS, &raw mut event);
        wait_for_events(&[event]).expect("the kernel ends");
        let read = |what| u64::from(get_event_profiling_info(event, what).expect("the queue profiles"));
        let took = read(CL_PROFILING_COMMAND_END) - read(CL_PROFILING_COMMAND_START);
        // SAFETY: nobody uses it any more.
        unsafe { release_event(event) }.expect("it is released");
        took
    }

    pub(crate) fn write(&self, buffer: cl_mem, from: *const u8, bytes: usize) {
        // SAFETY: both have so many bytes, and the call waits.
        let written = unsafe {
            enqueue_write_buffer(self.queue, buffer, CL_TRUE, 0, bytes, from.cast(), 0, ptr::null())
        };
        release(written.expect("written"));
    }

    pub(crate) fn read(&self, buffer: cl_mem, to: *mut u8, bytes: usize) {
        // SAFETY: both have so many bytes, and the call waits.
        let read =
            unsafe { enqueue_read_buffer(self.queue, buffer, CL_TRUE, 0, bytes, to.cast(), 0, ptr::null()) };
        release(read.expect("read"));
    }

    /// The address of a mapped buffer.
    pub(crate) fn map(&self, buffer: cl_mem, bytes: usize, flags: u64) -> *mut u8 {
        let mut place: *mut c_void = ptr::null_mut();
        // SAFETY: the buffer has so many bytes, and the call waits.
        let mapped = unsafe {
            enqueue_map_buffer(self.queue, buffer, CL_TRUE, flags, 0, bytes, &mut place, 0, ptr::null())
        };
        release(mapped.expect("mapped"));
        place.cast()
    }

    pub(crate) fn unmap(&self, buffer: cl_mem, place: *mut u8) {
        // SAFETY: it is mapped there.
        let unmapped = unsafe { enqueue_unmap_mem_object(self.queue, buffer, place.cast(), 0, ptr::null()) };
        release(unmapped.expect("unmapped"));
        Self::wait(self.queue);
    }

    pub(crate) fn free(buffer: cl_mem) {
        // SAFETY: nobody uses it any more.
        unsafe { release_mem_object(buffer) }.expect("it is freed");
    }
}

fn release(event: cl_event) {
    // SAFETY: nobody uses it any more.
    unsafe { release_event(event) }.expect("it is released");
}

#[inline]
pub(crate) fn set<T>(kernel: cl_kernel, index: u32, value: &T) {
    // SAFETY: the kernel takes such a value there, which is copied.
    unsafe { set_kernel_arg(kernel, index, size_of::<T>(), ptr::from_ref(value).cast()) }
        .expect("it is taken");
}

/// Submits the kernel, with an event only if a place for it is given.
#[inline]
fn submit(queue: cl_command_queue, kernel: cl_kernel, items: usize, group: usize, event: *mut cl_event) {
    let calls = load_library().as_ref().expect("OpenCL is there");
    let (none, no_events) = (ptr::null(), ptr::null());
    let submitted = calls.clEnqueueNDRangeKernel(
        queue,
        kernel,
        1,
        none,
        &raw const items,
        &raw const group,
        0,
        no_events,
        event,
    );
    assert_eq!(submitted, Some(0), "the queue takes it");
}

/// As [`Raw::launch`], with an event that is released.
#[inline]
pub(crate) fn launch_with_event(raw: &Raw, enqueuer: Enqueuer, scale: f32) {
    for (index, tensor) in (0..).zip(&raw.tensors) {
        set(enqueuer.kernel, index, tensor);
    }
    set(enqueuer.kernel, 3, &scale);
    let mut event: cl_event = ptr::null_mut();
    submit(enqueuer.queue, enqueuer.kernel, ITEMS, ITEMS, &raw mut event);
    release(event);
}
