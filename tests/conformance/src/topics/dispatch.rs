//! The dispatcher: overloads by argument types, the device and queue of a call, ranges and events.

use std::time::Duration;

use runtime_core::dispatch::{ArgType, Dispatcher, Domain, NdRange};
use runtime_core::{
    CodeFormat, DType, DTypeClass, Element, ErrorKind, HostArray, ModuleSource, Placement, Tensor, half,
    read_write,
};

use crate::case::{Failure, Requirement, Verdict, cases};
use crate::context::Context;
use crate::expect::{expect_all, expect_equal, expect_error};
use crate::wait;

const N: usize = 1000;
const DEADLINE: Duration = Duration::from_secs(60);

cases! {
    [Requirement::Kernel("add_f32")] => a_kernel_is_called_from_a_plain_function, several_kernels_run_in_order,
        every_numeric_type_and_bool, an_async_add, an_async_dependent_add, an_async_add_from_the_cache,
        arguments_are_dropped_before_completion, the_first_dimension_runs_fastest, an_nd_range_is_checked,
        types_that_must_agree, a_kernel_with_a_return_value, a_host_argument_is_not_copied, no_array_argument,
        constants_select_overloads;
}

const ADD: &str = "
alias T = f32;
@group(0) @binding(0) var<storage, read> a: array<T>;
@group(0) @binding(1) var<storage, read> b: array<T>;
@group(0) @binding(2) var<storage, read_write> sum: array<T>;
@compute @workgroup_size(64)
fn add(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&sum) { sum[id.x] = a[id.x] + b[id.x]; }
}";

/// `sum = a + b` for any element type, in every language that the suite knows.
pub(super) fn add(context: &Context) -> Result<Dispatcher, Failure> {
    let body = "sum[i] = a[i] + b[i]; }";
    let c = format!(
        "#include <stdint.h>\nvoid add(const T *a, const T *b, T *sum, int64_t begin, int64_t end) {{ for (int64_t i = begin; i < end; i++) {{ {body} }}"
    );
    let opencl = format!(
        "kernel void add(global const T *a, global const T *b, global T *sum) {{ size_t i = get_global_id(0); {body}"
    );
    let cuda = format!(
        "extern \"C\" __global__ void add(const T *a, const T *b, T *sum) {{ unsigned i = blockIdx.x * blockDim.x + threadIdx.x; {body}"
    );
    let builder = Dispatcher::builder("add")
        .source(native(CodeFormat::C, &c))
        .source(native(CodeFormat::OPENCL_C, &opencl))
        .source(native(CodeFormat::CUDA_C, &cuda))
        .source(ModuleSource::wgsl(ADD));
    let add = builder.signature("a: read T, b: read T, sum: write T").build()?;
    supported(context, add)
}

#[allow(unsafe_code, reason = "loads native code")]
fn native(format: CodeFormat, code: &str) -> ModuleSource {
    // SAFETY: every tensor of these cases is as long as a multiple of a group that covers the range.
    unsafe { ModuleSource::native(format, code) }
}

/// A portable kernel.
fn wgsl(context: &Context, code: &str, entry: &str) -> Result<Dispatcher, Failure> {
    supported(context, Dispatcher::new(ModuleSource::wgsl(code), entry))
}

/// The dispatcher, if the device can run portable kernels.
fn supported(context: &Context, dispatcher: Dispatcher) -> Result<Dispatcher, Failure> {
    context.needs_portable_code().map(|()| dispatcher)
}

/// A tensor that whole groups fit into.
fn tensor<T: Element>(context: &Context, value: T) -> Result<Tensor, Failure> {
    Ok(context.fixture().tensor(&vec![value; N.next_multiple_of(1024)])?)
}

fn a_kernel_is_called_from_a_plain_function(context: &Context) -> Verdict {
    fn plain(add: &Dispatcher, a: &Tensor, b: &Tensor, sum: &Tensor) -> runtime_core::Result<()> {
        add.call(a.len(), (a, b, sum))
    }
    let (a, b, sum) = (tensor(context, 1.0f32)?, tensor(context, 2.0f32)?, tensor(context, 0.0f32)?);
    plain(&add(context)?, &a, &b, &sum)?;
    expect_all("1 + 2", &sum, 3.0)
}

