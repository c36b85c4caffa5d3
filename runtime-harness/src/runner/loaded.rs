//! Native code that a runner has loaded, with the tensors of its arguments.

use std::borrow::Cow;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use runtime_core::backend::{SandboxPolicy, TemporaryFolder};
use runtime_core::evaluate::EachCall;
use runtime_core::{
    Access, CodeFormat, CommonRuntime, DeviceKind, Error, ErrorKind, HostArray, LaunchConfig, Options, Result,
};

use super::memory::SharedMemory;
use super::process::Runner;
use super::protocol::{Load, Parameter, Region};
use crate::device::RunnerSetup;
use crate::job::{Due, Job, JobData, Outputs, PackageChoice, kernel_source, packaged_shared_object};
use crate::spec::{ArgumentKind, KernelSource, Spec, TensorSpec};

/// The size of pages, or a multiple of it.
const PAGE: usize = 4096;

/// Whether code does what it likes on the host: all but portable code that is checked.
pub(super) fn is_foreign(code: &KernelSource) -> bool {
    code.format != CodeFormat::WGSL || code.options.flag("unchecked")
}

/// Checks that the code of a kernel, or of a reference, can run in a runner: native code.
///
/// # Errors
/// `Unsupported`, with the reason.
pub(super) fn check_takes(code: &KernelSource) -> Result<()> {
    let native = [CodeFormat::C, CodeFormat::OBJECT, CodeFormat::ARCHIVE, CodeFormat::SHARED_OBJECT];
    match native.contains(&code.format) {
        true => Ok(()),
        false => Err(Error::unsupported("its code is no C, object, archive or shared object")),
    }
}

/// Whose code it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A candidate's, which runs in the sandbox.
    Candidate,
    /// The reference of a spec, whose author is trusted.
    Reference,
}

/// A tensor in the shared memory.
#[derive(Debug)]
pub(super) struct SharedTensor {
    /// The index of its argument.
    pub(super) arg: usize,
    /// Where it begins.
    pub(super) at: usize,
    /// Those of its elements.
    pub(super) bytes: usize,
    /// Those of the memory that it lies in.
    pub(super) span: usize,
    /// Where its elements lie in that, if not one behind the other.
    view: Option<View>,
    pub(super) access: Access,
    /// What it holds before each call, if it is read and written.
    each_call: EachCall,
    /// What it holds before a call that only writes it.
    pub(super) poison: u8,
}

impl SharedTensor {
    /// Writes its elements.
    pub(super) fn write(&self, memory: &SharedMemory, elements: &[u8]) {
        let Some(view) = &self.view else { return memory.write(self.at, elements) };
        let places = (0..).map(|index| view.place(index));
        places
            .zip(elements.chunks_exact(view.element))
            .for_each(|(at, element)| memory.write(self.at + at, element));
    }

    /// Reads its elements, from this byte of them on.
    pub(super) fn read(&self, memory: &SharedMemory, from: usize, into: &mut [u8]) {
        let Some(view) = &self.view else { return memory.read(self.at + from, into) };
        let places = (from / view.element..).map(|index| view.place(index));
        places
            .zip(into.chunks_exact_mut(view.element))
            .for_each(|(at, element)| memory.read(self.at + at, element));
    }

    /// Sets all bytes of its elements.
    fn fill(&self, memory: &SharedMemory, byte: u8) {
        match &self.view {
            None => memory.fill(self.at, self.bytes, byte),
            Some(_) => self.write(memory, &vec![byte; self.bytes]),
        }
    }

    /// The elements that it holds after these were written: some of them may be one in memory.
    pub(super) fn held<'e>(&self, elements: &'e [u8]) -> Cow<'e, [u8]> {
        let Some(view) = &self.view else { return elements.into() };
        let mut span = vec![0; self.span];
        let places = || (0..elements.len() / view.element).map(|index| view.place(index));
        for (at, element) in places().zip(elements.chunks_exact(view.element)) {
            span[at..][..view.element].copy_from_slice(element);
        }
        let mut held = Vec::with_capacity(elements.len());
        places().for_each(|at| held.extend_from_slice(&span[at..][..view.element]));
        held.into()
    }

    /// Whether the memory between its elements is as it was: zeros.
    pub(super) fn has_clean_gaps(&self, memory: &SharedMemory) -> bool {
        let Some(view) = &self.view else { return true };
        let mut span = vec![0; self.span];
        memory.read(self.at, &mut span);
        for index in 0..self.bytes / view.element {
            span[view.place(index)..][..view.element].fill(0);
        }
        span.iter().all(|byte| *byte == 0)
    }
}

