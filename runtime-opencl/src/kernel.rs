//! Entry points, and how they are bound to a queue: an object of the driver per queue, its arguments set when they change.

#![allow(unsafe_code, reason = "makes kernels and sets arguments through the driver")]

use std::ffi::{CStr, CString, c_void};
use std::sync::Arc;

use cl3::ext::{
    CL_KERNEL_COMPILE_WORK_GROUP_SIZE, CL_KERNEL_LOCAL_MEM_SIZE, CL_KERNEL_NUM_ARGS,
    CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, CL_KERNEL_PRIVATE_MEM_SIZE, CL_KERNEL_WORK_GROUP_SIZE,
};
use runtime_core::backend::{ArgRef, Kernel, KernelInfo};
use runtime_core::{Error, ErrorKind, Result};

use crate::compiler::Launched;
use crate::context::Primary;
use crate::driver::handle::{Function, Owned};
use crate::driver::{Raw, number, numbers};
use crate::memory::OpenClBuffer;
use crate::module::Loaded;
use crate::params::{Parameter, Sort};
use crate::views::{Part, View};

/// `CL_KERNEL_SPILL_MEM_SIZE_INTEL`.
const SPILLED: u32 = 0x4109;

/// An entry point.
#[derive(Debug)]
pub struct OpenClKernel {
    loaded: Arc<Loaded>,
    name: CString,
    /// For questions: launches have their own.
    function: Owned<Function>,
    count: u32,
    params: Option<Vec<Parameter>>,
    id: u64,
    slot: u32,
    pub(crate) launched: Launched,
}

impl OpenClKernel {
    pub(crate) fn find(loaded: &Arc<Loaded>, name: CString) -> Result<Self> {
        let primary = &loaded.primary;
        let function = make(loaded, &name)?;
        let count = primary.driver.ask(|calls, size, value, needed| {
            // SAFETY: the kernel is alive, and there is room as told.
            Some(unsafe { (calls.clGetKernelInfo?)(function.raw(), CL_KERNEL_NUM_ARGS, size, value, needed) })
        });
        let count = count.and_then(|bytes| number(&bytes)).and_then(|count| u32::try_from(count).ok());
        let count = count.ok_or_else(|| {
            Error::new(ErrorKind::Driver, "clGetKernelInfo does not tell how many arguments the kernel has")
        })?;
        let params = Parameter::all(primary.driver, function.raw(), count);
        for (index, parameter) in params.iter().flatten().enumerate() {
            parameter.check(index, &name.to_string_lossy())?;
        }
        let (id, slot) = (primary.next_id(), primary.take_slot());
        let launched = Launched::default();
        Ok(Self { loaded: Arc::clone(loaded), name, function, count, params, id, slot, launched })
    }

    /// The same entry point once more.
    pub(crate) fn share(&self) -> Result<Self> {
        Self::find(&self.loaded, self.name.clone())
    }

    #[inline]
    pub(crate) fn primary(&self) -> &Primary {
        &self.loaded.primary
    }

    /// Where a queue keeps what it has bound.
    #[inline]
    pub(crate) fn slot(&self) -> usize {
        self.slot as usize
    }

    fn name(&self) -> String {
        self.name.to_string_lossy().into_owned()
    }

    fn group_info(&self, key: u32) -> Option<Vec<u8>> {
        let (kernel, device) = (self.function.raw(), self.loaded.device());
        self.primary().driver.ask(|calls, size, value, needed| {
            // SAFETY: the kernel is built for the device, and there is room as told.
            Some(unsafe { (calls.clGetKernelWorkGroupInfo?)(kernel, device, key, size, value, needed) })
        })
    }

    fn figure(&self, key: u32) -> Option<u32> {
        u32::try_from(number(&self.group_info(key)?)?).ok()
    }

    /// Refuses an argument that the code cannot take, as far as the driver has told.
    fn check(&self, index: usize, arg: &ArgRef<'_, OpenClBuffer>) -> Result<()> {
        let Some(parameter) = self.params.as_ref().and_then(|params| params.get(index)) else {
            return Ok(());
        };
        let given = match (arg, parameter.sort) {
            (ArgRef::Tensor(_), Sort::Tensor { .. })
            | (ArgRef::Local(_), Sort::Local)
            | (ArgRef::Bytes(_), Sort::Scalar(_) | Sort::Value)
            | (ArgRef::Scalar { .. }, Sort::Value) => return Ok(()),
            (ArgRef::Scalar { dtype, .. }, Sort::Scalar(wanted)) if dtype.bytes() == wanted.bytes() => {
                return Ok(());
            }
            (ArgRef::Tensor(_), _) => "a tensor".to_owned(),
            (ArgRef::Local(_), _) => "work-group memory".to_owned(),
            (ArgRef::Scalar { dtype, .. }, _) => format!("a scalar of {dtype}"),
            (ArgRef::Bytes(bytes), _) => format!("{} bytes", bytes.len()),
            _ => return Err(unknown(index)),
        };
        let (name, wanted) = (self.name(), parameter.named());
        Err(Error::invalid(format!(
            "argument {index} of kernel `{name}` is {given}, the code takes `{wanted}`"
        )))
    }

