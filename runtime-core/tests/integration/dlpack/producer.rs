//! The other library: produces managed tensors and records calls of their deleters.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;

use runtime_core::dlpack::{
    DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor,
};
use runtime_core::{CommonRuntime, DType, Options, Runtime};

pub(crate) fn runtime() -> Runtime {
    Runtime::builder().discover(false).register(runtime_null::backend()).build()
}

pub(crate) fn device() -> Arc<dyn CommonRuntime> {
    runtime().open("null:0").unwrap()
}

pub(crate) fn device_with(options: &Options) -> Arc<dyn CommonRuntime> {
    runtime().open_with("null:0", options).unwrap()
}

/// What the producer records about its tensor.
#[derive(Default)]
pub(crate) struct Watch {
    pub(crate) deletions: AtomicUsize,
    /// The first word of the memory when the deleter was called.
    pub(crate) last_word: AtomicU64,
    pub(crate) thread: Mutex<Option<ThreadId>>,
    /// What else the deleter does.
    pub(crate) hook: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Watch {
    pub(crate) fn deletions(&self) -> usize {
        self.deletions.load(Ordering::SeqCst)
    }
}

/// A managed tensor and what it points to: overwritten and freed by the deleter.
#[repr(C)]
struct Product<M> {
    managed: M,
    shape: Vec<i64>,
    strides: Vec<i64>,
    words: Vec<u64>,
    watch: Arc<Watch>,
}

/// The description of a tensor.
pub(crate) struct Recipe {
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<i64>,
    /// `None`: a null pointer.
    pub(crate) strides: Option<Vec<i64>>,
    /// The memory, in words of 8 bytes.
    pub(crate) words: Vec<u64>,
    /// Where in the memory `data` points to, in bytes.
    pub(crate) data_at: usize,
    pub(crate) byte_offset: u64,
    pub(crate) flags: u64,
}

impl Recipe {
    pub(crate) fn f32(values: &[f32]) -> Self {
        let mut words = vec![0u64; values.len().div_ceil(2)];
        bytemuck::cast_slice_mut(&mut words)[..values.len()].copy_from_slice(values);
        let shape = vec![i64::try_from(values.len()).unwrap()];
        let dtype = DType::F32;
        Self { dtype, shape, strides: None, words, data_at: 0, byte_offset: 0, flags: 0 }
    }

    pub(crate) fn make(self) -> (*mut DLManagedTensorVersioned, Arc<Watch>) {
        let flags = self.flags;
        self.product(|dl_tensor| DLManagedTensorVersioned {
            version: DLPackVersion { major: 1, minor: 0 },
            manager_ctx: std::ptr::null_mut(),
            deleter: Some(delete),
            flags,
            dl_tensor,
        })
    }

    pub(crate) fn make_unversioned(self) -> (*mut DLManagedTensor, Arc<Watch>) {
        self.product(|dl_tensor| DLManagedTensor {
            dl_tensor,
            manager_ctx: std::ptr::null_mut(),
            deleter: Some(delete),
        })
    }

    fn product<M>(mut self, managed: impl FnOnce(DLTensor) -> M) -> (*mut M, Arc<Watch>) {
        let (code, bits, lanes) = self.dtype.dlpack();
        let mut strides = self.strides;
        let data: *mut c_void = self.words.as_mut_ptr().wrapping_byte_add(self.data_at).cast();
        let managed = managed(DLTensor {
            data,
            device: DLDevice { device_type: DLDevice::EXT_DEV, device_id: 0 },
            ndim: i32::try_from(self.shape.len()).unwrap(),
            dtype: DLDataType { code, bits, lanes },
            shape: self.shape.as_mut_ptr(),
            strides: strides.as_mut().map_or(std::ptr::null_mut(), |strides| strides.as_mut_ptr()),
            byte_offset: self.byte_offset,
        });
        let watch = Arc::new(Watch::default());
        let strides = strides.unwrap_or_default();
        let product =
            Product { managed, shape: self.shape, strides, words: self.words, watch: watch.clone() };
        (Box::into_raw(Box::new(product)).cast(), watch)
    }
}

unsafe extern "C" fn delete<M>(managed: *mut M) {
    // SAFETY: the first field of a boxed `Product`; a second call is what the tests look for.
    let mut product = unsafe { Box::from_raw(managed.cast::<Product<M>>()) };
    let watch = product.watch.clone();
    // SAFETY: read behind the compiler's back: the other library's work wrote it.
    let word = product.words.first().map_or(0, |word| unsafe { std::ptr::read_volatile(word) });
    watch.last_word.store(word, Ordering::SeqCst);
    // Any later read returns this value.
    product.words.fill(0xdddd_dddd_dddd_dddd);
    product.shape.fill(-1);
    product.strides.fill(-1);
    drop(product);
    *watch.thread.lock().unwrap() = Some(std::thread::current().id());
    let hook = watch.hook.lock().unwrap().take();
    if let Some(hook) = hook {
        hook();
    }
    watch.deletions.fetch_add(1, Ordering::SeqCst);
}

/// Calls the deleter, as a caller does that still owns the tensor after an error.
pub(crate) fn give_back(managed: *mut DLManagedTensorVersioned) {
    // SAFETY: a product that nobody consumed.
    let deleter = unsafe { (*managed).deleter }.unwrap();
    // SAFETY: called once.
    unsafe { deleter(managed) };
}