/// Elements with strides and an offset.
#[derive(Debug)]
struct View {
    /// Bytes of an element.
    element: usize,
    shape: Vec<usize>,
    strides: Vec<usize>,
    offset: usize,
}

impl View {
    /// That of a tensor; `None` if its elements lie one behind the other from the beginning.
    fn of(tensor: &TensorSpec) -> Option<Self> {
        if tensor.strides.is_none() && tensor.offset == 0 {
            return None;
        }
        let (element, shape, offset) = (tensor.dtype.bytes(), tensor.shape.clone(), tensor.offset);
        Some(Self { element, shape, strides: tensor.strides_or_contiguous(), offset })
    }

    /// The byte at which an element begins, by its row-major index.
    fn place(&self, mut index: usize) -> usize {
        let mut at = self.offset;
        for (extent, stride) in self.shape.iter().zip(&self.strides).rev() {
            at += index % extent * stride;
            index /= extent;
        }
        at * self.element
    }
}

/// All tensors of a candidate, at addresses of their own.
#[derive(Debug)]
pub(super) struct TensorSet {
    pub(super) tensors: Vec<SharedTensor>,
    /// The inputs, and what is expected of a call with them.
    pub(super) data: Arc<JobData>,
}

impl TensorSet {
    /// Writes the inputs.
    pub(super) fn write_inputs(&self, memory: &SharedMemory) {
        for tensor in &self.tensors {
            if let Some(input) = &self.data.inputs[tensor.arg] {
                tensor.write(memory, input.bytes());
            }
        }
    }

    /// Writes poison into what a call only writes.
    pub(super) fn poison(&self, memory: &SharedMemory) {
        for tensor in self.tensors.iter().filter(|tensor| tensor.access == Access::Write) {
            tensor.fill(memory, tensor.poison);
        }
    }
}

/// Bytes between tensors that nobody may write.
#[derive(Debug)]
pub(super) struct Canary {
    pub(super) at: usize,
    pub(super) bytes: usize,
}

/// Code in a runner.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) runner: Runner,
    pub(super) memory: SharedMemory,
    pub(super) sets: Vec<TensorSet>,
    pub(super) canaries: Vec<Canary>,
    /// What was taken from the package, if the code is one.
    pub(super) package: Option<PackageChoice>,
    /// The compiled code.
    _folder: TemporaryFolder,
}

impl Loaded {
    /// Compiles code, which is not loaded here, and starts a runner that loads it: with a set of tensors for each of `data`, in which
    /// inputs and poison are written.
    ///
    /// # Errors
    /// Those of compiling, of starting a runner, and of loading.
    pub(super) fn new(
        (job, code, launch): (&Job, &KernelSource, LaunchConfig),
        device: &dyn CommonRuntime,
        setup: &RunnerSetup,
        data: Vec<Arc<JobData>>,
        role: Role,
    ) -> Result<Self> {
        let folder = TemporaryFolder::new("runtime-runner-").map_err(|error| failed(&error))?;
        let (file, options, package) = shared_object(job, code, device, folder.path())?;
        let mut layout = Layout::new();
        let sets = data.into_iter().map(|data| layout.add(job, data)).collect::<Result<Vec<_>>>()?;
        let (sets, args): (Vec<TensorSet>, Vec<_>) = sets.into_iter().unzip();
        let (memory, shared) =
            SharedMemory::create(layout.end, layout.largest).map_err(|error| failed(&error))?;
        let mut readable = readable(code, &file);
        readable.push(setup.backend.clone());
        let is_trusted = role == Role::Reference;
        let policy = if is_trusted { SandboxPolicy::Off } else { SandboxPolicy::of_process()? };
        let mut runner = std::thread::scope(|scope| {
            // What a set holds at first: new memory takes long to write, and so does starting a process.
            for set in &sets {
                scope.spawn(|| {
                    set.write_inputs(&memory);
                    set.poison(&memory);
                });
            }
            Runner::start(policy, &readable, shared)
        })?;
        runner.load(Load {
            backend: setup.backend.clone(),
            code: file,
            entry: code.entry.clone(),
            options,
            launch: launch.into(),
            sets: args,
            is_trusted,
        })?;
        Ok(Self { runner, memory, sets, canaries: layout.canaries, package, _folder: folder })
    }

