//! Small inputs for shaders of other projects, and the comparison of what they write.

use runtime_core::{Access, Arg, DType, Geometry};
use runtime_kernel::naga::{ArraySize, Handle, Module, Scalar, ScalarKind, Type, TypeInner};
use runtime_kernel::{Interface, Program, Tensor};

use crate::random::Random;

/// Elements of a tensor, at least.
const ELEMENTS: usize = 4096;
const SEED: u64 = 20;

/// The integers among the scalars and in buffers that are read and have no run-time array, such as uniform buffers. They are
/// lengths in most shaders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// 1 to 8: fewer than the invocations of most launches.
    Small,
    /// 33 to 40: no less than the invocations in two dimensions, which then write elements of their own.
    Large,
    /// 57 to 64. All other numbers are positive, too: counters and flags, and real numbers such as distances.
    Positive,
}

impl Sizes {
    const fn least(self) -> usize {
        match self {
            Self::Small => 1,
            Self::Large => 33,
            Self::Positive => 57,
        }
    }

    /// An integer from `least`, which may be a length or an index; or a real number from -1 to 0.75, or from 0.25 to 2.
    fn number(self, dtype: DType, least: usize, random: usize) -> Vec<u8> {
        let real = random as f32 / 4.0 + if self == Self::Positive { 0.25 } else { -1.0 };
        match dtype {
            DType::F16 => half::f16::from_f32(real).to_le_bytes().to_vec(),
            DType::F32 => real.to_le_bytes().to_vec(),
            DType::F64 => f64::from(real).to_le_bytes().to_vec(),
            other => (least + random).to_le_bytes()[..other.bytes()].to_vec(),
        }
    }
}

/// A tensor to pass to an entry point.
#[derive(Clone, Debug)]
pub struct Data {
    /// The type of its elements.
    pub dtype: DType,
    /// Its contents.
    pub bytes: Vec<u8>,
    /// Whether the entry point writes it.
    pub is_written: bool,
    name: String,
    leaves: Vec<Leaf>,
}

/// A scalar in a tensor's memory.
#[derive(Clone, Copy, Debug)]
struct Leaf {
    offset: usize,
    dtype: DType,
    is_atomic: bool,
}

impl Leaf {
    fn of(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.offset..self.offset + self.dtype.bytes()]
    }
}

/// What an entry point is passed.
#[derive(Clone, Debug)]
pub struct Inputs {
    /// Its tensors. Atomics in them are 0, as programs initialise counters and flags, but for [`Sizes::Positive`].
    pub tensors: Vec<Data>,
    /// Its scalars.
    pub scalars: Vec<Arg<'static>>,
}

impl Inputs {
    /// Inputs for an entry point.
    #[must_use]
    pub fn new(program: &Program, interface: &Interface, sizes: Sizes) -> Self {
        let mut random = Random::new(SEED);
        let tensors = interface.tensors.iter();
        let tensors = tensors.map(|declared| data(program.module(), declared, sizes, &mut random)).collect();
        Self { tensors, scalars: scalars(interface, sizes) }
    }

    /// Whether an entry point changed anything.
    #[must_use]
    pub fn is_changed(&self, after: &[Vec<u8>]) -> bool {
        self.tensors.iter().zip(after).any(|(data, bytes)| data.bytes != *bytes)
    }

    /// Compares what two devices left in the tensors: integers exactly, real numbers within a thousandth, bytes of textures
    /// within one.
    ///
    /// # Errors
    /// The first difference.
    pub fn agree(&self, left: &[Vec<u8>], right: &[Vec<u8>]) -> Result<(), String> {
        for ((data, left), right) in self.tensors.iter().zip(left).zip(right) {
            for leaf in &data.leaves {
                let (a, b) = (leaf.of(left), leaf.of(right));
                if a != b && !is_close(leaf.dtype, a, b) {
                    let [a, b] = [a, b].map(|bytes| shown(leaf.dtype, bytes));
                    return Err(format!("{} at byte {} is {a} and {b}", data.name, leaf.offset));
                }
            }
        }
        Ok(())
    }
}

fn data(module: &Module, declared: &Tensor, sizes: Sizes, random: &mut Random) -> Data {
    let dtype = declared.dtype.unwrap_or(DType::U32);
    let fixed = usize::try_from(declared.min_bytes).unwrap_or(0);
    let mut bytes = vec![0; (ELEMENTS * dtype.bytes()).max(fixed).next_multiple_of(16)];
    let mut all = module.global_variables.iter();
    let variable = all.find(|(_, variable)| variable.name.as_ref() == Some(&declared.name));
    let leaves = leaves(module, variable.map(|(_, variable)| variable.ty), declared.dtype, bytes.len());
    let is_sized = |ty: Handle<Type>| !module.types[ty].inner.is_dynamically_sized(&module.types);
    let is_written = declared.access != Access::Read;
    let has_sizes = !is_written && variable.is_some_and(|(_, variable)| is_sized(variable.ty));
    let least = if has_sizes { sizes.least() } else { 1 };
    for leaf in leaves.iter().filter(|leaf| !leaf.is_atomic || sizes == Sizes::Positive) {
        let number = sizes.number(leaf.dtype, least, random.below(8));
        bytes[leaf.offset..leaf.offset + number.len()].copy_from_slice(&number);
    }
    Data { dtype, bytes, is_written, name: declared.name.clone(), leaves }
}

