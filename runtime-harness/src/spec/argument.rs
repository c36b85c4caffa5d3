//! `[[arg]]`: tensors, scalars, structures, bytes and work-group memory.

use runtime_core::backend::{counted, did_you_mean, read_file};
use runtime_core::code::Record;
use runtime_core::evaluate::{DataLocation, EachCall};
use runtime_core::tensor::Interval;
use runtime_core::{Access, DType, DTypeClass, Number, Result};

use super::document::{Item, Section};
use super::expression::Symbols;
use super::init::Init;
use super::{Argument, ArgumentKind, Overrides, TensorSpec};

const NAME: &str = "[[arg]]";
const TENSOR: [&str; 11] =
    ["name", "dtype", "shape", "init", "use", "each_call", "on", "seed", "range", "strides", "offset"];
const SCALAR: [&str; 3] = ["name", "scalar", "value"];
const STRUCT: [&str; 2] = ["name", "struct"];
const BYTES: [&str; 2] = ["name", "bytes"];
const INITS: [&str; 6] = ["zeros", "ones", "arange", "random", "file:PATH.npy", "file:PATH.safetensors#NAME"];
const LOCAL: [&str; 2] = ["name", "local_bytes"];

/// Upper limit for the bytes of a buffer: more cannot be addressed on any device.
const MAX_BYTES: usize = isize::MAX as usize;

/// What argument tables may refer to.
#[derive(Debug)]
pub(super) struct Scope<'a> {
    pub(super) overrides: &'a Overrides,
    /// The element type of a generic kernel.
    pub(super) element: Option<DType>,
    /// Values of constants and scalars.
    pub(super) names: Symbols,
}

/// Whether the argument is a scalar.
pub(super) fn is_scalar(item: &Item<'_>) -> Result<bool> {
    Ok(item.open_section(NAME)?.has("scalar"))
}

/// Reads the argument at `position`.
pub(super) fn parse(item: &Item<'_>, position: usize, scope: &Scope<'_>) -> Result<Argument> {
    let every: Vec<&str> = [&TENSOR[..], &SCALAR[1..], &STRUCT[1..], &BYTES[1..], &LOCAL[1..]].concat();
    let section = item.section(NAME, &every)?;
    let name = match section.optional("name") {
        Some(name) => identifier(&name)?,
        None => format!("arg{position}"),
    };
    let kinds = ["dtype", "scalar", "struct", "bytes", "local_bytes"];
    let given: Vec<_> = kinds.into_iter().filter(|key| section.has(key)).collect();
    let kind = match given[..] {
        ["dtype"] => tensor(item, position, scope)?,
        ["scalar"] => scalar(item, &name, scope)?,
        ["struct"] => ArgumentKind::Record(record(&item.section(NAME, &STRUCT)?.required("struct")?, scope)?),
        ["bytes"] => ArgumentKind::Bytes(bytes(&item.section(NAME, &BYTES)?.required("bytes")?)?),
        ["local_bytes"] => {
            ArgumentKind::Local(item.section(NAME, &LOCAL)?.required("local_bytes")?.size(&scope.names, 1)?)
        }
        [] => {
            return Err(
                section.error(&format!("missing key in {NAME}: expected one of {}", kinds.join(", ")))
            );
        }
        _ => return Err(section.error(&format!("{NAME} takes only one of {}", given.join(", ")))),
    };
    Ok(Argument { name, location: section.location(), kind })
}

fn identifier(item: &Item<'_>) -> Result<String> {
    let name = item.text()?;
    match is_identifier(name) {
        true => Ok(name.to_owned()),
        false => Err(item.error(&format!("\"{name}\" is not a valid name; use letters, digits and _"))),
    }
}

/// Whether expressions can refer to the name.
pub(super) fn is_identifier(name: &str) -> bool {
    let starts_well = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    starts_well && name.chars().all(|next| next.is_ascii_alphanumeric() || next == '_')
}

fn scalar(item: &Item<'_>, name: &str, scope: &Scope<'_>) -> Result<ArgumentKind> {
    let section = item.section(NAME, &SCALAR)?;
    let dtype = type_of(&section.required("scalar")?, scope)?;
    let value = section.required("value")?;
    let number = scope.overrides.value(name).map_or_else(|| value.number(), Ok)?;
    let bits = number.bits(dtype).map_err(|error| value.error(error.message()))?;
    Ok(ArgumentKind::Scalar(dtype, bits))
}

