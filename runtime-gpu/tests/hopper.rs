//! Features of Hopper and newer devices: clusters, tensor maps and cooperative launches. Ignored, with the reason, without such
//! a device; `RUNTIME_REQUIRE=cuda` turns that into a failure.

#![allow(unsafe_code, reason = "loads native code and reads the address of a tensor")]

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use runtime_core::{
    Arg, CodeFormat, CommonRuntime, Error, ErrorKind, Geometry, Kernel, ModuleSource, Runtime, Tensor, abi,
};
use runtime_gpu::{Interleave, L2Promotion, OobFill, Swizzle, TensorMap, TiledLayout};

/// Extents of a tile.
const TILE: u32 = 16;

const CODE: &str = include_str!("hopper.cu");

type Outcome = Result<(), Failed>;
type Case = fn(&Fixture) -> Outcome;

struct Fixture {
    device: Arc<dyn CommonRuntime>,
}

impl Fixture {
    fn open() -> runtime_core::Result<Self> {
        let runtime = Runtime::builder().discover(false).register(runtime_gpu::backend()).build();
        let device = runtime.open("cuda")?;
        let info = device.info();
        if !info.capabilities.has(abi::CAP_CLUSTERS | abi::CAP_COOPERATIVE) {
            return Err(Error::unsupported(format!(
                "{} does not support clusters and cooperative launches",
                info.name
            )));
        }
        Ok(Self { device })
    }

    fn kernel(&self, name: &str) -> runtime_core::Result<Kernel> {
        // SAFETY: with the arguments that the tests pass, the kernels stay in bounds.
        let source = unsafe { ModuleSource::native(CodeFormat::CUDA_C, CODE) };
        self.device.kernel(&source, name)
    }

    fn run(&self, name: &str, geometry: &Geometry, args: &[Arg<'_>]) -> runtime_core::Result<()> {
        let queue = self.device.queue()?;
        queue.launch(&self.kernel(name)?, *geometry, args)?.wait()
    }

    fn zeros(&self, count: usize) -> runtime_core::Result<Tensor> {
        self.device.tensor([count], &vec![0_u32; count])
    }
}

fn clusters(fixture: &Fixture) -> Outcome {
    let sums = fixture.zeros(16)?;
    fixture.run(
        "cluster_sum",
        &Geometry { cluster: [4, 1, 1], ..Geometry::new(16, 32) },
        &[Arg::write(&sums)],
    )?;
    let expected: Vec<u32> = (0..16).map(|group| 16 * (group / 4) + 10).collect();
    assert_eq!(sums.to_vec::<u32>()?, expected);
    Ok(())
}

fn cooperative(fixture: &Fixture) -> Outcome {
    let groups = fixture.device.info().compute_units.expect("CUDA reports compute units");
    let [arrived, numbers, received] =
        [fixture.zeros(1)?, fixture.zeros(groups as usize)?, fixture.zeros(groups as usize)?];
    let geometry = Geometry { cooperative: true, ..Geometry::new(groups, 32) };
    let args = [Arg::read_write(&arrived), Arg::read_write(&numbers), Arg::write(&received)];
    fixture.run("exchange", &geometry, &args)?;
    let expected: Vec<u32> = (0..groups).map(|group| (group + 1) % groups).collect();
    assert_eq!(received.to_vec::<u32>()?, expected);
    Ok(())
}

fn tensor_maps(fixture: &Fixture) -> Outcome {
    let (width, height) = (48_u16, 40_u16);
    let values: Vec<f32> = (0..width * height).map(f32::from).collect();
    let image = fixture.device.tensor([height.into(), width.into()], &values)?;
    let layout = TiledLayout {
        dtype: image.dtype(),
        address: address(&image)?,
        shape: &[width.into(), height.into()],
        strides_bytes: &[u64::from(width) * 4],
        box_shape: &[TILE, TILE],
        element_strides: &[1, 1],
        interleave: Interleave::None,
        swizzle: Swizzle::None,
        l2_promotion: L2Promotion::None,
        oob_fill: OobFill::Zeros,
    };
    // SAFETY: the tensor lives until all launches have ended, and nothing else writes it.
    let map = unsafe { TensorMap::tiled(&layout) }?;
    // The second tile overlaps the lower right corner: elements out of bounds are 0.
    for (x, y) in [(8_u16, 3_u16), (40, 32)] {
        let out = fixture.device.tensor([256], &[-1.0_f32; 256])?;
        let args =
            [Arg::bytes(map.bytes()), Arg::write(&out), Arg::scalar(i32::from(x)), Arg::scalar(i32::from(y))];
        fixture.run("tile", &Geometry::new(1, TILE * TILE), &args)?;
        let at = |row: u16, column: u16| {
            if row < height && column < width { f32::from(row * width + column) } else { 0.0 }
        };
        let expected: Vec<f32> =
            (0..16).flat_map(|row| (0..16).map(move |column| at(y + row, x + column))).collect();
        assert_eq!(out.to_vec::<f32>()?, expected, "the tile at {x}, {y}");
    }
    Ok(())
}

/// Device address of a tensor.
fn address(tensor: &Tensor) -> Result<u64, Failed> {
    let raw = tensor.to_dlpack()?.into_raw();
    // SAFETY: just exported, and not yet deleted.
    let managed = unsafe { &*raw };
    let (address, deleter) = (managed.dl_tensor.data.addr() as u64, managed.deleter.ok_or("no deleter")?);
    // SAFETY: called once, and nothing of it is used afterwards.
    unsafe { deleter(raw) };
    Ok(address)
}

fn main() -> ExitCode {
    let cases: [(&str, Case); 3] = [
        ("groups of a cluster read each other's shared memory", clusters),
        ("all groups of a cooperative launch wait for each other", cooperative),
        ("a tensor map loads tiles", tensor_maps),
    ];
    let trials = cases.map(|(name, case)| Trial::ignorable_test(name, move || outcome(case)));
    libtest_mimic::run(&Arguments::from_args(), trials.into()).exit_code()
}

fn outcome(case: Case) -> Result<Completion, Failed> {
    match Fixture::open() {
        Ok(fixture) => case(&fixture).map(|()| Completion::Completed),
        Err(error) if test_process::required("cuda") => Err(error.into()),
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::Unavailable | ErrorKind::NotFound | ErrorKind::Unsupported
            ) =>
        {
            Ok(Completion::ignored_with(error.to_string()))
        }
        Err(error) => Err(error.into()),
    }
}
