//! OpenCL devices, without a backend: what the OpenCL C writer makes is run as it is.

#![allow(unsafe_code, reason = "calls the functions of OpenCL")]

use std::ffi::{CString, c_void};
use std::ptr;
use std::sync::Arc;

use cl3::command_queue::{create_command_queue, enqueue_nd_range_kernel, enqueue_read_buffer, finish};
use cl3::context::create_context;
use cl3::device::{
    CL_DEVICE_EXTENSIONS, CL_DEVICE_NAME, CL_DEVICE_TYPE_ALL, get_device_ids, get_device_info,
};
use cl3::kernel::{create_kernel, release_kernel, set_kernel_arg};
use cl3::memory::{
    CL_BUFFER_CREATE_TYPE_REGION, CL_MEM_COPY_HOST_PTR, CL_MEM_READ_WRITE, create_buffer, create_sub_buffer,
    release_mem_object,
};
use cl3::platform::get_platform_ids;
use cl3::program::{
    CL_PROGRAM_BUILD_LOG, build_program, create_program_with_source, get_program_build_info, release_program,
};
use cl3::types::{CL_TRUE, cl_command_queue, cl_context, cl_device_id, cl_kernel, cl_mem, cl_program};
use runtime_kernel::{Checks, Dialect, Interface};

use crate::batch::{Failure, Machine};
use crate::module::Module;
use crate::program::{Buffer, Outputs, Program};

/// Bytes in front of and behind a buffer; what sub-buffers may be aligned to.
const GUARD_BYTES: usize = 1024;
const GUARD: u8 = 0xa5;

/// A device. It is opened once and never closed.
#[derive(Debug)]
pub struct Device {
    name: String,
    extensions: String,
    device: cl_device_id,
    context: cl_context,
    queue: cl_command_queue,
}

// SAFETY: OpenCL's objects may be used by any thread, but for the arguments of a kernel, which each run makes anew.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

/// A handle that is released at the end.
struct Owned<T: Copy>(T, unsafe fn(T) -> Result<(), i32>);

impl<T: Copy> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: it was made for this, and nobody else releases it. What does not succeed leaks.
        let _ = unsafe { (self.1)(self.0) };
    }
}

/// A buffer between guards.
struct Guarded {
    inner: Owned<cl_mem>,
    whole: Owned<cl_mem>,
}

/// The devices of this machine.
///
/// # Errors
/// Why there is none.
pub fn all() -> Result<Vec<Arc<dyn Machine>>, String> {
    if !cl3::is_opencl_runtime_available() {
        return Err("libOpenCL.so.1 is missing; on Debian: ocl-icd-libopencl1 pocl-opencl-icd".to_owned());
    }
    let mut devices: Vec<Arc<dyn Machine>> = Vec::new();
    for platform in get_platform_ids().unwrap_or_default() {
        for device in get_device_ids(platform, CL_DEVICE_TYPE_ALL).unwrap_or_default() {
            let device = Device::open(device, devices.len()).map_err(|code| format!("OpenCL: {code}"))?;
            devices.push(Arc::new(device));
        }
    }
    if devices.is_empty() {
        Err("OpenCL has no device here; on Debian: pocl-opencl-icd".to_owned())
    } else {
        Ok(devices)
    }
}

fn failed(what: &'static str) -> impl Fn(i32) -> Failure {
    move |code| Failure::Failed(format!("{what}: {code}"))
}

impl Device {
    fn open(device: cl_device_id, index: usize) -> Result<Self, i32> {
        let text = |what| get_device_info(device, what).map(String::from);
        let model = text(CL_DEVICE_NAME)?;
        let context = create_context(&[device], ptr::null(), None, ptr::null_mut())?;
        // SAFETY: the device is the context's.
        let queue = unsafe { create_command_queue(context, device, 0) }?;
        let maker = model.split(['-', ' ']).next().unwrap_or_default().to_lowercase();
        let name = format!("opencl:{index}({maker})");
        Ok(Self { name, extensions: text(CL_DEVICE_EXTENSIONS)?, device, context, queue })
    }

    /// What the device lacks of a program's needs.
    fn lacks(&self, program: &Program) -> Option<String> {
        let extension = |need: &String| match need.as_str() {
            "f16" => Some("cl_khr_fp16"),
            "f64" => Some("cl_khr_fp64"),
            "subgroups" => Some("cl_khr_subgroups"),
            _ => None,
        };
        let mut extensions = program.needs.iter().filter_map(extension);
        let missing = extensions.find(|extension| !self.extensions.contains(extension))?;
        Some(format!("{} has no {missing}", self.name))
    }

    fn build(&self, text: &str) -> Result<Owned<cl_program>, Failure> {
        let code =
            create_program_with_source(self.context, &[text]).map_err(failed("clCreateProgramWithSource"))?;
        let code = Owned(code, release_program);
        let built = build_program(code.0, &[self.device], c"-cl-std=CL1.2", None, ptr::null_mut());
        built.map_err(|error| {
            let log = get_program_build_info(code.0, self.device, CL_PROGRAM_BUILD_LOG).map(String::from);
            Failure::Failed(format!("clBuildProgram: {error}\n{}", log.unwrap_or_default()))
        })?;
        Ok(code)
    }

