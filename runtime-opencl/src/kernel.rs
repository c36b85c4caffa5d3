//! Entry points of loaded code: what is known about their parameters and resources.

#![allow(unsafe_code, reason = "creates and queries kernels through the driver")]

use std::ffi::{CStr, CString};
use std::sync::Arc;

use cl3::ext::{
    CL_KERNEL_COMPILE_WORK_GROUP_SIZE, CL_KERNEL_LOCAL_MEM_SIZE, CL_KERNEL_NUM_ARGS,
    CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, CL_KERNEL_PRIVATE_MEM_SIZE, CL_KERNEL_SPILL_MEM_SIZE_INTEL,
    CL_KERNEL_WORK_GROUP_SIZE,
};
use runtime_core::backend::{ArgRef, Kernel, counted, unsupported_argument};
use runtime_core::code::KernelInfo;
use runtime_core::{Error, ErrorKind, Result};

use crate::built_program::BuiltProgram;
use crate::compile_lock::LaunchedFlag;
use crate::context::SharedContext;
use crate::driver::handle::{self, Owned};
use crate::driver::info::{decode_u64, decode_usizes};
use crate::driver::query;
use crate::memory::OpenClBuffer;
use crate::signature::{ParamKind, Parameter};

/// An entry point.
#[derive(Debug)]
pub struct OpenClKernel {
    pub(crate) program: Arc<BuiltProgram>,
    pub(crate) name: CString,
    /// For queries only: each queue launches a kernel object of its own (`KernelBinding`).
    handle: Owned<handle::Kernel>,
    pub(crate) arg_count: u32,
    params: Option<Vec<Parameter>>,
    /// A number that no other kernel of the context has or had.
    pub(crate) id: u64,
    /// Index of this kernel in the bindings of every queue.
    pub(crate) slot: u32,
    pub(crate) launched: LaunchedFlag,
}

impl OpenClKernel {
    pub(crate) fn find(program: &Arc<BuiltProgram>, name: CString) -> Result<Self> {
        let context = program.context();
        let handle = program.create_kernel(&name)?;
        let arg_count = arg_count(program, &handle).ok_or_else(|| {
            Error::new(ErrorKind::Driver, "clGetKernelInfo does not report the number of arguments")
        })?;
        let params = Parameter::query_all(context.driver, handle.raw(), arg_count);
        let params = params.or_else(|| {
            program.kept_signature(&name.to_string_lossy()).filter(|kept| kept.len() == arg_count as usize)
        });
        for (index, parameter) in params.iter().flatten().enumerate() {
            parameter.check_passable(index, &name.to_string_lossy())?;
        }
        let (id, slot) = (context.next_id(), context.allocate_slot());
        let launched = LaunchedFlag::default();
        Ok(Self { program: Arc::clone(program), name, handle, arg_count, params, id, slot, launched })
    }

    /// Looks up the same entry point again, as a kernel of its own.
    pub(crate) fn reload(&self) -> Result<Self> {
        Self::find(&self.program, self.name.clone())
    }

    #[inline]
    pub(crate) fn context(&self) -> &SharedContext {
        self.program.context()
    }

    fn display_name(&self) -> String {
        self.name.to_string_lossy().into_owned()
    }

    fn work_group_info(&self, key: u32) -> Option<Vec<u8>> {
        let (kernel, device) = (self.handle.raw(), self.program.device());
        // SAFETY: the kernel is built for the device, and `value` has room for `size` bytes.
        unsafe { query!(self.context().driver, clGetKernelWorkGroupInfo(kernel, device, key)) }
    }

    fn work_group_u32(&self, key: u32) -> Option<u32> {
        u32::try_from(decode_u64(&self.work_group_info(key)?)?).ok()
    }

