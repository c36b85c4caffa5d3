//! Structures by value: random ones arrive with every bit, among other arguments.

use runtime_core::code::Record;
use runtime_core::{Arg, CodeFormat, DType, DeviceKind, Kernel, ModuleSource};

use crate::case::{Failure, Requirement, Verdict, cases};
use crate::context::Context;
use crate::expect::expect_equal;
use crate::test_data::Random;
use crate::wait;

/// Seeds, each for one module.
const SEEDS: u64 = 4;
/// Kernels of a module.
const KERNELS: usize = 16;
const MAX_ARGS: usize = 6;
const MAX_FIELDS: usize = 16;
/// Bytes of the output for each field.
const SLOT_BYTES: usize = 8;
const DTYPES: [DType; 14] = [
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::U8,
    DType::U16,
    DType::U32,
    DType::U64,
    DType::F16,
    DType::BF16,
    DType::F32,
    DType::F64,
    DType::BOOL,
    DType::COMPLEX64,
];

/// A 16-bit floating-point number in C is passed like any other of its size, whichever its format.
const C_TYPES: &str = "typedef signed char t_i8; typedef short t_i16; typedef int t_i32; typedef long long t_i64;
typedef unsigned char t_u8; typedef unsigned short t_u16; typedef unsigned t_u32; typedef unsigned long long t_u64;
typedef float t_f32; typedef double t_f64; typedef _Bool t_bool; typedef float _Complex t_complex64;
#ifdef __FLT16_MANT_DIG__
typedef _Float16 t_f16; typedef _Float16 t_bf16;
#endif
#define KERNEL void
#define GLOBAL
";
const CUDA_TYPES: &str = "typedef signed char t_i8; typedef short t_i16; typedef int t_i32; typedef long long t_i64;
typedef unsigned char t_u8; typedef unsigned short t_u16; typedef unsigned t_u32; typedef unsigned long long t_u64;
typedef float t_f32; typedef double t_f64; typedef bool t_bool; typedef unsigned short t_f16, t_bf16;
struct complex64 { float re, im; }; typedef complex64 t_complex64;
#define KERNEL extern \"C\" __global__ void
#define GLOBAL
";
const OPENCL_TYPES: &str = "typedef char t_i8; typedef short t_i16; typedef int t_i32; typedef long t_i64;
typedef uchar t_u8; typedef ushort t_u16; typedef uint t_u32; typedef ulong t_u64;
typedef float t_f32; typedef ulong t_f64; typedef uchar t_bool; typedef ushort t_f16, t_bf16;
typedef struct { float re, im; } t_complex64;
#define KERNEL kernel void
#define GLOBAL global
";

cases! {
    [Requirement::Kernel("sum_record")] => random_structures_arrive_with_every_bit;
}

/// An argument by value, with the types and bytes of its fields; a scalar has one.
struct Value {
    fields: Vec<(DType, Vec<u8>)>,
    is_record: bool,
}

impl Value {
    fn random(random: &mut Random, dtypes: &[DType]) -> Self {
        let is_record = random.below(3) > 0;
        let count = if is_record { (1 + random.below(MAX_FIELDS)) >> random.below(4) } else { 1 };
        let field = |random: &mut Random| {
            let dtype = dtypes[random.below(dtypes.len())];
            let bytes = if dtype == DType::BOOL { vec![1] } else { random.bytes(dtype.bytes()) };
            (dtype, bytes)
        };
        Self { fields: (0..count.max(1)).map(|_| field(random)).collect(), is_record }
    }

    /// The declaration of its type, its parameter, and the statements that copy its fields to slots from `slot`.
    fn code(&self, name: &str, slot: usize) -> [String; 3] {
        let copies = self.fields.iter().enumerate().map(|(at, (dtype, _))| {
            let member = if self.is_record { format!(".m{at}") } else { String::new() };
            format!("*(GLOBAL t_{dtype} *)(out + {}) = {name}{member}; ", SLOT_BYTES * (slot + at))
        });
        let copies = copies.collect();
        if !self.is_record {
            return [String::new(), format!("t_{} {name}", self.fields[0].0), copies];
        }
        let members = self.fields.iter().enumerate().map(|(at, (dtype, _))| format!("t_{dtype} m{at}; "));
        let declaration = format!("struct s_{name} {{ {}}};\n", members.collect::<String>());
        [declaration, format!("struct s_{name} {name}"), copies]
    }

