//! Work that the runtime does not submit: copies by the driver's own functions.

#![allow(unsafe_code, reason = "calls drivers")]
#![allow(clippy::multiple_unsafe_ops_per_block, reason = "a sequence of driver calls has one reason")]

use std::ffi::{c_int, c_void};
use std::sync::Mutex;

use ash::vk::{self, Handle};
use libloading::Library;
use runtime_core::queue::NativeHandles;
use runtime_core::tensor::NativeTensor;
use runtime_core::{CommonRuntime, Error, ErrorKind, Result};

use crate::case::Failure;

/// The driver of a device, without the runtime.
pub(crate) enum Foreign {
    /// `libcuda.so.1`.
    Cuda(Library),
    /// The ICD loader.
    OpenCl(Library),
    /// A device, and the pool of the command buffers.
    Vulkan(Box<(ash::Device, Mutex<vk::CommandPool>)>),
    /// None: memory of the host.
    Host,
}

/// `cuStreamDestroy`, `clReleaseCommandQueue`, `cuCtxPushCurrent` and others that take one pointer.
type Close = unsafe extern "C" fn(*mut c_void) -> c_int;
type OpenStream = unsafe extern "C" fn(*mut *mut c_void, u32, c_int) -> c_int;
type OpenCommandQueue = unsafe extern "C" fn(*mut c_void, *mut c_void, u64, *mut c_int) -> *mut c_void;
type CopyCuda = unsafe extern "C" fn(u64, u64, usize, *mut c_void) -> c_int;
type CopyOpenCl = unsafe extern "C" fn(
    *mut c_void,
    *mut c_void,
    *mut c_void,
    usize,
    usize,
    usize,
    u32,
    *const c_void,
    *mut c_void,
) -> c_int;
type CopySvm = unsafe extern "C" fn(
    *mut c_void,
    u32,
    *mut c_void,
    *const c_void,
    usize,
    u32,
    *const c_void,
    *mut c_void,
) -> c_int;

impl Foreign {
    /// The driver of a device.
    ///
    /// # Errors
    /// `Unsupported` for a driver that the suite does not know.
    pub(crate) fn of(device: &dyn CommonRuntime) -> std::result::Result<Self, Failure> {
        let handles = device.native()?;
        let has = |name| handles.number(name).is_ok_and(|handle| handle != 0);
        if has("CUcontext") {
            return Ok(Self::Cuda(open("libcuda.so.1")?));
        }
        if has("cl_context") {
            let loader = std::env::var("OPENCL_DYLIB_PATH").unwrap_or_else(|_| "libOpenCL.so.1".to_owned());
            return Ok(Self::OpenCl(open(&loader)?));
        }
        if has("VkDevice") {
            return Ok(Self::vulkan(&handles)?);
        }
        if handles.is_empty() {
            return Ok(Self::Host);
        }
        Err(Failure::Unsupported(format!("the suite does not know this driver: {handles:?}")))
    }

    fn vulkan(handles: &NativeHandles) -> Result<Self> {
        let find = handles.pointer("vkGetInstanceProcAddr")?;
        // SAFETY: the backend lists the function under its name.
        let get_instance_proc_addr =
            unsafe { std::mem::transmute::<*mut c_void, vk::PFN_vkGetInstanceProcAddr>(find) };
        let functions = ash::StaticFn { get_instance_proc_addr };
        let instance = vk::Instance::from_raw(handles.number("VkInstance")?);
        // SAFETY: the instance is alive.
        let instance = unsafe { ash::Instance::load(&functions, instance) };
        let device = vk::Device::from_raw(handles.number("VkDevice")?);
        // SAFETY: the device is alive, and of that instance.
        let device = unsafe { ash::Device::load(instance.fp_v1_0(), device) };
        Ok(Self::Vulkan(Box::new((device, Mutex::new(vk::CommandPool::null())))))
    }

