//! Layouts of strided tensors and complex numbers as arguments of portable kernels, on every device of this machine.

use std::sync::Arc;

use libtest_mimic::{Completion, Failed, Trial};
use portable::required;
use runtime_core::code::{IntoArg, layout};
use runtime_core::dispatch::Dispatcher;
use runtime_core::num_complex::Complex;
use runtime_core::{
    Arg, CommonRuntime, ErrorKind, Geometry, Kernel, ModuleSource, Queue, Result, Runtime, Tensor, abi,
};

/// Copies between two tensors, element by element in the order of their shapes.
const COPY: &str = "
    struct Layout { shape: array<u32, 4>, strides: array<i32, 4> }
    struct Args { n: u32, x_layout: Layout, y_layout: Layout }
    var<immediate> args: Args;
    @group(0) @binding(0) var<storage, read> x: array<u32>;
    @group(0) @binding(1) var<storage, read_write> y: array<u32>;
    fn offset(l: Layout, index: u32) -> u32 {
        var rest = index;
        var sum = 0u;
        for (var d = 4u; d > 0; d--) {
            sum += rest % l.shape[d - 1] * u32(l.strides[d - 1]);
            rest /= l.shape[d - 1];
        }
        return sum;
    }
    @compute @workgroup_size(64) fn copy(@builtin(global_invocation_id) id: vec3u) {
        if id.x < args.n { y[offset(args.y_layout, id.x)] = x[offset(args.x_layout, id.x)]; }
    }";
/// Reads a layout at places that the data give.
const PICK: &str = "
    struct Layout { shape: array<u32, 3>, strides: array<i32, 3> }
    struct Args { before: u32, x_layout: Layout, after: u32 }
    var<immediate> args: Args;
    @group(0) @binding(0) var<storage, read> x: array<u32>;
    @group(0) @binding(1) var<storage, read_write> y: array<vec3u>;
    @compute @workgroup_size(64) fn pick(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&y) {
            y[id.x] = vec3u(args.x_layout.shape[x[id.x]], u32(args.x_layout.strides[x[id.x]]), args.after);
        }
    }";
/// Multiplies complex numbers by one.
const MULTIPLY: &str = "
    alias T = f32;
    struct Args { re: T, im: T, n: u32 }
    var<immediate> args: Args;
    @group(0) @binding(0) var<storage, read> x: array<vec2<T>>;
    @group(0) @binding(1) var<storage, read_write> y: array<vec2<T>>;
    @compute @workgroup_size(64) fn multiply(@builtin(global_invocation_id) id: vec3u) {
        if id.x < args.n {
            let z = x[id.x];
            y[id.x] = vec2(z.x * args.re - z.y * args.im, z.x * args.im + z.y * args.re);
        }
    }";
const ELEMENTS: usize = 4096;

struct Fixture {
    device: Arc<dyn CommonRuntime>,
    queue: Queue,
}

type Case = fn(&Fixture) -> Result<()>;

const CASES: [(&str, Case); 9] = [
    ("a_kernel_reads_any_view_by_its_layout", read_views),
    ("a_kernel_writes_a_view_and_leaves_its_gaps", write_view),
    ("a_view_with_gaps_needs_a_layout_of_its_own", refused),
    ("a_layout_that_does_not_fit_is_refused", unfit),
    ("a_wrong_layout_reaches_no_other_memory", wrong),
    ("an_index_beyond_a_layout_reads_zero", beyond),
    ("a_recorded_launch_keeps_its_layouts", recorded),
    ("a_complex_number_is_two_scalars", complex),
    ("a_dispatcher_passes_layouts_and_parts_by_itself", dispatched),
];

pub(crate) fn trials() -> Vec<Trial> {
    let runtime = Arc::new(Runtime::builder().with_lowering(runtime_kernel::wgsl()).build());
    let mut trials = Vec::new();
    for name in ["host", "opencl", "vulkan"] {
        for (case, check) in CASES {
            let runtime = runtime.clone();
            trials.push(Trial::ignorable_test(format!("arguments::{name}::{case}"), move || {
                run_case(&runtime, name, check)
            }));
        }
        let runtime = runtime.clone();
        trials.push(Trial::ignorable_test(
            format!("arguments::{name}::a_wide_complex_number_is_two_scalars"),
            move || {
                let device = runtime.open(name);
                let lacks = device.as_ref().is_ok_and(|device| !device.info().capabilities.has(abi::CAP_F64));
                match lacks {
                    true => Ok(Completion::ignored_with("the device has no f64")),
                    false => run_case(&runtime, name, wide_complex),
                }
            },
        ));
    }
    trials
}