fn several_kernels_run_in_order(context: &Context) -> Verdict {
    let twice = "
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(16)
fn twice(@builtin(global_invocation_id) id: vec3u) { if id.x < arrayLength(&x) { x[id.x] *= 2.0; } }";
    let (add, twice) = (add(context)?, wgsl(context, twice, "twice")?);
    let (a, b, sum) = (tensor(context, 1.0f32)?, tensor(context, 2.0f32)?, tensor(context, 0.0f32)?);
    add.submit(sum.len(), &[], (&a, &b, &sum))?;
    twice.submit(sum.len(), &[], (&sum,))?;
    add.submit(sum.len(), &[], (&sum, &b, &a))?;
    expect_all("(1 + 2) * 2 + 2", &a, 8.0)
}

fn every_numeric_type_and_bool(context: &Context) -> Verdict {
    let add = add(context)?;
    let mut ran = Vec::new();
    let (device, placement) = (context.fixture().device(), Placement::default());
    for dtype in DType::all() {
        let one = device.tensor_from_array(&filled(dtype, 1)?, &placement)?;
        let zero = device.tensor_from_array(&filled(dtype, 0)?, &placement)?;
        let sum = device.allocate(dtype, one.shape(), &placement)?;
        // A kernel sees two scalars in a complex number.
        let scalars = if dtype.class() == DTypeClass::Complex { 2 } else { 1 };
        match add.call(scalars * one.len(), (&one, &zero, &sum)) {
            Ok(()) => {
                let what = format!("bytes of 1 + 0 for {dtype}");
                expect_equal(&what, sum.to_array()?.bytes(), filled(dtype, 1)?.bytes())?;
                ran.push(dtype);
            }
            // A type that the language or the device lacks is an error with a reason.
            Err(error) => {
                let kinds = [ErrorKind::InvalidArgument, ErrorKind::Unsupported, ErrorKind::CompileFailed];
                assert!(kinds.contains(&error.kind()), "{dtype}: {error}");
                assert!(!error.message().is_empty());
            }
        }
    }
    for dtype in [DType::F32, DType::I32, DType::U32] {
        assert!(ran.contains(&dtype), "{dtype} was refused; {ran:?} ran");
    }
    assert!(ran.len() as u64 <= add.misses());
    Ok(())
}

/// The same number in every element.
fn filled(dtype: DType, value: u8) -> Result<HostArray, Failure> {
    let number = number(dtype, value);
    let bytes: Vec<u8> = number.iter().copied().cycle().take(1024 * number.len()).collect();
    Ok(HostArray::from_bytes(dtype, &[1024], &bytes)?)
}

/// The bytes of 0 or 1.
fn number(dtype: DType, value: u8) -> Vec<u8> {
    let float = f32::from(value);
    match dtype {
        DType::F16 => half::f16::from_f32(float).to_le_bytes().to_vec(),
        DType::BF16 => half::bf16::from_f32(float).to_le_bytes().to_vec(),
        DType::F32 => float.to_le_bytes().to_vec(),
        DType::F64 => f64::from(value).to_le_bytes().to_vec(),
        DType::COMPLEX64 => [float.to_le_bytes(), [0; 4]].concat(),
        DType::COMPLEX128 => [f64::from(value).to_le_bytes(), [0; 8]].concat(),
        other => {
            let mut bytes = vec![0; other.bytes()];
            bytes[0] = value;
            bytes
        }
    }
}

fn an_async_add(context: &Context) -> Verdict {
    let (a, b, sum) = (tensor(context, 1.0f32)?, tensor(context, 2.0f32)?, tensor(context, 0.0f32)?);
    let event = add(context)?.submit(sum.len(), &[], (&a, &b, &sum))?;
    wait::event(&event)?;
    assert!(event.is_done()?);
    expect_all("1 + 2", &sum, 3.0)
}

