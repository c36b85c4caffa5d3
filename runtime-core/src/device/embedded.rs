//! Embedded devices: external processors that are flashed with an image, run and read back.

#![allow(unsafe_code, reason = "calls the functions of a backend's table")]

use std::cell::RefCell;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{ReentrantMutex, ReentrantMutexGuard};

use crate::code::arg::ArgValue;
use crate::code::launch_checks::check_params;
use crate::code::lowering::LoweringPlan;
use crate::code::owned_arg::OwnedArg;
use crate::code::raw_launch::raw_arg;
use crate::device::common_runtime::CommonRuntime;
use crate::device::common_runtime::sealed::{Opened, Shared};
use crate::model::counted::counted;
use crate::model::device_info::Capabilities;
use crate::model::kernel_info::{ImageSizes, KernelInfo, RunReport};
use crate::model::lowering::LoweredKernel;
use crate::model::options::did_you_mean;
use crate::tensor::host_array::HostArray;
use crate::timeline::open_device::OpenDevice;
use crate::{Arg, DType, Error, ErrorKind, Geometry, ModuleSource, Placement, Result, Tensor, abi};

/// An external processor without queues: [`EmbeddedDevice::run`] blocks. Its tensors are only described on the
/// host; the device creates, fills and checks them.
///
/// ```
/// # use std::time::Duration;
/// # use runtime_core::{Arg, HostArray, ModuleSource, Runtime};
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let image = unsafe { ModuleSource::native("null", "scale_f32") };
/// let device = runtime.open("null:2")?;
/// let board = device.as_embedded().expect("null:2 is an embedded device");
/// let x = board.tensor_from_array(HostArray::from_slice(&[2], &[1.0f32, 2.0])?)?; // described, not yet written
/// board.flash(&image, &[Arg::read_write(&x), Arg::scalar(3.0f32)])?;
/// let report = board.run(Duration::from_secs(10))?; // or an error when that time has passed
/// assert_eq!(report.exit_code, 0);
/// assert_eq!(board.read(0)?.as_slice::<f32>()?, [3.0, 6.0]); // tensor 0 of the program
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[derive(Debug)]
pub struct EmbeddedDevice {
    pub(super) device: Arc<OpenDevice>,
    /// Locked during the calls of the backend that concern it, so that it is what the target has. Knows its thread, so that a
    /// subscriber that gets the backend's messages cannot wait for itself.
    flashed: ReentrantMutex<RefCell<Option<Flashed>>>,
}

/// What was flashed last.
#[derive(Clone, Debug)]
struct Flashed {
    image: ModuleSource,
    args: Vec<OwnedArg>,
}

impl Opened for EmbeddedDevice {
    fn opened(&self) -> Shared<'_> {
        Shared(&self.device)
    }
}

/// The methods of every opened device, without an import of the trait.
impl Deref for EmbeddedDevice {
    type Target = dyn CommonRuntime;

    fn deref(&self) -> &Self::Target {
        self
    }
}

impl CommonRuntime for EmbeddedDevice {
    fn allocate(&self, dtype: DType, shape: &[usize], _placement: &Placement) -> Result<Tensor> {
        Tensor::new_described(&self.device, dtype, shape, None, 0)
    }

    fn as_embedded(&self) -> Option<&EmbeddedDevice> {
        Some(self)
    }
}

impl EmbeddedDevice {
    pub(crate) fn new(device: Arc<OpenDevice>) -> Self {
        Self { device, flashed: ReentrantMutex::default() }
    }

    /// Describes a tensor that the device fills from `seed`.
    ///
    /// # Errors
    /// `InvalidArgument` for an invalid shape.
    pub fn tensor_from_seed(&self, dtype: DType, shape: &[usize], seed: u64) -> Result<Tensor> {
        Tensor::new_described(&self.device, dtype, shape, None, seed)
    }