fn run_case(runtime: &Runtime, name: &str, check: Case) -> std::result::Result<Completion, Failed> {
    let device = match runtime.open(name) {
        Err(error)
            if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::NotFound) && !required(name) =>
        {
            return Ok(Completion::ignored_with(error.to_string()));
        }
        opened => opened?,
    };
    let queue = device.queue()?;
    check(&Fixture { device, queue })?;
    Ok(Completion::Completed)
}

impl Fixture {
    fn kernel(&self, code: &str, entry: &str) -> Result<Kernel> {
        self.device.kernel(ModuleSource::wgsl(code), entry)
    }

    /// Copies as many elements as `from` has.
    fn copy(&self, kernel: &Kernel, from: &Tensor, to: &Tensor) -> Result<()> {
        let args = (from, to, count(from), layout(from, 4), layout(to, 4));
        self.queue.launch(kernel, Geometry::new(groups(from), 64), args)?.wait()
    }

    fn numbers(&self) -> Result<Tensor> {
        self.device.tensor([64, 64], &(0..).take(ELEMENTS).collect::<Vec<u32>>())
    }
}

fn count(tensor: &Tensor) -> u32 {
    u32::try_from(tensor.len()).unwrap_or(u32::MAX)
}

fn groups(tensor: &Tensor) -> u32 {
    count(tensor).div_ceil(64).max(1)
}

/// Views with and without gaps, of up to four dimensions.
fn views(x: &Tensor) -> Result<Vec<Tensor>> {
    Ok(vec![
        x.permute(&[1, 0])?,
        x.slice(1, 3..60)?,
        x.view(&[3, 5, 7], &[0, 64, 2], 9)?,
        x.view(&[2, 3, 4, 5], &[1, 1000, 7, 64], 0)?,
        x.view(&[100], &[3], 1)?,
        x.view(&[], &[], 77)?,
        x.view(&[0, 5], &[7, 3], 0)?,
        x.clone(),
    ])
}

fn read_views(fixture: &Fixture) -> Result<()> {
    let (copy, x) = (fixture.kernel(COPY, "copy")?, fixture.numbers()?);
    assert_eq!(
        copy.info().params.as_ref().map(|params| params.iter().filter(|param| param.strided).count()),
        Some(2)
    );
    for view in views(&x)? {
        let dense = fixture.device.zeros::<u32>(view.shape())?;
        fixture.copy(&copy, &view, &dense)?;
        assert_eq!(dense.to_vec::<u32>()?, view.to_vec::<u32>()?, "{:?} {:?}", view.shape(), view.strides());
    }
    Ok(())
}

fn write_view(fixture: &Fixture) -> Result<()> {
    let copy = fixture.kernel(COPY, "copy")?;
    let x = fixture.device.tensor([10, 3], &(1..).take(30).collect::<Vec<u32>>())?;
    let y = fixture.device.zeros::<u32>([ELEMENTS])?;
    fixture.copy(&copy, &x, &y.view(&[10, 3], &[2, 50], 5)?)?;
    let mut expected = vec![0; ELEMENTS];
    for (row, column) in (0..10).flat_map(|row| (0..3).map(move |column| (row, column))) {
        expected[5 + 2 * row + 50 * column] = u32::try_from(3 * row + column + 1).unwrap_or(0);
    }
    assert_eq!(y.to_vec::<u32>()?, expected);
    Ok(())
}

fn refused(fixture: &Fixture) -> Result<()> {
    let code = COPY.replace(", y_layout: Layout", "").replace("y[offset(args.y_layout, id.x)]", "y[id.x]");
    let (copy, x) = (fixture.kernel(&code, "copy")?, fixture.numbers()?);
    let (y, view) = (fixture.device.zeros::<u32>([64, 64])?, x.permute(&[1, 0])?);
    let launch = |x: &Tensor, y: &Tensor| {
        fixture.queue.launch(&copy, Geometry::new(64, 64), (x, y, count(x), layout(x, 4)))?.wait()
    };
    launch(&view, &y)?;
    assert_eq!(y.to_vec::<u32>()?, view.to_vec::<u32>()?);
    let error = launch(&view, &y.permute(&[1, 0])?).expect_err("y has no layout");
    assert!(error.message().contains("argument 1 of \"copy\" is not contiguous"), "{error}");
    let error = launch(&x.view(&[64], &[-1], 63)?, &y).expect_err("indices are unsigned");
    assert!(error.message().contains("before its first one"), "{error}");
    Ok(())
}

