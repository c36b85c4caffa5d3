//! Entry points of loaded code, and the check of a launch's arguments against them.

#![allow(unsafe_code, reason = "calls the functions of a backend's table")]

use std::sync::Arc;

use crate::abi::{self, Handle};
use crate::code::arg::Value;
use crate::code::module::Module;
use crate::code::raw_launch::RawLaunch;
use crate::model::kernel_info::{KernelInfo, Param};
use crate::plugin::convert;
use crate::timeline::deferred_free::Resource;
use crate::timeline::open_device::OpenDevice;
use crate::{Access, Arg, ArgKind, DType, Error, Geometry, LoweredKernel, Occupancy, Result, Tensor};

/// An entry point of a module. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Kernel(Arc<Entry>);

/// What every launch reads lies together.
#[repr(C)]
#[derive(Debug)]
struct Entry {
    device: Arc<OpenDevice>,
    owned: Owned,
    /// What else the code asks for, if it was lowered.
    lowered: Option<Arc<LoweredKernel>>,
    /// Nothing is known of its parameters.
    signature_unknown: bool,
    info: KernelInfo,
    name: String,
}

/// A backend kernel; holds its module.
#[derive(Debug)]
struct Owned {
    module: Module,
    handle: Handle,
}

// SAFETY: a backend kernel, which any thread may use.
unsafe impl Send for Owned {}
// SAFETY: as above.
unsafe impl Sync for Owned {}

impl Kernel {
    /// Takes over a kernel that the backend has just found.
    pub(crate) fn adopt(
        module: &Module,
        handle: Handle,
        name: &str,
        lowered: Option<Arc<LoweredKernel>>,
    ) -> Result<Self> {
        let owned = Owned { module: module.clone(), handle };
        let mut info = owned.ask()?;
        if let Some(lowered) = &lowered {
            // The portable code says it better than a driver could.
            info.params = Some(lowered.params.iter().map(|param| param.param).collect());
            info.group_size = Some(lowered.group_size);
            info.shared_bytes = info.shared_bytes.or(Some(lowered.shared_bytes));
        }
        let (device, signature_unknown) =
            (Arc::clone(module.device()), info.params.is_none() && lowered.is_none());
        Ok(Self(Arc::new(Entry { device, owned, lowered, signature_unknown, info, name: name.to_owned() })))
    }

    /// The entry point's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// What the driver says of it.
    #[must_use]
    pub fn info(&self) -> &KernelInfo {
        &self.0.info
    }

    /// How much of a compute unit its groups can fill at once, when they are launched like this: the driver's forecast
    /// from registers, work-group memory and group size, not a measurement.
    ///
    /// # Errors
    /// `Unsupported` where the backend does not tell; `InvalidArgument` for a geometry that a launch would refuse.
    pub fn occupancy(&self, geometry: &Geometry) -> Result<Occupancy> {
        let device = self.device();
        self.check_geometry(geometry)
            .map_err(|error| error.in_operation("occupancy").on_device(&device.name))?;
        let launch = RawLaunch::default().pointed(geometry);
        let struct_size = crate::end_of!(abi::Occupancy, max_sub_groups);
        let mut raw = abi::Occupancy { struct_size, ..abi::Occupancy::default() };
        device.call("occupancy", |calls, _| {
            // SAFETY: the kernel exists, `launch` is without arguments and lives during the call, and `raw` is writable.
            unsafe { (calls.module.occupancy)(self.handle(), &raw const launch, &raw mut raw) }
        })?;
        let abi::Occupancy { groups, sub_groups, max_sub_groups, .. } = raw;
        Ok(Occupancy { groups, sub_groups, max_sub_groups })
    }

    #[inline]
    pub(crate) fn handle(&self) -> Handle {
        self.0.owned.handle
    }

    #[inline]
    pub(crate) fn device(&self) -> &Arc<OpenDevice> {
        &self.0.device
    }

    /// What the code asks for beyond its parameters, if it was lowered.
    #[inline]
    pub(crate) fn lowered(&self) -> Option<&LoweredKernel> {
        self.0.lowered.as_deref()
    }

    /// The same of a kernel whose launches report.
    #[inline]
    pub(crate) fn reporting(&self) -> Option<&LoweredKernel> {
        self.lowered().filter(|lowered| lowered.reports_on.is_some())
    }

