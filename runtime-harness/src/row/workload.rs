//! What a kernel works on, which decides the limits it is compared with.

use runtime_core::DType;

use crate::spec::{ArgumentKind, Spec, TensorSpec};

fn tensors(spec: &Spec) -> impl Iterator<Item = &TensorSpec> {
    spec.args.iter().filter_map(|arg| match &arg.kind {
        ArgumentKind::Tensor(tensor) => Some(tensor),
        _ => None,
    })
}

/// The element type that a kernel computes with: the floating-point type that it reads, because products of short types are often
/// summed in longer ones, and other tensors hold indices; without one, the type of all that it reads; or else of all that it writes.
/// `None` if there are several.
pub(super) fn dtype(spec: &Spec) -> Option<DType> {
    let single = |is_wanted: &dyn Fn(&TensorSpec) -> bool| {
        let mut dtypes = tensors(spec).filter(|tensor| is_wanted(tensor)).map(|tensor| tensor.dtype);
        let first = dtypes.next()?;
        Some(dtypes.all(|dtype| dtype == first).then_some(first))
    };
    let floats = single(&|tensor| tensor.access.reads() && FLOATS.contains(&tensor.dtype));
    let read = || single(&|tensor| tensor.access.reads());
    floats.or_else(read).or_else(|| single(&|tensor| tensor.access.writes())).flatten()
}

const FLOATS: [DType; 4] = [DType::F16, DType::BF16, DType::F32, DType::F64];

/// The bytes of all tensors together.
pub(super) fn working_set_bytes(spec: &Spec) -> Option<u64> {
    let bytes = tensors(spec).map(|tensor| {
        let elements =
            tensor.shape.iter().try_fold(1u64, |product, extent| product.checked_mul(*extent as u64));
        elements?.checked_mul(tensor.dtype.bytes() as u64)
    });
    bytes.sum()
}
