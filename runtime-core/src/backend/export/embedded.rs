//! Shims for embedded devices.

use std::time::Duration;

use super::ffi::{abi_mismatch, borrow, byte_len, out_param, read_struct, write_struct};
use super::module::source;
use super::panic::guard;
use super::{Backend, Shims};
use crate::abi::{self, EmbeddedTable, Handle, ModuleSource, Status};
use crate::backend::{Device, Program, ProgramArg, TensorDescription};
use crate::model::kernel_info::{Register, RunReport};
use crate::plugin::convert;
use crate::{Access, DType, Error, Options, Result, end_of};

impl<B: Backend> Shims<B> {
    pub(super) const EMBEDDED: &'static EmbeddedTable = &EmbeddedTable {
        struct_size: end_of!(EmbeddedTable, inspect),
        reserved: 0,
        flash: Some(Self::flash),
        run: Some(Self::run_flashed),
        read: Some(Self::read_flashed),
        inspect: Some(Self::inspect),
    };

    unsafe extern "C" fn flash(
        device: Handle,
        image: *const ModuleSource,
        tensors: *const *const abi::TensorDescription,
        count: usize,
        args: *const abi::Arg,
        arg_count: usize,
    ) -> Status {
        guard("flash", || {
            // SAFETY: core passes a live device of this backend.
            let device = unsafe { borrow::<B::Device>(device) }?;
            let mut options = Options::new();
            // SAFETY: core passes a structure that states its size; it is readable during the call.
            let image = unsafe { source(image, &mut options) }?;
            // SAFETY: core passes `count` descriptions, valid during the call.
            let tensors = unsafe { convert::borrow_slice("tensors", tensors, count, usize::MAX) }?;
            // SAFETY: core passes `arg_count` arguments, valid during the call.
            let args = unsafe { convert::borrow_slice("args", args, arg_count, usize::MAX) }?;
            // SAFETY: as above.
            let tensors: Result<Vec<_>> =
                tensors.iter().map(|&tensor| unsafe { description(tensor) }).collect();
            // SAFETY: as above.
            let args: Result<Vec<_>> = args.iter().map(|arg| unsafe { argument(arg) }).collect();
            device.flash(&image, &Program { tensors: tensors?, args: args? })
        })
    }

    unsafe extern "C" fn run_flashed(
        device: Handle,
        deadline_ns: u64,
        report: *mut abi::RunReport,
    ) -> Status {
        guard("run", || {
            // SAFETY: core passes a live device of this backend.
            let device = unsafe { borrow::<B::Device>(device) }?;
            let run = device.run(Duration::from_nanos(deadline_ns))?;
            // SAFETY: core passes a structure that states its size.
            unsafe { write_struct(report, raw_report(&run)) }
        })
    }

    unsafe extern "C" fn read_flashed(
        device: Handle,
        tensor: u32,
        offset: u64,
        target: *mut u8,
        bytes: u64,
    ) -> Status {
        guard("read", || {
            // SAFETY: core passes a live device of this backend.
            let device = unsafe { borrow::<B::Device>(device) }?;
            // SAFETY: core passes `bytes` initialised bytes for exclusive use.
            let bytes = unsafe { destination(target, byte_len(bytes)?) }?;
            device.read(tensor, offset, bytes)
        })
    }

    unsafe extern "C" fn inspect(
        device: Handle,
        what: u32,
        address: u64,
        buffer: *mut u8,
        capacity: usize,
        bytes: *mut usize,
    ) -> Status {
        guard("inspect", || {
            // SAFETY: core passes a live device of this backend.
            let device = unsafe { borrow::<B::Device>(device) }?;
            // SAFETY: core passes a writable output pointer.
            let bytes = unsafe { out_param(bytes) }?;
            // SAFETY: core passes `capacity` initialised bytes for exclusive use.
            let buffer = unsafe { destination(buffer, capacity) }?;
            match what {
                abi::INSPECT_MEMORY => {
                    device.read_memory(address, buffer)?;
                    bytes.write(capacity);
                }
                abi::INSPECT_REGISTERS => {
                    let text = register_lines(&device.registers()?);
                    let stored = capacity.min(text.len());
                    buffer[..stored].copy_from_slice(&text.as_bytes()[..stored]);
                    bytes.write(text.len());
                }
                _ => return Err(Error::unsupported(format!("inspection {what} is not supported"))),
            }
            Ok(())
        })
    }
}