    /// Describes a tensor with initial data, which is flashed with the image.
    ///
    /// # Errors
    /// `InvalidArgument` for an invalid shape.
    pub fn tensor_from_array(&self, array: HostArray) -> Result<Tensor> {
        let (dtype, shape) = (array.dtype(), array.shape().to_vec());
        Tensor::new_described(&self.device, dtype, &shape, Some(array), 0)
    }

    /// Writes an image, together with its tensor and scalar arguments.
    ///
    /// # Errors
    /// `InvalidArgument`, naming the argument; `Unsupported` for a format that the device does not accept; `Io` if the target does
    /// not start.
    pub fn flash(&self, image: &ModuleSource, args: &[Arg<'_>]) -> Result<()> {
        let flashed = self.lock("flash")?;
        self.flash_locked(&flashed, image, args)
    }

    fn flash_locked(
        &self,
        flashed: &RefCell<Option<Flashed>>,
        image: &ModuleSource,
        args: &[Arg<'_>],
    ) -> Result<()> {
        let annotate = |error: Error| error.in_operation("flash").on_device(&self.device.name);
        image.check(&self.device.info, &self.device.instance).map_err(annotate)?;
        let mut tensors = Vec::new();
        let mut raw_args = Vec::new();
        let placeholders: Vec<_> = (0..args.len() as u64).map(placeholder).collect();
        for (index, arg) in args.iter().enumerate() {
            let placeholder = &placeholders[tensors.len()];
            raw_args.push(self.tensor_or_raw_arg(index, arg, &mut tensors, placeholder).map_err(annotate)?);
        }
        let described: Vec<_> =
            tensors.iter().map(|(tensor, access)| raw_description(tensor, *access)).collect();
        let pointers: Vec<_> = described.iter().map(std::ptr::from_ref).collect();
        image.with_raw(|image| {
            self.device.call("flash", |calls, device| {
                // SAFETY: the device is open, and everything pointed to lives during the call.
                unsafe {
                    (calls.embedded.flash)(
                        device,
                        image,
                        pointers.as_ptr(),
                        pointers.len(),
                        raw_args.as_ptr(),
                        raw_args.len(),
                    )
                }
            })
        })?;
        let args = args.iter().map(OwnedArg::new).collect();
        flashed.replace(Some(Flashed { image: image.clone(), args }));
        Ok(())
    }

    /// Resets the target, and starts the flashed program over: its tensors get their first contents again, and the image is as it was
    /// flashed. This also makes a target usable whose program has crashed or timed out.
    ///
    /// # Errors
    /// `InvalidArgument` if nothing was flashed; otherwise as for [`EmbeddedDevice::flash`].
    pub fn reset(&self) -> Result<()> {
        let annotate = |error: Error| error.in_operation("reset").on_device(&self.device.name);
        let flashed = self.lock("reset")?;
        let last = flashed.borrow().clone();
        let Flashed { image, args } =
            last.ok_or_else(|| annotate(Error::invalid("nothing is flashed; call flash first")))?;
        let args: Vec<_> = args.iter().map(OwnedArg::borrow).collect();
        self.flash_locked(&flashed, &image, &args).map_err(annotate)
    }

    /// Lowers portable code, and writes an image that runs its kernel `entry` on a grid of `groups` work-groups, together with its
    /// arguments.
    ///
    /// # Errors
    /// As for [`EmbeddedDevice::flash`]; `NotFound` for an unknown kernel, `InvalidArgument` for arguments that do not fit it
    /// or more work-groups than the device allows, `Unsupported` for code that cannot be lowered for the device.
    pub fn flash_kernel(
        &self,
        source: &ModuleSource,
        entry: &str,
        groups: [u32; 3],
        args: &[Arg<'_>],
    ) -> Result<()> {
        let annotate = |error: Error| error.in_operation("flash").on_device(&self.device.name);
        let (image, kernel) = self.lower(source, entry).map_err(annotate)?;
        let geometry = Geometry::new(groups, kernel.group_size);
        self.check(&kernel, &geometry, args).map_err(annotate)?;
        let hidden: Vec<_> = kernel.hidden_args(&geometry.into(), args).collect();
        let groups = groups.map(|count| count.to_string()).join(",");
        let image = image.option("entry", kernel.symbol.as_str()).option("groups", groups.as_str());
        self.flash(&image, &args.iter().chain(&hidden).cloned().collect::<Vec<_>>())
    }

    /// Describes a kernel of portable code: its parameters, its group size and its work-group memory.
    ///
    /// # Errors
    /// `NotFound` for an unknown kernel; `CompileFailed`; `Unsupported` for code that cannot be lowered for the device.
    pub fn kernel_info(&self, source: &ModuleSource, entry: &str) -> Result<KernelInfo> {
        let lowered = self.lower(source, entry);
        let (_, kernel) = lowered
            .map_err(|error| error.in_operation("describe the kernel").on_device(&self.device.name))?;
        Ok(info(&kernel))
    }

    /// Checks a launch of lowered code as other devices do.
    fn check(&self, kernel: &LoweredKernel, geometry: &Geometry, args: &[Arg<'_>]) -> Result<()> {
        let (info, mut device) = (info(kernel), self.device.info.clone());
        check_params(&kernel.name, info.params.as_deref().unwrap_or_default(), args)?;
        kernel.check(args)?;
        // The lowered code runs work-groups on a device that has none.
        device.capabilities = Capabilities(device.capabilities.0 | abi::CAP_GROUPS);
        geometry.check(&device, &info)
    }

    /// The lowered code, and the kernel in it.
    fn lower(&self, source: &ModuleSource, entry: &str) -> Result<(ModuleSource, LoweredKernel)> {
        let plan = LoweringPlan::of(source, &self.device.instance, &self.device.info)?;
        let plan = plan.ok_or_else(|| {
            Error::unsupported(format!("code of format \"{}\" is not portable; use `flash`", source.format()))
        })?;
        let (image, kernels) = plan.lower(source, &self.device.info)?;
        let names: Vec<_> = kernels.iter().map(|kernel| kernel.name.clone()).collect();
        let found = kernels.into_iter().find(|kernel| kernel.name == entry);
        let kernel = found.ok_or_else(|| {
            let names: Vec<_> = names.iter().map(String::as_str).collect();
            let message = format!("no kernel \"{entry}\"; {}", did_you_mean(entry, &names));
            Error::new(ErrorKind::NotFound, message)
        })?;
        Ok((image, kernel))
    }

    /// An argument in its ABI form. A tensor becomes `placeholder`, which holds its index among the tensors.
    fn tensor_or_raw_arg(
        &self,
        index: usize,
        arg: &Arg<'_>,
        tensors: &mut Vec<(Tensor, u8)>,
        placeholder: &abi::TensorArg,
    ) -> Result<abi::Arg> {
        let ArgValue::Tensor(tensor, access, _) = arg.value else { return raw_arg(arg) };
        if !Arc::ptr_eq(tensor.device(), &self.device) || tensor.description().is_none() {
            return Err(Error::invalid(format!(
                "argument {index} is on {}; describe it on {} first",
                tensor.device_id(),
                self.device.name
            )));
        }
        tensors.push((tensor.clone(), access.bits()));
        Ok(abi::Arg {
            kind: abi::ARG_TENSOR,
            access: access.bits(),
            dtype_code: 0,
            dtype_bits: 0,
            bytes: 0,
            value: abi::ArgValue { tensor: placeholder },
        })
    }

    /// Runs the flashed program to completion, or for at most `deadline`.
    ///
    /// # Errors
    /// `Timeout`; `Crashed` for a trap or fault of the processor; `Failed` if the program reports failure, or wrote outside its
    /// tensors; `InvalidArgument` if nothing was flashed.
    pub fn run(&self, deadline: Duration) -> Result<RunReport> {
        let struct_size = crate::end_of!(abi::RunReport, zeroed_bytes);
        let mut raw = abi::RunReport { struct_size, ..Default::default() };
        let deadline_ns = u64::try_from(deadline.as_nanos()).unwrap_or(u64::MAX);
        // SAFETY: the device is open and the out-structure lives during the call.
        self.device.call("run", |calls, device| unsafe {
            (calls.embedded.run)(device, deadline_ns, &raw mut raw)
        })?;
        let known = |value: u64| Some(value).filter(|value| *value > 0);
        Ok(RunReport {
            exit_code: raw.exit_code,
            cycles: known(raw.cycles),
            elapsed_ns: raw.elapsed_ns,
            overhead: raw.overhead,
            stack_bytes: known(raw.stack_bytes),
            image: known(raw.code_bytes).map(|code_bytes| ImageSizes {
                code_bytes,
                constant_bytes: raw.constant_bytes,
                data_bytes: raw.data_bytes,
                zeroed_bytes: raw.zeroed_bytes,
            }),
        })
    }

    /// Reads back a tensor of the flashed program; `tensor` counts its tensor arguments from 0.
    ///
    /// # Errors
    /// `InvalidArgument` if the program has no such tensor.
    pub fn read(&self, tensor: usize) -> Result<HostArray> {
        let flashed = self.lock("read")?;
        let tensors = tensors(&flashed.borrow());
        let described = tensors.get(tensor).ok_or_else(|| {
            let message =
                format!("no tensor {tensor}: the flashed program has {}", counted(tensors.len(), "tensor"));
            Error::invalid(message).in_operation("read").on_device(&self.device.name)
        })?;
        let mut array = HostArray::new(described.dtype(), described.shape())?;
        let bytes = array.bytes_mut();
        let index = u32::try_from(tensor).unwrap_or(u32::MAX);
        self.device.call("read", |calls, device| {
            // SAFETY: the device is open and `bytes` is writable for its length.
            unsafe { (calls.embedded.read)(device, index, 0, bytes.as_mut_ptr(), bytes.len() as u64) }
        })?;
        Ok(array)
    }

    /// Waits for the calls of other threads.
    fn lock(&self, operation: &'static str) -> Result<ReentrantMutexGuard<'_, RefCell<Option<Flashed>>>> {
        if self.flashed.is_owned_by_current_thread() {
            let message = "a call of this thread on the device has not returned; do not use the device while a message is logged";
            return Err(Error::invalid(message).in_operation(operation).on_device(&self.device.name));
        }
        Ok(self.flashed.lock())
    }
}

/// The tensors of the flashed program, in argument order.
fn tensors(flashed: &Option<Flashed>) -> Vec<Tensor> {
    let args = flashed.iter().flat_map(|flashed| &flashed.args);
    args.filter_map(|arg| Some(arg.tensor()?.0.clone())).collect()
}

fn info(kernel: &LoweredKernel) -> KernelInfo {
    let mut info = KernelInfo::default();
    kernel.describe(&mut info);
    info
}

/// A tensor argument that stands for tensor `index` of the program. It has no memory yet, so nothing else is
/// set.
const fn placeholder(index: u64) -> abi::TensorArg {
    abi::TensorArg {
        struct_size: crate::end_of!(abi::TensorArg, strides),
        ndim: 0,
        buffer: std::ptr::null_mut(),
        address: index,
        byte_offset: 0,
        span_bytes: 0,
        dtype: abi::DType { code: 0, bits: 0, lanes: 0 },
        shape: std::ptr::null(),
        strides: std::ptr::null(),
    }
}

fn raw_description(tensor: &Tensor, access: u8) -> abi::TensorDescription {
    let (data, seed) = tensor.description().unwrap_or((None, 0));
    abi::TensorDescription {
        struct_size: crate::end_of!(abi::TensorDescription, seed),
        ndim: tensor.raw().ndim,
        dtype: tensor.dtype().0,
        access: u32::from(access),
        shape: tensor.raw().shape,
        data: data.map_or(std::ptr::null(), |data| data.bytes().as_ptr()),
        data_bytes: data.map_or(0, |data| data.bytes().len()),
        seed,
    }
}
