//! The signature of a kernel: its parameters, as far as the driver reports them.

#![allow(unsafe_code, reason = "queries the driver")]

use cl3::ext::{
    CL_KERNEL_ARG_ACCESS_NONE, CL_KERNEL_ARG_ACCESS_QUALIFIER, CL_KERNEL_ARG_ADDRESS_CONSTANT,
    CL_KERNEL_ARG_ADDRESS_GLOBAL, CL_KERNEL_ARG_ADDRESS_LOCAL, CL_KERNEL_ARG_ADDRESS_QUALIFIER,
    CL_KERNEL_ARG_NAME, CL_KERNEL_ARG_TYPE_CONST, CL_KERNEL_ARG_TYPE_NAME, CL_KERNEL_ARG_TYPE_QUALIFIER,
};
use runtime_core::backend::c_text;
use runtime_core::code::{ArgKind, Param};
use runtime_core::{Access, DType, Error, ErrorKind, Result};

use crate::driver::info::decode_u64;
use crate::driver::{Driver, Raw, query};

/// A parameter of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parameter {
    name: String,
    type_name: String,
    address: u32,
    access: u32,
    constant: bool,
    pub(crate) kind: ParamKind,
}

/// Fields of a parameter in the text of a signature.
const FIELDS: usize = 5;

/// A kernel and its parameters as text, for binaries of drivers that do not report them: the name, and the fields of each
/// parameter, separated by tabs.
pub(crate) fn to_text(kernel: &str, params: &[Parameter]) -> String {
    params.iter().fold(kernel.to_owned(), |text, param| {
        let Parameter { name, type_name, address, access, constant, .. } = param;
        format!("{text}\t{address:x}\t{access:x}\t{}\t{type_name}\t{name}", u8::from(*constant))
    })
}

/// The parameters of `kernel` from the texts of several signatures; `None` if it is in none, or its text is damaged.
pub(crate) fn from_texts<'a>(
    mut texts: impl Iterator<Item = &'a str>,
    kernel: &str,
) -> Option<Vec<Parameter>> {
    let fields: Vec<_> = texts.find_map(|text| {
        let mut fields = text.split('\t');
        (fields.next() == Some(kernel)).then(|| fields.collect())
    })?;
    let param = |fields: &[&str]| {
        let [address, access, constant, type_name, name] = *fields else { return None };
        let number = |text| u32::from_str_radix(text, 16).ok();
        Some(Parameter::new(number(address)?, number(access)?, constant == "1", type_name, name))
    };
    fields.chunks(FIELDS).map(param).collect()
}

/// What can be passed for a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParamKind {
    /// A pointer to global or constant memory. The element type is given for floating-point numbers only: kernels often access
    /// other memory through another type.
    Tensor { constant: bool, dtype: Option<DType> },
    /// A pointer to work-group memory.
    Local,
    /// A scalar of this type.
    Scalar(DType),
    /// A value of another type: a structure, a vector, a `typedef`.
    Value,
    /// An image, sampler, pipe or queue, which no launch can pass.
    Unpassable,
}

/// Scalar types by their OpenCL C names.
const SCALAR_TYPES: [(&str, DType); 15] = [
    ("char", DType::I8),
    ("uchar", DType::U8),
    ("unsigned char", DType::U8),
    ("short", DType::I16),
    ("ushort", DType::U16),
    ("unsigned short", DType::U16),
    ("int", DType::I32),
    ("uint", DType::U32),
    ("unsigned int", DType::U32),
    ("long", DType::I64),
    ("ulong", DType::U64),
    ("unsigned long", DType::U64),
    ("half", DType::F16),
    ("float", DType::F32),
    ("double", DType::F64),
];

impl Parameter {
    /// The parameters of a kernel; `None` if the driver does not report them.
    pub(crate) fn query_all(driver: &Driver, kernel: Raw, count: u32) -> Option<Vec<Self>> {
        (0..count).map(|index| Self::query(driver, kernel, index)).collect()
    }