fn an_async_dependent_add(context: &Context) -> Verdict {
    let add = add(context)?;
    let (first, second) = (context.fixture().queue()?, context.fixture().queue()?);
    let (a, b) = (tensor(context, 1.0f32)?, tensor(context, 2.0f32)?);
    let (sum, total) = (tensor(context, 0.0f32)?, tensor(context, 0.0f32)?);
    context.fixture().delay(&first)?;
    let three = add.on(&first).submit(sum.len(), &[], (&a, &b, &sum))?;
    let six = add.on(&second).submit(sum.len(), &[&three], (&sum, &sum, &total))?;
    wait::event(&six)?;
    assert!(three.is_done()?);
    assert_eq!(six.dependencies().len(), 1);
    expect_all("3 + 3", &total, 6.0)
}

fn an_async_add_from_the_cache(context: &Context) -> Verdict {
    let add = add(context)?;
    let (a, b, sum) = (tensor(context, 1.0f32)?, tensor(context, 2.0f32)?, tensor(context, 0.0f32)?);
    add.precompile(context.fixture().device(), &[const { ArgType::tensor(DType::F32, 1) }; 3])?;
    for _ in 0..10 {
        wait::event(&add.submit(sum.len(), &[], (&a, &b, &sum))?)?;
        assert_eq!((add.overloads().len(), add.misses()), (1, 1));
    }
    expect_all("1 + 2", &sum, 3.0)
}

fn arguments_are_dropped_before_completion(context: &Context) -> Verdict {
    let add = add(context)?;
    let queue = context.fixture().queue()?;
    let sum = tensor(context, 0.0f32)?;
    context.fixture().delay(&queue)?;
    let event = {
        let (a, b) = (tensor(context, 1.0f32)?, tensor(context, 2.0f32)?);
        add.on(&queue).submit(sum.len(), &[], (&a, &b, &sum))?
    };
    drop(add);
    let others = (0..8).map(|_| tensor(context, -1.0f32)).collect::<Result<Vec<_>, _>>()?;
    event.wait_timeout(DEADLINE)?;
    others.iter().try_for_each(|other| expect_all("reallocated memory", other, -1.0))?;
    expect_all("1 + 2", &sum, 3.0)
}

fn the_first_dimension_runs_fastest(context: &Context) -> Verdict {
    let code = "
@group(0) @binding(0) var<storage, read_write> out: array<u32>;
struct Size { x: u32, y: u32, z: u32 }
var<immediate> size: Size;
@compute @workgroup_size(2, 2, 2)
fn index(@builtin(global_invocation_id) id: vec3u) {
    if id.x < size.x && id.y < size.y && id.z < size.z {
        out[(id.z * size.y + id.y) * size.x + id.x] = id.x + 10u * id.y + 100u * id.z;
    }
}";
    let out = context.fixture().tensor(&[0u32; 24])?;
    wgsl(context, code, "index")?.call([4, 3, 2], (&out, 4u32, 3u32, 2u32))?;
    let expected: Vec<u32> =
        (0..2).flat_map(|z| (0..3).flat_map(move |y| (0..4).map(move |x| x + 10 * y + 100 * z))).collect();
    expect_equal("indices", &out.to_vec::<u32>()?, &expected)
}

fn an_nd_range_is_checked(context: &Context) -> Verdict {
    let code = "
@group(0) @binding(0) var<storage, read_write> x: array<u32>;
var<workgroup> tile: array<u32, 16>;
@compute @workgroup_size(16)
fn reverse(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_id) local: vec3u) {
    tile[local.x] = x[id.x];
    workgroupBarrier();
    x[id.x] = tile[15u - local.x];
}";
    let reverse = wgsl(context, code, "reverse")?;
    let x = context.fixture().tensor(&(0..64u32).collect::<Vec<_>>())?;
    let wrong: [(Domain, &str); 5] = [
        (64.into(), "pass an NdRange"),
        (NdRange::new(64, 8).into(), "the local range is [8], but the kernel's code fixes it to [16]"),
        (NdRange::new(65, 16).into(), "[65] is not a multiple of the local range [16]"),
        (NdRange::new([64, 1], 16).into(), "[64, 1] has 2 dimensions, but the local range [16] has 1"),
        (NdRange::new(0, 16).into(), "the global range is [0]"),
    ];
    for (domain, message) in wrong {
        let error = reverse.call(domain, (&x,)).err();
        let error = error.ok_or_else(|| Failure::Failed(format!("{domain:?} was accepted")))?;
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(error.message().contains(message), "{error}");
    }
    reverse.call(NdRange::new(64, 16), (&x,))?;
    let expected: Vec<u32> = (0..64).step_by(16).flat_map(|first| (first..first + 16).rev()).collect();
    expect_equal("reversed groups", &x.to_vec::<u32>()?, &expected)
}

