//! Checks of a launch against its kernel, before anything is submitted: device, arguments, geometry and work-group memory.

use std::sync::Arc;

use crate::code::arg::ArgValue;
use crate::model::access::ArgKind;
use crate::model::counted::counted;
use crate::model::kernel_info::{KernelInfo, Param};
use crate::timeline::open_device::OpenDevice;
use crate::{Access, Arg, DType, Error, ErrorKind, Geometry, Kernel, LaunchConfig, Result, Tensor};

impl Kernel {
    /// Checks everything about a launch except its tensors' devices and layouts.
    ///
    /// # Errors
    /// `InvalidArgument` for another device, a wrong signature, or a geometry beyond the device's limits;
    /// `OutOfResources` for a geometry beyond the kernel's.
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
    /// `InvalidArgument`, naming the argument; `OutOfResources` for too much work-group memory.
    pub(crate) fn check_args(&self, device: &OpenDevice, args: &[Arg<'_>]) -> Result<()> {
        let mut local_bytes = 0u64;
        for (index, arg) in args.iter().enumerate() {
            match arg.value {
                ArgValue::Tensor(tensor, _, strided) => {
                    self.check_tensor(index, (tensor, strided), device)?;
                }
                ArgValue::Local(bytes) => local_bytes = local_bytes.saturating_add(bytes),
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
        let params = self.info().params.as_deref().unwrap_or_default();
        params.get(index).is_some_and(|param| param.strided)
    }

    /// The part of [`Kernel::check_args`] that checks the kernel's signature.
    #[inline]
    pub(crate) fn check_signature(&self, args: &[Arg<'_>]) -> Result<()> {
        if self.signature_unknown() { Ok(()) } else { self.check_known_signature(args) }
    }

    /// Checks what a launch runs, before anything is submitted.
    ///
    /// # Errors
    /// As [`LaunchConfig::check`]; `InvalidArgument` for a range on portable code, which has no range parameter:
    /// every part would run the whole work, concurrently.
    #[inline]
    pub(crate) fn check_config(&self, config: &LaunchConfig) -> Result<()> {
        match self.lowered().and_then(|lowered| lowered.work_items) {
            Some(work_items) => self.check_loops(config, work_items)?,
            None => config.check(&self.device().info, self.info())?,
        }
        if matches!(config, LaunchConfig::Range(_)) && self.lowered().is_some() {
            return Err(self.range_on_portable());
        }
        Ok(())
    }

    /// As [`LaunchConfig::check`] for code that runs the items of a group in loops: the device's limits apply to the work-items
    /// that run them.
    fn check_loops(&self, config: &LaunchConfig, work_items: [u32; 3]) -> Result<()> {
        let LaunchConfig::Groups(geometry) = config else { return Ok(()) };
        geometry.check_group_size(self.info())?;
        let launched = Geometry { group_size: work_items, ..*geometry };
        launched.check(&self.device().info, &KernelInfo::default())
    }

    #[cold]
    fn range_on_portable(&self) -> Error {
        let name = self.name();
        Error::invalid(format!(
            "\"{name}\" is portable code, which takes no range; launch enough work-groups to cover the work"
        ))
    }

    fn check_known_signature(&self, args: &[Arg<'_>]) -> Result<()> {
        if let Some(params) = &self.info().params {
            check_params(self.name(), params, args)?;
        }
        match self.lowered() {
            Some(lowered) => lowered.check(args),
            None => Ok(()),
        }
    }

    /// Checks the work-group memory requested by arguments, plus what the code declares itself.
    ///
    /// # Errors
    /// `OutOfResources`, with the limit.
    #[cold]
    pub(crate) fn check_local(&self, bytes: u64, device: &OpenDevice) -> Result<()> {
        let (own, limit) = (self.info().shared_bytes.unwrap_or(0), device.info.limits.shared_bytes);
        if bytes.saturating_add(u64::from(own)) <= limit {
            return Ok(());
        }
        let message = format!(
            "\"{}\" needs {bytes} bytes of work-group memory for its arguments and {own} of its own, but the limit is {limit}; \
             use smaller tiles",
            self.name()
        );
        Err(Error::new(ErrorKind::OutOfResources, message))
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
}

/// Checks the arguments of the kernel `name` against its parameters.
///
/// # Errors
/// `InvalidArgument`, naming the argument.
pub(crate) fn check_params(name: &str, params: &[Param], args: &[Arg<'_>]) -> Result<()> {
    if params.len() != args.len() {
        return Err(Error::invalid(format!(
            "\"{name}\" takes {}, got {}",
            counted(params.len(), "argument"),
            args.len()
        )));
    }
    match params.iter().zip(args).position(|(param, arg)| !accepts(param, arg)) {
        None => Ok(()),
        Some(index) => Err(mismatch(name, index, &params[index], &args[index])),
    }
}

#[cold]
fn mismatch(name: &str, index: usize, param: &Param, arg: &Arg<'_>) -> Error {
    let message = match (param.dtype, arg.dtype()) {
        _ if !is_kind_of(param, arg) => {
            format!("is a {:?}, but the kernel takes a {:?}", arg.kind(), param.kind)
        }
        (Some(wanted), Some(given)) if wanted != given => {
            let packed = matches!(arg.value, ArgValue::Tensor(..)) && given.bytes() < wanted.bytes();
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
        _ if matches!(arg.value, ArgValue::Tensor(_, Access::Read, _)) => {
            "is passed as read, but the kernel writes it".to_owned()
        }
        _ => "is passed as write, but the kernel reads it".to_owned(),
    };
    Error::invalid(format!("argument {index} of \"{name}\" {message}"))
}

/// Whether the kernel accepts an argument for a parameter.
#[inline]
fn accepts(param: &Param, arg: &Arg<'_>) -> bool {
    let is_access_given = match (&arg.value, param.access) {
        (ArgValue::Tensor(_, given, _), Some(stated)) => stated.bits() & !given.bits() == 0,
        _ => true,
    };
    is_kind_of(param, arg)
        && is_access_given
        && (param.dtype.is_none()
            || arg.dtype().is_none()
            || param.dtype == arg.dtype()
            || is_in_parts(param, arg))
}

/// Whether an argument is of the kind of a parameter.
#[inline]
fn is_kind_of(param: &Param, arg: &Arg<'_>) -> bool {
    let given = arg.kind();
    param.kind == given || given == ArgKind::Bytes && param.kind == ArgKind::Scalar && param.dtype.is_none()
}

/// Whether a tensor of complex numbers is passed to a kernel that takes their parts.
#[cold]
fn is_in_parts(param: &Param, arg: &Arg<'_>) -> bool {
    let parts = arg.dtype().and_then(DType::complex_part);
    matches!(arg.value, ArgValue::Tensor(..)) && parts.is_some() && parts == param.dtype
}
