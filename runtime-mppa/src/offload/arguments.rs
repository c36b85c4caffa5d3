//! The arguments of a kernel, `void kernel(void *args)`: a structure in C's layout.

use runtime_core::backend::{ArgRef, Buffer, unsupported_argument};
use runtime_core::{DType, Error, Result};

/// Alignment of structures without known fields, and of addresses.
const WORD_BYTES: usize = 8;

/// Packs arguments as C lays out a structure of them: addresses of tensors, scalars, and structures.
///
/// # Errors
/// `Unsupported` for work-group memory.
pub(super) fn pack<'a, B: Buffer>(args: impl Iterator<Item = ArgRef<'a, B>>) -> Result<Vec<u8>> {
    let mut packed = Vec::new();
    for (index, arg) in args.enumerate() {
        match arg {
            ArgRef::Tensor(tensor) => push(&mut packed, &tensor.address().to_le_bytes(), WORD_BYTES),
            ArgRef::Scalar { dtype, bits } => {
                let word = bits.to_le_bytes();
                let bytes = word.get(..dtype.bytes()).ok_or_else(|| unsupported_argument(index))?;
                push(&mut packed, bytes, alignment(dtype));
            }
            ArgRef::Bytes(bytes) => push(&mut packed, bytes, WORD_BYTES),
            ArgRef::Record { fields, bytes } => {
                push(&mut packed, bytes, fields.iter().map(|field| alignment(*field)).max().unwrap_or(1));
            }
            ArgRef::Local(_) => {
                return Err(Error::unsupported(
                    "work-group memory is not supported by the offload library; allocate a tensor in the local memory of a cluster",
                ));
            }
            _ => return Err(unsupported_argument(index)),
        }
    }
    Ok(packed)
}

fn alignment(dtype: DType) -> usize {
    dtype.complex_part().unwrap_or(dtype).bytes().max(1)
}

fn push(packed: &mut Vec<u8>, bytes: &[u8], alignment: usize) {
    packed.resize(packed.len().next_multiple_of(alignment), 0);
    packed.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offload::OffloadBuffer;

    #[test]
    fn arguments_are_laid_out_as_in_c() {
        let args: [ArgRef<'_, OffloadBuffer>; 5] = [
            ArgRef::Scalar { dtype: DType::U8, bits: 0x11 },
            ArgRef::Scalar { dtype: DType::F32, bits: 0x4433_2211 },
            ArgRef::Record { fields: &[DType::I16, DType::I16], bytes: &[1, 2, 3, 4] },
            ArgRef::Scalar { dtype: DType::I64, bits: 7 },
            ArgRef::Bytes(&[9]),
        ];
        let packed = pack(args.into_iter()).unwrap();
        let expected =
            [0x11, 0, 0, 0, 0x11, 0x22, 0x33, 0x44, 1, 2, 3, 4, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 9];
        assert_eq!(packed, expected);
        let local: [ArgRef<'_, OffloadBuffer>; 1] = [ArgRef::Local(64)];
        assert!(pack(local.into_iter()).unwrap_err().message().contains("local memory of a cluster"));
    }
}
