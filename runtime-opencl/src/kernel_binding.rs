//! A kernel bound to one queue: a driver object of its own, whose arguments are set only when they change.

#![allow(unsafe_code, reason = "sets arguments through the driver")]

use std::ffi::c_void;
use std::sync::Arc;

use runtime_core::backend::{ArgRef, unsupported_argument};
use runtime_core::{Error, ErrorKind, Result};

use crate::driver::handle::{self, Owned};
use crate::driver::{Raw, call};
use crate::kernel::OpenClKernel;
use crate::memory::OpenClBuffer;
use crate::sub_buffers::SubBuffer;
use crate::views::ViewAccess;

/// The value of an argument. `Unset` ones are set at every launch.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ArgValue {
    Unset,
    View(ViewAccess),
    Scalar(usize, u64),
    Local(u64),
}

/// A kernel object for one queue, with the arguments that are set.
#[derive(Debug)]
pub(crate) struct KernelBinding {
    kernel_id: u64,
    handle: Owned<handle::Kernel>,
    values: Box<[ArgValue]>,
    /// Sub-buffers that are set as arguments. The driver retains them only once the kernel is submitted.
    sub_buffers: Vec<Arc<SubBuffer>>,
}

impl KernelBinding {
    pub(crate) fn new(kernel: &OpenClKernel) -> Result<Self> {
        let values = vec![ArgValue::Unset; kernel.arg_count as usize].into_boxed_slice();
        let handle = kernel.program.create_kernel(&kernel.name)?;
        Ok(Self { kernel_id: kernel.id, handle, values, sub_buffers: Vec::new() })
    }

    /// Whether it belongs to this kernel, and not to an earlier one in the same slot.
    #[inline]
    pub(crate) fn is_for(&self, kernel: &OpenClKernel) -> bool {
        self.kernel_id == kernel.id
    }

    #[inline]
    pub(crate) fn raw(&self) -> Raw {
        self.handle.raw()
    }

    /// Sets the arguments that changed. Returns whether all are set; the others are views that must be copied.
    #[inline]
    pub(crate) fn set_args<'a>(
        &mut self,
        kernel: &OpenClKernel,
        args: impl ExactSizeIterator<Item = ArgRef<'a, OpenClBuffer>>,
    ) -> Result<bool> {
        if args.len() != self.values.len() {
            return Err(kernel.wrong_arg_count(args.len()));
        }
        let mut complete = true;
        for (index, arg) in args.enumerate() {
            let value = match arg {
                ArgRef::Tensor(tensor) => match ViewAccess::of(&tensor, &mut self.sub_buffers)? {
                    ViewAccess::NeedsCopy => {
                        kernel.check_arg(index, &arg)?;
                        complete = false;
                        continue;
                    }
                    view => ArgValue::View(view),
                },
                ArgRef::Scalar { dtype, bits } => ArgValue::Scalar(dtype.bytes(), bits),
                ArgRef::Local(bytes) => ArgValue::Local(bytes),
                _ => ArgValue::Unset,
            };
            if value == ArgValue::Unset || self.values[index] != value {
                kernel.check_arg(index, &arg)?;
                self.set(kernel, index, value, &arg)?;
            }
        }
        Ok(complete)
    }

    /// Releases the sub-buffers that are set as arguments, after the kernel was submitted or refused.
    #[inline]
    pub(crate) fn release_sub_buffers(&mut self) {
        self.sub_buffers.clear();
    }

    /// Sets an argument to the copy of a view.
    pub(crate) fn set_copy(&mut self, kernel: &OpenClKernel, index: usize, copy: Raw) -> Result<()> {
        self.values[index] = ArgValue::Unset;
        self.set_raw(kernel, index, size_of::<Raw>(), (&raw const copy).cast())
    }

    #[cold]
    fn set(
        &mut self,
        kernel: &OpenClKernel,
        index: usize,
        value: ArgValue,
        arg: &ArgRef<'_, OpenClBuffer>,
    ) -> Result<()> {
        // After a failure the value is unknown.
        self.values[index] = ArgValue::Unset;
        match value {
            ArgValue::View(ViewAccess::Object(object, _)) => {
                self.set_raw(kernel, index, size_of::<Raw>(), (&raw const object).cast())?;
            }
            ArgValue::View(view) => self.set_pointer(kernel, index, view)?,
            ArgValue::Scalar(bytes, bits) => {
                self.set_raw(kernel, index, bytes, bits.to_le_bytes().as_ptr().cast())?;
            }
            ArgValue::Local(bytes) => {
                let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
                self.set_raw(kernel, index, bytes, std::ptr::null())?;
            }
            ArgValue::Unset => match arg {
                ArgRef::Bytes(bytes) | ArgRef::Record { bytes, .. } => {
                    self.set_raw(kernel, index, bytes.len(), bytes.as_ptr().cast())?;
                }
                _ => return Err(unsupported_argument(index)),
            },
        }
        self.values[index] = value;
        Ok(())
    }

    fn set_raw(&self, kernel: &OpenClKernel, index: usize, bytes: usize, value: *const c_void) -> Result<()> {
        let (driver, number) = (kernel.context().driver, u32::try_from(index).unwrap_or(u32::MAX));
        // SAFETY: the value has that size and is copied; only this queue uses the kernel object, under its lock.
        let set = unsafe { call!(driver.check, clSetKernelArg(self.handle.raw(), number, bytes, value)) };
        set.map_err(|error| kernel.arg_error(index, error))
    }

    fn set_pointer(&self, kernel: &OpenClKernel, index: usize, view: ViewAccess) -> Result<()> {
        let (context, number) = (kernel.context(), u32::try_from(index).unwrap_or(u32::MAX));
        let set = match (view, &context.caps.usm) {
            (ViewAccess::Usm(pointer, _), Some(usm)) => {
                context.driver.extension("clSetKernelArgMemPointerINTEL", || {
                    // SAFETY: the pointer is into an allocation of this context; only this queue uses the kernel object.
                    unsafe { (usm.clSetKernelArgMemPointerINTEL)(self.handle.raw(), number, pointer.cast()) }
                })
            }
            // SAFETY: the pointer is into an allocation of this context; only this queue uses the kernel object.
            (ViewAccess::Svm(pointer, _), _) => unsafe {
                call!(
                    context.driver.check,
                    clSetKernelArgSVMPointer(self.handle.raw(), number, pointer.cast())
                )
            },
            _ => Err(Error::new(ErrorKind::Internal, "a view without a pointer was set as one")),
        };
        set.map_err(|error| kernel.arg_error(index, error))
    }
}