    /// Writes initial data into what a call reads and writes, and poison into what it only writes.
    pub(super) fn prepare_outputs(&self, set: usize) {
        self.restore(set, Due::First);
        self.sets[set].poison(&self.memory);
    }

    /// Writes initial data into what a call reads and writes.
    pub(super) fn restore(&self, set: usize, due: Due) {
        let TensorSet { tensors, data } = &self.sets[set];
        for tensor in tensors.iter().filter(|tensor| due.restores(tensor.access, tensor.each_call)) {
            if let Some(initial) = &data.inputs[tensor.arg] {
                tensor.write(&self.memory, initial.bytes());
            }
        }
    }

    /// Other bytes for what a call only writes.
    pub(super) fn change_poison(&mut self, set: usize) {
        for tensor in &mut self.sets[set].tensors {
            tensor.poison ^= 0x5a;
        }
    }

    /// Gives a set other inputs.
    pub(super) fn replace_data(&mut self, index: usize, data: Arc<JobData>) {
        let set = &mut self.sets[index];
        for tensor in &mut set.tensors {
            // If nothing is known of what is expected, the poison of other data is the best.
            tensor.poison = data.poison(tensor.arg).unwrap_or(tensor.poison);
        }
        set.data = data;
        set.write_inputs(&self.memory);
    }

    /// The contents of the written tensors of a set, each with the index of its argument.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(super) fn outputs(&self, spec: &Spec, set: usize) -> Result<Outputs> {
        let written = self.sets[set].tensors.iter().filter(|tensor| tensor.access.writes());
        written.map(|tensor| Ok((tensor.arg, self.content(spec, tensor)?))).collect()
    }

    /// The contents of a tensor.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(super) fn content(&self, spec: &Spec, tensor: &SharedTensor) -> Result<HostArray> {
        match &spec.args[tensor.arg].kind {
            ArgumentKind::Tensor(TensorSpec { dtype, shape, .. }) => {
                let mut content = HostArray::new(*dtype, shape)?;
                tensor.read(&self.memory, 0, content.bytes_mut());
                Ok(content)
            }
            _ => Err(Error::new(ErrorKind::Internal, "a written argument is not a tensor")),
        }
    }
}

fn failed(error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot prepare a runner: {error}"))
}

/// The shared object of some code, in `folder` unless it is one already, and the load options that it needs.
fn shared_object(
    job: &Job,
    code: &KernelSource,
    device: &dyn CommonRuntime,
    folder: &Path,
) -> Result<(PathBuf, Options, Option<PackageChoice>)> {
    if code.format == CodeFormat::SHARED_OBJECT {
        let file = code
            .path
            .canonicalize()
            .map_err(|error| Error::new(ErrorKind::Io, format!("\"{}\": {error}", code.path.display())))?;
        return Ok((file, code.options.clone(), None));
    }
    let (content, options, package) = match code.is_package() {
        true => {
            let (content, options, choice) = packaged_shared_object(device, code, &job.spec.specialise)?;
            (content, options, Some(choice))
        }
        false => {
            let native = device.compile(&kernel_source(job, code, DeviceKind::Host)?)?.native;
            (native.code, native.options, None)
        }
    };
    let file = folder.join("module.so");
    std::fs::write(&file, content).map_err(|error| failed(&error))?;
    for (path, mode) in [(folder, 0o755), (&*file, 0o644)] {
        // For a runner of another user.
        std::fs::set_permissions(path, Permissions::from_mode(mode)).map_err(|error| failed(&error))?;
    }
    Ok((file, options, package))
}

