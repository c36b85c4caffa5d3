//! Views with unaligned offsets, empty ones, and ones larger than a binding, with push descriptors and with descriptor sets.
//! Ignored, with the reason, if there is no device; `RUNTIME_REQUIRE=vulkan` makes that a failure.

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use runtime_core::{Arg, CommonRuntime, ErrorKind, Geometry, ModuleSource, Options, Result, Runtime, Tensor};

/// `y = y + factor x`, and the lengths of both.
const ADD: &str = "
    struct Scalars { factor: f32 } var<immediate> scalars: Scalars;
    @group(0) @binding(0) var<storage, read> x: array<f32>;
    @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    @group(0) @binding(2) var<storage, read_write> counts: array<u32>;
    @compute @workgroup_size(32) fn add(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&y) { y[id.x] += scalars.factor * x[id.x]; }
        if id.x == 0u { counts[0] = arrayLength(&x); counts[1] = arrayLength(&y); }
    }";
/// Elements of a view.
const COUNT: usize = 100;

type Device = Arc<dyn CommonRuntime>;
type Case = fn(&Device) -> Result<()>;

fn main() -> ExitCode {
    let cases: [(&str, Case); 5] = [
        ("a view may begin at any offset", any_offset),
        ("a graph takes views at any offset, and updates them", in_a_graph),
        ("an empty view has no elements", empty),
        ("a tensor larger than a binding is refused, but not its views", too_large),
        ("a fill may begin and end at any byte", fills),
    ];
    let required = test_process::required("vulkan");
    let mut trials = Vec::new();
    for push in [true, false] {
        for (name, case) in cases {
            let mode = if push { "push descriptors" } else { "descriptor sets" };
            trials.push(Trial::ignorable_test(format!("{name} ({mode})"), move || run(case, push, required)));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn run(case: Case, push: bool, required: bool) -> std::result::Result<Completion, Failed> {
    let runtime = Runtime::builder()
        .discover(false)
        .register(runtime_vulkan::backend())
        .with_lowering(runtime_kernel::wgsl())
        .build();
    match runtime.open_with("vulkan:0", &Options::new().with("push_descriptors", push)) {
        Err(error) if error.kind() == ErrorKind::Unavailable && !required => {
            Ok(Completion::ignored_with(error.to_string()))
        }
        Err(error) => Err(error.into()),
        Ok(device) => Ok(case(&device).map(|()| Completion::Completed)?),
    }
}

fn numbers(count: usize) -> Vec<f32> {
    (0_u16..).take(count).map(f32::from).collect()
}

fn any_offset(device: &Device) -> Result<()> {
    let add = device.kernel(ModuleSource::wgsl(ADD), "add")?;
    let queue = device.queue()?;
    let data = numbers(COUNT + 20);
    for (from, to) in (0..9).flat_map(|from| [(from, 0), (from, 3), (4, from), (from, from)]) {
        let x = device.tensor([data.len()], &data)?;
        let y = device.tensor([data.len()], &data)?;
        let counts = device.tensor([2], &[0_u32; 2])?;
        let (part_x, part_y) = (x.slice(0, from..from + COUNT)?, y.slice(0, to..to + COUNT)?);
        let args = [Arg::read(&part_x), Arg::read_write(&part_y), Arg::write(&counts), Arg::scalar(2.0_f32)];
        for _ in 0..2 {
            drop(queue.launch(&add, Geometry::cover(100, 32), &args)?);
        }
        let mut expected = data.clone();
        (0..COUNT).for_each(|index| expected[to + index] += 4.0 * data[from + index]);
        assert_eq!(y.to_vec::<f32>()?, expected, "from {from} to {to}");
        assert_eq!(x.to_vec::<f32>()?, data, "the input is unchanged");
        assert_eq!(counts.to_vec::<u32>()?, [100, 100], "from {from} to {to}");
    }
    Ok(())
}

fn in_a_graph(device: &Device) -> Result<()> {
    let add = device.kernel(ModuleSource::wgsl(ADD), "add")?;
    let queue = device.queue()?;
    let data = numbers(COUNT + 20);
    let x = device.tensor([data.len()], &data)?;
    let y = device.tensor([data.len()], &data)?;
    let counts = device.tensor([2], &[0_u32; 2])?;
    let parts =
        |from: usize| -> Result<_> { Ok((x.slice(0, from..from + COUNT)?, y.slice(0, 3..3 + COUNT)?)) };
    let (part_x, part_y) = parts(1)?;
    let args = [Arg::read(&part_x), Arg::read_write(&part_y), Arg::write(&counts), Arg::scalar(1.0_f32)];
    let recorded = queue.record(|recorder| recorder.launch(&add, Geometry::cover(100, 32), &args))?;
    let mut graph = queue.instantiate(&recorded)?;
    let mut expected = data.clone();
    for from in [1, 5, 4, 7] {
        let (part_x, part_y) = parts(from)?;
        let args = [Arg::read(&part_x), Arg::read_write(&part_y), Arg::write(&counts), Arg::scalar(1.0_f32)];
        graph.update(0, &args)?;
        // Twice, while earlier replays may still run.
        drop((queue.replay(&graph)?, queue.replay(&graph)?));
        (0..COUNT).for_each(|index| expected[3 + index] += 2.0 * data[from + index]);
    }
    assert_eq!(y.to_vec::<f32>()?, expected);
    Ok(())
}

fn empty(device: &Device) -> Result<()> {
    let add = device.kernel(ModuleSource::wgsl(ADD), "add")?;
    let queue = device.queue()?;
    let empty_tensor = device.empty::<f32>([0])?;
    let some = device.tensor([3], &[1.0_f32; 3])?;
    let counts = device.tensor([2], &[9_u32; 2])?;
    let part = some.slice(0, 1..1)?;
    for none in [&empty_tensor, &part] {
        let args = [Arg::read(&some), Arg::read_write(none), Arg::write(&counts), Arg::scalar(1.0_f32)];
        let small = queue.launch(&add, Geometry::cover(1, 32), &args);
        match small {
            // The lowering rejects an empty view if the kernel requires an element.
            Err(error) if error.kind() == ErrorKind::InvalidArgument => {}
            done => {
                done?.wait()?;
                assert_eq!(counts.to_vec::<u32>()?, [3, 0]);
            }
        }
    }
    assert_eq!(some.to_vec::<f32>()?, [1.0; 3]);
    Ok(())
}

fn too_large(device: &Device) -> Result<()> {
    let bound = device.info().properties.integer("binding_bytes").unwrap_or(i64::MAX);
    let count = usize::try_from(bound / 4 + 64).unwrap_or(usize::MAX);
    if bound > 1 << 30 {
        return Ok(()); // Not worth that much memory.
    }
    let add = device.kernel(ModuleSource::wgsl(ADD), "add")?;
    let queue = device.queue()?;
    let large = device.empty::<f32>([count])?;
    let one = device.tensor([1], &[1.0_f32])?;
    let counts = device.tensor([2], &[0_u32; 2])?;
    let launch = |x: &Tensor| {
        let args = [Arg::read(x), Arg::read_write(&one), Arg::write(&counts), Arg::scalar(0.0_f32)];
        queue.launch(&add, Geometry::cover(1, 32), &args)
    };
    let error = launch(&large).expect_err("larger than a binding");
    let words = error.to_string();
    assert!(error.kind() == ErrorKind::InvalidArgument && words.contains("argument 0"), "{words}");
    assert!(words.contains("smaller views"), "{words}");
    launch(&large.slice(0, 64..count)?)?.wait()?;
    assert_eq!(i64::from(counts.to_vec::<u32>()?[0]), bound / 4);
    Ok(())
}

fn fills(device: &Device) -> Result<()> {
    let queue = device.queue()?;
    let bytes = device.empty::<u8>([300])?;
    let pattern: Vec<u8> = (1..=16).collect();
    for unit in [1, 2, 4, 8, 16] {
        for from in 0..6 {
            bytes.fill(&[0xee])?;
            queue.fill(&bytes.slice(0, from..from + 16 * 17)?, &pattern[..unit])?.wait()?;
            let expected: Vec<u8> = (0..300_usize)
                .map(|at| match at.checked_sub(from).filter(|&index| index < 16 * 17) {
                    Some(index) => pattern[index % unit],
                    None => 0xee,
                })
                .collect();
            assert_eq!(bytes.to_vec::<u8>()?, expected, "{unit} from {from}");
        }
    }
    Ok(())
}
