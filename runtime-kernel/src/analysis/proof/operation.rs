//! The upper bound of an operation's result, from those of its operands.

use naga::{BinaryOperator, Scalar, ScalarKind, TypeInner};

/// The upper bound of a binary operation on integers of type `inner`, whose right side may be a constant.
pub(super) fn of_binary(
    inner: &TypeInner,
    operator: BinaryOperator,
    (a, b): (Option<u64>, Option<u64>),
    constant: Option<u64>,
) -> Option<u64> {
    let TypeInner::Scalar(scalar) = *inner else { return None };
    let unsigned = scalar.kind == ScalarKind::Uint;
    let greatest = match scalar {
        Scalar::U32 => u64::from(u32::MAX),
        Scalar::I32 => 0x7fff_ffff,
        _ => return None,
    };
    match operator {
        BinaryOperator::And => match (a, b) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        },
        BinaryOperator::Modulo if unsigned || a.is_some() => constant?.checked_sub(1),
        BinaryOperator::Divide if unsigned || a.is_some() => a.unwrap_or(greatest).checked_div(constant?),
        BinaryOperator::ShiftRight if unsigned || a.is_some() => {
            // Devices take the shift amount modulo 32.
            let amount = constant?.try_into().ok().filter(|amount: &u32| *amount < 32)?;
            a.unwrap_or(greatest).checked_shr(amount)
        }
        BinaryOperator::Add => a?.checked_add(b?).filter(|sum| *sum <= greatest),
        BinaryOperator::Multiply => a?.checked_mul(b?).filter(|product| *product <= greatest),
        _ => None,
    }
}
