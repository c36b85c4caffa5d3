//! Plain CUDA driver calls, the baseline of the comparison.

#![allow(unsafe_code, reason = "calls the driver directly, as the baseline")]
#![allow(non_snake_case, reason = "the driver's own names")]

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::ptr;

use cudarc::driver::sys::{CUDA_KERNEL_NODE_PARAMS, CUDA_MEMCPY2D, CUmemorytype};
use libloading::Library;

/// A handle of the driver.
pub(crate) type Handle = *mut c_void;

macro_rules! bind {
    ($($symbol:ident($($ty:ty),*);)*) => {
        /// The functions that the comparison needs.
        #[derive(Debug)]
        pub(crate) struct Calls {
            $(pub(crate) $symbol: unsafe extern "C" fn($($ty),*) -> c_int,)*
            _library: Library,
        }

        impl Calls {
            fn open() -> Option<Self> {
                // SAFETY: NVIDIA's driver library may be loaded at any time.
                let library = unsafe { Library::new("libcuda.so.1") }.ok()?;
                Some(Self {
                    $($symbol: {
                        // SAFETY: the driver's function of this name has this signature.
                        *unsafe { library.get(stringify!($symbol).as_bytes()) }.ok()?
                    },)*
                    _library: library,
                })
            }
        }
    };
}

bind! {
    cuInit(c_uint);
    cuDevicePrimaryCtxRetain(*mut Handle, c_int);
    cuCtxSetCurrent(Handle);
    cuStreamCreate(*mut Handle, c_uint);
    cuStreamSynchronize(Handle);
    cuModuleLoadData(*mut Handle, *const c_void);
    cuModuleUnload(Handle);
    cuModuleGetFunction(*mut Handle, Handle, *const c_char);
    cuLaunchKernel(Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *const *const c_void, *const Handle);
    cuMemAlloc_v2(*mut u64, usize);
    cuMemFree_v2(u64);
    cuMemHostAlloc(*mut Handle, usize, c_uint);
    cuMemFreeHost(Handle);
    cuMemcpyHtoDAsync_v2(u64, *const c_void, usize, Handle);
    cuMemcpyDtoHAsync_v2(*mut c_void, u64, usize, Handle);
    cuMemcpy2DAsync_v2(*const CUDA_MEMCPY2D, Handle);
    cuMemAllocAsync(*mut u64, usize, Handle);
    cuMemFreeAsync(u64, Handle);
    cuDeviceGetDefaultMemPool(*mut Handle, c_int);
    cuMemPoolSetAttribute(Handle, c_int, *mut c_void);
    cuGraphCreate(*mut Handle, c_uint);
    cuGraphAddKernelNode_v2(*mut Handle, Handle, *const Handle, usize, *const CUDA_KERNEL_NODE_PARAMS);
    cuGraphInstantiateWithFlags(*mut Handle, Handle, u64);
    cuGraphLaunch(Handle, Handle);
    cuEventCreate(*mut Handle, c_uint);
    cuEventRecord(Handle, Handle);
    cuEventQuery(Handle);
    cuStreamQuery(Handle);
    cuMemHostGetDevicePointer_v2(*mut u64, Handle, c_uint);
    cuStreamWriteValue64_v2(Handle, u64, u64, c_uint);
}

/// Fails the benchmark: a comparison with a call that does not work says nothing.
#[track_caller]
pub(crate) fn ok(code: c_int) {
    assert_eq!(code, 0, "the driver answers an error");
}

/// The driver with a context, a stream, and the kernel of the comparison.
#[derive(Debug)]
pub(crate) struct Raw {
    pub(crate) calls: Calls,
    context: Handle,
    pub(crate) stream: Handle,
    function: Handle,
    /// Three tensors.
    pub(crate) tensors: [u64; 3],
}

// SAFETY: the driver's objects may be used from any thread.
unsafe impl Send for Raw {}
// SAFETY: as above.
unsafe impl Sync for Raw {}

