//! Makes the `ModuleSource` of a spec: its code, load options, constants and element type.

use runtime_core::{CodeFormat, DType, Error, ModuleSource, OptionValue, Result};

use crate::spec::{KernelSource, Specialise};

/// The code of a job with its options, specialised to the constants and element type.
///
/// # Errors
/// `Unsupported` for constants of code that has none.
pub(crate) fn module_source(code: &KernelSource, specialise: &Specialise) -> Result<ModuleSource> {
    let portable = code.format == CodeFormat::WGSL;
    let mut source = match &code.text {
        _ if !portable => native(code),
        Some(text) => ModuleSource::wgsl(text),
        None => ModuleSource::wgsl_file(&code.path),
    };
    for (key, value) in code.options.iter().filter(|(key, _)| !(portable && *key == "unchecked")) {
        source = source.option(key, value.clone());
    }
    if portable && code.options.flag("unchecked") {
        source = unchecked(source);
    }
    match &code.format {
        _ if specialise.constants.is_empty() && specialise.element.is_none() => Ok(source),
        _ if portable => Ok(with_constants(source, specialise)),
        format if *format == CodeFormat::C => with_macros(source, specialise),
        format => {
            Err(Error::unsupported(format!("[specialise] is not supported for code of format {format}")))
        }
    }
}

fn with_constants(mut source: ModuleSource, specialise: &Specialise) -> ModuleSource {
    for (name, value) in &specialise.constants {
        source = source.constant(name, value);
    }
    match specialise.element {
        Some(dtype) => source.element(dtype),
        None => source,
    }
}

/// Specialises C code with macros.
fn with_macros(mut source: ModuleSource, specialise: &Specialise) -> Result<ModuleSource> {
    for (name, value) in &specialise.constants {
        source = source.option("define", format!("{name}={}", c_literal(value)));
    }
    match specialise.element {
        Some(dtype) => Ok(source.option("define", format!("T={}", c_type(dtype)?))),
        None => Ok(source),
    }
}

#[allow(unsafe_code, reason = "loads portable code that whoever made the job has vouched for")]
fn unchecked(source: ModuleSource) -> ModuleSource {
    // SAFETY: whoever made the job has vouched for its code.
    unsafe { source.unchecked() }
}

#[allow(unsafe_code, reason = "the one place where native code is trusted")]
fn native(code: &KernelSource) -> ModuleSource {
    match &code.text {
        // SAFETY: whoever made the job has vouched for its code and argument list.
        Some(text) => unsafe { ModuleSource::native(code.format.clone(), text.as_bytes()) },
        // SAFETY: as above.
        None => unsafe { ModuleSource::native_file(code.format.clone(), &code.path) },
    }
}

fn c_literal(value: &OptionValue) -> String {
    match value {
        OptionValue::Flag(flag) => u8::from(*flag).to_string(),
        // `Display` prints 1.0 as `1`, an integer in C; `Debug` keeps the point.
        OptionValue::Number(number) => format!("{number:?}"),
        other => other.to_string(),
    }
}

fn c_type(dtype: DType) -> Result<&'static str> {
    Ok(match dtype {
        DType::I8 => "signed char",
        DType::I16 => "short",
        DType::I32 => "int",
        DType::I64 => "long long",
        DType::U8 => "unsigned char",
        DType::U16 => "unsigned short",
        DType::U32 => "unsigned int",
        DType::U64 => "unsigned long long",
        DType::F16 => "_Float16",
        DType::BF16 => "__bf16",
        DType::F32 => "float",
        DType::F64 => "double",
        DType::BOOL => "_Bool",
        DType::COMPLEX64 => "float _Complex",
        DType::COMPLEX128 => "double _Complex",
        other => return Err(Error::unsupported(format!("element type {other} in C is not supported"))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_become_c_literals() {
        assert_eq!(c_literal(&OptionValue::Flag(true)), "1");
        assert_eq!(c_literal(&OptionValue::Integer(-4)), "-4");
        assert_eq!(c_literal(&OptionValue::Number(1.0)), "1.0");
        assert_eq!(c_literal(&OptionValue::Number(1e30)), "1e30");
    }
}
