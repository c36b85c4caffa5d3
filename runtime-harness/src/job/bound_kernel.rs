//! A loaded kernel with its tensors and arguments on one device.

use std::path::Path;

use runtime_core::backend::SandboxPolicy;
use runtime_core::evaluate::{DataLocation, Evaluation, EvaluationArg};
use runtime_core::{
    Access, Arg, CodeFormat, CommonRuntime, DeviceKind, Error, HostArray, Kernel, LaunchConfig, ModuleSource,
    Placement, Result, Tensor,
};

use super::{Due, Job, Outputs, PackageChoice, module_source, packaged};
use crate::spec::{ArgumentKind, KernelSource, Spec, TensorSpec};

/// Initial content of write-only tensors: NaN in every floating-point type.
const POISON: [u8; 16] = [0xff; 16];

/// The bytes of canaries.
const PAGE: usize = 4096;

/// A loaded kernel with its tensors on a device.
#[derive(Debug)]
pub struct BoundKernel {
    /// The kernel.
    pub kernel: Kernel,
    /// What was taken from the package, if the code is one.
    pub package: Option<PackageChoice>,
    /// The tensors by argument index; `None` for other arguments.
    pub tensors: Vec<Option<Tensor>>,
}

impl BoundKernel {
    /// Loads the kernel of a job, allocates its tensors and writes their initial data.
    ///
    /// # Errors
    /// The error in the initial data; those of loading, allocating and writing.
    pub fn new(device: &dyn CommonRuntime, job: &Job) -> Result<Self> {
        Self::of_code(device, job, &job.spec.kernel)
    }

    /// Loads the kernel of a job, without tensors.
    ///
    /// # Errors
    /// Those of loading.
    pub(crate) fn without_tensors(device: &dyn CommonRuntime, job: &Job) -> Result<Self> {
        let (kernel, package) = load(device, job, &job.spec.kernel)?;
        Ok(Self { kernel, package, tensors: Vec::new() })
    }

    /// The same with the code of the kernel or of its reference.
    pub(super) fn of_code(device: &dyn CommonRuntime, job: &Job, code: &KernelSource) -> Result<Self> {
        let (kernel, package) = load(device, job, code)?;
        Ok(Self {
            kernel,
            package,
            tensors: allocate_tensors(job, |tensor, input| allocate(device, tensor, input))?,
        })
    }

    /// Loads the kernel of the job once more, with whatever it keeps on the device as it was at first.
    ///
    /// # Errors
    /// Those of loading.
    pub(crate) fn load_anew(&mut self, device: &dyn CommonRuntime, job: &Job) -> Result<()> {
        self.kernel = load(device, job, &job.spec.kernel)?.0;
        Ok(())
    }

    /// What a launch runs. If the spec gives no group size, the code's own is used.
    ///
    /// # Errors
    /// `InvalidArgument` if both are given and differ.
    pub fn config(&self, spec: &Spec) -> Result<LaunchConfig> {
        config(spec, self.kernel.info().group_size)
    }

    /// The arguments of a launch.
    #[must_use]
    pub fn args<'a>(&'a self, spec: &'a Spec) -> Vec<Arg<'a>> {
        let args = spec.args.iter().zip(&self.tensors);
        args.filter_map(|(arg, tensor)| match (&arg.kind, tensor) {
            (ArgumentKind::Tensor(spec), Some(tensor)) => {
                // A spec gives strides only for kernels that compute with them.
                Some(Arg::tensor(tensor, spec.access).strided())
            }
            (kind, _) => value(kind),
        })
        .collect()
    }

    /// The arguments of an evaluation.
    #[must_use]
    pub fn evaluation_args<'a>(&'a self, spec: &'a Spec) -> Vec<EvaluationArg<'a>> {
        evaluation_args(spec, &self.tensors)
    }

    /// An evaluation, which compares outputs if it is told what to expect.
    ///
    /// # Errors
    /// Those of [`config`](Self::config).
    pub(crate) fn evaluation<'b>(
        &'b self,
        job: &'b Job,
        expected: Option<&Outputs>,
    ) -> Result<Evaluation<'b>> {
        let spec = &job.spec;
        let mut evaluation = Evaluation::new(&self.kernel, self.config(spec)?, self.evaluation_args(spec));
        evaluation.validate = expected.is_some();
        evaluation.tolerance = job.tolerance();
        evaluation.reference = expected.cloned().unwrap_or_default();
        Ok(evaluation)
    }

    /// Writes the initial data of tensors that the kernel both reads and writes: those whose turn it is.
    ///
    /// # Errors
    /// The error in the initial data; those of writing.
    pub(crate) fn restore(&self, job: &Job, due: Due) -> Result<()> {
        let inputs = job.inputs.as_ref().map_err(Clone::clone)?;
        for ((arg, tensor), input) in job.spec.args.iter().zip(&self.tensors).zip(inputs) {
            if let (ArgumentKind::Tensor(spec), Some(tensor), Some(input)) = (&arg.kind, tensor, input)
                && due.restores(spec.access, spec.each_call)
            {
                tensor.write_array(input)?;
            }
        }
        Ok(())
    }

    /// The contents of the written arguments, each with its index.
    ///
    /// # Errors
    /// Those of [`Tensor::to_array`].
    pub fn outputs(&self, spec: &Spec) -> Result<Vec<(usize, HostArray)>> {
        let outputs = spec.outputs().filter_map(|(index, _)| Some((index, self.tensors[index].as_ref()?)));
        outputs.map(|(index, tensor)| Ok((index, tensor.to_array()?))).collect()
    }
}

