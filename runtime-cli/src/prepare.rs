//! From a spec to what a device runs: initial data, code, tensors, arguments, and what is right.

use runtime_core::{
    Access, Arg, CodeFormat, CommonRuntime, Error, ErrorKind, EvaluationArg, Geometry, HostArray, Kernel, On,
    Placement, QueueOptions, Result, Runtime, Tensor, Tolerance,
};

use crate::crash::Doing;
use crate::source::source;
use crate::spec::initial::Init;
use crate::spec::{Argument, ArgumentKind, Code, Expected, Spec, TensorSpec};

/// What a tensor that the kernel only writes holds before it runs: not-a-number in every float.
const POISON: [u8; 16] = [0xff; 16];

/// A spec with its initial data, made once for all devices and the reference.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) spec: Spec,
    /// Per argument: the elements of a tensor that is read, row-major; or what is wrong with them.
    pub(crate) inputs: Result<Vec<Option<HostArray>>>,
    /// Per written argument: its place in the list and what it should hold; or why that is not known.
    pub(crate) expected: Result<Vec<(usize, HostArray)>>,
}

impl Job {
    /// Makes the initial data of a spec.
    pub(crate) fn new(spec: Spec) -> Self {
        let inputs = spec.args.iter().map(|arg| match &arg.kind {
            ArgumentKind::Tensor(tensor) if tensor.access.reads() => initial(tensor, arg).map(Some),
            _ => Ok(None),
        });
        Self { inputs: inputs.collect(), spec, expected: Ok(Vec::new()) }
    }

    /// Finds out what is right: runs the reference on the host, or reads the files.
    pub(crate) fn find_expected(&mut self, runtime: &Runtime) {
        let Some(reference) = &self.spec.reference else { return };
        self.expected = match &reference.expected {
            Expected::Files(paths) => self
                .spec
                .outputs()
                .zip(paths)
                .map(|((index, arg), path)| match &arg.kind {
                    ArgumentKind::Tensor(tensor) => Ok((index, load(path, tensor, arg)?)),
                    _ => Err(Error::new(ErrorKind::Internal, "only tensors are written")),
                })
                .collect(),
            Expected::Kernel(code) => {
                self.run_reference(runtime, code).map_err(|error| error.in_operation("reference"))
            }
        };
    }

    /// How far outputs may be from what is expected.
    pub(crate) fn tolerance(&self) -> Tolerance {
        self.spec.reference.as_ref().map(|reference| reference.tolerance).unwrap_or_default()
    }

    /// What argument `index` is filled with before it is checked; nothing if the kernel also reads it.
    pub(crate) fn poison(&self, index: usize, expected: &HostArray) -> Option<u8> {
        match &self.spec.args[index].kind {
            ArgumentKind::Tensor(tensor) if tensor.access == Access::Write => {
                Some(self.tolerance().poison(expected))
            }
            _ => None,
        }
    }

    /// Refuses bytes that the kernel takes by value and the reference as a pointer, unless the spec says so: the
    /// reference would take an address for its data.
    fn check_bytes(&self) -> Result<()> {
        const OF_THE_HOST: [CodeFormat; 4] =
            [CodeFormat::C, CodeFormat::SHARED_OBJECT, CodeFormat::ARCHIVE, CodeFormat::OBJECT];
        let says_so = self.spec.reference.as_ref().is_some_and(|reference| reference.takes_pointers);
        let bytes = self.spec.args.iter().find(|arg| matches!(arg.kind, ArgumentKind::Bytes(_)));
        match bytes {
            Some(arg) if !says_so && !OF_THE_HOST.contains(&self.spec.kernel.format) => {
                Err(Error::invalid(format!(
                    "{}: argument \"{}\": a kernel of format {} gets these bytes by value, but a reference on the host gets a \
                 pointer to a copy of them; let it take `const T *` and add bytes = \"pointer\" to [reference]",
                    arg.place, arg.name, self.spec.kernel.format
                )))
            }
            _ => Ok(()),
        }
    }

