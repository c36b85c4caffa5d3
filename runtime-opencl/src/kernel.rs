//! ListedDevice points, and how they are bound to a queue: an object of the driver per queue, its arguments set when they change.

#![allow(unsafe_code, reason = "makes kernels and sets arguments through the driver")]

use std::ffi::{CStr, CString, c_void};
use std::sync::Arc;

use cl3::ext::{
    CL_KERNEL_COMPILE_WORK_GROUP_SIZE, CL_KERNEL_LOCAL_MEM_SIZE, CL_KERNEL_NUM_ARGS,
    CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, CL_KERNEL_PRIVATE_MEM_SIZE, CL_KERNEL_WORK_GROUP_SIZE,
};
use runtime_core::backend::{ArgRef, Kernel, KernelInfo};
use runtime_core::{Error, ErrorKind, Result};

use crate::compile_lock::LaunchedFlag;
use crate::context::SharedContext;
use crate::driver::handle::{Function, Owned};
use crate::driver::{Raw, decode_u64, decode_usizes};
use crate::memory::OpenClBuffer;
use crate::module::BuiltProgram;
use crate::signature::{ParamKind, Parameter};
use crate::sub_buffers::{SubBuffer, ViewAccess};

/// `CL_KERNEL_SPILL_MEM_SIZE_INTEL`.
const SPILL_MEM_SIZE_INTEL: u32 = 0x4109;

/// An entry point.
#[derive(Debug)]
pub struct OpenClKernel {
    loaded: Arc<BuiltProgram>,
    name: CString,
    /// For questions: launches have their own.
    function: Owned<Function>,
    count: u32,
    params: Option<Vec<Parameter>>,
    id: u64,
    slot: u32,
    pub(crate) launched: LaunchedFlag,
}

impl OpenClKernel {
    pub(crate) fn find(loaded: &Arc<BuiltProgram>, name: CString) -> Result<Self> {
        let context = &loaded.context;
        let function = create_kernel(loaded, &name)?;
        let count = context.driver.query_info(|cl, size, value, needed| {
            // SAFETY: the kernel is alive, and there is room as told.
            Some(unsafe { (cl.clGetKernelInfo?)(function.raw(), CL_KERNEL_NUM_ARGS, size, value, needed) })
        });
        let count = count.and_then(|bytes| decode_u64(&bytes)).and_then(|count| u32::try_from(count).ok());
        let count = count.ok_or_else(|| {
            Error::new(ErrorKind::Driver, "clGetKernelInfo does not tell how many arguments the kernel has")
        })?;
        let params = Parameter::query_all(context.driver, function.raw(), count);
        for (index, parameter) in params.iter().flatten().enumerate() {
            parameter.check_passable(index, &name.to_string_lossy())?;
        }
        let (id, slot) = (context.next_id(), context.allocate_slot());
        let launched = LaunchedFlag::default();
        Ok(Self { loaded: Arc::clone(loaded), name, function, count, params, id, slot, launched })
    }

    /// The same entry point once more.
    pub(crate) fn reload(&self) -> Result<Self> {
        Self::find(&self.loaded, self.name.clone())
    }

    #[inline]
    pub(crate) fn context(&self) -> &SharedContext {
        &self.loaded.context
    }

    /// Where a queue keeps what it has bound.
    #[inline]
    pub(crate) fn slot(&self) -> usize {
        self.slot as usize
    }

    fn name(&self) -> String {
        self.name.to_string_lossy().into_owned()
    }

    fn work_group_info(&self, key: u32) -> Option<Vec<u8>> {
        let (kernel, device) = (self.function.raw(), self.loaded.device());
        self.context().driver.query_info(|cl, size, value, needed| {
            // SAFETY: the kernel is built for the device, and there is room as told.
            Some(unsafe { (cl.clGetKernelWorkGroupInfo?)(kernel, device, key, size, value, needed) })
        })
    }

    fn work_group_u32(&self, key: u32) -> Option<u32> {
        u32::try_from(decode_u64(&self.work_group_info(key)?)?).ok()
    }