/// Loads code of a job: the kernel, and what was taken from the package if it is one.
fn load(
    device: &dyn CommonRuntime,
    job: &Job,
    code: &KernelSource,
) -> Result<(Kernel, Option<PackageChoice>)> {
    if code.is_package() {
        let (kernel, choice) = packaged::load(device, code, &job.spec.specialise)?;
        return Ok((kernel, Some(choice)));
    }
    let source = kernel_source(job, code, device.info().kind)?;
    Ok((device.kernel(&source, &code.entry)?, None))
}

/// The tensors of a job, by argument: `allocate` makes each of them, from what it begins with.
///
/// # Errors
/// The error in the initial data; those of allocating and writing.
pub(crate) fn allocate_tensors(
    job: &Job,
    mut allocate: impl FnMut(&TensorSpec, Option<&HostArray>) -> Result<Tensor>,
) -> Result<Vec<Option<Tensor>>> {
    let inputs = job.inputs.as_ref().map_err(Clone::clone)?;
    let tensors = job.spec.args.iter().zip(inputs).map(|(arg, input)| match &arg.kind {
        ArgumentKind::Tensor(tensor) => {
            allocate(tensor, input.as_ref()).map(Some).map_err(|error| error.in_operation(&arg.name))
        }
        _ => Ok(None),
    });
    tensors.collect()
}

/// The arguments of an evaluation with these tensors.
pub(crate) fn evaluation_args<'a>(spec: &'a Spec, tensors: &'a [Option<Tensor>]) -> Vec<EvaluationArg<'a>> {
    let args = spec.args.iter().zip(tensors);
    args.filter_map(|(arg, tensor)| match (&arg.kind, tensor) {
        (ArgumentKind::Tensor(spec), Some(tensor)) => {
            let arg = EvaluationArg::tensor(tensor, spec.access, spec.on);
            Some(arg.each_call(spec.each_call).strided())
        }
        (kind, _) => value(kind).map(EvaluationArg::from),
    })
    .collect()
}

/// What a launch of `spec` runs, if the code fixes this group size.
///
/// # Errors
/// `InvalidArgument` if the spec gives another one.
pub(crate) fn config(spec: &Spec, fixed: Option<[u32; 3]>) -> Result<LaunchConfig> {
    let LaunchConfig::Groups(mut geometry) = spec.config else { return Ok(spec.config) };
    match fixed {
        Some(fixed) if !spec.has_group_size => geometry.group_size = fixed,
        Some(fixed) if fixed != geometry.group_size => {
            return Err(Error::invalid(format!(
                "group_size in [launch] is {:?}, but the kernel's code fixes it to {fixed:?}; leave it out",
                geometry.group_size
            )));
        }
        _ => {}
    }
    Ok(geometry.into())
}

/// The argument of a launch, unless it is a tensor.
pub(crate) fn value(kind: &ArgumentKind) -> Option<Arg<'_>> {
    match kind {
        ArgumentKind::Tensor(_) => None,
        ArgumentKind::Scalar(dtype, bits) => Some(Arg::scalar_bits(*dtype, *bits)),
        ArgumentKind::Record(record) => Some(Arg::record(record)),
        ArgumentKind::Bytes(bytes) => Some(Arg::bytes(bytes)),
        ArgumentKind::Local(bytes) => Some(Arg::local(*bytes)),
    }
}

/// The code of a job for a device of this kind. A compiler of the host or of a board that runs in a sandbox may read the folder of the
/// spec, besides that of the code.
///
/// # Errors
/// Those of [`module_source`].
pub(crate) fn kernel_source(job: &Job, code: &KernelSource, kind: DeviceKind) -> Result<ModuleSource> {
    let source = module_source(code, &job.spec.specialise)?;
    let is_compiled = match kind {
        DeviceKind::Host => [CodeFormat::C, CodeFormat::OBJECT, CodeFormat::ARCHIVE].contains(&code.format),
        DeviceKind::Embedded => code.format == CodeFormat::C,
        DeviceKind::Accelerator => false,
    };
    if !is_compiled || SandboxPolicy::of_process()? == SandboxPolicy::Off {
        return Ok(source);
    }
    match job.spec.folder().as_deref().and_then(Path::to_str) {
        Some(folder) => Ok(source.option("readable", folder)),
        None => Ok(source),
    }
}