    fn run_reference(&self, runtime: &Runtime, code: &Code) -> Result<Vec<(usize, HostArray)>> {
        self.check_bytes()?;
        let _doing = Doing::begin(format!("while the reference of \"{}\" ran", self.spec.name));
        let host = runtime.open("host:0")?;
        let prepared = Prepared::new(&*host, self, code)?;
        let queue = host.open_queue(&QueueOptions::default())?;
        queue.call(&prepared.kernel, &Geometry::single(), &prepared.args(&self.spec))?;
        prepared.outputs(&self.spec)
    }
}

fn initial(tensor: &TensorSpec, arg: &Argument) -> Result<HostArray> {
    if let Init::File(path) = &tensor.init {
        return load(path, tensor, arg);
    }
    let mut array = HostArray::new(tensor.dtype, &tensor.shape)?;
    tensor.init.fill(tensor.dtype, array.bytes_mut());
    Ok(array)
}

fn load(path: &std::path::Path, tensor: &TensorSpec, arg: &Argument) -> Result<HostArray> {
    // The table shows messages without their operations, so that all of it is in the message.
    let about = format!("{}: argument \"{}\": {}", arg.place, arg.name, path.display());
    let array = HostArray::load_npy(path).map_err(|error| {
        Error::new(error.kind(), format!("{about}: {}", error.message())).with_source(error)
    })?;
    match array.dtype() == tensor.dtype && array.shape() == tensor.shape {
        true => Ok(array),
        false => Err(Error::invalid(format!(
            "{about} holds {} {:?}, the argument is {} {:?}",
            array.dtype(),
            array.shape(),
            tensor.dtype,
            tensor.shape
        ))),
    }
}

/// A kernel with its arguments on a device.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) kernel: Kernel,
    pub(crate) tensors: Vec<Option<Tensor>>,
}

impl Prepared {
    /// Loads `code`, places the tensors and fills them.
    pub(crate) fn new(device: &dyn CommonRuntime, job: &Job, code: &Code) -> Result<Self> {
        let inputs = job.inputs.as_ref().map_err(Clone::clone)?;
        let kernel = device.load(&source(code, &job.spec.specialise)?)?.kernel(&code.entry)?;
        let tensors = job.spec.args.iter().zip(inputs).map(|(arg, input)| match &arg.kind {
            ArgumentKind::Tensor(tensor) => {
                place(device, tensor, input.as_ref()).map(Some).map_err(|error| error.in_operation(&arg.name))
            }
            _ => Ok(None),
        });
        Ok(Self { kernel, tensors: tensors.collect::<Result<_>>()? })
    }

    /// How the kernel is launched: where the spec does not say how large a group is, the code may.
    ///
    /// # Errors
    /// `InvalidArgument` where both do, and differ.
    pub(crate) fn geometry(&self, spec: &Spec) -> Result<Geometry> {
        let mut geometry = spec.geometry;
        match self.kernel.info().group_size {
            Some(fixed) if !spec.has_group_size => geometry.group_size = fixed,
            Some(fixed) if fixed != geometry.group_size => {
                return Err(Error::invalid(format!(
                    "group_size in [launch] is {:?}, but the kernel's code fixes it to {fixed:?}; leave it out",
                    geometry.group_size
                )));
            }
            _ => {}
        }
        Ok(geometry)
    }

    /// The arguments of a launch.
    pub(crate) fn args<'a>(&'a self, spec: &'a Spec) -> Vec<Arg<'a>> {
        let args = spec.args.iter().zip(&self.tensors);
        args.filter_map(|(arg, tensor)| match (&arg.kind, tensor) {
            (ArgumentKind::Tensor(spec), Some(tensor)) => {
                // A specification that gives strides is for a kernel that computes with them.
                Some(Arg::tensor(tensor, spec.access).strided())
            }
            (kind, _) => value(kind),
        })
        .collect()
    }