    /// Checks what can be checked of a launch without looking at where its tensors are.
    ///
    /// # Errors
    /// `InvalidArgument` for another device, a wrong signature, or a geometry beyond the device's limits.
    #[inline]
    pub(crate) fn check_launch(
        &self,
        device: &Arc<OpenDevice>,
        geometry: &Geometry,
        args: &[Arg<'_>],
    ) -> Result<()> {
        if !Arc::ptr_eq(self.device(), device) {
            return Err(self.loaded_elsewhere(device));
        }
        self.check_signature(args)?;
        self.check_geometry(geometry)
    }

    #[cold]
    fn loaded_elsewhere(&self, device: &OpenDevice) -> Error {
        let (name, own, other) = (self.name(), &self.device().name, &device.name);
        Error::invalid(format!("kernel \"{name}\" was loaded on {own}, the queue is on {other}"))
    }

    /// Checks the arguments of a launch, before anything is submitted.
    ///
    /// # Errors
    /// `InvalidArgument` that says which argument.
    pub(crate) fn check_args(&self, device: &OpenDevice, args: &[Arg<'_>]) -> Result<()> {
        let mut local_bytes = 0u64;
        for (index, arg) in args.iter().enumerate() {
            match arg.value {
                Value::Tensor(tensor, _, strided) => self.check_tensor(index, (tensor, strided), device)?,
                Value::Local(bytes) => local_bytes = local_bytes.saturating_add(bytes),
                _ => {}
            }
        }
        if local_bytes != 0 {
            self.check_local(local_bytes, device)?;
        }
        self.check_signature(args)
    }

    /// The part of [`Kernel::check_args`] that tells where a tensor is and how it lies there; `strided` if the argument says
    /// that the kernel knows the strides.
    #[inline]
    pub(crate) fn check_tensor(
        &self,
        index: usize,
        (tensor, strided): (&Tensor, bool),
        device: &OpenDevice,
    ) -> Result<()> {
        if !std::ptr::eq(Arc::as_ptr(tensor.device()), device) {
            Err(self.misplaced(index, tensor.device(), device))
        } else if tensor.is_plain() {
            Ok(())
        } else {
            self.check_layout(index, tensor, strided)
        }
    }

    /// Checks a tensor that not every kernel can take.
    #[cold]
    fn check_layout(&self, index: usize, tensor: &Tensor, strided: bool) -> Result<()> {
        let refuse = |what: &dyn std::fmt::Display| {
            Err(Error::invalid(format!("argument {index} of \"{}\" {what}", self.name())))
        };
        let (shape, strides) = (tensor.shape(), tensor.strides());
        if !tensor.is_contiguous() && !strided && !self.knows_strides(index) {
            return refuse(&format_args!(
                "is not contiguous (shape {shape:?}, strides {strides:?}); pass a copy that `Queue::contiguous` makes of \
                 it, or add `.strided()` to the argument if the kernel computes with these strides itself"
            ));
        }
        // Bound by handle, or indexed without a sign: nothing before the first element can be reached.
        let begins_at_first = self.lowered().is_some() || tensor.raw().address == 0;
        if begins_at_first && tensor.begins_inside() {
            return refuse(&format_args!(
                "has elements before its first one (strides {strides:?}), which the kernel cannot reach; pass a copy that \
                 `Queue::contiguous` makes of it"
            ));
        }
        let (dtype, aligned) = (tensor.dtype(), tensor.alignment_bytes());
        let needed = dtype.alignment_bytes();
        if aligned < needed as u64 {
            return refuse(&format_args!(
                "lies at a multiple of {aligned} bytes, {dtype} needs one of {needed}; copy it into a tensor of its own"
            ));
        }
        Ok(())
    }

    /// Whether the code declares that it knows the strides of a tensor.
    fn knows_strides(&self, index: usize) -> bool {
        let params = self.0.info.params.as_deref().unwrap_or_default();
        params.get(index).is_some_and(|param| param.strided)
    }

    /// The part of [`Kernel::check_args`] that asks for the kernel's parameters.
    #[inline]
    pub(crate) fn check_signature(&self, args: &[Arg<'_>]) -> Result<()> {
        if self.0.signature_unknown { Ok(()) } else { self.check_told(args) }
    }

    /// Checks how a launch is divided, before anything is submitted.
    ///
    /// # Errors
    /// As [`Geometry::check`]; `InvalidArgument` for a range, since portable code takes none: its work would run again and
    /// again, beside itself.
    #[inline]
    pub(crate) fn check_geometry(&self, geometry: &Geometry) -> Result<()> {
        geometry.check(&self.device().info, self.info())?;
        if geometry.range.is_some() && self.lowered().is_some() {
            return Err(self.without_range());
        }
        Ok(())
    }

    #[cold]
    fn without_range(&self) -> Error {
        let name = self.name();
        Error::invalid(format!(
            "\"{name}\" is portable code, which takes no range; launch groups that cover it"
        ))
    }

    fn check_told(&self, args: &[Arg<'_>]) -> Result<()> {
        if let Some(params) = &self.0.info.params {
            self.check_params(params, args)?;
        }
        match self.lowered() {
            Some(lowered) => lowered.check(args),
            None => Ok(()),
        }
    }

    /// Checks work-group memory that arguments ask for, together with what the code has.
    #[cold]
    pub(crate) fn check_local(&self, bytes: u64, device: &OpenDevice) -> Result<()> {
        let (own, limit) = (self.0.info.shared_bytes.unwrap_or(0), device.info.limits.shared_bytes);
        if bytes.saturating_add(u64::from(own)) <= limit {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "\"{}\" gets {bytes} bytes of work-group memory as arguments and has {own} of its own, the limit is {limit}",
            self.name()
        )))
    }

    #[cold]
    fn misplaced(&self, index: usize, tensor: &OpenDevice, device: &OpenDevice) -> Error {
        let place = if tensor.name == device.name { "another opening of it" } else { &tensor.name };
        Error::invalid(format!(
            "argument {index} of \"{}\" is on {place}; copy it to {} first",
            self.name(),
            device.name
        ))
    }

    fn check_params(&self, params: &[Param], args: &[Arg<'_>]) -> Result<()> {
        if params.len() != args.len() {
            return Err(Error::invalid(format!(
                "\"{}\" takes {} arguments, got {}",
                self.name(),
                params.len(),
                args.len()
            )));
        }
        match params.iter().zip(args).position(|(param, arg)| !fits(param, arg)) {
            None => Ok(()),
            Some(index) => Err(self.mismatch(index, &params[index], &args[index])),
        }
    }

    #[cold]
    fn mismatch(&self, index: usize, param: &Param, arg: &Arg<'_>) -> Error {
        let message = match (param.dtype, arg.dtype()) {
            _ if param.kind != arg.kind() => {
                format!("is a {:?}, the kernel takes a {:?}", arg.kind(), param.kind)
            }
            (Some(wanted), Some(given)) if wanted != given => {
                let packed = matches!(arg.value, Value::Tensor(..)) && given.bytes() < wanted.bytes();
                let hint = match packed {
                    true => {
                        format!(
                            "; pack its bytes into {wanted}, or let the kernel take an array of structures, which any type fits"
                        )
                    }
                    false => String::new(),
                };
                format!("is {given}, the kernel takes {wanted}{hint}")
            }
            _ if matches!(arg.value, Value::Tensor(_, Access::Read, _)) => {
                "is given as read, but the kernel writes it".to_owned()
            }
            _ => "is given as write, but the kernel reads it".to_owned(),
        };
        Error::invalid(format!("argument {index} of \"{}\" {message}", self.name()))
    }
}

/// Whether an argument is what the kernel takes there.
#[inline]
fn fits(param: &Param, arg: &Arg<'_>) -> bool {
    let given = match arg.value {
        Value::Tensor(_, access, _) => access.bits(),
        _ => param.access.bits(),
    };
    param.kind == arg.kind()
        && param.access.bits() & !given == 0
        && (param.dtype.is_none() || arg.dtype().is_none() || param.dtype == arg.dtype())
}

impl Owned {
    /// Asks the driver what it knows.
    fn ask(&self) -> Result<KernelInfo> {
        let mut raw = abi::KernelInfo {
            struct_size: crate::end_of!(abi::KernelInfo, private_bytes),
            registers: abi::UNKNOWN,
            spilled_bytes: abi::UNKNOWN,
            shared_bytes: abi::UNKNOWN,
            max_group_items: abi::UNKNOWN,
            group_size: [0; 3],
            params: std::ptr::null(),
            param_count: 0,
            binary_version: abi::UNKNOWN,
            virtual_version: abi::UNKNOWN,
            preferred_multiple: abi::UNKNOWN,
            private_bytes: abi::UNKNOWN,
        };
        let device = self.module.device();
        let asked = device.call("kernel_info", |calls, _| {
            // SAFETY: the kernel exists and `raw` is writable.
            unsafe { (calls.module.kernel_info)(self.handle, &raw mut raw) }
        });
        match asked {
            Err(error) if error.kind() == crate::ErrorKind::Unsupported => return Ok(KernelInfo::default()),
            other => other?,
        }
        // SAFETY: the parameters are borrowed from the kernel, which is alive.
        let params = unsafe {
            convert::borrow_slice("KernelInfo.params", raw.params, raw.param_count, abi::MAX_PARAMS)
        };
        let params = params.map_err(|error| error.in_operation("kernel_info").on_device(&device.name))?;
        let known = |figure: u32| (figure != abi::UNKNOWN).then_some(figure);
        Ok(KernelInfo {
            registers: known(raw.registers),
            spilled_bytes: known(raw.spilled_bytes),
            shared_bytes: known(raw.shared_bytes),
            max_group_items: known(raw.max_group_items),
            group_size: (raw.group_size != [0; 3]).then_some(raw.group_size),
            params: (!raw.params.is_null()).then(|| params.iter().map(param).collect()),
            binary_version: known(raw.binary_version).filter(|&version| version != 0),
            virtual_version: known(raw.virtual_version).filter(|&version| version != 0),
            preferred_multiple: known(raw.preferred_multiple).filter(|&multiple| multiple != 0),
            private_bytes: known(raw.private_bytes),
        })
    }
}

fn param(raw: &abi::Param) -> Param {
    let kind = match raw.kind {
        abi::ARG_TENSOR => ArgKind::Tensor,
        abi::ARG_BYTES => ArgKind::Bytes,
        abi::ARG_LOCAL => ArgKind::Local,
        _ => ArgKind::Scalar,
    };
    Param {
        kind,
        access: Access::from_bits(raw.access),
        strided: raw.access & abi::ACCESS_STRIDED != 0,
        dtype: (raw.dtype.bits != 0).then_some(DType(raw.dtype)),
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        let device = self.module.device();
        let until = if device.must_leak() { return } else { device.all_pending() };
        device.deferred.defer(device, Resource::Kernel(self.handle), until);
    }
}