/// A structure, as a list of fields: `[["f32", 0.5], ["i32", 3]]`.
fn record(item: &Item<'_>, scope: &Scope<'_>) -> Result<Record> {
    let fields = item.list()?;
    if fields.is_empty() {
        return Err(item.error("a structure needs at least one field"));
    }
    fields.iter().try_fold(Record::new(), |record, field| {
        let pair = field.list()?;
        let [dtype, value] = &pair[..] else {
            return Err(field.error("a field is a list of its dtype and its value, such as [\"f32\", 0.5]"));
        };
        let dtype = type_of(dtype, scope)?;
        let bits = value.number()?.bits(dtype).map_err(|error| value.error(error.message()))?;
        record.with_bits(dtype, bits).map_err(|error| field.error(error.message()))
    })
}

fn bytes(item: &Item<'_>) -> Result<Vec<u8>> {
    if !item.is_text() {
        return item.list()?.iter().map(|byte| byte.integer(0)).collect();
    }
    let path = file_of(item)?.ok_or_else(|| item.error("expected a list of bytes or \"file:PATH\""))?;
    read_file(&path).map_err(|error| item.error(error.message()))
}

/// The path of `file:PATH`.
pub(super) fn file_of(item: &Item<'_>) -> Result<Option<std::path::PathBuf>> {
    item.text()?.strip_prefix("file:").map(|path| item.existing_file(path)).transpose()
}

/// The content of `file:PATH` or `file:PATH.safetensors#NAME`.
fn initial_file(item: &Item<'_>) -> Result<Option<Init>> {
    let file = item.text()?.strip_prefix("file:");
    match file.and_then(|file| file.split_once(".safetensors#")) {
        Some((path, name)) => {
            let path = item.existing_file(&format!("{path}.safetensors"))?;
            Ok(Some(Init::Stored(path, name.to_owned())))
        }
        None => Ok(file_of(item)?.map(Init::File)),
    }
}

/// An element type.
pub(super) fn dtype(item: &Item<'_>) -> Result<DType> {
    let names: Vec<_> = DType::all().map(|dtype| (dtype.to_string(), dtype)).collect();
    let valid: Vec<_> = names.iter().map(|(name, dtype)| (name.as_str(), *dtype)).collect();
    item.choice(&valid)
}

/// An element type, or that of the generic kernel.
fn type_of(item: &Item<'_>, scope: &Scope<'_>) -> Result<DType> {
    match (item.text()?, scope.element) {
        ("element", Some(element)) => Ok(element),
        ("element", None) => Err(item.error("[specialise] has no `element`")),
        _ => dtype(item),
    }
}

fn sizes(item: &Item<'_>, names: &Symbols) -> Result<Vec<usize>> {
    item.list()?.iter().map(|size| size.size(names, 0)).collect()
}

/// Where a tensor is, by its name in specs and reports.
pub(crate) const LOCATIONS: [(&str, DataLocation); 4] = [
    ("device", DataLocation::Device),
    ("host", DataLocation::Host),
    ("pinned", DataLocation::Pinned),
    ("shared", DataLocation::Shared),
];

fn tensor(item: &Item<'_>, position: usize, scope: &Scope<'_>) -> Result<ArgumentKind> {
    let section = item.section(NAME, &TENSOR)?;
    let dtype = type_of(&section.required("dtype")?, scope)?;
    let shape_item = section.required("shape")?;
    let shape = sizes(&shape_item, &scope.names)?;
    let uses = [("read", Access::Read), ("write", Access::Write), ("readwrite", Access::ReadWrite)];
    let access = section.optional("use").map_or(Ok(Access::Read), |item| item.choice(&uses))?;
    let tensor = TensorSpec {
        dtype,
        strides: strides(&section, shape.len(), &scope.names)?,
        offset: section.optional("offset").map_or(Ok(0), |offset| offset.size(&scope.names, 0))?,
        init: init(&section, dtype, position)?,
        access,
        each_call: each_call(&section, access)?,
        on: section.optional("on").map_or(Ok(DataLocation::Device), |item| item.choice(&LOCATIONS))?,
        shape,
    };
    check_layout(&tensor, &shape_item, section.optional("strides"))?;
    Ok(ArgumentKind::Tensor(tensor))
}

fn each_call(section: &Section<'_>, access: Access) -> Result<EachCall> {
    let Some(item) = section.optional("each_call") else { return Ok(EachCall::Keep) };
    match access {
        Access::ReadWrite => item.choice(&[("initial", EachCall::Initial), ("keep", EachCall::Keep)]),
        _ => {
            Err(item
                .error("is only valid with use = \"readwrite\"; other tensors are the same before each call"))
        }
    }
}

fn strides(section: &Section<'_>, rank: usize, names: &Symbols) -> Result<Option<Vec<usize>>> {
    let Some(item) = section.optional("strides") else { return Ok(None) };
    let strides = sizes(&item, names)?;
    match strides.len() == rank {
        true => Ok(Some(strides)),
        false => {
            let (wanted, given) = (counted(rank, "dimension"), counted(strides.len(), "stride"));
            Err(item.error(&format!("the shape has {wanted}, got {given}")))
        }
    }
}