    #[cold]
    fn miscount(&self, given: usize) -> Error {
        Error::invalid(format!("kernel `{}` takes {} arguments, got {given}", self.name(), self.count))
    }

    /// Names kernel and argument in a refusal of the driver.
    #[cold]
    fn refused(&self, index: usize, error: Error) -> Error {
        let wanted = match self.params.as_ref().and_then(|params| params.get(index)) {
            Some(parameter) => format!(", which takes `{}`", parameter.named()),
            None => String::new(),
        };
        error.with_note(format_args!("argument {index} of kernel `{}`{wanted}", self.name()))
    }

    /// Names the kernel in a refusal of the driver.
    #[cold]
    pub(crate) fn named(&self, error: Error) -> Error {
        error.with_note(format_args!("kernel `{}`", self.name()))
    }
}

impl Drop for OpenClKernel {
    fn drop(&mut self) {
        self.primary().give_slot(self.slot);
    }
}

impl Kernel for OpenClKernel {
    fn info(&self) -> KernelInfo {
        let fixed = self.group_info(CL_KERNEL_COMPILE_WORK_GROUP_SIZE).map(|bytes| numbers(&bytes));
        let group_size = match fixed.as_deref() {
            Some(&[x, y, z]) if x != 0 => Some([x, y, z].map(|size| u32::try_from(size).unwrap_or(u32::MAX))),
            _ => None,
        };
        let most = self.figure(CL_KERNEL_WORK_GROUP_SIZE);
        KernelInfo {
            spilled_bytes: self.figure(SPILLED),
            // NVIDIA's driver says 1 of a kernel that has none.
            shared_bytes: self
                .figure(CL_KERNEL_LOCAL_MEM_SIZE)
                .map(|bytes| if bytes == 1 { 0 } else { bytes }),
            max_group_items: most
                .map(|most| self.primary().quirks.group_items.map_or(most, |own| own.min(most))),
            group_size,
            params: self.params.as_ref().and_then(|params| params.iter().map(Parameter::told).collect()),
            preferred_multiple: self.figure(CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE),
            private_bytes: self.figure(CL_KERNEL_PRIVATE_MEM_SIZE),
            ..KernelInfo::default()
        }
    }
}

fn make(loaded: &Loaded, name: &CStr) -> Result<Owned<Function>> {
    let driver = loaded.primary.driver;
    let raw = driver.make("clCreateKernel", |calls, code| {
        // SAFETY: the program is built, and the name terminated.
        Some(unsafe { (calls.clCreateKernel?)(loaded.program(), name.as_ptr(), code) })
    })?;
    // SAFETY: it was just made.
    Ok(unsafe { Owned::new(driver, raw) })
}

/// What an argument is set to; what has none is set every time.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Value {
    Unset,
    View(View),
    Scalar(usize, u64),
    Local(u64),
}

/// A kernel on one queue.
#[derive(Debug)]
pub(crate) struct Bound {
    kernel: u64,
    function: Owned<Function>,
    values: Box<[Value]>,
    /// What the arguments are set to and the driver does not keep before the kernel is submitted.
    parts: Vec<Arc<Part>>,
}

impl Bound {
    pub(crate) fn new(kernel: &OpenClKernel) -> Result<Self> {
        let values = vec![Value::Unset; kernel.count as usize].into_boxed_slice();
        let function = make(&kernel.loaded, &kernel.name)?;
        Ok(Self { kernel: kernel.id, function, values, parts: Vec::new() })
    }

    /// Whether it is of this kernel, and not of an earlier one in the same slot.
    #[inline]
    pub(crate) fn is_of(&self, kernel: &OpenClKernel) -> bool {
        self.kernel == kernel.id
    }

    #[inline]
    pub(crate) fn function(&self) -> Raw {
        self.function.raw()
    }