    /// Opens a queue of the program; `None` where the runtime takes none.
    ///
    /// # Errors
    /// The driver's.
    pub(crate) fn open_queue(
        &self,
        device: &NativeHandles,
        in_order: bool,
    ) -> Result<Option<ProgramQueue<'_>>> {
        let mut handle = std::ptr::null_mut();
        let code = match self {
            Self::Cuda(library) => {
                // SAFETY: the driver's function of this name.
                let open = unsafe { library.get::<OpenStream>(b"cuStreamCreateWithPriority") }
                    .map_err(|error| missing(&error))?;
                let _current = CurrentContext::push(library, device)?;
                // SAFETY: the output pointer is writable; 1 is `CU_STREAM_NON_BLOCKING`.
                unsafe { open(&raw mut handle, 1, 0) }
            }
            Self::OpenCl(library) => {
                // SAFETY: OpenCL's function of this name.
                let open = unsafe { library.get::<OpenCommandQueue>(b"clCreateCommandQueue") }
                    .map_err(|error| missing(&error))?;
                let (context, device) = (device.pointer("cl_context")?, device.pointer("cl_device_id")?);
                let mut code = 0;
                // SAFETY: context and device are alive, and the output pointer is writable; 1 is out of order.
                handle = unsafe { open(context, device, u64::from(!in_order), &raw mut code) };
                code
            }
            Self::Vulkan(_) | Self::Host => return Ok(None),
        };
        check(code).map(|()| Some(ProgramQueue { driver: self, handle }))
    }

    /// Copies bytes between tensors, through the handles of a queue.
    ///
    /// # Errors
    /// The driver's.
    pub(crate) fn copy(
        &self,
        queue: &NativeHandles,
        (to, from): (&NativeTensor, &NativeTensor),
        bytes: usize,
    ) -> Result<()> {
        let address = |tensor: &NativeTensor| tensor.address.unwrap_or(0);
        match self {
            Self::Host => {
                let host = |tensor: &NativeTensor| pointer(tensor.host_address.unwrap_or(0));
                // SAFETY: the host can access both tensors of so many bytes, and nothing else uses them now.
                unsafe { std::ptr::copy(host(from), host(to), bytes) };
                Ok(())
            }
            Self::Cuda(library) => {
                // SAFETY: the driver's function of this name.
                let copy =
                    unsafe { library.get::<CopyCuda>(b"cuMemcpyAsync") }.map_err(|error| missing(&error))?;
                // SAFETY: both tensors live until the copy has ended, and the stream is lent.
                check(unsafe { copy(address(to), address(from), bytes, queue.pointer("CUstream")?) })
            }
            Self::OpenCl(library) => copy_opencl(library, queue, (to, from), bytes),
            Self::Vulkan(vulkan) => copy_vulkan(vulkan, queue, (to, from), bytes as u64),
        }
    }
}

fn copy_opencl(
    library: &Library,
    queue: &NativeHandles,
    (to, from): (&NativeTensor, &NativeTensor),
    bytes: usize,
) -> Result<()> {
    let queue = queue.pointer("cl_command_queue")?;
    let (no_events, no_event) = (std::ptr::null(), std::ptr::null_mut());
    if let (Ok(source), Ok(destination)) = (from.handles.pointer("cl_mem"), to.handles.pointer("cl_mem")) {
        // SAFETY: OpenCL's function of this name.
        let copy =
            unsafe { library.get::<CopyOpenCl>(b"clEnqueueCopyBuffer") }.map_err(|error| missing(&error))?;
        let (at, of) = (size(to.byte_offset), size(from.byte_offset));
        // SAFETY: both tensors live until the copy has ended, and the queue is lent.
        return check(unsafe { copy(queue, source, destination, of, at, bytes, 0, no_events, no_event) });
    }
    // SAFETY: OpenCL's function of this name.
    let copy = unsafe { library.get::<CopySvm>(b"clEnqueueSVMMemcpy") }.map_err(|error| missing(&error))?;
    let (to, from) = (pointer(to.address.unwrap_or(0)), pointer(from.address.unwrap_or(0)));
    // SAFETY: as above.
    check(unsafe { copy(queue, 0, to.cast(), from.cast(), bytes, 0, no_events, no_event) })
}