    /// The arguments of an evaluation.
    pub(crate) fn evaluation_args<'a>(&'a self, spec: &'a Spec) -> Vec<EvaluationArg<'a>> {
        let args = spec.args.iter().zip(&self.tensors);
        args.filter_map(|(arg, tensor)| match (&arg.kind, tensor) {
            (ArgumentKind::Tensor(spec), Some(tensor)) => {
                Some(EvaluationArg::tensor(tensor, spec.access, spec.on).strided())
            }
            (kind, _) => value(kind).map(EvaluationArg::from),
        })
        .collect()
    }

    /// Fills what the kernel only writes with something that no expected value would pass for.
    pub(crate) fn poison(&self, job: &Job, expected: &[(usize, HostArray)]) -> Result<()> {
        for (index, array) in expected {
            if let (Some(poison), Some(tensor)) = (job.poison(*index, array), &self.tensors[*index]) {
                tensor.fill(&[poison])?;
            }
        }
        Ok(())
    }

    /// What the written arguments hold, each with its place in the list.
    pub(crate) fn outputs(&self, spec: &Spec) -> Result<Vec<(usize, HostArray)>> {
        let outputs = spec.outputs().filter_map(|(index, _)| Some((index, self.tensors[index].as_ref()?)));
        outputs.map(|(index, tensor)| Ok((index, tensor.to_array()?))).collect()
    }
}

fn value(kind: &ArgumentKind) -> Option<Arg<'_>> {
    match kind {
        ArgumentKind::Tensor(_) => None,
        ArgumentKind::Scalar(dtype, bits) => Some(Arg::scalar_bits(*dtype, *bits)),
        ArgumentKind::Bytes(bytes) => Some(Arg::bytes(bytes)),
        ArgumentKind::Local(bytes) => Some(Arg::local(*bytes)),
    }
}

fn place(device: &dyn CommonRuntime, spec: &TensorSpec, input: Option<&HostArray>) -> Result<Tensor> {
    let placement = match spec.on {
        // All memory of a host is one; `on` says nothing there.
        _ if device.as_host().is_some() => Placement::default(),
        On::Device | On::Host => Placement::default(),
        On::Pinned => Placement::space("pinned"),
        On::Shared => Placement::space("shared"),
    };
    let tensor = match (&spec.strides, spec.offset) {
        (None, 0) => device.allocate(spec.dtype, &spec.shape, &placement)?,
        _ => view(device, spec, &placement)?,
    };
    match input {
        Some(array) => tensor.write_array(array)?,
        None if spec.access == Access::Write => tensor.fill(&POISON[..spec.dtype.bytes()])?,
        None => {}
    }
    Ok(tensor)
}

/// A view of a larger buffer, whose other elements are 0.
fn view(device: &dyn CommonRuntime, spec: &TensorSpec, placement: &Placement) -> Result<Tensor> {
    let elements = spec.base_elements().ok_or_else(|| Error::invalid("the tensor is too large"))?;
    let base = device.allocate(spec.dtype, &[elements], placement)?;
    base.write_array(&HostArray::new(spec.dtype, &[elements])?)?;
    base.view(&spec.shape, &strides(spec)?, spec.offset)
}

fn strides(spec: &TensorSpec) -> Result<Vec<i64>> {
    let mut strides = spec.strides.clone().unwrap_or_else(|| vec![1; spec.shape.len()]);
    if spec.strides.is_none() {
        for axis in (1..spec.shape.len()).rev() {
            strides[axis - 1] = strides[axis] * spec.shape[axis].max(1);
        }
    }
    let too_large = |_| Error::invalid("a stride is too large");
    strides.into_iter().map(|stride| i64::try_from(stride).map_err(too_large)).collect()
}

#[cfg(test)]
mod tests {
    use runtime_core::DType;

    use super::*;

    #[test]
    fn strides_default_to_row_major() {
        let spec = TensorSpec {
            dtype: DType::F32,
            shape: vec![2, 3, 4],
            strides: None,
            offset: 1,
            init: Init::Zeros,
            access: Access::Read,
            on: On::Device,
        };
        assert_eq!(strides(&spec).unwrap(), [12, 4, 1]);
        assert_eq!(strides(&TensorSpec { strides: Some(vec![1, 2, 6]), ..spec }).unwrap(), [1, 2, 6]);
    }
}
