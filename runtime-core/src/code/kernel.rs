//! Entry points of loaded code, and the checks of launch arguments against their signatures.

#![allow(unsafe_code, reason = "calls the functions of a backend's table")]

use std::sync::Arc;

use crate::abi::{self, Handle};
use crate::code::arg::Value;
use crate::code::module::Module;
use crate::code::raw_launch::{RawLaunch, raw_arg};
use crate::model::kernel_info::{KernelInfo, Param};
use crate::plugin::convert;
use crate::timeline::deferred_free::Resource;
use crate::timeline::open_device::OpenDevice;
use crate::{
    Access, Arg, ArgKind, DType, Error, Geometry, LaunchConfig, LoweredKernel, Occupancy, Result, Tensor,
};

/// An entry point of a module. Clones share it.
#[derive(Clone, Debug)]
pub struct Kernel(Arc<KernelInner>);

/// Fields that every launch reads come first, next to each other.
#[repr(C)]
#[derive(Debug)]
struct KernelInner {
    device: Arc<OpenDevice>,
    owned: KernelHandle,
    /// Further requirements of the code, if it was lowered.
    lowered: Option<Arc<LoweredKernel>>,
    /// Neither the driver nor a lowering describes the parameters.
    signature_unknown: bool,
    info: KernelInfo,
    name: String,
}

/// A backend kernel; keeps its module alive.
#[derive(Debug)]
struct KernelHandle {
    module: Module,
    handle: Handle,
}

// SAFETY: the ABI lets any thread use a kernel.
unsafe impl Send for KernelHandle {}
// SAFETY: as above.
unsafe impl Sync for KernelHandle {}

impl Kernel {
    /// Takes ownership of a kernel handle from the backend.
    pub(crate) fn from_handle(
        module: &Module,
        handle: Handle,
        name: &str,
        lowered: Option<Arc<LoweredKernel>>,
    ) -> Result<Self> {
        let owned = KernelHandle { module: module.clone(), handle };
        let mut info = owned.query_info()?;
        if let Some(lowered) = &lowered {
            // The portable code is more precise than the driver.
            info.params = Some(lowered.params.iter().map(|param| param.param).collect());
            info.group_size = Some(lowered.group_size);
            info.shared_bytes = info.shared_bytes.or(Some(lowered.shared_bytes));
        }
        let (device, signature_unknown) =
            (Arc::clone(module.device()), info.params.is_none() && lowered.is_none());
        Ok(Self(Arc::new(KernelInner {
            device,
            owned,
            lowered,
            signature_unknown,
            info,
            name: name.to_owned(),
        })))
    }

    /// The entry point's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// What the driver reports about it.
    #[must_use]
    pub fn info(&self) -> &KernelInfo {
        &self.0.info
    }

