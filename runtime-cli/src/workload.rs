//! A spec with its initial data and expected outputs, prepared once for all devices.

use runtime_core::{
    Access, CodeFormat, Error, ErrorKind, Geometry, HostArray, QueueOptions, Result, Runtime, Tolerance,
};

use crate::bound_kernel::BoundKernel;
use crate::crash_context::CrashContext;
use crate::spec::init::Init;
use crate::spec::{Argument, ArgumentKind, Expected, KernelSource, Spec, TensorSpec};

/// A spec with its initial data, made once for all devices and the reference.
#[derive(Debug)]
pub(crate) struct Workload {
    pub(crate) spec: Spec,
    /// Per argument: the elements of a tensor that is read, row-major; or what is wrong with them.
    pub(crate) inputs: Result<Vec<Option<HostArray>>>,
    /// Per written argument: its place in the list and what it should hold; or why that is not known.
    pub(crate) expected: Result<Vec<(usize, HostArray)>>,
}

impl Workload {
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
        let says_so = self.spec.reference.as_ref().is_some_and(|reference| reference.bytes_by_pointer);
        let bytes = self.spec.args.iter().find(|arg| matches!(arg.kind, ArgumentKind::Bytes(_)));
        match bytes {
            Some(arg) if !says_so && !OF_THE_HOST.contains(&self.spec.kernel.format) => {
                Err(Error::invalid(format!(
                    "{}: argument \"{}\": a kernel of format {} gets these bytes by value, but a reference on the host gets a \
                 pointer to a copy of them; let it take `const T *` and add bytes = \"pointer\" to [reference]",
                    arg.location, arg.name, self.spec.kernel.format
                )))
            }
            _ => Ok(()),
        }
    }

    fn run_reference(&self, runtime: &Runtime, code: &KernelSource) -> Result<Vec<(usize, HostArray)>> {
        self.check_bytes()?;
        let _context = CrashContext::enter(format!("while the reference of \"{}\" ran", self.spec.name));
        let host = runtime.open("host:0")?;
        let bound = BoundKernel::new(&*host, self, code)?;
        let queue = host.open_queue(&QueueOptions::default())?;
        queue.call(&bound.kernel, &Geometry::single(), &bound.args(&self.spec))?;
        bound.outputs(&self.spec)
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
    let about = format!("{}: argument \"{}\": {}", arg.location, arg.name, path.display());
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
