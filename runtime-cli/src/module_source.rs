//! KernelSource as it is loaded: its file, its options, and what it is specialised to.

use runtime_core::{CodeFormat, DType, Error, ModuleSource, Result, Value};

use crate::spec::{KernelSource, Specialise};

/// The code of a spec, with its options and what it is fixed to.
pub(crate) fn module_source(code: &KernelSource, specialise: &Specialise) -> Result<ModuleSource> {
    let portable = code.format == CodeFormat::WGSL;
    let mut source = if portable { ModuleSource::wgsl_file(&code.path) } else { native(code) };
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
        format => Err(Error::unsupported(format!("code of format {format} takes no [specialise]"))),
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

/// C has macros for it.
fn with_macros(mut source: ModuleSource, specialise: &Specialise) -> Result<ModuleSource> {
    for (name, value) in &specialise.constants {
        source = source.option("define", format!("{name}={}", c_literal(value)));
    }
    match specialise.element {
        Some(dtype) => Ok(source.option("define", format!("T={}", c_type(dtype)?))),
        None => Ok(source),
    }
}

#[allow(unsafe_code, reason = "trusts portable code that a spec vouches for")]
fn unchecked(source: ModuleSource) -> ModuleSource {
    // SAFETY: whoever runs a spec that says so vouches for its kernel: docs/spec.md says so.
    unsafe { source.unchecked() }
}

#[allow(unsafe_code, reason = "the one place where the command trusts native code")]
fn native(code: &KernelSource) -> ModuleSource {
    // SAFETY: whoever runs a spec vouches for its kernel and for what it says of the arguments: docs/spec.md says so.
    unsafe { ModuleSource::native_file(code.format.clone(), &code.path) }
}

fn c_literal(value: &Value) -> String {
    match value {
        Value::Flag(flag) => u8::from(*flag).to_string(),
        // Rust writes 1.0 as `1`, which C would read as an integer.
        Value::Number(number) => format!("{number:?}"),
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
    fn constants_are_written_as_c_reads_them() {
        assert_eq!(c_literal(&Value::Flag(true)), "1");
        assert_eq!(c_literal(&Value::Integer(-4)), "-4");
        assert_eq!(c_literal(&Value::Number(1.0)), "1.0");
        assert_eq!(c_literal(&Value::Number(1e30)), "1e30");
    }
}