fn types_that_must_agree(context: &Context) -> Verdict {
    let (a, b, sum) = (tensor(context, 1.0f32)?, tensor(context, 2i32)?, tensor(context, 0.0f32)?);
    let add = add(context)?;
    for _ in 0..2 {
        expect_error(
            "a kernel of two types",
            add.call(sum.len(), (&a, &b, &sum)),
            ErrorKind::InvalidArgument,
            &["argument 1 (b) of \"add\" is i32, but argument 0 is f32"],
        )?;
    }
    assert_eq!(add.misses(), 1, "the failure is kept");
    expect_error(
        "two arguments of three",
        add.call(1, (&a, &sum)),
        ErrorKind::InvalidArgument,
        &["\"add\" takes 3 arguments, got 2"],
    )?;
    Ok(())
}

fn a_kernel_with_a_return_value(context: &Context) -> Verdict {
    let text = "int f(int *x) { return *x; }";
    let formats = [CodeFormat::C, CodeFormat::OPENCL_C];
    let format = formats.into_iter().find(|format| context.info().accepts(format));
    let format = format.ok_or_else(|| Failure::Unsupported("the device compiles no C".to_owned()))?;
    let builder = Dispatcher::builder("f").source(native(format, text)).signature("read_write i32");
    let x = context.fixture().tensor(&[1i32])?;
    expect_error(
        "a kernel that returns a value",
        builder.build()?.call(1, (&x,)),
        ErrorKind::InvalidArgument,
        &["\"f\" returns int"],
    )?;
    Ok(())
}

fn a_host_argument_is_not_copied(context: &Context) -> Verdict {
    let add = add(context)?;
    // Another instance of the device stands for any other device.
    let other = context.runtime().open(context.name())?;
    let (a, b) = (tensor(context, 1.0f32)?, other.tensor([1024], &[2.0f32; 1024])?);
    expect_error(
        "arguments of two devices",
        add.call(1024, (&a, &b, &a)),
        ErrorKind::InvalidArgument,
        &["`Tensor::to_device`"],
    )?;
    let queue = other.queue()?;
    let call = add.on(&queue).call(1024, (&a, &a, &a));
    expect_error("a queue of another device", call, ErrorKind::InvalidArgument, &["but the queue is on"])?;
    Ok(())
}

fn no_array_argument(context: &Context) -> Verdict {
    let code = "
struct Scalars { n: u32 }
var<immediate> scalars: Scalars;
var<private> x: u32;
@compute @workgroup_size(1) fn nothing() { x = scalars.n; }";
    let nothing = wgsl(context, code, "nothing")?;
    expect_error(
        "a call without a device",
        nothing.call(1, (1u32,)),
        ErrorKind::InvalidArgument,
        &["name a queue"],
    )?;
    let queue = context.fixture().queue()?;
    Ok(nothing.on(&queue).call(1, (1u32,))?)
}

fn constants_select_overloads(context: &Context) -> Verdict {
    let code = "
override VALUE: u32 = 1;
@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@compute @workgroup_size(1) fn store() { x[0] = VALUE; }";
    let store = wgsl(context, code, "store")?;
    let x = context.fixture().tensor(&[0u32])?;
    for (value, expected) in [(None, 1), (Some(7), 7), (Some(8), 8), (Some(7), 7)] {
        let variant = value.map_or_else(|| store.clone(), |value| store.constant("VALUE", value));
        variant.call(1, &[read_write(&x)])?;
        expect_equal("a constant", &x.to_vec::<u32>()?, &[expected])?;
    }
    assert!(store.overloads().len() == 3, "{:?}", store.overloads());
    Ok(())
}