fn check_layout(tensor: &TensorSpec, shape: &Item<'_>, strides: Option<Item<'_>>) -> Result<()> {
    let limit = MAX_BYTES / tensor.dtype.bytes();
    if tensor.base_elements().is_none_or(|elements| elements > limit) {
        return Err(strides.unwrap_or(*shape).error("the tensor is too large to be addressed"));
    }
    match strides {
        Some(item) if tensor.access.writes() && tensor.may_overlap() => {
            Err(item.error("elements overlap, but the kernel writes this tensor"))
        }
        _ => Ok(()),
    }
}

impl TensorSpec {
    /// Number of elements of the underlying buffer; `None` on overflow.
    pub(crate) fn base_elements(&self) -> Option<usize> {
        let count = self.shape.iter().try_fold(1_usize, |count, &extent| count.checked_mul(extent))?;
        let Some(strides) = &self.strides else { return self.offset.checked_add(count) };
        if count == 0 {
            return Some(self.offset);
        }
        let last = self.shape.iter().zip(strides).try_fold(0_usize, |last, (&extent, &stride)| {
            last.checked_add((extent - 1).checked_mul(stride)?)
        })?;
        self.offset.checked_add(last)?.checked_add(1)
    }

    /// The distance between neighbours in each dimension, in elements.
    pub(crate) fn strides_or_contiguous(&self) -> Vec<usize> {
        self.strides.clone().unwrap_or_else(|| {
            let mut strides = vec![1; self.shape.len()];
            for axis in (1..self.shape.len()).rev() {
                strides[axis - 1] = strides[axis] * self.shape[axis].max(1);
            }
            strides
        })
    }

    /// Whether two indices may share an element. Conservative: each stride must exceed the span of the smaller ones.
    fn may_overlap(&self) -> bool {
        let mut axes: Vec<_> =
            self.strides.iter().flatten().zip(&self.shape).filter(|(_, extent)| **extent > 1).collect();
        axes.sort_unstable();
        let mut span = 0;
        for (&stride, &extent) in axes {
            if stride <= span {
                return true;
            }
            span += (extent - 1) * stride;
        }
        false
    }
}

fn init(section: &Section<'_>, dtype: DType, position: usize) -> Result<Init> {
    let seed = section.optional("seed").map(|seed| seed.integer(0)).transpose()?;
    let range = section.optional("range").map(|range| interval(&range, dtype)).transpose()?;
    let random = Init::Random {
        seed: seed.unwrap_or(position as u64 + 1),
        range: range.unwrap_or_else(|| Interval::of(dtype)),
    };
    let Some(item) = section.optional("init") else {
        return Ok(if is_opaque(dtype) { Init::Zeros } else { random });
    };
    let init = match item.text()? {
        "zeros" => Init::Zeros,
        "ones" => Init::Ones,
        "arange" => Init::Arange,
        "random" => random,
        other => match initial_file(&item)? {
            Some(init) => init,
            None => {
                return Err(
                    item.error(&format!("unknown value \"{other}\"; {}", did_you_mean(other, &INITS)))
                );
            }
        },
    };
    check_init(&item, section, &init, dtype)?;
    Ok(init)
}

fn is_opaque(dtype: DType) -> bool {
    dtype.class() == DTypeClass::Opaque
}

fn check_init(item: &Item<'_>, section: &Section<'_>, init: &Init, dtype: DType) -> Result<()> {
    if is_opaque(dtype) && !matches!(init, Init::Zeros | Init::File(_) | Init::Stored(..)) {
        return Err(item.error(&format!(
            "{dtype} is opaque: only \"zeros\", \"file:PATH.npy\" and \"file:PATH.safetensors#NAME\" are allowed"
        )));
    }
    let random_only = ["seed", "range"].into_iter().find_map(|key| section.optional(key));
    match (init, random_only) {
        (Init::Random { .. }, _) | (_, None) => Ok(()),
        (_, Some(key)) => Err(key.error("is only valid with init = \"random\"")),
    }
}

fn interval(item: &Item<'_>, dtype: DType) -> Result<Interval> {
    let items = item.list()?;
    let [low, high] = items[..] else { return Err(item.error("expected [lo, hi]")) };
    let range = match (Interval::of(dtype), low.number()?, high.number()?) {
        (Interval::Integer(..), Number::Integer(low), Number::Integer(high)) => Interval::Integer(low, high),
        (Interval::Integer(..), ..) => return Err(item.error(&format!("{dtype} requires integers"))),
        (Interval::Float(..), ..) => Interval::Float(low.finite()?, high.finite()?),
    };
    range.check(dtype).map_err(|error| item.error(error.message()))?;
    Ok(range)
}