impl Raw {
    /// Opens device 0; `None` without a driver.
    pub(crate) fn open(ptx: &str) -> Option<Self> {
        let calls = Calls::open()?;
        // SAFETY: takes a number.
        if unsafe { (calls.cuInit)(0) } != 0 {
            return None;
        }
        let mut raw = Self {
            calls,
            context: ptr::null_mut(),
            stream: ptr::null_mut(),
            function: ptr::null_mut(),
            tensors: [0; 3],
        };
        // SAFETY: the out-parameter is writable.
        ok(unsafe { (raw.calls.cuDevicePrimaryCtxRetain)(&raw mut raw.context, 0) });
        raw.enter();
        raw.stream = raw.open_stream();
        let text = CString::new(ptx).expect("PTX is text");
        raw.function = raw.load(text.as_ptr().cast(), c"touch").1;
        for tensor in &mut raw.tensors {
            // SAFETY: the out-parameter is writable.
            ok(unsafe { (raw.calls.cuMemAlloc_v2)(tensor, 4096) });
        }
        Some(raw)
    }

    /// Makes the context current on this thread.
    pub(crate) fn enter(&self) {
        // SAFETY: the context is retained.
        ok(unsafe { (self.calls.cuCtxSetCurrent)(self.context) });
    }

    pub(crate) fn open_stream(&self) -> Handle {
        let mut stream = ptr::null_mut();
        // SAFETY: the out-parameter is writable.
        ok(unsafe { (self.calls.cuStreamCreate)(&raw mut stream, 1) });
        stream
    }

    /// Loads code and finds a function.
    pub(crate) fn load(&self, code: *const c_void, name: &std::ffi::CStr) -> (Handle, Handle) {
        let (mut module, mut function) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the code is complete.
        ok(unsafe { (self.calls.cuModuleLoadData)(&raw mut module, code) });
        // SAFETY: the module is loaded and the name terminated.
        ok(unsafe { (self.calls.cuModuleGetFunction)(&raw mut function, module, name.as_ptr()) });
        (module, function)
    }

    /// Submits the kernel.
    #[inline]
    pub(crate) fn launch(&self, stream: Handle, scale: f32) {
        let [a, b, c] = &self.tensors;
        let arguments: [*const c_void; 4] = [
            ptr::from_ref(a).cast(),
            ptr::from_ref(b).cast(),
            ptr::from_ref(c).cast(),
            ptr::from_ref(&scale).cast(),
        ];
        // SAFETY: the kernel takes these four arguments and does nothing with them.
        ok(unsafe {
            (self.calls.cuLaunchKernel)(
                self.function,
                1,
                1,
                1,
                1,
                1,
                1,
                0,
                stream,
                arguments.as_ptr(),
                ptr::null(),
            )
        });
    }

    /// Creates an event without timing.
    pub(crate) fn open_event(&self) -> Handle {
        let mut event = ptr::null_mut();
        // SAFETY: the out-parameter is writable.
        ok(unsafe { (self.calls.cuEventCreate)(&raw mut event, 2) });
        event
    }

    #[inline]
    pub(crate) fn record(&self, event: Handle, stream: Handle) {
        // SAFETY: event and stream are alive.
        ok(unsafe { (self.calls.cuEventRecord)(event, stream) });
    }

    /// A word of pinned memory, for the device.
    pub(crate) fn open_word(&self) -> u64 {
        let (mut host, mut address) = (ptr::null_mut(), 0);
        // SAFETY: the out-parameter is writable.
        ok(unsafe { (self.calls.cuMemHostAlloc)(&raw mut host, 4096, 2) });
        // SAFETY: as above.
        ok(unsafe { (self.calls.cuMemHostGetDevicePointer_v2)(&raw mut address, host, 0) });
        address
    }

    #[inline]
    pub(crate) fn write_word(&self, word: u64, value: u64) {
        // SAFETY: the word is allocated and the stream alive.
        ok(unsafe { (self.calls.cuStreamWriteValue64_v2)(self.stream, word, value, 0) });
    }