    /// Refuses an argument that the code cannot take, as far as the driver has told.
    fn check_arg(&self, index: usize, arg: &ArgRef<'_, OpenClBuffer>) -> Result<()> {
        let Some(parameter) = self.params.as_ref().and_then(|params| params.get(index)) else {
            return Ok(());
        };
        let given = match (arg, parameter.kind) {
            (ArgRef::Tensor(_), ParamKind::Tensor { .. })
            | (ArgRef::Local(_), ParamKind::Local)
            | (ArgRef::Bytes(_), ParamKind::Scalar(_) | ParamKind::Value)
            | (ArgRef::Scalar { .. }, ParamKind::Value) => return Ok(()),
            (ArgRef::Scalar { dtype, .. }, ParamKind::Scalar(wanted)) if dtype.bytes() == wanted.bytes() => {
                return Ok(());
            }
            (ArgRef::Tensor(_), _) => "a tensor".to_owned(),
            (ArgRef::Local(_), _) => "work-group memory".to_owned(),
            (ArgRef::Scalar { dtype, .. }, _) => format!("a scalar of {dtype}"),
            (ArgRef::Bytes(bytes), _) => format!("{} bytes", bytes.len()),
            _ => return Err(unknown_kind(index)),
        };
        let (name, wanted) = (self.name(), parameter.declaration());
        Err(Error::invalid(format!(
            "argument {index} of kernel `{name}` is {given}, the code takes `{wanted}`"
        )))
    }

    #[cold]
    fn wrong_arg_count(&self, given: usize) -> Error {
        Error::invalid(format!("kernel `{}` takes {} arguments, got {given}", self.name(), self.count))
    }

    /// Names kernel and argument in a refusal of the driver.
    #[cold]
    fn arg_error(&self, index: usize, error: Error) -> Error {
        let wanted = match self.params.as_ref().and_then(|params| params.get(index)) {
            Some(parameter) => format!(", which takes `{}`", parameter.declaration()),
            None => String::new(),
        };
        error.with_note(format_args!("argument {index} of kernel `{}`{wanted}", self.name()))
    }

    /// Names the kernel in a refusal of the driver.
    #[cold]
    pub(crate) fn with_name(&self, error: Error) -> Error {
        error.with_note(format_args!("kernel `{}`", self.name()))
    }
}

impl Drop for OpenClKernel {
    fn drop(&mut self) {
        self.context().free_slot(self.slot);
    }
}

impl Kernel for OpenClKernel {
    fn info(&self) -> KernelInfo {
        let fixed =
            self.work_group_info(CL_KERNEL_COMPILE_WORK_GROUP_SIZE).map(|bytes| decode_usizes(&bytes));
        let group_size = match fixed.as_deref() {
            Some(&[x, y, z]) if x != 0 => Some([x, y, z].map(|size| u32::try_from(size).unwrap_or(u32::MAX))),
            _ => None,
        };
        let most = self.work_group_u32(CL_KERNEL_WORK_GROUP_SIZE);
        KernelInfo {
            spilled_bytes: self.work_group_u32(SPILL_MEM_SIZE_INTEL),
            // NVIDIA's driver says 1 of a kernel that has none.
            shared_bytes: self
                .work_group_u32(CL_KERNEL_LOCAL_MEM_SIZE)
                .map(|bytes| if bytes == 1 { 0 } else { bytes }),
            max_group_items: most
                .map(|most| self.context().quirks.group_items.map_or(most, |own| own.min(most))),
            group_size,
            params: self.params.as_ref().and_then(|params| params.iter().map(Parameter::to_param).collect()),
            preferred_multiple: self.work_group_u32(CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE),
            private_bytes: self.work_group_u32(CL_KERNEL_PRIVATE_MEM_SIZE),
            ..KernelInfo::default()
        }
    }
}

fn create_kernel(loaded: &BuiltProgram, name: &CStr) -> Result<Owned<Function>> {
    let driver = loaded.context.driver;
    let raw = driver.create("clCreateKernel", |cl, code| {
        // SAFETY: the program is built, and the name terminated.
        Some(unsafe { (cl.clCreateKernel?)(loaded.program(), name.as_ptr(), code) })
    })?;
    // SAFETY: it was just made.
    Ok(unsafe { Owned::new(driver, raw) })
}

/// What an argument is set to; what has none is set every time.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ArgValue {
    Unset,
    ViewAccess(ViewAccess),
    Scalar(usize, u64),
    Local(u64),
}