/// The scalars of a tensor: those of its declared type, or the channels of a texture, whose words hold several.
fn leaves(module: &Module, ty: Option<Handle<Type>>, dtype: Option<DType>, bytes: usize) -> Vec<Leaf> {
    let mut found = Vec::new();
    if let Some(ty) = ty {
        add(module, ty, 0, bytes, &mut found);
    }
    let is_of = |dtype: DType| found.first().is_some_and(|leaf| leaf.dtype.bytes() == dtype.bytes());
    match dtype {
        Some(dtype) if !is_of(dtype) => {
            let leaf = |at| Leaf { offset: at * dtype.bytes(), dtype, is_atomic: false };
            (0..bytes / dtype.bytes()).map(leaf).collect()
        }
        _ => found,
    }
}

/// Adds the scalars of a value at `offset`, whose run-time array ends before `end`.
fn add(module: &Module, ty: Handle<Type>, offset: usize, end: usize, found: &mut Vec<Leaf>) {
    let inner = &module.types[ty].inner;
    let is_atomic = matches!(inner, TypeInner::Atomic(_));
    let mut add_all = |scalar: Scalar, count: usize, offset: usize| {
        let leaf = |dtype, at| Leaf { offset: offset + at * usize::from(scalar.width), dtype, is_atomic };
        let all = dtype(scalar).into_iter().flat_map(|dtype| (0..count).map(move |at| leaf(dtype, at)));
        found.extend(all);
    };
    match inner {
        TypeInner::Scalar(scalar) | TypeInner::Atomic(scalar) => add_all(*scalar, 1, offset),
        TypeInner::Vector { size, scalar } => add_all(*scalar, *size as usize, offset),
        TypeInner::Matrix { columns, rows, scalar } => {
            let stride = (*rows as usize).next_power_of_two() * usize::from(scalar.width);
            for column in 0..*columns as usize {
                add_all(*scalar, *rows as usize, offset + column * stride);
            }
        }
        TypeInner::Array { base, size, stride } => {
            let stride = (*stride as usize).max(1);
            let count = match size {
                ArraySize::Constant(count) => count.get() as usize,
                _ => end.saturating_sub(offset) / stride,
            };
            for at in 0..count {
                add(module, *base, offset + at * stride, end, found);
            }
        }
        TypeInner::Struct { members, .. } => {
            for member in members {
                add(module, member.ty, offset + member.offset as usize, end, found);
            }
        }
        _ => {}
    }
}

const fn dtype(scalar: Scalar) -> Option<DType> {
    match (scalar.kind, scalar.width) {
        (ScalarKind::Float, 2) => Some(DType::F16),
        (ScalarKind::Float, 4) => Some(DType::F32),
        (ScalarKind::Float, 8) => Some(DType::F64),
        (ScalarKind::Sint | ScalarKind::Uint, 4) => Some(DType::U32),
        (ScalarKind::Sint | ScalarKind::Uint, 8) => Some(DType::U64),
        _ => None,
    }
}

/// Two work-groups in each dimension that the entry point uses.
#[must_use]
pub fn geometry(interface: &Interface) -> Geometry {
    let [_, y, z] = interface.group_size.map(|size| if size > 1 { 2 } else { 1 });
    Geometry::new([2, y, z], interface.group_size)
}

/// Scalars of one value; and for textures, the layouts of eight rows and columns.
fn scalars(interface: &Interface, sizes: Sizes) -> Vec<Arg<'static>> {
    let least = sizes.least() as u16;
    let mut values: Vec<_> =
        interface.scalar_arguments().iter().map(|scalar| (scalar.dtype, least)).collect();
    for layout in &interface.layouts {
        for (value, extent) in values[layout.first_scalar..].iter_mut().zip([8, 8, 4, 1]).take(layout.rank) {
            value.1 = extent;
        }
    }
    let bits = |dtype, value: u16| match dtype {
        DType::F16 => u64::from(half::f16::from_f32(value.into()).to_bits()),
        DType::F32 => u64::from(f32::from(value).to_bits()),
        DType::F64 => f64::from(value).to_bits(),
        _ => u64::from(value),
    };
    values.into_iter().map(|(dtype, value)| Arg::scalar_bits(dtype, bits(dtype, value))).collect()
}

fn is_close(dtype: DType, a: &[u8], b: &[u8]) -> bool {
    match (dtype, real(dtype, a), real(dtype, b)) {
        (_, Some(a), Some(b)) => a.is_nan() && b.is_nan() || (a - b).abs() <= 1e-3 * (1.0 + a.abs()),
        (DType::U8 | DType::I8, ..) => a[0].abs_diff(b[0]) <= 1,
        _ => false,
    }
}

fn real(dtype: DType, bytes: &[u8]) -> Option<f64> {
    match (dtype, bytes) {
        (DType::F16, &[a, b]) => Some(half::f16::from_le_bytes([a, b]).into()),
        (DType::F32, &[a, b, c, d]) => Some(f32::from_le_bytes([a, b, c, d]).into()),
        (DType::F64, bytes) => bytes.try_into().ok().map(f64::from_le_bytes),
        _ => None,
    }
}

fn shown(dtype: DType, bytes: &[u8]) -> String {
    real(dtype, bytes).map_or_else(|| format!("{bytes:?}"), |real| real.to_string())
}