    fn buffer(&self, buffer: &Buffer) -> Result<Guarded, Failure> {
        let guard = [GUARD; GUARD_BYTES];
        let mut bytes = [&guard[..], &buffer.bytes, &guard].concat();
        let (flags, data) = (CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, bytes.as_mut_ptr().cast());
        // SAFETY: the bytes are there, and are copied.
        let whole = unsafe { create_buffer(self.context, flags, bytes.len(), data) };
        let whole = Owned(whole.map_err(failed("clCreateBuffer"))?, release_mem_object);
        let region = [GUARD_BYTES, buffer.bytes.len()];
        let (kind, region) = (CL_BUFFER_CREATE_TYPE_REGION, region.as_ptr().cast());
        // SAFETY: a region is an origin and a size.
        let inner = unsafe { create_sub_buffer(whole.0, CL_MEM_READ_WRITE, kind, region) };
        Ok(Guarded { inner: Owned(inner.map_err(failed("clCreateSubBuffer"))?, release_mem_object), whole })
    }

    fn content(&self, buffer: &Guarded, size: usize) -> Result<Vec<u8>, Failure> {
        let mut bytes = vec![0u8; size + 2 * GUARD_BYTES];
        let to = bytes.as_mut_ptr().cast::<c_void>();
        // SAFETY: there is room for the whole buffer, and the call waits.
        let read = unsafe {
            enqueue_read_buffer(self.queue, buffer.whole.0, CL_TRUE, 0, bytes.len(), to, 0, ptr::null())
        };
        read.map_err(failed("clEnqueueReadBuffer"))?;
        let guards = bytes[..GUARD_BYTES].iter().chain(&bytes[GUARD_BYTES + size..]);
        if guards.into_iter().any(|byte| *byte != GUARD) {
            return Err(Failure::Failed("a guard of a buffer was written".to_owned()));
        }
        Ok(bytes[GUARD_BYTES..GUARD_BYTES + size].to_vec())
    }

    fn perform(
        &self,
        code: cl_program,
        symbol: &str,
        interface: &Interface,
        program: &Program,
    ) -> Result<Outputs, Failure> {
        let name = CString::new(symbol).map_err(|error| Failure::Failed(error.to_string()))?;
        let kernel = create_kernel(code, &name).map_err(failed("clCreateKernel"))?;
        let kernel = Owned(kernel, release_kernel);
        let buffers: Vec<_> =
            program.buffers.iter().map(|buffer| self.buffer(buffer)).collect::<Result<_, _>>()?;
        let mut index = 0;
        for buffer in &buffers {
            set(kernel.0, &mut index, &(buffer.inner.0 as usize).to_ne_bytes())?;
        }
        for (kind, bits) in &program.scalars {
            set(kernel.0, &mut index, &bits.to_le_bytes()[..kind.bytes()])?;
        }
        for buffer in &program.buffers {
            set(kernel.0, &mut index, &(buffer.bytes.len() as u64).to_le_bytes())?;
        }
        let size = interface.group_size.map(|size| size as usize);
        let global: [usize; 3] = std::array::from_fn(|axis| size[axis] * program.groups[axis] as usize);
        let (global, local) = (global.as_ptr(), size.as_ptr());
        // SAFETY: all arguments are set, and live until the end of the work, which is waited for below.
        let launched = unsafe {
            enqueue_nd_range_kernel(self.queue, kernel.0, 3, ptr::null(), global, local, 0, ptr::null())
        };
        launched.map_err(failed("clEnqueueNDRangeKernel"))?;
        finish(self.queue).map_err(failed("clFinish"))?;
        buffers
            .iter()
            .zip(&program.buffers)
            .map(|(buffer, data)| self.content(buffer, data.bytes.len()))
            .collect()
    }
}

fn set(kernel: cl_kernel, index: &mut u32, bytes: &[u8]) -> Result<(), Failure> {
    // SAFETY: the bytes are copied.
    let set = unsafe { set_kernel_arg(kernel, *index, bytes.len(), bytes.as_ptr().cast()) };
    *index += 1;
    set.map_err(failed("clSetKernelArg"))
}

impl Machine for Device {
    fn name(&self) -> &str {
        &self.name
    }

    fn run(&self, programs: &[&Program]) -> Result<Vec<Result<Outputs, Failure>>, Failure> {
        if let Some(lack) = programs.iter().find_map(|program| self.lacks(program)) {
            return Err(Failure::Unsupported(lack));
        }
        let error = |error: runtime_core::Error| Failure::Failed(error.to_string());
        let portable = Module::of("wgsl".to_owned(), programs).parse().map_err(error)?;
        let written = portable.c(Dialect::OpenCl, Checks::Bounded).map_err(error)?;
        let code = self.build(&written.text)?;
        let run = |program: &&Program| {
            let missing = || Failure::Failed(format!("no entry point {}", program.entry));
            let named = |interface: &&Interface| interface.name == program.entry;
            let interface = portable.interfaces().iter().find(named).ok_or_else(missing)?;
            let (_, symbol) =
                written.symbols.iter().find(|(name, _)| *name == program.entry).ok_or_else(missing)?;
            self.perform(code.0, symbol, interface, program)
        };
        Ok(programs.iter().map(run).collect())
    }
}