/// # Safety
/// `pointer` is null, or `bytes` initialised bytes for exclusive use during `'a`.
unsafe fn destination<'a>(pointer: *mut u8, bytes: usize) -> Result<&'a mut [u8]> {
    match bytes {
        0 => Ok(&mut []),
        _ if pointer.is_null() => Err(abi_mismatch("the destination is null")),
        // SAFETY: not null, and guaranteed by the caller.
        _ => Ok(unsafe { std::slice::from_raw_parts_mut(pointer, bytes) }),
    }
}

/// The form of registers in the ABI.
fn register_lines(registers: &[Register]) -> String {
    registers.iter().map(|register| format!("{} {:#x}\n", register.name, register.value)).collect()
}

fn raw_report(run: &RunReport) -> abi::RunReport {
    let image = run.image.unwrap_or_default();
    abi::RunReport {
        struct_size: end_of!(abi::RunReport, zeroed_bytes),
        exit_code: run.exit_code,
        cycles: run.cycles.unwrap_or(0),
        elapsed_ns: run.elapsed_ns,
        overhead: run.overhead,
        stack_bytes: run.stack_bytes.unwrap_or(0),
        code_bytes: image.code_bytes,
        constant_bytes: image.constant_bytes,
        data_bytes: image.data_bytes,
        zeroed_bytes: image.zeroed_bytes,
    }
}

/// # Safety
/// `raw` is null, or states its size and is valid for `'a`, with everything it points to.
unsafe fn description<'a>(raw: *const abi::TensorDescription) -> Result<TensorDescription<'a>> {
    // SAFETY: guaranteed by the caller.
    let raw = unsafe { read_struct(raw) }?;
    // SAFETY: as above.
    let shape = unsafe {
        convert::borrow_slice("TensorDescription.shape", raw.shape, raw.ndim as usize, usize::MAX)
    }?;
    // SAFETY: as above.
    let data =
        unsafe { convert::borrow_slice("TensorDescription.data", raw.data, raw.data_bytes, usize::MAX) };
    Ok(TensorDescription {
        dtype: DType(raw.dtype),
        shape,
        access: Access::from_bits((raw.access & 0xff) as u8),
        data: if raw.data.is_null() { None } else { Some(data?) },
        seed: raw.seed,
    })
}

/// # Safety
/// Everything the argument points to is valid.
unsafe fn argument(raw: &abi::Arg) -> Result<ProgramArg<'_>> {
    match raw.kind {
        abi::ARG_TENSOR => {
            // SAFETY: the kind determines the active member.
            let tensor = unsafe { raw.value.tensor };
            // SAFETY: the caller guarantees a valid tensor argument.
            let tensor =
                unsafe { tensor.as_ref() }.ok_or_else(|| abi_mismatch("a tensor argument is null"))?;
            let index = u32::try_from(tensor.address)
                .map_err(|_| abi_mismatch("the address of a tensor argument is not an index"))?;
            Ok(ProgramArg::Tensor(index))
        }
        abi::ARG_SCALAR => {
            let dtype = DType::from_dlpack(raw.dtype_code, raw.dtype_bits, 1);
            // SAFETY: the kind determines the active member.
            Ok(ProgramArg::Scalar(dtype, unsafe { raw.value.scalar }))
        }
        abi::ARG_BYTES => {
            // SAFETY: the kind determines the active member.
            let data = unsafe { raw.value.data };
            // SAFETY: the caller guarantees `bytes` readable bytes.
            Ok(ProgramArg::Bytes(unsafe {
                convert::borrow_slice("Arg.data", data, raw.bytes as usize, usize::MAX)
            }?))
        }
        abi::ARG_RECORD => {
            // SAFETY: the kind determines the active member.
            let record = unsafe { raw.value.record };
            // SAFETY: the caller guarantees a valid record.
            let record = unsafe { record.as_ref() }.ok_or_else(|| abi_mismatch("a record is null"))?;
            // SAFETY: the caller guarantees `bytes` readable bytes.
            Ok(ProgramArg::Bytes(unsafe {
                convert::borrow_slice("RecordArg.data", record.data, raw.bytes as usize, usize::MAX)
            }?))
        }
        kind => Err(abi_mismatch(format!("an embedded program cannot take an argument of kind {kind}"))),
    }
}
