//! Converts a backend's description of a kernel to owned data.

#![allow(unsafe_code, reason = "reads structures received across the ABI")]

use std::fmt::Display;

use crate::model::access::ArgKind;
use crate::model::kernel_info::{KernelInfo, Param};
use crate::plugin::convert;
use crate::{Access, DType, Result, abi};

/// A description in which nothing is known, to be filled in.
pub(crate) const fn unknown() -> abi::KernelInfo {
    abi::KernelInfo {
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
    }
}

/// Reads a description; `field` names it in error messages.
///
/// # Errors
/// `AbiMismatch` for an invalid list of parameters.
///
/// # Safety
/// The parameters are readable.
pub(crate) unsafe fn read(field: impl Display, raw: &abi::KernelInfo) -> Result<KernelInfo> {
    let field = format_args!("{field}.params");
    // SAFETY: guaranteed by the caller.
    let params = unsafe { convert::borrow_slice(field, raw.params, raw.param_count, abi::MAX_PARAMS) }?;
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

fn param(raw: &abi::Param) -> Param {
    let kind = match raw.kind {
        abi::ARG_TENSOR => ArgKind::Tensor,
        abi::ARG_BYTES => ArgKind::Bytes,
        abi::ARG_LOCAL => ArgKind::Local,
        _ => ArgKind::Scalar,
    };
    Param {
        kind,
        access: (raw.access & abi::ACCESS_UNKNOWN == 0).then(|| Access::from_bits(raw.access)),
        strided: raw.access & abi::ACCESS_STRIDED != 0,
        dtype: (raw.dtype.bits != 0).then_some(DType(raw.dtype)),
    }
}