fn unfit(fixture: &Fixture) -> Result<()> {
    let (copy, x) = (fixture.kernel(COPY, "copy")?, fixture.numbers()?);
    let refused = |view: &Tensor, rank: usize, words: &str| {
        let args = (view, &x, 0_u32, layout(view, rank), layout(&x, rank));
        let error = fixture.queue.launch(&copy, Geometry::new(1, 64), args).expect_err(words);
        assert!(error.kind() == ErrorKind::InvalidArgument && error.message().contains(words), "{error}");
    };
    refused(
        &x.view(&[1, 1, 1, 1, 2], &[0, 0, 0, 0, 1], 0)?,
        4,
        "has 5 dimensions, but the Layout of the kernel holds 4",
    );
    refused(&x.view(&[1, 1], &[1 << 31, 1], 0)?, 4, "the stride 2147483648 of dimension 0");
    refused(&x.view(&[1 << 32], &[0], 0)?, 4, "the extent 4294967296 of dimension 0");
    refused(&x, 3, "takes 19 arguments, got 15");
    let error = layout(&x, 4).into_arg(Some(&copy), 3).expect_err("it is several");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    Ok(())
}

fn wrong(fixture: &Fixture) -> Result<()> {
    let copy = fixture.kernel(COPY, "copy")?;
    let numbers = fixture.numbers()?;
    let (x, behind) = (numbers.slice(0, 0..32)?, numbers.slice(0, 32..64)?);
    let y = fixture.device.tensor([64], &[7_u32; 64])?;
    let before = behind.to_vec::<u32>()?;
    // Every second element is out of range, after a product that wraps.
    for stride in [2048_i32, i32::MAX, -1, i32::MIN] {
        let mut args = vec![Arg::read(&x), Arg::write(&y), Arg::scalar(64_u32)];
        for (shape, strides) in [([1_u32, 1, 32, 2], [0_i32, 0, 1, stride]), ([1, 1, 1, 64], [0, 0, 0, 1])] {
            args.extend(shape.map(Arg::scalar));
            args.extend(strides.map(Arg::scalar));
        }
        fixture.queue.launch(&copy, Geometry::new(1, 64), &args)?.wait()?;
        let expected: Vec<_> = (0..64).map(|at| if at % 2 == 0 { at / 2 } else { 0 }).collect();
        let read = y.to_vec::<u32>()?;
        // A stride of -1 leads to the elements before, except from the first one.
        let expected = if stride == -1 {
            (0..64).map(|at| if at == 1 { 0 } else { (at / 2_u32) - at % 2 }).collect()
        } else {
            expected
        };
        assert_eq!(read, expected, "{stride}");
    }
    // Writes through a wrong layout.
    let mut args = vec![Arg::read(&y), Arg::write(&x), Arg::scalar(64_u32)];
    for (shape, strides) in [([1_u32, 1, 1, 64], [0_i32, 0, 0, 1]), ([1, 1, 1, 64], [0, 0, 0, 2048])] {
        args.extend(shape.map(Arg::scalar));
        args.extend(strides.map(Arg::scalar));
    }
    fixture.queue.launch(&copy, Geometry::new(1, 64), &args)?.wait()?;
    assert_eq!(behind.to_vec::<u32>()?, before);
    Ok(())
}

fn beyond(fixture: &Fixture) -> Result<()> {
    let pick = fixture.kernel(PICK, "pick")?;
    let places: Vec<u32> = vec![0, 1, 2, 3, 4, 5, 6, 7, 1000, u32::MAX];
    let x = fixture.device.tensor([10], &places)?;
    let y = fixture.device.tensor([10, 4], &[9_u32; 40])?;
    fixture.queue.launch(&pick, Geometry::new(1, 64), (&x, &y, 11_u32, layout(&x, 3), 13_u32))?.wait()?;
    let expected = places.iter().flat_map(|&place| {
        let [shape, stride] =
            [[1, 1, 10], [0, 0, 1]].map(|part: [u32; 3]| *part.get(place as usize).unwrap_or(&0));
        [shape, stride, 13]
    });
    let read = y.to_vec::<u32>()?;
    let read: Vec<_> = read.chunks(4).flat_map(|row| row[..3].to_vec()).collect();
    assert_eq!(read, expected.collect::<Vec<_>>());
    Ok(())
}