    fn query(driver: &Driver, kernel: Raw, index: u32) -> Option<Self> {
        let arg_info = |key| {
            // SAFETY: the kernel is alive, and `value` has room for `size` bytes.
            unsafe { query!(driver, clGetKernelArgInfo(kernel, index, key)) }
        };
        let arg_u64 = |key| decode_u64(&arg_info(key)?);
        let address = u32::try_from(arg_u64(CL_KERNEL_ARG_ADDRESS_QUALIFIER)?).ok()?;
        let access = u32::try_from(arg_u64(CL_KERNEL_ARG_ACCESS_QUALIFIER)?).ok()?;
        let constant = arg_u64(CL_KERNEL_ARG_TYPE_QUALIFIER)? & u64::from(CL_KERNEL_ARG_TYPE_CONST) != 0;
        let type_name = c_text(&arg_info(CL_KERNEL_ARG_TYPE_NAME)?);
        let name = arg_info(CL_KERNEL_ARG_NAME).map_or_else(String::new, |name| c_text(&name));
        Some(Self::new(address, access, constant, &type_name, &name))
    }

    fn new(address: u32, access: u32, constant: bool, type_name: &str, name: &str) -> Self {
        let kind = classify(address, access, constant, type_name);
        Self { name: name.to_owned(), type_name: type_name.to_owned(), address, access, constant, kind }
    }

    /// The parameter in core's form; `None` if no launch can pass it. A pointer without `const` states no access: C declares
    /// inputs so, too.
    pub(crate) fn to_param(&self) -> Option<Param> {
        let (kind, dtype) = match self.kind {
            ParamKind::Tensor { dtype, .. } => (ArgKind::Tensor, dtype),
            ParamKind::Local => (ArgKind::Local, None),
            ParamKind::Scalar(dtype) => (ArgKind::Scalar, Some(dtype)),
            ParamKind::Value => (ArgKind::Scalar, None),
            ParamKind::Unpassable => return None,
        };
        let is_unstated = matches!(self.kind, ParamKind::Tensor { constant: false, .. });
        Some(Param { kind, access: (!is_unstated).then_some(Access::Read), strided: false, dtype })
    }

    /// Refuses a parameter for which no launch can pass an argument.
    ///
    /// # Errors
    /// `Unsupported`.
    pub(crate) fn check_passable(&self, index: usize, kernel: &str) -> Result<()> {
        if self.kind != ParamKind::Unpassable {
            return Ok(());
        }
        let message = format!(
            "parameter {index} of kernel `{kernel}` is `{}`; images, samplers, pipes and queues cannot be kernel \
             arguments: use a pointer to global memory",
            self.declaration()
        );
        Err(Error::new(ErrorKind::Unsupported, message))
    }

    /// Type and name, as in the source.
    pub(crate) fn declaration(&self) -> String {
        format!("{} {}", self.type_name, self.name).trim().to_owned()
    }
}

fn classify(address: u32, access: u32, constant: bool, type_name: &str) -> ParamKind {
    // Some drivers leave qualifiers in the type name.
    let plain = type_name.trim_start_matches("const ").trim();
    let handles =
        ["image", "sampler_t", "queue_t", "pipe", "event_t", "ndrange_t", "reserve_id_t", "clk_event_t"];
    let unpassable = access != CL_KERNEL_ARG_ACCESS_NONE
        || !plain.ends_with('*') && handles.iter().any(|name| plain.starts_with(name));
    match address {
        _ if unpassable => ParamKind::Unpassable,
        CL_KERNEL_ARG_ADDRESS_GLOBAL => ParamKind::Tensor { constant, dtype: float_element(plain) },
        CL_KERNEL_ARG_ADDRESS_CONSTANT => ParamKind::Tensor { constant: true, dtype: float_element(plain) },
        CL_KERNEL_ARG_ADDRESS_LOCAL => ParamKind::Local,
        _ => scalar(plain).map_or(ParamKind::Value, ParamKind::Scalar),
    }
}

fn scalar(name: &str) -> Option<DType> {
    SCALAR_TYPES.iter().find(|(known, _)| *known == name).map(|(_, dtype)| *dtype)
}

/// The element type of a pointer to floating-point numbers.
fn float_element(pointer: &str) -> Option<DType> {
    let element = scalar(pointer.strip_suffix('*')?.trim())?;
    [DType::F16, DType::F32, DType::F64].contains(&element).then_some(element)
}

#[cfg(test)]
mod tests {
    use cl3::ext::{CL_KERNEL_ARG_ACCESS_READ_ONLY, CL_KERNEL_ARG_ADDRESS_PRIVATE};

    use super::*;

    const NONE: u32 = CL_KERNEL_ARG_ACCESS_NONE;

