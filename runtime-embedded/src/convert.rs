//! From core's description of a program to that of the firmware.

use runtime_core::backend::{ProgramArg, TensorDescription};
use runtime_core::{Access, DType, DTypeClass, Error, Result};

use crate::image::Parameter;
use crate::target::{CONSTANT, KEEP, MAX_ARGS, MAX_TENSORS, POISON, SEED, TensorRecord};

/// How the kernel takes its arguments.
///
/// # Errors
/// `Unsupported`, naming the argument.
pub(crate) fn parameters(args: &[ProgramArg<'_>]) -> Result<Vec<Parameter>> {
    let tensors = args.iter().filter(|arg| matches!(arg, ProgramArg::Tensor(_))).count();
    if args.len() > MAX_ARGS || tensors > MAX_TENSORS {
        return Err(Error::unsupported(format!(
            "a program takes at most {MAX_ARGS} arguments, and at most {MAX_TENSORS} of them may be tensors"
        )));
    }
    args.iter().enumerate().map(|(index, arg)| Parameter::of(index, arg)).collect()
}

/// The arguments as words; tensors have these addresses.
///
/// # Errors
/// `InvalidArgument` for a tensor that does not exist.
pub(crate) fn words(args: &[ProgramArg<'_>], addresses: &[u64]) -> Result<Vec<u64>> {
    let word = |arg: &ProgramArg<'_>| match arg {
        ProgramArg::Tensor(index) => addresses.get(*index as usize).copied().ok_or_else(|| {
            Error::invalid(format!("tensor {index} does not exist; the program has {}", addresses.len()))
        }),
        ProgramArg::Scalar(_, bits) => Ok(*bits),
        ProgramArg::Bytes(_) => Ok(0),
    };
    args.iter().map(word).collect()
}

/// A tensor without an address. One with data that is only read may be a constant.
///
/// # Errors
/// `InvalidArgument` for a shape that is too large, or data of another size; `Unsupported` for random numbers of a type that
/// the firmware cannot make.
pub(crate) fn tensor(tensor: &TensorDescription<'_>) -> Result<TensorRecord> {
    let elements =
        tensor.shape.iter().try_fold(1u64, |n, &extent| n.checked_mul(u64::try_from(extent).ok()?));
    let bytes = elements.and_then(|elements| elements.checked_mul(tensor.dtype.bytes() as u64));
    let bytes =
        bytes.ok_or_else(|| Error::invalid(format!("shape {:?} is negative or too large", tensor.shape)))?;
    let content = match tensor.data {
        Some(data) if data.len() as u64 != bytes => {
            return Err(Error::invalid(format!("data has {} bytes, the tensor {bytes}", data.len())));
        }
        Some(_) if tensor.access == Access::Read => CONSTANT,
        Some(_) => KEEP,
        None if tensor.access == Access::Write => POISON,
        None => SEED,
    };
    let element_bytes = u32::try_from(tensor.dtype.bytes()).unwrap_or(u32::MAX);
    let class = class(tensor.dtype, content == SEED)?;
    Ok(TensorRecord { address: 0, bytes, seed: tensor.seed, content, class, element_bytes })
}

/// The firmware's number for a class of types.
fn class(dtype: DType, random: bool) -> Result<u32> {
    match dtype.class() {
        DTypeClass::Int => Ok(0),
        DTypeClass::UInt => Ok(1),
        DTypeClass::Float => Ok(2),
        DTypeClass::BFloat => Ok(3),
        DTypeClass::Bool => Ok(4),
        DTypeClass::Complex => Ok(5),
        _ if !random => Ok(1),
        _ => Err(Error::unsupported(format!("random numbers of type {dtype} are not supported; give data"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(dtype: DType, shape: &[i64]) -> TensorDescription<'_> {
        TensorDescription { dtype, shape, access: Access::Read, data: None, seed: 3 }
    }

    #[test]
    fn sizes_and_contents_follow_the_description() {
        let read = tensor(&described(DType::F16, &[2, 3])).unwrap();
        assert_eq!((read.bytes, read.content, read.class, read.seed), (12, SEED, 2, 3));
        let written =
            tensor(&TensorDescription { access: Access::Write, ..described(DType::I8, &[0]) }).unwrap();
        assert_eq!((written.bytes, written.content), (0, POISON));
        for (access, content) in [(Access::Read, CONSTANT), (Access::ReadWrite, KEEP), (Access::Write, KEEP)]
        {
            let given = TensorDescription { access, data: Some(&[7]), ..described(DType::I8, &[1]) };
            assert_eq!(tensor(&given).unwrap().content, content, "{access:?}");
        }
        for shape in [&[-1][..], &[i64::MAX, 3]] {
            assert!(tensor(&described(DType::F32, shape)).is_err(), "{shape:?}");
        }
    }

    #[test]
    fn tensor_arguments_become_addresses() {
        let args = [ProgramArg::Scalar(DType::I32, 7), ProgramArg::Tensor(1)];
        assert_eq!(words(&args, &[16, 32]).unwrap(), [7, 32]);
        assert!(words(&args, &[16]).unwrap_err().message().contains("tensor 1"));
        assert!(parameters(&[ProgramArg::Scalar(DType::I32, 0); MAX_ARGS + 1]).is_err());
    }
}