    /// Refuses an argument that does not fit the parameter, if the driver reported one.
    pub(crate) fn check_arg(&self, index: usize, arg: &ArgRef<'_, OpenClBuffer>) -> Result<()> {
        let Some(parameter) = self.params.as_ref().and_then(|params| params.get(index)) else {
            return Ok(());
        };
        let given = match (arg, parameter.kind) {
            (ArgRef::Tensor(_), ParamKind::Tensor { .. })
            | (ArgRef::Local(_), ParamKind::Local)
            | (ArgRef::Bytes(_) | ArgRef::Record { .. }, ParamKind::Scalar(_) | ParamKind::Value)
            | (ArgRef::Scalar { .. }, ParamKind::Value) => return Ok(()),
            (ArgRef::Scalar { dtype, .. }, ParamKind::Scalar(wanted)) if dtype.bytes() == wanted.bytes() => {
                return Ok(());
            }
            (ArgRef::Tensor(_), _) => "a tensor".to_owned(),
            (ArgRef::Local(_), _) => "work-group memory".to_owned(),
            (ArgRef::Scalar { dtype, .. }, _) => format!("a scalar of {dtype}"),
            (ArgRef::Bytes(bytes) | ArgRef::Record { bytes, .. }, _) => format!("{} bytes", bytes.len()),
            _ => return Err(unsupported_argument(index)),
        };
        let (name, wanted) = (self.display_name(), parameter.declaration());
        Err(Error::invalid(format!(
            "argument {index} of kernel `{name}` is {given}, but the parameter is `{wanted}`"
        )))
    }

    #[cold]
    pub(crate) fn wrong_arg_count(&self, given: usize) -> Error {
        Error::invalid(format!(
            "kernel `{}` takes {}, got {given}",
            self.display_name(),
            counted(self.arg_count as usize, "argument")
        ))
    }

    /// Adds the kernel and the parameter to a driver's error.
    #[cold]
    pub(crate) fn arg_error(&self, index: usize, error: Error) -> Error {
        let wanted = match self.params.as_ref().and_then(|params| params.get(index)) {
            Some(parameter) => format!(", parameter `{}`", parameter.declaration()),
            None => String::new(),
        };
        error.with_note(format_args!("argument {index} of kernel `{}`{wanted}", self.display_name()))
    }

    /// Adds the kernel's name to a driver's error.
    #[cold]
    pub(crate) fn with_name(&self, error: Error) -> Error {
        error.with_note(format_args!("kernel `{}`", self.display_name()))
    }
}

/// The parameters of a kernel, as far as the driver reports them, even if no launch can pass arguments for them.
pub(crate) fn reported_signature(program: &BuiltProgram, name: &CStr) -> Option<Vec<Parameter>> {
    let handle = program.create_kernel(name).ok()?;
    Parameter::query_all(program.context().driver, handle.raw(), arg_count(program, &handle)?)
}

fn arg_count(program: &BuiltProgram, kernel: &Owned<handle::Kernel>) -> Option<u32> {
    // SAFETY: the kernel is alive, and `value` has room for `size` bytes.
    let count =
        unsafe { query!(program.context().driver, clGetKernelInfo(kernel.raw(), CL_KERNEL_NUM_ARGS)) };
    u32::try_from(decode_u64(&count?)?).ok()
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
        let max = self.work_group_u32(CL_KERNEL_WORK_GROUP_SIZE);
        KernelInfo {
            spilled_bytes: self.work_group_u32(CL_KERNEL_SPILL_MEM_SIZE_INTEL),
            // NVIDIA's driver reports 1 for a kernel that has none.
            shared_bytes: self
                .work_group_u32(CL_KERNEL_LOCAL_MEM_SIZE)
                .map(|bytes| if bytes == 1 { 0 } else { bytes }),
            max_group_items: max.map(|max| self.context().quirks.group_items.map_or(max, |own| own.min(max))),
            group_size,
            params: self.params.as_ref().and_then(|params| params.iter().map(Parameter::to_param).collect()),
            preferred_multiple: self.work_group_u32(CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE),
            private_bytes: self.work_group_u32(CL_KERNEL_PRIVATE_MEM_SIZE),
            ..KernelInfo::default()
        }
    }
}
