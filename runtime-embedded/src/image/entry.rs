//! The call of the kernel, in C.

use std::fmt::Write as _;

use runtime_core::backend::ProgramArg;
use runtime_core::{DType, Error, Result};

/// An argument of a kernel: decides how it is passed, not its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Parameter {
    Pointer,
    /// A C type that an integer converts to.
    Integer(&'static str),
    F32,
    F64,
}

impl Parameter {
    /// How an argument is passed.
    ///
    /// # Errors
    /// `Unsupported` for arguments by value other than scalars, and scalars of types that C lacks.
    pub(crate) fn of(index: usize, argument: &ProgramArg<'_>) -> Result<Self> {
        let dtype = match argument {
            ProgramArg::Tensor(_) => return Ok(Self::Pointer),
            ProgramArg::Scalar(dtype, _) => *dtype,
            ProgramArg::Bytes(_) => {
                return Err(Error::unsupported(format!(
                    "argument {index} is a structure, which embedded devices do not support; pass a tensor of its bytes"
                )));
            }
        };
        Ok(match dtype {
            DType::F32 => Self::F32,
            DType::F64 => Self::F64,
            DType::I8 => Self::Integer("signed char"),
            DType::I16 => Self::Integer("short"),
            DType::I32 => Self::Integer("__INT32_TYPE__"),
            DType::I64 => Self::Integer("__INT64_TYPE__"),
            DType::U8 => Self::Integer("unsigned char"),
            DType::U16 => Self::Integer("unsigned short"),
            DType::U32 => Self::Integer("__UINT32_TYPE__"),
            DType::U64 => Self::Integer("__UINT64_TYPE__"),
            DType::BOOL => Self::Integer("_Bool"),
            other => {
                return Err(Error::unsupported(format!(
                    "argument {index} is a scalar of type {other}, which the C compilers of embedded devices lack"
                )));
            }
        })
    }
}

/// A C file that includes the kernel and defines `runtime_entry`, which calls it. So the compiler checks the arguments against
/// the kernel's prototype. The value of a kernel that returns an integer is its exit code.
pub(super) fn source(file: &str, kernel: &str, parameters: &[Parameter]) -> String {
    let mut arguments = Vec::new();
    for (index, parameter) in parameters.iter().enumerate() {
        arguments.push(match parameter {
            Parameter::Pointer => format!("(void *)(__UINTPTR_TYPE__)args[{index}]"),
            Parameter::Integer(of) => format!("({of})args[{index}]"),
            Parameter::F32 => {
                format!("((union runtime_f32){{.word = (__UINT32_TYPE__)args[{index}]}}).value")
            }
            Parameter::F64 => format!("((union runtime_f64){{.word = args[{index}]}}).value"),
        });
    }
    let call = format!("{kernel}({})", arguments.join(", "));
    let mut text = String::new();
    let _ = write!(
        text,
        "#include \"{file}\"
union runtime_f32 {{ __UINT32_TYPE__ word; float value; }};
union runtime_f64 {{ __UINT64_TYPE__ word; double value; }};
int runtime_entry(const volatile __UINT64_TYPE__ *args) {{
    (void)args;
    return __builtin_choose_expr(__builtin_types_compatible_p(__typeof__({call}), void), ({call}, 0), {call});
}}
"
    );
    text
}

/// As [`source`], for a kernel that runs the work-groups `begin` to `end` of a grid, and takes its arguments as words.
pub(super) fn groups_source(file: &str, kernel: &str, words: usize, [x, y, z]: [u32; 3]) -> String {
    let all = u128::from(x) * u128::from(y) * u128::from(z);
    let room = words.max(1);
    format!(
        "#include \"{file}\"
int runtime_entry(const volatile __UINT64_TYPE__ *args) {{
    static const unsigned int groups[3] = {{{x}u, {y}u, {z}u}};
    unsigned long long words[{room}];
    for (int i = 0; i < {words}; i++) words[i] = args[i];
    {kernel}(words, groups, 0, {all}LL);
    return 0;
}}
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_are_passed_by_their_type() {
        let of = |dtype| Parameter::of(1, &ProgramArg::Scalar(dtype, 0));
        assert_eq!(of(DType::I64).unwrap(), Parameter::Integer("__INT64_TYPE__"));
        assert!(of(DType::F16).unwrap_err().message().contains("argument 1"));
        assert!(Parameter::of(2, &ProgramArg::Bytes(&[])).unwrap_err().message().contains("argument 2"));
        let text = source("kernel.c", "f", &[Parameter::Pointer, Parameter::F64]);
        assert!(
            text.contains(
                "f((void *)(__UINTPTR_TYPE__)args[0], ((union runtime_f64){.word = args[1]}).value)"
            )
        );
    }
}