    /// Sets the arguments that have changed; answers whether all are set: others are views that must be copied.
    #[inline]
    pub(crate) fn set_all<'a>(
        &mut self,
        kernel: &OpenClKernel,
        args: impl ExactSizeIterator<Item = ArgRef<'a, OpenClBuffer>>,
    ) -> Result<bool> {
        if args.len() != self.values.len() {
            return Err(kernel.miscount(args.len()));
        }
        let mut complete = true;
        for (index, arg) in args.enumerate() {
            let value = match arg {
                ArgRef::Tensor(tensor) => match View::of(&tensor, &mut self.parts)? {
                    View::Apart => {
                        kernel.check(index, &arg)?;
                        complete = false;
                        continue;
                    }
                    view => Value::View(view),
                },
                ArgRef::Scalar { dtype, bits } => Value::Scalar(dtype.bytes(), bits),
                ArgRef::Local(bytes) => Value::Local(bytes),
                _ => Value::Unset,
            };
            if value == Value::Unset || self.values[index] != value {
                kernel.check(index, &arg)?;
                self.set(kernel, index, value, &arg)?;
            }
        }
        Ok(complete)
    }

    /// Lets the sub-buffers go that the arguments are set to: the kernel was submitted, or will not be.
    #[inline]
    pub(crate) fn release_parts(&mut self) {
        self.parts.clear();
    }

    /// Sets an argument to a buffer that holds a copy.
    pub(crate) fn set_copy(&mut self, kernel: &OpenClKernel, index: usize, copy: Raw) -> Result<()> {
        self.values[index] = Value::Unset;
        self.put(kernel, index, size_of::<Raw>(), (&raw const copy).cast())
    }

    #[cold]
    fn set(
        &mut self,
        kernel: &OpenClKernel,
        index: usize,
        value: Value,
        arg: &ArgRef<'_, OpenClBuffer>,
    ) -> Result<()> {
        // If it fails, nobody knows what is set.
        self.values[index] = Value::Unset;
        match value {
            Value::View(View::Object(object, _)) => {
                self.put(kernel, index, size_of::<Raw>(), (&raw const object).cast())?;
            }
            Value::View(view) => self.point(kernel, index, view)?,
            Value::Scalar(bytes, bits) => {
                self.put(kernel, index, bytes, bits.to_le_bytes().as_ptr().cast())?;
            }
            Value::Local(bytes) => {
                let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
                self.put(kernel, index, bytes, std::ptr::null())?;
            }
            Value::Unset => match arg {
                ArgRef::Bytes(bytes) => self.put(kernel, index, bytes.len(), bytes.as_ptr().cast())?,
                _ => return Err(unknown(index)),
            },
        }
        self.values[index] = value;
        Ok(())
    }

    fn put(&self, kernel: &OpenClKernel, index: usize, bytes: usize, value: *const c_void) -> Result<()> {
        let number = u32::try_from(index).unwrap_or(u32::MAX);
        let set = kernel.primary().driver.check("clSetKernelArg", |calls| {
            // SAFETY: the value is of that size and copied; only this queue uses the kernel, under its lock.
            Some(unsafe { (calls.clSetKernelArg?)(self.function.raw(), number, bytes, value) })
        });
        set.map_err(|error| kernel.refused(index, error))
    }

    fn point(&self, kernel: &OpenClKernel, index: usize, view: View) -> Result<()> {
        let (primary, number) = (kernel.primary(), u32::try_from(index).unwrap_or(u32::MAX));
        let set = match (view, &primary.facts.usm) {
            (View::Usm(pointer, _), Some(usm)) => {
                primary.driver.extension("clSetKernelArgMemPointerINTEL", || {
                    // SAFETY: the pointer is into an allocation of this context; only this queue uses the kernel.
                    unsafe {
                        (usm.clSetKernelArgMemPointerINTEL)(self.function.raw(), number, pointer.cast())
                    }
                })
            }
            (View::Svm(pointer, _), _) => primary.driver.check("clSetKernelArgSVMPointer", |calls| {
                // SAFETY: as above.
                Some(unsafe {
                    (calls.clSetKernelArgSVMPointer?)(self.function.raw(), number, pointer.cast())
                })
            }),
            _ => Err(Error::new(ErrorKind::Internal, "a view that is no pointer")),
        };
        set.map_err(|error| kernel.refused(index, error))
    }
}

#[cold]
fn unknown(index: usize) -> Error {
    Error::unsupported(format!("argument {index} is of a kind that this backend does not know"))
}