    #[test]
    fn parameters_are_classified_by_qualifiers_and_type() {
        let of = |address, constant, name| classify(address, NONE, constant, name);
        let tensor = |constant, dtype| ParamKind::Tensor { constant, dtype };
        assert_eq!(of(CL_KERNEL_ARG_ADDRESS_GLOBAL, false, "float*"), tensor(false, Some(DType::F32)));
        assert_eq!(of(CL_KERNEL_ARG_ADDRESS_GLOBAL, true, "double *"), tensor(true, Some(DType::F64)));
        assert_eq!(of(CL_KERNEL_ARG_ADDRESS_GLOBAL, true, "float4*"), tensor(true, None));
        assert_eq!(of(CL_KERNEL_ARG_ADDRESS_GLOBAL, true, "uint*"), tensor(true, None));
        assert_eq!(of(CL_KERNEL_ARG_ADDRESS_CONSTANT, false, "image*"), tensor(true, None));
        assert_eq!(of(CL_KERNEL_ARG_ADDRESS_LOCAL, false, "float*"), ParamKind::Local);
        assert_eq!(of(CL_KERNEL_ARG_ADDRESS_PRIVATE, false, "const int"), ParamKind::Scalar(DType::I32));
        assert_eq!(of(CL_KERNEL_ARG_ADDRESS_PRIVATE, false, "unsigned long"), ParamKind::Scalar(DType::U64));
        assert_eq!(of(CL_KERNEL_ARG_ADDRESS_PRIVATE, false, "float4"), ParamKind::Value);
        assert_eq!(of(CL_KERNEL_ARG_ADDRESS_PRIVATE, false, "sampler_t"), ParamKind::Unpassable);
        let image =
            classify(CL_KERNEL_ARG_ADDRESS_GLOBAL, CL_KERNEL_ARG_ACCESS_READ_ONLY, false, "image2d_t");
        assert_eq!(image, ParamKind::Unpassable);
    }

    #[test]
    fn an_image_parameter_is_refused_by_name() {
        let parameter = Parameter::new(
            CL_KERNEL_ARG_ADDRESS_GLOBAL,
            CL_KERNEL_ARG_ACCESS_READ_ONLY,
            false,
            "image2d_t",
            "in",
        );
        let error = parameter.check_passable(2, "blur").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        for words in ["parameter 2", "blur", "image2d_t in"] {
            assert!(error.message().contains(words), "{error}");
        }
    }

    #[test]
    fn pointers_without_const_state_no_access() {
        let tensor = |constant| Parameter::new(CL_KERNEL_ARG_ADDRESS_GLOBAL, NONE, constant, "float*", "a");
        assert_eq!(tensor(false).to_param().map(|param| param.access), Some(None));
        assert_eq!(tensor(true).to_param().map(|param| param.access), Some(Some(Access::Read)));
    }

    #[test]
    fn a_value_of_another_type_is_a_parameter_without_element_type() {
        let value = Parameter::new(CL_KERNEL_ARG_ADDRESS_PRIVATE, NONE, false, "index_t", "n").to_param();
        assert_eq!(value.map(|param| (param.kind, param.dtype)), Some((ArgKind::Scalar, None)));
    }

    #[test]
    fn a_signature_survives_as_text() {
        let params = [
            Parameter::new(CL_KERNEL_ARG_ADDRESS_GLOBAL, NONE, true, "float*", "a"),
            Parameter::new(CL_KERNEL_ARG_ADDRESS_PRIVATE, NONE, false, "unsigned long", ""),
            Parameter::new(
                CL_KERNEL_ARG_ADDRESS_GLOBAL,
                CL_KERNEL_ARG_ACCESS_READ_ONLY,
                false,
                "image2d_t",
                "in",
            ),
        ];
        let texts = [to_text("none", &[]), to_text("k", &params)];
        let read = |kernel| from_texts(texts.iter().map(String::as_str), kernel);
        assert_eq!(read("k").as_deref(), Some(&params[..]));
        assert_eq!(read("none"), Some(Vec::new()));
        assert_eq!(read("other"), None);
        for damaged in ["k\t1", "k\tx\t0\t0\tint\tn", "k\t0\t0\t0\tint\tn\t0"] {
            assert_eq!(from_texts([damaged].into_iter(), "k"), None, "{damaged}");
        }
    }
}
