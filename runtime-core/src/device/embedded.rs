//! Embedded devices: external processors that are flashed with an image, run, and read back.

#![allow(unsafe_code, reason = "calls the functions of a backend's table")]

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::code::arg::Value;
use crate::code::raw_launch::raw_arg;
use crate::device::common_runtime::{CommonRuntime, sealed::Opened, sealed::Shared};
use crate::tensor::host_array::HostArray;
use crate::timeline::open_device::OpenDevice;
use crate::{Arg, DType, Error, ModuleSource, Placement, Result, RunReport, Tensor, abi};

/// A processor without queues: [`EmbeddedDevice::run`] blocks. Its tensors are described, not held: the device
/// creates, fills and checks them.
#[derive(Debug)]
pub struct EmbeddedDevice {
    device: Arc<OpenDevice>,
    /// The tensors of the flashed program, in the order of its arguments.
    flashed: Mutex<Vec<Tensor>>,
}

impl Opened for EmbeddedDevice {
    fn opened(&self) -> Shared<'_> {
        Shared(&self.device)
    }
}

impl CommonRuntime for EmbeddedDevice {
    fn allocate(&self, dtype: DType, shape: &[usize], _placement: &Placement) -> Result<Tensor> {
        Tensor::describe(&self.device, dtype, shape, None, 0)
    }

    fn as_embedded(&self) -> Option<&EmbeddedDevice> {
        Some(self)
    }
}

impl EmbeddedDevice {
    pub(crate) fn new(device: Arc<OpenDevice>) -> Self {
        Self { device, flashed: Mutex::default() }
    }

    /// Describes a tensor that the device fills from `seed`.
    ///
    /// # Errors
    /// `InvalidArgument` for a shape that cannot be.
    pub fn tensor_from_seed(&self, dtype: DType, shape: &[usize], seed: u64) -> Result<Tensor> {
        Tensor::describe(&self.device, dtype, shape, None, seed)
    }

    /// Describes a tensor with initial data, which travels with the image.
    ///
    /// # Errors
    /// `InvalidArgument` for a shape that cannot be.
    pub fn tensor_from_array(&self, array: HostArray) -> Result<Tensor> {
        let (dtype, shape) = (array.dtype(), array.shape().to_vec());
        Tensor::describe(&self.device, dtype, &shape, Some(array), 0)
    }

    /// Writes an image, with the tensors and scalars that it runs on.
    ///
    /// # Errors
    /// `InvalidArgument` that names the argument; `Unsupported` for a format that the device does not accept.
    pub fn flash(&self, image: &ModuleSource, args: &[Arg<'_>]) -> Result<()> {
        let named = |error: Error| error.in_operation("flash").on_device(&self.device.name);
        image.check(&self.device).map_err(named)?;
        let mut tensors = Vec::new();
        let mut raw_args = Vec::new();
        let places: Vec<_> = (0..args.len() as u64).map(place).collect();
        for (index, arg) in args.iter().enumerate() {
            let place = &places[tensors.len()];
            raw_args.push(self.raw_arg(index, arg, &mut tensors, place).map_err(named)?);
        }
        let described: Vec<_> = tensors.iter().map(|(tensor, access)| describe(tensor, *access)).collect();
        let pointers: Vec<_> = described.iter().map(std::ptr::from_ref).collect();
        image.with_raw(|image| {
            self.device.call("flash", |calls, device| {
                // SAFETY: the device is open, and everything that is pointed to lives during the call.
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
        *self.flashed.lock() = tensors.into_iter().map(|(tensor, _)| tensor).collect();
        Ok(())
    }

    /// An argument as it crosses the seam: a tensor is its place in the list of tensors, which `place` tells.
    fn raw_arg(
        &self,
        index: usize,
        arg: &Arg<'_>,
        tensors: &mut Vec<(Tensor, u8)>,
        place: &abi::TensorArg,
    ) -> Result<abi::Arg> {
        let Value::Tensor(tensor, access, _) = arg.value else { return raw_arg(arg) };
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
            value: abi::ArgValue { tensor: place },
        })
    }

    /// Runs the flashed program to its end, or for at most `deadline`.
    ///
    /// # Errors
    /// `Timeout`; `Failed` when the program says so; `InvalidArgument` when nothing was flashed.
    pub fn run(&self, deadline: Duration) -> Result<RunReport> {
        let mut raw =
            abi::RunReport { struct_size: crate::end_of!(abi::RunReport, elapsed_ns), ..Default::default() };
        let deadline_ns = u64::try_from(deadline.as_nanos()).unwrap_or(u64::MAX);
        // SAFETY: the device is open and the out-structure lives during the call.
        self.device.call("run", |calls, device| unsafe {
            (calls.embedded.run)(device, deadline_ns, &raw mut raw)
        })?;
        Ok(RunReport { exit_code: raw.exit_code, cycles: raw.cycles, elapsed_ns: raw.elapsed_ns })
    }

    /// Reads back tensor number `tensor` of the flashed program, counted over its tensor arguments.
    ///
    /// # Errors
    /// `InvalidArgument` when the program has no such tensor.
    pub fn read(&self, tensor: usize) -> Result<HostArray> {
        let described = self.flashed.lock().get(tensor).cloned();
        let described = described.ok_or_else(|| {
            let message =
                format!("tensor {tensor} of a program with {}; flash one first", self.flashed.lock().len());
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
}

/// A tensor argument that is the `index`th of the program's tensors: it has no memory yet, so no more is known.
const fn place(index: u64) -> abi::TensorArg {
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

fn describe(tensor: &Tensor, access: u8) -> abi::TensorDescription {
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