fn recorded(fixture: &Fixture) -> Result<()> {
    let (copy, x) = (fixture.kernel(COPY, "copy")?, fixture.numbers()?);
    let view = x.permute(&[1, 0])?;
    let y = fixture.device.zeros::<u32>([64, 64])?;
    let graph = fixture.queue.record(|recorder| {
        let args = (&view, &y, count(&view), layout(&view, 4), layout(&y, 4));
        recorder.launch(&copy, Geometry::new(64, 64), args)
    })?;
    let graph = fixture.queue.instantiate(&graph)?;
    fixture.queue.replay(&graph)?.wait()?;
    assert_eq!(y.to_vec::<u32>()?, view.to_vec::<u32>()?);
    Ok(())
}

fn complex(fixture: &Fixture) -> Result<()> {
    let multiply = fixture.kernel(MULTIPLY, "multiply")?;
    let numbers: Vec<_> = (0..100_i16).map(|n| Complex::new(f32::from(n), f32::from(50 - n))).collect();
    let (x, y) = (fixture.device.tensor([100], &numbers)?, fixture.device.zeros::<Complex<f32>>([100])?);
    let factor = Complex::new(3.0_f32, -2.0);
    fixture.queue.launch(&multiply, Geometry::new(2, 64), (&x, &y, factor, 100_u32))?.wait()?;
    assert_eq!(y.to_vec::<Complex<f32>>()?, numbers.iter().map(|z| z * factor).collect::<Vec<_>>());
    let parts =
        [Arg::read(&x), Arg::write(&y), Arg::scalar(1.0_f32), Arg::scalar(0.0_f32), Arg::scalar(100_u32)];
    fixture.queue.launch(&multiply, Geometry::new(2, 64), &parts)?.wait()?;
    assert_eq!(y.to_vec::<Complex<f32>>()?, numbers);
    let wide = fixture.device.zeros::<Complex<f64>>([100])?;
    let error = fixture.queue.launch(&multiply, Geometry::new(2, 64), (&wide, &y, factor, 100_u32));
    let error = error.expect_err("parts of another width");
    assert!(
        error.message().contains("argument 0 of \"multiply\" is complex128, but the kernel takes f32"),
        "{error}"
    );
    Ok(())
}

fn dispatched(fixture: &Fixture) -> Result<()> {
    let x = fixture.numbers()?;
    let copy = Dispatcher::new(ModuleSource::wgsl(COPY), "copy");
    for view in views(&x)? {
        let dense = fixture.device.zeros::<u32>(view.shape())?;
        copy.call(view.len().max(1), (&view, &dense, count(&view)))?;
        assert_eq!(dense.to_vec::<u32>()?, view.to_vec::<u32>()?, "{:?} {:?}", view.shape(), view.strides());
    }
    let multiply = Dispatcher::new(ModuleSource::wgsl(MULTIPLY), "multiply");
    let numbers = [Complex::new(1.0_f32, 2.0), Complex::new(-3.0, 0.5)];
    let (x, y) = (fixture.device.tensor([2], &numbers)?, fixture.device.zeros::<Complex<f32>>([2])?);
    multiply.call(2_usize, (&x, &y, Complex::<f32>::i(), 2_u32))?;
    assert_eq!(y.to_vec::<Complex<f32>>()?, numbers.map(|z| z * Complex::i()));
    Ok(())
}

fn wide_complex(fixture: &Fixture) -> Result<()> {
    let source = ModuleSource::wgsl(MULTIPLY).element(runtime_core::DType::F64);
    let multiply = fixture.device.kernel(source, "multiply")?;
    let numbers: Vec<_> = (0..100_i16).map(|n| Complex::new(f64::from(n), f64::from(50 - n))).collect();
    let (x, y) = (fixture.device.tensor([100], &numbers)?, fixture.device.zeros::<Complex<f64>>([100])?);
    let factor = Complex::new(0.1, -1e30);
    fixture.queue.launch(&multiply, Geometry::new(2, 64), (&x, &y, factor, 100_u32))?.wait()?;
    let error = |(read, z): (Complex<f64>, &Complex<f64>)| (read - z * factor).norm_sqr() / 1e60;
    assert!(y.to_vec::<Complex<f64>>()?.into_iter().zip(&numbers).map(error).all(|error| error < 1e-26));
    Ok(())
}
