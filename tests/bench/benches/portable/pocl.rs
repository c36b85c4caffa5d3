//! Runs the OpenCL C of a portable kernel on PoCL, in the memory that the host device uses.

#![allow(unsafe_code, reason = "calls OpenCL")]

use std::ffi::{CString, c_void};
use std::ptr;

use cl3::command_queue::{create_command_queue, enqueue_nd_range_kernel, finish};
use cl3::context::create_context;
use cl3::device::{CL_DEVICE_MAX_COMPUTE_UNITS, CL_DEVICE_TYPE_ALL, get_device_ids, get_device_info};
use cl3::kernel::{create_kernel, set_kernel_arg};
use cl3::memory::{CL_MEM_READ_WRITE, CL_MEM_USE_HOST_PTR, create_buffer};
use cl3::platform::{CL_PLATFORM_NAME, CL_PLATFORM_VERSION, get_platform_ids, get_platform_info};
use cl3::program::{CL_PROGRAM_BUILD_LOG, build_program, create_program_with_source, get_program_build_info};
use runtime_harness::Spec;
use runtime_kernel::{Checks, Dialect, Program, Specialisation};

use crate::host_kernel::{HostKernel, RawArg};
use crate::options::Options;

/// PoCL's device; the benchmark ends before it is released.
#[derive(Debug)]
pub(crate) struct Pocl {
    device: *mut c_void,
    context: *mut c_void,
    queue: *mut c_void,
}

/// A kernel with its arguments.
#[derive(Debug)]
pub(crate) struct PoclKernel {
    kernel: *mut c_void,
    queue: *mut c_void,
    global: [usize; 3],
    local: [usize; 3],
}

impl Pocl {
    /// Opens the first device of the platform.
    ///
    /// # Errors
    /// If a requirement is missing, with its name.
    pub(crate) fn open() -> Result<Self, String> {
        let code = |what: &str| {
            let what = what.to_owned();
            move |code: i32| format!("{what}: OpenCL error {code}")
        };
        let platforms = get_platform_ids().map_err(code("clGetPlatformIDs"))?;
        let text = |platform, key| get_platform_info(platform, key).map(String::from).unwrap_or_default();
        let platform =
            platforms.into_iter().find(|&platform| text(platform, CL_PLATFORM_NAME).contains("Portable"));
        let platform = platform.ok_or("no platform of that name (Debian: pocl-opencl-icd)")?;
        let devices = get_device_ids(platform, CL_DEVICE_TYPE_ALL).map_err(code("clGetDeviceIDs"))?;
        let device = *devices.first().ok_or("it has no device")?;
        let units = get_device_info(device, CL_DEVICE_MAX_COMPUTE_UNITS).map(u32::from).unwrap_or_default();
        eprintln!("{}, {units} compute units", text(platform, CL_PLATFORM_VERSION));
        let context = create_context(&[device], ptr::null(), None, ptr::null_mut());
        let context = context.map_err(code("clCreateContext"))?;
        // SAFETY: context and device are those of this platform.
        let queue =
            unsafe { create_command_queue(context, device, 0) }.map_err(code("clCreateCommandQueue"))?;
        Ok(Self { device, context, queue })
    }

    /// Builds our kernel, with our memory as its arguments.
    pub(crate) fn prepare(&self, ours: &HostKernel<'_>, options: &Options) -> PoclKernel {
        let spec = ours.job.spec();
        let (code, symbol) = code(spec, options);
        let kernel = self.build(&code, &symbol, &spec.name);
        let mut arguments = Arguments { kernel, count: 0 };
        let raw = ours.raw();
        for argument in &raw {
            match *argument {
                RawArg::Tensor(pointer, bytes) => arguments.add(&self.buffer(pointer, bytes)),
                RawArg::Scalar(bits, bytes) => arguments.add(&bits.to_le_bytes()[..bytes]),
            }
        }
        for argument in &raw {
            if let RawArg::Tensor(_, bytes) = argument {
                arguments.add(&(*bytes as u64).to_le_bytes());
            }
        }
        let geometry = spec.config.geometry().expect("portable kernels run work-groups");
        let local = geometry.group_size.map(|size| size as usize);
        let groups = geometry.groups.map(|count| count as usize);
        let global = std::array::from_fn(|axis| groups[axis] * local[axis]);
        PoclKernel { kernel, queue: self.queue, global, local }
    }

    fn build(&self, code: &str, symbol: &str, name: &str) -> *mut c_void {
        let program = create_program_with_source(self.context, &[code]).expect("a program");
        if let Err(error) = build_program(program, &[self.device], c"", None, ptr::null_mut()) {
            let log = get_program_build_info(program, self.device, CL_PROGRAM_BUILD_LOG).map(String::from);
            panic!("{name}: OpenCL error {error}: {}\n{code}", log.unwrap_or_default());
        }
        let symbol = CString::new(symbol).expect("a name");
        create_kernel(program, &symbol).expect("the kernel is in the program")
    }

    /// The bytes of a handle to a buffer over the memory at `pointer`.
    fn buffer(&self, pointer: *mut u8, bytes: usize) -> [u8; size_of::<usize>()] {
        let flags = CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR;
        // SAFETY: the memory is that of a tensor, which lives as long as the benchmark uses the buffer.
        let buffer = unsafe { create_buffer(self.context, flags, bytes, pointer.cast()) };
        (buffer.expect("a buffer") as usize).to_ne_bytes()
    }
}

/// The OpenCL C of the spec's kernel, and its name there.
fn code(spec: &Spec, options: &Options) -> (String, String) {
    let text = std::fs::read_to_string(&spec.kernel.path).expect("the code is there");
    let mut specialisation = Specialisation { element: spec.specialise.element, ..Specialisation::default() };
    for (name, value) in &spec.specialise.constants {
        specialisation = specialisation.constant(name, value);
    }
    let checks = if options.unchecked { Checks::Unchecked } else { Checks::BoundedOnce };
    let program = Program::parse(&text, "", &specialisation).unwrap_or_else(|error| panic!("{error}"));
    let code = program.c(Dialect::OpenCl, checks).unwrap_or_else(|error| panic!("{error}"));
    let symbol = code.symbols.into_iter().find(|(name, _)| *name == spec.kernel.entry);
    (code.text, symbol.expect("the entry point").1)
}

struct Arguments {
    kernel: *mut c_void,
    count: u32,
}

impl Arguments {
    fn add(&mut self, bytes: &[u8]) {
        // SAFETY: `bytes` is the argument's value, which is copied.
        let set = unsafe { set_kernel_arg(self.kernel, self.count, bytes.len(), bytes.as_ptr().cast()) };
        set.unwrap_or_else(|error| panic!("argument {}: OpenCL error {error}", self.count));
        self.count += 1;
    }
}

impl PoclKernel {
    /// Enqueues the kernel and waits until it is done.
    pub(crate) fn call(&self) {
        let (global, local) = (self.global.as_ptr(), self.local.as_ptr());
        // SAFETY: the arguments are set, and the sizes have three dimensions.
        let enqueued = unsafe {
            enqueue_nd_range_kernel(self.queue, self.kernel, 3, ptr::null(), global, local, 0, ptr::null())
        };
        enqueued.expect("the kernel is enqueued");
        finish(self.queue).expect("the kernel runs");
    }
}
