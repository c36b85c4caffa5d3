//! Views as arguments of portable kernels, on every device of this machine: a view with gaps is rejected unless the
//! kernel takes strides, and a binding ends with its tensor.

use std::sync::Arc;

use libtest_mimic::{Completion, Failed, Trial};
use portable::required;
use runtime_core::code::layout;
use runtime_core::{
    Arg, CommonRuntime, DType, Error, ErrorKind, Geometry, Kernel, ModuleSource, Queue, Result, Runtime,
    Tensor,
};

/// Adds the number of elements that the kernel sees to each of them.
const CODE: &str = "
    @group(0) @binding(0) var<storage, read_write> y: array<u32>;
    @compute @workgroup_size(64) fn count(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&y) { y[id.x] += arrayLength(&y); }
    }";
/// Doubles 8-byte numbers in structures, which tensors of any type may hold.
const STRUCTURES: &str = "
    struct Pair { a: u32, b: f32 }
    @group(0) @binding(0) var<storage, read_write> pairs: array<Pair>;
    @compute @workgroup_size(64) fn double(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&pairs) { pairs[id.x].a *= 2; pairs[id.x].b *= 2.0; }
    }";
/// Swaps red and blue.
const TEXTURE: &str = "
    @group(0) @binding(0) var image: texture_storage_2d<rgba8unorm, read>;
    @group(0) @binding(1) var swapped: texture_storage_2d<rgba8unorm, write>;
    @compute @workgroup_size(8, 8) fn swap(@builtin(global_invocation_id) id: vec3u) {
        textureStore(swapped, id.xy, textureLoad(image, id.xy).zyxw);
    }";
/// Large enough that the memory behind it belongs to another tensor.
const ELEMENTS: usize = 4096;
const GROUPS: u32 = 64;

struct Fixture {
    device: Arc<dyn CommonRuntime>,
    queue: Queue,
    kernel: Kernel,
}

type Case = fn(&Fixture) -> Result<()>;

const CASES: [(&str, Case); 6] = [
    ("a_view_with_gaps_is_refused_with_the_remedy", refused),
    ("the_remedy_keeps_the_elements", copied),
    ("a_kernel_that_knows_strides_sees_what_lies_behind_the_first_element", strided),
    ("nothing_before_the_first_element_is_bound", reversed),
    ("an_array_of_structures_begins_where_its_members_may", misaligned),
    ("a_texture_takes_a_tensor_without_gaps_and_its_layout", texture),
];

