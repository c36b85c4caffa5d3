//! The device under test, assertions and test data.

use std::sync::Arc;
use std::time::Duration;

use opencl::Driver;
use runtime_core::{
    Arg, CodeFormat, CommonRuntime, Element, Error, Geometry, Module, ModuleSource, Placement, Queue, Result,
    Runtime, Tensor,
};

/// No kernel of these tests takes this long.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A device with a queue, and the kernels of `kernels/idioms.cl`.
#[derive(Debug)]
pub(crate) struct Fixture {
    pub(crate) driver: Driver,
    pub(crate) device: Arc<dyn CommonRuntime>,
    pub(crate) queue: Queue,
    pub(crate) idioms: Module,
}

/// Native code in an OpenCL format.
pub(crate) fn source(format: CodeFormat, code: impl Into<Vec<u8>>) -> ModuleSource {
    // SAFETY: the kernels of these tests stay within their arguments.
    unsafe { ModuleSource::native(format, code) }
}

/// OpenCL C source.
pub(crate) fn opencl_c(text: &str) -> ModuleSource {
    source(CodeFormat::OPENCL_C, text)
}

impl Fixture {
    /// Opens the only device that this process sees.
    pub(crate) fn open(driver: Driver) -> Result<Self> {
        let device = Runtime::new().open("opencl:0")?;
        let queue = device.queue()?;
        let idioms = device.load(&opencl_c(include_str!("../../../kernels/idioms.cl")))?;
        Ok(Self { driver, device, queue, idioms })
    }

    pub(crate) fn tensor<T: Element>(&self, data: &[T]) -> Result<Tensor> {
        self.device.tensor([data.len()], data)
    }

    /// A tensor of zeros.
    pub(crate) fn zeros<T: Element>(&self, count: usize) -> Result<Tensor> {
        let tensor = self.device.allocate(T::DTYPE, &[count], &Placement::default())?;
        tensor.fill(&[0])?;
        Ok(tensor)
    }

    /// Launches a kernel and waits for it.
    pub(crate) fn run(&self, kernel: &str, geometry: &Geometry, args: &[Arg<'_>]) -> Result<()> {
        self.run_from(&self.idioms, kernel, geometry, args)
    }

    pub(crate) fn run_from(
        &self,
        module: &Module,
        kernel: &str,
        geometry: &Geometry,
        args: &[Arg<'_>],
    ) -> Result<()> {
        self.queue.launch(&module.kernel(kernel)?, *geometry, args)?.wait_timeout(TIMEOUT)
    }
}

/// The error of a case that needs a missing feature.
pub(crate) fn unsupported(what: &str) -> Error {
    Error::unsupported(format!("{what} is not supported"))
}

/// Asserts that all elements are equal.
#[track_caller]
pub(crate) fn assert_equal<T: Element + PartialEq + std::fmt::Debug>(
    tensor: &Tensor,
    right: &[T],
) -> Result<()> {
    let found = tensor.to_vec::<T>()?;
    let wrong = found.iter().zip(right).position(|(found, right)| found != right);
    assert!(
        wrong.is_none() && found.len() == right.len(),
        "element {wrong:?} of {}: {:?} instead of {:?}",
        found.len(),
        wrong.map(|at| &found[at]),
        wrong.map(|at| &right[at])
    );
    Ok(())
}

/// Asserts that all elements are equal to about six digits of the largest.
#[track_caller]
pub(crate) fn assert_close(tensor: &Tensor, right: &[f32]) -> Result<()> {
    let found = tensor.to_vec::<f32>()?;
    assert_eq!(found.len(), right.len());
    let largest = right.iter().fold(1e-3f32, |most, value| most.max(value.abs()));
    for (at, (found, right)) in found.iter().zip(right).enumerate() {
        assert!((found - right).abs() <= 4e-6 * largest, "element {at}: {found} instead of {right}");
    }
    Ok(())
}

/// Pseudo-random numbers in 0..1, the same on every run.
pub(crate) fn random_floats(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_769).wrapping_add(1);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32
    };
    (0..count).map(|_| next()).collect()
}