    /// Copies rows between two addresses known to the driver, each with a pitch.
    pub(crate) fn copy_2d(&self, to: (u64, usize), from: (u64, usize), row_bytes: usize, rows: usize) {
        let copy = CUDA_MEMCPY2D {
            srcXInBytes: 0,
            srcY: 0,
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_UNIFIED,
            srcHost: ptr::null(),
            srcDevice: from.0,
            srcArray: ptr::null_mut(),
            srcPitch: from.1,
            dstXInBytes: 0,
            dstY: 0,
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_UNIFIED,
            dstHost: ptr::null_mut(),
            dstDevice: to.0,
            dstArray: ptr::null_mut(),
            dstPitch: to.1,
            WidthInBytes: row_bytes,
            Height: rows,
        };
        // SAFETY: both sides are allocated, and the stream is alive.
        ok(unsafe { (self.calls.cuMemcpy2DAsync_v2)(&raw const copy, self.stream) });
    }

    pub(crate) fn wait(&self, stream: Handle) {
        // SAFETY: the stream is alive.
        ok(unsafe { (self.calls.cuStreamSynchronize)(stream) });
    }

    /// Polls until all work on the stream has ended.
    pub(crate) fn wait_by_stream(&self) {
        // SAFETY: the stream is alive.
        while unsafe { (self.calls.cuStreamQuery)(self.stream) } != 0 {
            std::hint::spin_loop();
        }
    }

    /// Records an event, and polls until it has completed.
    pub(crate) fn wait_by_event(&self, event: Handle) {
        self.record(event, self.stream);
        // SAFETY: the event is alive.
        while unsafe { (self.calls.cuEventQuery)(event) } != 0 {
            std::hint::spin_loop();
        }
    }

    /// A graph of kernel nodes in sequence.
    pub(crate) fn graph(&self, count: usize) -> Handle {
        let (mut graph, mut executable) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the out-parameter is writable.
        ok(unsafe { (self.calls.cuGraphCreate)(&raw mut graph, 0) });
        let scale = 3.0f32;
        let [a, b, c] = &self.tensors;
        let mut arguments: [Handle; 4] = [
            ptr::from_ref(a).cast_mut().cast(),
            ptr::from_ref(b).cast_mut().cast(),
            ptr::from_ref(c).cast_mut().cast(),
            ptr::from_ref(&scale).cast_mut().cast(),
        ];
        let with = CUDA_KERNEL_NODE_PARAMS {
            func: self.function.cast(),
            gridDimX: 1,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: 1,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: 0,
            kernelParams: arguments.as_mut_ptr(),
            extra: ptr::null_mut(),
            kern: ptr::null_mut(),
            ctx: ptr::null_mut(),
        };
        let mut before: Option<Handle> = None;
        for _ in 0..count {
            let mut node = ptr::null_mut();
            let needed = before.as_ref().map_or(ptr::null(), ptr::from_ref);
            let needs = usize::from(before.is_some());
            // SAFETY: the graph is alive, and the parameters are as the kernel takes them.
            ok(unsafe {
                (self.calls.cuGraphAddKernelNode_v2)(&raw mut node, graph, needed, needs, &raw const with)
            });
            before = Some(node);
        }
        // SAFETY: the graph is complete.
        ok(unsafe { (self.calls.cuGraphInstantiateWithFlags)(&raw mut executable, graph, 0) });
        executable
    }

    /// Makes the default pool keep freed memory, as a tuned program does.
    pub(crate) fn keep_freed(&self) {
        let (mut pool, mut threshold) = (ptr::null_mut(), u64::MAX);
        // SAFETY: the out-parameter is writable.
        ok(unsafe { (self.calls.cuDeviceGetDefaultMemPool)(&raw mut pool, 0) });
        // SAFETY: attribute 4 is the release threshold, of 64 bits.
        ok(unsafe { (self.calls.cuMemPoolSetAttribute)(pool, 4, (&raw mut threshold).cast()) });
    }
}