    fn record(&self) -> Result<Record, Failure> {
        let add = |record: Record, (dtype, bytes): &(DType, Vec<u8>)| record.with_bits(*dtype, word(bytes));
        Ok(self.fields.iter().try_fold(Record::new(), add)?)
    }
}

fn word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// A kernel that copies the fields of its arguments to slots of its first one.
struct Copier {
    values: Vec<Value>,
    code: String,
}

impl Copier {
    fn random(random: &mut Random, dtypes: &[DType], name: &str) -> Self {
        let values: Vec<_> = (0..=random.below(MAX_ARGS)).map(|_| Value::random(random, dtypes)).collect();
        let (mut structures, mut params, mut body, mut slot) =
            (String::new(), String::new(), String::new(), 0);
        for (at, value) in values.iter().enumerate() {
            let [declaration, param, copies] = value.code(&format!("{name}_{at}"), slot);
            structures += &declaration;
            params += &format!(", {param}");
            body += &copies;
            slot += value.fields.len();
        }
        let code = format!("{structures}KERNEL {name}(GLOBAL t_u8 *out{params}) {{ {body}}}\n");
        Self { values, code }
    }

    fn expected(&self) -> Vec<u8> {
        let mut expected = Vec::new();
        for (_, bytes) in self.values.iter().flat_map(|value| &value.fields) {
            expected.extend_from_slice(bytes);
            expected.resize(expected.len().next_multiple_of(SLOT_BYTES), 0);
        }
        expected
    }
}

fn random_structures_arrive_with_every_bit(context: &Context) -> Verdict {
    (0..SEEDS).try_for_each(|seed| check_module(context, seed))
}

fn check_module(context: &Context, seed: u64) -> Verdict {
    let (fixture, format) = (context.fixture(), context.fixture().kernels()?.format);
    let types = match format {
        "c" => C_TYPES,
        "cuda-c" => CUDA_TYPES,
        "opencl-c" => OPENCL_TYPES,
        other => {
            return Err(Failure::Unsupported(format!("no source of these kernels in the format {other}")));
        }
    };
    let mut random = Random::new(seed);
    let dtypes = DTYPES.iter().copied().filter(|dtype| is_passed(context, *dtype)).collect::<Vec<_>>();
    let copiers: Vec<_> =
        (0..KERNELS).map(|at| Copier::random(&mut random, &dtypes, &format!("k{at}"))).collect();
    let text = copiers.iter().fold(types.to_owned(), |text, copier| text + &copier.code);
    // SAFETY: each kernel writes the slots of its arguments.
    #[allow(unsafe_code, reason = "loads native code of the suite")]
    let source = unsafe { ModuleSource::native(CodeFormat::from(format), text.as_bytes()) };
    let module = fixture.device().load(&source)?;
    for (at, copier) in copiers.iter().enumerate() {
        let outcome = check(context, &module.kernel(&format!("k{at}"))?, copier);
        outcome.map_err(|failure| Failure::Failed(format!("seed {seed}: {failure}\n{}", copier.code)))?;
    }
    Ok(())
}

/// Whether the device can take such a field.
fn is_passed(context: &Context, dtype: DType) -> bool {
    let is_half = [DType::F16, DType::BF16].contains(&dtype);
    context.info().kind != DeviceKind::Host || !is_half || cfg!(all(target_arch = "x86_64", not(windows)))
}

fn check(context: &Context, kernel: &Kernel, copier: &Copier) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let expected = copier.expected();
    let out = fixture.tensor(&vec![0u8; expected.len()])?;
    let records = copier.values.iter().map(Value::record).collect::<Result<Vec<_>, _>>()?;
    let by_value = copier.values.iter().zip(&records).map(|(value, record)| match value.is_record {
        true => Arg::record(record),
        false => Arg::scalar_bits(value.fields[0].0, word(&value.fields[0].1)),
    });
    let args: Vec<_> = std::iter::once(Arg::write(&out)).chain(by_value).collect();
    wait::event(&queue.launch(kernel, fixture.geometry(1), &args)?)?;
    context.kernel_provider().launched();
    expect_equal("bytes of the fields", &out.to_vec::<u8>()?, &expected)
}