pub(crate) fn trials() -> Vec<Trial> {
    let runtime = Arc::new(Runtime::builder().with_lowering(runtime_kernel::wgsl()).build());
    let mut trials = Vec::new();
    for name in ["host", "opencl", "vulkan"] {
        for (case, check) in CASES {
            let runtime = runtime.clone();
            trials.push(Trial::ignorable_test(format!("views::{name}::{case}"), move || {
                run_case(&runtime, name, check)
            }));
        }
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
    let kernel = device.kernel(ModuleSource::wgsl(CODE), "count")?;
    check(&Fixture { device, queue, kernel })?;
    Ok(Completion::Completed)
}

impl Fixture {
    fn tensor(&self) -> Result<Tensor> {
        self.device.tensor([ELEMENTS], &vec![0_u32; ELEMENTS])
    }

    fn launch(&self, arg: Arg<'_>) -> Result<()> {
        self.queue.launch(&self.kernel, Geometry::new(GROUPS, 64), &[arg])?.wait()
    }

    fn refusal(&self, arg: Arg<'_>) -> Error {
        let error = self.launch(arg).expect_err("the launch must be rejected");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(
            error.message().contains("argument 0 of \"count\"") && error.message().contains("contiguous"),
            "{error}"
        );
        error
    }
}

fn refused(fixture: &Fixture) -> Result<()> {
    let x = fixture.tensor()?;
    for view in [
        x.view(&[4], &[2], 0)?,
        x.view(&[4], &[0], 7)?,
        x.view(&[ELEMENTS], &[-1], ELEMENTS - 1)?,
        x.reshape(&[64, 64])?.permute(&[1, 0])?,
        x.reshape(&[64, 64])?.slice(1, 0..63)?,
    ] {
        fixture.refusal(Arg::read_write(&view));
    }
    // These have no gaps, whatever their strides are.
    for view in [x.view(&[1], &[-7], 3)?, x.view(&[0, 9], &[5, 5], 0)?, x.view(&[1, 4], &[9, 1], 8)?] {
        fixture.launch(Arg::read_write(&view))?;
    }
    let mut expected = vec![0; ELEMENTS];
    expected[3] = 1;
    expected[8..12].fill(4);
    assert_eq!(x.to_vec::<u32>()?, expected);
    Ok(())
}

fn copied(fixture: &Fixture) -> Result<()> {
    let numbers: Vec<u32> = (0..).take(ELEMENTS).collect();
    let x = fixture.device.tensor([64, 64], &numbers)?;
    for view in [
        x.permute(&[1, 0])?,
        x.slice(1, 3..60)?,
        x.view(&[100], &[-3], 300)?,
        x.view(&[3, 5, 7], &[0, 64, 2], 9)?,
        x.clone(),
    ] {
        let dense = fixture.queue.contiguous(&view)?;
        assert_eq!((dense.shape(), dense.is_contiguous()), (view.shape(), true));
        assert_eq!((dense.dtype(), dense.space()), (view.dtype(), view.space()));
        let elements = view.to_vec::<u32>()?;
        assert_eq!(dense.to_vec::<u32>()?, elements);
        let count = u32::try_from(elements.len()).unwrap_or(u32::MAX);
        fixture.launch(Arg::read_write(&dense))?;
        assert_eq!(dense.to_vec::<u32>()?, elements.iter().map(|n| n + count).collect::<Vec<_>>());
        if view.is_contiguous() {
            assert_ne!(x.to_vec::<u32>()?, numbers, "the kernel wrote the tensor itself");
        } else {
            assert_eq!(x.to_vec::<u32>()?, numbers, "a copy");
        }
    }
    Ok(())
}

fn strided(fixture: &Fixture) -> Result<()> {
    for first in [0, 1, 2, 3, 5, 64, 100] {
        let x = fixture.tensor()?;
        let view = x.view(&[10, 3], &[7, 2], first)?;
        fixture.launch(Arg::read_write(&view).strided())?;
        // From the first element to the last one, 9 · 7 + 2 · 2 further on.
        let expected = (0..ELEMENTS).map(|at| if (first..first + 68).contains(&at) { 68 } else { 0 });
        assert_eq!(x.to_vec::<u32>()?, expected.collect::<Vec<u32>>(), "from {first}");
    }
    Ok(())
}

fn reversed(fixture: &Fixture) -> Result<()> {
    let (x, behind) = (fixture.tensor()?, fixture.tensor()?);
    let views = [
        x.view(&[ELEMENTS], &[-1], ELEMENTS - 1)?,
        x.view(&[64, 64], &[64, -1], 63)?,
        x.view(&[2, 64], &[-64, 1], 64)?,
    ];
    for view in &views {
        fixture.refusal(Arg::read_write(view));
        let error = fixture.refusal(Arg::read_write(view).strided());
        assert!(error.message().contains("before its first one"), "{error}");
    }
    for tensor in [x, behind] {
        assert_eq!(tensor.to_vec::<u32>()?, vec![0; ELEMENTS]);
    }
    Ok(())
}

fn misaligned(fixture: &Fixture) -> Result<()> {
    let double = fixture.device.kernel(ModuleSource::wgsl(STRUCTURES), "double")?;
    let x = fixture.device.tensor([32], &[1_u8; 32])?;
    for first in 0..8 {
        let view = x.slice(0, first..first + 16)?;
        let launched = fixture.queue.launch(&double, Geometry::new(1, 64), &[Arg::read_write(&view)]);
        match launched {
            Ok(event) if first.is_multiple_of(4) => event.wait()?,
            Err(error) if !first.is_multiple_of(4) => {
                assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
                let what = "argument 0 of \"double\" is aligned to";
                assert!(error.message().contains(what) && error.message().contains("needs 4"), "{error}");
            }
            other => panic!("from byte {first}: {other:?}"),
        }
    }
    // Alternately as numbers and floats from byte 0 on, then from byte 4 on.
    let mut expected = vec![1_u8; 32];
    let words = [[2, 2, 2, 2], [2, 2, 2, 3], [2, 2, 130, 2], [2, 2, 2, 3], [1, 1, 129, 1]];
    expected[..20].copy_from_slice(words.as_flattened());
    assert_eq!(x.to_vec::<u8>()?, expected);
    Ok(())
}

fn texture(fixture: &Fixture) -> Result<()> {
    let swap = fixture.device.kernel(ModuleSource::wgsl(TEXTURE), "swap")?;
    let params: Vec<_> = swap.info().params.iter().flatten().take(2).map(|param| param.dtype).collect();
    assert_eq!(params, [Some(DType::U8); 2]);
    let bytes: Vec<u8> = (0..).take(5 * 7 * 4).collect();
    let image = fixture.device.tensor([5, 7, 4], &bytes)?;
    let swapped = fixture.device.zeros::<u8>([5, 7, 4])?;
    let groups = ([1, 1, 1], [8, 8, 1]);
    fixture
        .queue
        .launch(&swap, groups, (&image, &swapped, layout(&image, 3), layout(&swapped, 3)))?
        .wait()?;
    let expected: Vec<u8> = bytes.chunks(4).flat_map(|c| [c[2], c[1], c[0], c[3]]).collect();
    assert_eq!(swapped.to_vec::<u8>()?, expected);
    let part = image.slice(1, 0..4)?;
    let refused =
        fixture.queue.launch(&swap, groups, (&part, &swapped, layout(&part, 3), layout(&swapped, 3)));
    assert!(refused.expect_err("a view with gaps").message().contains("contiguous"));
    Ok(())
}