fn allocate(device: &dyn CommonRuntime, spec: &TensorSpec, input: Option<&HostArray>) -> Result<Tensor> {
    let placement = placement(device, spec);
    let tensor = match (&spec.strides, spec.offset) {
        (None, 0) => device.allocate(spec.dtype, &spec.shape, &placement)?,
        _ => view(device, spec, &placement)?,
    };
    begin(&tensor, spec, input)?;
    Ok(tensor)
}

/// Where a tensor is placed.
fn placement(device: &dyn CommonRuntime, spec: &TensorSpec) -> Placement {
    match spec.on {
        // A host has a single memory, so `on` has no meaning there.
        _ if device.as_host().is_some() => Placement::default(),
        DataLocation::Device | DataLocation::Host => Placement::default(),
        DataLocation::Pinned => Placement::space("pinned"),
        DataLocation::Shared => Placement::space("shared"),
    }
}

/// Writes what a tensor begins with.
fn begin(tensor: &Tensor, spec: &TensorSpec, input: Option<&HostArray>) -> Result<()> {
    match input {
        Some(array) => tensor.write_array(array),
        None if spec.access == Access::Write => tensor.fill(&POISON[..spec.dtype.bytes()]),
        None => Ok(()),
    }
}

/// Bytes before and behind a tensor that no kernel may write. Kernels find the tensor as aligned as one that begins its memory.
#[derive(Debug)]
pub(crate) struct Canaries {
    /// The elements before, those of the tensor, and those behind.
    memory: Tensor,
    /// What they hold, again and again.
    pattern: [u8; 16],
    /// The elements before, and those behind.
    count: usize,
}

impl Canaries {
    /// A tensor between canaries; one without any if its elements do not lie one behind the other, or the device has no room for them.
    ///
    /// # Errors
    /// Those of allocating and writing.
    pub(crate) fn around(
        device: &dyn CommonRuntime,
        (spec, input): (&TensorSpec, Option<&HostArray>),
        pattern: [u8; 16],
    ) -> Result<(Tensor, Option<Self>)> {
        let count = PAGE / spec.dtype.bytes();
        let elements: usize = spec.shape.iter().product();
        let is_plain = elements > 0 && spec.strides.is_none() && spec.offset == 0;
        let total = elements.checked_add(2 * count).filter(|_| is_plain);
        let memory = total.map(|total| device.allocate(spec.dtype, &[total], &placement(device, spec)));
        let Some(Ok(memory)) = memory else { return Ok((allocate(device, spec, input)?, None)) };
        let tensor = memory.slice(0, count..count + elements)?.reshape(&spec.shape)?;
        let canaries = Self { memory, pattern, count };
        canaries.places()?.iter().try_for_each(|place| place.fill(&pattern))?;
        begin(&tensor, spec, input)?;
        Ok((tensor, Some(canaries)))
    }

    fn places(&self) -> Result<[Tensor; 2]> {
        let end = self.memory.len();
        Ok([self.memory.slice(0, 0..self.count)?, self.memory.slice(0, end - self.count..end)?])
    }

    /// Whether they are as they were.
    ///
    /// # Errors
    /// Those of reading them.
    pub(crate) fn are_unchanged(&self) -> Result<bool> {
        for place in self.places()? {
            if !place.to_array()?.bytes().chunks_exact(16).all(|bytes| bytes == self.pattern) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// A view into a larger buffer of zeros.
fn view(device: &dyn CommonRuntime, spec: &TensorSpec, placement: &Placement) -> Result<Tensor> {
    let elements = spec.base_elements().ok_or_else(|| Error::invalid("the tensor is too large"))?;
    let base = device.allocate(spec.dtype, &[elements], placement)?;
    base.write_array(&HostArray::new(spec.dtype, &[elements])?)?;
    base.view(&spec.shape, &signed(&spec.strides_or_contiguous())?, spec.offset)
}

/// Strides, as views take them.
///
/// # Errors
/// `InvalidArgument` for one that is too large.
pub(crate) fn signed(strides: &[usize]) -> Result<Vec<i64>> {
    let too_large = |_| Error::invalid("a stride is too large");
    strides.iter().map(|stride| i64::try_from(*stride).map_err(too_large)).collect()
}

#[cfg(test)]
mod tests {
    use runtime_core::DType;
    use runtime_core::evaluate::EachCall;

    use super::*;
    use crate::spec::Init;

    #[test]
    fn strides_default_to_row_major() {
        let spec = TensorSpec {
            dtype: DType::F32,
            shape: vec![2, 3, 4],
            strides: None,
            offset: 1,
            init: Init::Zeros,
            access: Access::Read,
            each_call: EachCall::Keep,
            on: DataLocation::Device,
        };
        assert_eq!(signed(&spec.strides_or_contiguous()).unwrap(), [12, 4, 1]);
        let spec = TensorSpec { strides: Some(vec![1, 2, 6]), ..spec };
        assert_eq!(spec.strides_or_contiguous(), [1, 2, 6]);
        assert!(signed(&[usize::MAX]).is_err());
    }
}