fn copy_vulkan(
    (device, pool): &(ash::Device, Mutex<vk::CommandPool>),
    queue: &NativeHandles,
    (to, from): (&NativeTensor, &NativeTensor),
    bytes: u64,
) -> Result<()> {
    let family = u32::try_from(queue.number("queue_family_index")?).unwrap_or(0);
    let buffer = |tensor: &NativeTensor| tensor.handles.number("VkBuffer").map(vk::Buffer::from_raw);
    let region = vk::BufferCopy { src_offset: from.byte_offset, dst_offset: to.byte_offset, size: bytes };
    let (source, destination) = (buffer(from)?, buffer(to)?);
    let lent = vk::Queue::from_raw(queue.number("VkQueue")?);
    let mut pool = pool.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    // SAFETY: the device is open, the pool is used under its lock, both tensors live until the copy has ended, and the queue is lent.
    let submitted = unsafe {
        (|| {
            if *pool == vk::CommandPool::null() {
                let info = vk::CommandPoolCreateInfo::default().queue_family_index(family);
                *pool = device.create_command_pool(&info, None)?;
            }
            let info = vk::CommandBufferAllocateInfo::default().command_pool(*pool).command_buffer_count(1);
            let commands = device.allocate_command_buffers(&info)?;
            device.begin_command_buffer(commands[0], &vk::CommandBufferBeginInfo::default())?;
            device.cmd_copy_buffer(commands[0], source, destination, &[region]);
            device.end_command_buffer(commands[0])?;
            let submission = vk::SubmitInfo::default().command_buffers(&commands);
            device.queue_submit(lent, &[submission], vk::Fence::null())
        })()
    };
    submitted.map_err(|code: vk::Result| Error::new(ErrorKind::Driver, format!("{code:?}")))
}

/// A queue that the program has opened. Dropping it closes it.
pub(crate) struct ProgramQueue<'a> {
    driver: &'a Foreign,
    handle: *mut c_void,
}

impl ProgramQueue<'_> {
    /// Its handle.
    pub(crate) fn handle(&self) -> u64 {
        self.handle.expose_provenance() as u64
    }
}

impl Drop for ProgramQueue<'_> {
    fn drop(&mut self) {
        let (library, name): (_, &[u8]) = match self.driver {
            Foreign::Cuda(library) => (library, b"cuStreamDestroy_v2"),
            Foreign::OpenCl(library) => (library, b"clReleaseCommandQueue"),
            Foreign::Vulkan(_) | Foreign::Host => return,
        };
        // SAFETY: the driver's function of this name, and the queue is ours.
        let closed = unsafe { library.get::<Close>(name).map(|close| close(self.handle)) };
        assert_eq!(closed.ok(), Some(0), "the queue of the program could not be closed");
    }
}

/// Makes the device's context current on this thread.
struct CurrentContext<'a>(&'a Library);

impl<'a> CurrentContext<'a> {
    fn push(library: &'a Library, device: &NativeHandles) -> Result<Self> {
        // SAFETY: the driver's function of this name.
        let push =
            unsafe { library.get::<Close>(b"cuCtxPushCurrent_v2") }.map_err(|error| missing(&error))?;
        // SAFETY: the context is alive.
        check(unsafe { push(device.pointer("CUcontext")?) }).map(|()| Self(library))
    }
}

impl Drop for CurrentContext<'_> {
    fn drop(&mut self) {
        let mut context = std::ptr::null_mut::<c_void>();
        // SAFETY: the driver's function of this name takes an output pointer.
        let popped =
            unsafe { self.0.get::<Close>(b"cuCtxPopCurrent_v2").map(|pop| pop((&raw mut context).cast())) };
        debug_assert_eq!(popped.ok(), Some(0), "the context was not current");
    }
}

impl Drop for Foreign {
    /// The case has waited for its work.
    fn drop(&mut self) {
        if let Self::Vulkan(vulkan) = self {
            let pool = *vulkan.1.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
            // SAFETY: the device is open, and the command buffers of the pool are not in use.
            unsafe { vulkan.0.destroy_command_pool(pool, None) };
        }
    }
}

fn open(name: &str) -> std::result::Result<Library, Failure> {
    // SAFETY: the backend has loaded it.
    unsafe { Library::new(name) }.map_err(|error| Failure::Unsupported(format!("{name}: {error}")))
}

fn pointer(address: u64) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(size(address))
}

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(0)
}

fn missing(error: &libloading::Error) -> Error {
    Error::new(ErrorKind::Unsupported, error.to_string())
}

fn check(code: c_int) -> Result<()> {
    if code == 0 { Ok(()) } else { Err(Error::new(ErrorKind::Driver, format!("the driver returned {code}"))) }
}
