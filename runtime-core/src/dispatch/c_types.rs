//! The types of C dialects that type parameters of native code stand for.

use crate::dispatch::typing::Bindings;
use crate::model::signature::SignatureParam;
use crate::{CodeFormat, DType, Error, Result};

/// The structure that native code receives for a tensor with strides.
const LAYOUT: &str = "struct Layout { unsigned int shape[4]; int strides[4]; };\n";

/// The definitions to put in front of native source code: its type parameters, and the structure `Layout` if the signature has
/// one. Empty for code that needs none.
///
/// # Errors
/// `InvalidArgument` for a type that the language lacks; `Unsupported` for type parameters of a format that is no C dialect.
pub(super) fn definitions(
    format: &CodeFormat,
    signature: &[SignatureParam],
    bindings: &Bindings,
) -> Result<String> {
    let has_layout = signature.iter().any(SignatureParam::is_layout);
    if bindings.is_empty() && !has_layout {
        return Ok(String::new());
    }
    let Some(dialect) = Dialect::of(format) else {
        return Err(Error::unsupported(format!(
            "code in the format {format} cannot have type parameters or layouts; use source code, or one dispatcher for each type"
        )));
    };
    let mut text = String::new();
    for (name, dtype) in bindings {
        let (header, alias) = dialect.type_of(*dtype).ok_or_else(|| {
            Error::invalid(format!(
                "{format} has no element type {dtype}, which the type parameter {name} stands for"
            ))
        })?;
        text += &format!("{header}typedef {alias} {name};\n");
    }
    Ok(text + if has_layout { LAYOUT } else { "" } + "#line 1\n")
}

#[derive(Clone, Copy)]
enum Dialect {
    C,
    Cuda,
    OpenCl,
}

impl Dialect {
    fn of(format: &CodeFormat) -> Option<Self> {
        let known = [
            (CodeFormat::C, Self::C),
            (CodeFormat::CUDA_C, Self::Cuda),
            (CodeFormat::OPENCL_C, Self::OpenCl),
        ];
        known.into_iter().find(|(known, _)| known == format).map(|(_, dialect)| dialect)
    }

    /// What a type needs in front of it, and its name.
    fn type_of(self, dtype: DType) -> Option<(&'static str, &'static str)> {
        const HALF: &str = "#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n";
        const CUDA_HALF: &str = "#include <cuda_fp16.h>\n";
        const CUDA_BF16: &str = "#include <cuda_bf16.h>\n";
        let is_opencl = matches!(self, Self::OpenCl);
        Some(match (dtype, self) {
            (DType::F16, Self::C) => ("", "_Float16"),
            (DType::F16, Self::Cuda) => (CUDA_HALF, "__half"),
            (DType::F16, Self::OpenCl) => (HALF, "half"),
            (DType::BF16, Self::C) => ("", "__bf16"),
            (DType::BF16, Self::Cuda) => (CUDA_BF16, "__nv_bfloat16"),
            // OpenCL C forbids `bool` in memory.
            (DType::BOOL, Self::C) => ("", "_Bool"),
            (DType::BOOL, Self::Cuda) => ("", "bool"),
            (DType::BOOL | DType::U8, _) => ("", "unsigned char"),
            (DType::I8, _) => ("", "signed char"),
            (DType::I16, _) => ("", "short"),
            (DType::U16, _) => ("", "unsigned short"),
            (DType::I32, _) => ("", "int"),
            (DType::U32, _) => ("", "unsigned int"),
            (DType::I64, _) => ("", if is_opencl { "long" } else { "long long" }),
            (DType::U64, _) => ("", if is_opencl { "unsigned long" } else { "unsigned long long" }),
            (DType::F32, _) => ("", "float"),
            (DType::F64, _) => ("", "double"),
            _ => return None,
        })
    }
}