/// The shared object, and what it may need: the libraries that the spec names, and those beside a shared object of the spec.
fn readable(code: &KernelSource, file: &Path) -> Vec<PathBuf> {
    let named = code.options.texts("libraries").map(PathBuf::from).filter(|path| path.is_file());
    let mut files: Vec<PathBuf> = named.collect();
    if let (true, Some(folder)) = (code.format == CodeFormat::SHARED_OBJECT, file.parent()) {
        let is_library = |path: &PathBuf| {
            path.is_file() && path.file_name().is_some_and(|name| name.to_string_lossy().contains(".so"))
        };
        let beside = std::fs::read_dir(folder).into_iter().flatten().flatten();
        files.extend(beside.map(|entry| entry.path()).filter(is_library));
    }
    files.push(file.to_owned());
    files
}

/// Where things are in the shared memory.
struct Layout {
    canaries: Vec<Canary>,
    end: usize,
    /// The bytes of the largest tensor.
    largest: usize,
}

impl Layout {
    const fn new() -> Self {
        Self { canaries: Vec::new(), end: 0, largest: 0 }
    }

    /// Adds a set of tensors, and what the runner is told about it.
    fn add(&mut self, job: &Job, data: Arc<JobData>) -> Result<(TensorSet, Vec<Parameter>)> {
        let (mut tensors, mut args) = (Vec::new(), Vec::new());
        self.add_canary(0);
        for (index, arg) in job.spec.args.iter().enumerate() {
            args.push(match &arg.kind {
                ArgumentKind::Tensor(tensor) => {
                    let (at, bytes, access) = (self.end, bytes_of(tensor)?, tensor.access);
                    let (span, view) = (span_of(tensor)?, View::of(tensor));
                    let poison = data.poison(index).unwrap_or(u8::MAX);
                    let (dtype, shape) = (tensor.dtype, tensor.shape.clone());
                    let strides = view.as_ref().map(|view| view.strides.clone());
                    let (elements, offset) = (span / dtype.bytes(), tensor.offset);
                    let region = Region { at, elements, strides, offset };
                    let each_call = tensor.each_call;
                    tensors.push(SharedTensor {
                        arg: index,
                        at,
                        bytes,
                        span,
                        view,
                        access,
                        each_call,
                        poison,
                    });
                    self.end += span;
                    self.largest = self.largest.max(span);
                    self.add_canary(span.next_multiple_of(PAGE) - span);
                    Parameter::Tensor { dtype, shape, region, reads: access.reads(), writes: access.writes() }
                }
                ArgumentKind::Scalar(dtype, bits) => Parameter::Scalar(*dtype, *bits),
                ArgumentKind::Record(record) => Parameter::Record(record.values().collect()),
                ArgumentKind::Bytes(bytes) => Parameter::Bytes(bytes.clone()),
                ArgumentKind::Local(bytes) => Parameter::Local(*bytes),
            });
        }
        Ok((TensorSet { tensors, data }, args))
    }

    /// Adds a page that nobody may write, and the rest of the page before it.
    fn add_canary(&mut self, rest: usize) {
        let bytes = rest + PAGE;
        self.canaries.push(Canary { at: self.end, bytes });
        self.end += bytes;
    }
}

/// The bytes of the memory that a tensor lies in.
fn span_of(tensor: &TensorSpec) -> Result<usize> {
    let bytes = tensor.base_elements().and_then(|elements| elements.checked_mul(tensor.dtype.bytes()));
    bytes.ok_or_else(|| Error::invalid("the tensor is too large"))
}

fn bytes_of(tensor: &TensorSpec) -> Result<usize> {
    let elements = tensor.shape.iter().try_fold(1_usize, |product, extent| product.checked_mul(*extent));
    let bytes = elements.and_then(|elements| elements.checked_mul(tensor.dtype.bytes()));
    bytes.ok_or_else(|| Error::invalid("the tensor is too large"))
}