    /// How much of a compute unit its groups can occupy with this geometry and `local_bytes` of dynamic work-group
    /// memory ([`Arg::local`]): the driver's estimate from registers, work-group memory and group size, not a
    /// measurement.
    ///
    /// # Errors
    /// `Unsupported` if the backend does not report it; `InvalidArgument` for a geometry that a launch would
    /// refuse.
    pub fn occupancy(&self, geometry: &Geometry, local_bytes: u64) -> Result<Occupancy> {
        let device = self.device();
        let config = LaunchConfig::Groups(*geometry);
        self.check_config(&config)
            .and_then(|()| self.check_local(local_bytes, device))
            .map_err(|error| error.in_operation("occupancy").on_device(&device.name))?;
        let local = raw_arg(&Arg::local(local_bytes))?;
        let launch =
            abi::Launch { args: &raw const local, arg_count: 1, ..RawLaunch::default().pointed(&config) };
        let struct_size = crate::end_of!(abi::Occupancy, max_sub_groups);
        let mut raw = abi::Occupancy { struct_size, ..abi::Occupancy::default() };
        device.call("occupancy", |calls, _| {
            // SAFETY: the kernel exists, `launch` and its argument live during the call, and `raw` is writable.
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

    /// Requirements beyond the signature, if the code was lowered.
    #[inline]
    pub(crate) fn lowered(&self) -> Option<&LoweredKernel> {
        self.0.lowered.as_deref()
    }

    /// As [`Kernel::lowered`], but only for kernels whose launches write a report.
    #[inline]
    pub(crate) fn reporting(&self) -> Option<&LoweredKernel> {
        self.lowered().filter(|lowered| lowered.reports_on.is_some())
    }

    /// Checks everything about a launch except its tensors' devices and layouts.
    ///
    /// # Errors
    /// `InvalidArgument` for another device, a wrong signature, or a geometry beyond the device's limits.
    #[inline]
    pub(crate) fn check_launch(
        &self,
        device: &Arc<OpenDevice>,
        config: &LaunchConfig,
        args: &[Arg<'_>],
    ) -> Result<()> {
        if !Arc::ptr_eq(self.device(), device) {
            return Err(self.wrong_queue_device(device));
        }
        self.check_signature(args)?;
        self.check_config(config)
    }

    #[cold]
    fn wrong_queue_device(&self, device: &OpenDevice) -> Error {
        let (name, own, other) = (self.name(), &self.device().name, &device.name);
        Error::invalid(format!("kernel \"{name}\" was loaded on {own}, but the queue is on {other}"))
    }

    /// Checks the arguments of a launch, before anything is submitted.
    ///
    /// # Errors
    /// `InvalidArgument`, naming the argument.
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

    /// The part of [`Kernel::check_args`] that checks a tensor's device and layout; `strided` if the argument
    /// declares that the kernel handles its strides.
    #[inline]
    pub(crate) fn check_tensor(
        &self,
        index: usize,
        (tensor, strided): (&Tensor, bool),
        device: &OpenDevice,
    ) -> Result<()> {
        if !std::ptr::eq(Arc::as_ptr(tensor.device()), device) {
            Err(self.wrong_tensor_device(index, tensor.device(), device))
        } else if tensor.is_dense_aligned() {
            Ok(())
        } else {
            self.check_layout(index, tensor, strided)
        }
    }

    /// Checks a tensor that not every kernel can access correctly.
    #[cold]
    fn check_layout(&self, index: usize, tensor: &Tensor, strided: bool) -> Result<()> {
        let reject = |what: &dyn std::fmt::Display| {
            Err(Error::invalid(format!("argument {index} of \"{}\" {what}", self.name())))
        };
        let (shape, strides) = (tensor.shape(), tensor.strides());
        if !tensor.is_contiguous() && !strided && !self.declares_strides(index) {
            return reject(&format_args!(
                "is not contiguous (shape {shape:?}, strides {strides:?}); pass a copy that `Queue::contiguous` makes of \
                 it, or add `.strided()` to the argument if the kernel handles the strides itself"
            ));
        }
        // Bound by handle, or indexed with unsigned integers: memory before the first element cannot be
        // addressed.
        let addressed_upwards = self.lowered().is_some() || tensor.raw().address == 0;
        if addressed_upwards && tensor.has_negative_offsets() {
            return reject(&format_args!(
                "has elements before its first one (strides {strides:?}), which the kernel cannot reach; pass a copy that \
                 `Queue::contiguous` makes of it"
            ));
        }
        let (dtype, aligned) = (tensor.dtype(), tensor.alignment_bytes());
        let needed = dtype.alignment_bytes();
        if aligned < needed as u64 {
            return reject(&format_args!(
                "is aligned to {aligned} bytes, but {dtype} needs {needed}; copy it into a tensor of its own"
            ));
        }
        Ok(())
    }

    /// Whether the code declares that it handles the strides of a tensor.
    fn declares_strides(&self, index: usize) -> bool {
        let params = self.0.info.params.as_deref().unwrap_or_default();
        params.get(index).is_some_and(|param| param.strided)
    }

    /// The part of [`Kernel::check_args`] that checks the kernel's signature.
    #[inline]
    pub(crate) fn check_signature(&self, args: &[Arg<'_>]) -> Result<()> {
        if self.0.signature_unknown { Ok(()) } else { self.check_known_signature(args) }
    }

    /// Checks what a launch runs, before anything is submitted.
    ///
    /// # Errors
    /// As [`LaunchConfig::check`]; `InvalidArgument` for a range on portable code, which has no range parameter:
    /// every part would run the whole work, concurrently.
    #[inline]
    pub(crate) fn check_config(&self, config: &LaunchConfig) -> Result<()> {
        config.check(&self.device().info, self.info())?;
        if matches!(config, LaunchConfig::Range(_)) && self.lowered().is_some() {
            return Err(self.range_on_portable());
        }
        Ok(())
    }

    #[cold]
    fn range_on_portable(&self) -> Error {
        let name = self.name();
        Error::invalid(format!(
            "\"{name}\" is portable code, which takes no range; launch enough work-groups to cover the work"
        ))
    }

    fn check_known_signature(&self, args: &[Arg<'_>]) -> Result<()> {
        if let Some(params) = &self.0.info.params {
            self.check_params(params, args)?;
        }
        match self.lowered() {
            Some(lowered) => lowered.check(args),
            None => Ok(()),
        }
    }

    /// Checks the work-group memory requested by arguments, plus what the code declares itself.
    #[cold]
    pub(crate) fn check_local(&self, bytes: u64, device: &OpenDevice) -> Result<()> {
        let (own, limit) = (self.0.info.shared_bytes.unwrap_or(0), device.info.limits.shared_bytes);
        if bytes.saturating_add(u64::from(own)) <= limit {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "\"{}\" needs {bytes} bytes of work-group memory for its arguments and {own} of its own, but the limit is {limit}",
            self.name()
        )))
    }

    #[cold]
    fn wrong_tensor_device(&self, index: usize, tensor: &OpenDevice, device: &OpenDevice) -> Error {
        let place = if tensor.name == device.name { "another instance of that device" } else { &tensor.name };
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
        match params.iter().zip(args).position(|(param, arg)| !accepts(param, arg)) {
            None => Ok(()),
            Some(index) => Err(self.mismatch(index, &params[index], &args[index])),
        }
    }

    #[cold]
    fn mismatch(&self, index: usize, param: &Param, arg: &Arg<'_>) -> Error {
        let message = match (param.dtype, arg.dtype()) {
            _ if param.kind != arg.kind() => {
                format!("is a {:?}, but the kernel takes a {:?}", arg.kind(), param.kind)
            }
            (Some(wanted), Some(given)) if wanted != given => {
                let packed = matches!(arg.value, Value::Tensor(..)) && given.bytes() < wanted.bytes();
                let hint = match packed {
                    true => {
                        format!(
                            "; pack its bytes into {wanted}, or declare the parameter as an array of structures, which accepts any type"
                        )
                    }
                    false => String::new(),
                };
                format!("is {given}, but the kernel takes {wanted}{hint}")
            }
            _ if matches!(arg.value, Value::Tensor(_, Access::Read, _)) => {
                "is passed as read, but the kernel writes it".to_owned()
            }
            _ => "is passed as write, but the kernel reads it".to_owned(),
        };
        Error::invalid(format!("argument {index} of \"{}\" {message}", self.name()))
    }
}

/// Whether the kernel accepts an argument for a parameter.
#[inline]
fn accepts(param: &Param, arg: &Arg<'_>) -> bool {
    let given = match arg.value {
        Value::Tensor(_, access, _) => access.bits(),
        _ => param.access.bits(),
    };
    param.kind == arg.kind()
        && param.access.bits() & !given == 0
        && (param.dtype.is_none() || arg.dtype().is_none() || param.dtype == arg.dtype())
}

impl KernelHandle {
    /// Queries the driver for information about the kernel.
    fn query_info(&self) -> Result<KernelInfo> {
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
        let queried = device.call("kernel_info", |calls, _| {
            // SAFETY: the kernel exists and `raw` is writable.
            unsafe { (calls.module.kernel_info)(self.handle, &raw mut raw) }
        });
        match queried {
            Err(error) if error.kind() == crate::ErrorKind::Unsupported => return Ok(KernelInfo::default()),
            other => other?,
        }
        // SAFETY: the parameters belong to the kernel, which is alive.
        let params = unsafe {
            convert::borrow_slice("KernelInfo.params", raw.params, raw.param_count, abi::MAX_PARAMS)
        };
        let params = params.map_err(|error| error.in_operation("kernel_info").on_device(&device.name))?;
        let reported = |value: u32| (value != abi::UNKNOWN).then_some(value);
        Ok(KernelInfo {
            registers: reported(raw.registers),
            spilled_bytes: reported(raw.spilled_bytes),
            shared_bytes: reported(raw.shared_bytes),
            max_group_items: reported(raw.max_group_items),
            group_size: (raw.group_size != [0; 3]).then_some(raw.group_size),
            params: (!raw.params.is_null()).then(|| params.iter().map(param).collect()),
            binary_version: reported(raw.binary_version).filter(|&version| version != 0),
            virtual_version: reported(raw.virtual_version).filter(|&version| version != 0),
            preferred_multiple: reported(raw.preferred_multiple).filter(|&multiple| multiple != 0),
            private_bytes: reported(raw.private_bytes),
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

impl Drop for KernelHandle {
    fn drop(&mut self) {
        let device = self.module.device();
        let until = if device.must_leak() { return } else { device.all_pending() };
        device.deferred.defer(device, Resource::Kernel(self.handle), until);
    }
}