/// A kernel on one queue.
#[derive(Debug)]
pub(crate) struct KernelBinding {
    kernel: u64,
    function: Owned<Function>,
    values: Box<[ArgValue]>,
    /// What the arguments are set to and the driver does not keep before the kernel is submitted.
    sub_buffers: Vec<Arc<SubBuffer>>,
}

impl KernelBinding {
    pub(crate) fn new(kernel: &OpenClKernel) -> Result<Self> {
        let values = vec![ArgValue::Unset; kernel.count as usize].into_boxed_slice();
        let function = create_kernel(&kernel.loaded, &kernel.name)?;
        Ok(Self { kernel: kernel.id, function, values, sub_buffers: Vec::new() })
    }

    /// Whether it is of this kernel, and not of an earlier one in the same slot.
    #[inline]
    pub(crate) fn is_for(&self, kernel: &OpenClKernel) -> bool {
        self.kernel == kernel.id
    }

    #[inline]
    pub(crate) fn function(&self) -> Raw {
        self.function.raw()
    }

    /// Sets the arguments that have changed; answers whether all are set: others are views that must be copied.
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
                    view => ArgValue::ViewAccess(view),
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

    /// Lets the sub-buffers go that the arguments are set to: the kernel was submitted, or will not be.
    #[inline]
    pub(crate) fn release_sub_buffers(&mut self) {
        self.sub_buffers.clear();
    }

    /// Sets an argument to a buffer that holds a copy.
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
        // If it fails, nobody knows what is set.
        self.values[index] = ArgValue::Unset;
        match value {
            ArgValue::ViewAccess(ViewAccess::Object(object, _)) => {
                self.set_raw(kernel, index, size_of::<Raw>(), (&raw const object).cast())?;
            }
            ArgValue::ViewAccess(view) => self.set_pointer(kernel, index, view)?,
            ArgValue::Scalar(bytes, bits) => {
                self.set_raw(kernel, index, bytes, bits.to_le_bytes().as_ptr().cast())?;
            }
            ArgValue::Local(bytes) => {
                let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
                self.set_raw(kernel, index, bytes, std::ptr::null())?;
            }
            ArgValue::Unset => match arg {
                ArgRef::Bytes(bytes) => self.set_raw(kernel, index, bytes.len(), bytes.as_ptr().cast())?,
                _ => return Err(unknown_kind(index)),
            },
        }
        self.values[index] = value;
        Ok(())
    }

    fn set_raw(&self, kernel: &OpenClKernel, index: usize, bytes: usize, value: *const c_void) -> Result<()> {
        let number = u32::try_from(index).unwrap_or(u32::MAX);
        let set = kernel.context().driver.check("clSetKernelArg", |cl| {
            // SAFETY: the value is of that size and copied; only this queue uses the kernel, under its lock.
            Some(unsafe { (cl.clSetKernelArg?)(self.function.raw(), number, bytes, value) })
        });
        set.map_err(|error| kernel.arg_error(index, error))
    }

    fn set_pointer(&self, kernel: &OpenClKernel, index: usize, view: ViewAccess) -> Result<()> {
        let (context, number) = (kernel.context(), u32::try_from(index).unwrap_or(u32::MAX));
        let set = match (view, &context.caps.usm) {
            (ViewAccess::Usm(pointer, _), Some(usm)) => {
                context.driver.extension("clSetKernelArgMemPointerINTEL", || {
                    // SAFETY: the pointer is into an allocation of this context; only this queue uses the kernel.
                    unsafe {
                        (usm.clSetKernelArgMemPointerINTEL)(self.function.raw(), number, pointer.cast())
                    }
                })
            }
            (ViewAccess::Svm(pointer, _), _) => context.driver.check("clSetKernelArgSVMPointer", |cl| {
                // SAFETY: as above.
                Some(unsafe { (cl.clSetKernelArgSVMPointer?)(self.function.raw(), number, pointer.cast()) })
            }),
            _ => Err(Error::new(ErrorKind::Internal, "a view that is no pointer")),
        };
        set.map_err(|error| kernel.arg_error(index, error))
    }
}

#[cold]
fn unknown_kind(index: usize) -> Error {
    Error::unsupported(format!("argument {index} is of a kind that this backend does not know"))
}
