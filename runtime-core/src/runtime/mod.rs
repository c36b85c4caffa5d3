//! The registry: finds backends, lists their devices, opens them.

pub(crate) mod device_string;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::backend::LinkedBackend;
use crate::device;
use crate::device::common_runtime::CommonRuntime;
use crate::plugin::instance::Instance;
use crate::plugin::load_report::{LoadReport, Outcome, Stage};
use crate::plugin::loader;
use crate::plugin::manifest;
use crate::plugin::negotiate::{ResolvedBackend, negotiate};
use crate::plugin::search::{Environment, Found, Request, search};
use crate::runtime::device_string::DeviceRef;
use crate::timeline::open_device::OpenDevice;
use crate::timeline::queue_table::QueueTable;
use crate::{DeviceInfo, Error, ErrorKind, Lowering, OptionSpec, Options, Result, suggest};

/// The registry of backends and their devices. Cheap to clone; several may live in one process.
///
/// Making one loads the backend libraries and touches no driver.
///
/// ```
/// let runtime = runtime_core::Runtime::new();
/// for device in runtime.devices() {
///     println!("{}: {} {}", device.id, device.name, device.unusable.unwrap_or_default());
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Runtime {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    instances: Vec<Arc<Instance>>,
    report: Vec<LoadReport>,
    queues: Arc<QueueTable>,
}

/// A backend and what it finds on this machine.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct Target {
    /// Name of the target: the first part of a device string.
    pub name: String,
    /// Version of the backend.
    pub version: String,
    /// The library it came from; `None` if it is linked in.
    pub path: Option<PathBuf>,
    /// The options that its devices and modules accept.
    pub options: Vec<OptionSpec>,
    /// Its devices, unusable ones included; `Unavailable`, with the reason, where there is no driver.
    pub devices: Result<Vec<DeviceInfo>>,
}

impl Runtime {
    /// Finds the backends of this machine. Never fails: [`Runtime::load_report`] says what became of each library.
    ///
    /// The places, in this order: the files and directories of `RUNTIME_BACKENDS`, which replaces the rest; the
    /// directories of `RUNTIME_BACKEND_PATH`; `../lib/runtime` beside the executable; the executable's directory;
    /// `~/.local/lib/runtime`; `/usr/local/lib/runtime`, `/usr/lib/runtime` and the machine's own library directory.
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Starts from a list of one's own: linked-in backends, libraries, directories, with or without discovery.
    pub fn builder() -> RuntimeBuilder {
        RuntimeBuilder {
            registered: Vec::new(),
            libraries: Vec::new(),
            directories: Vec::new(),
            lowerings: Vec::new(),
            discover: true,
        }
    }

    /// Lists the backends with their devices. Asks the drivers, which may take a while the first time.
    #[must_use]
    pub fn targets(&self) -> Vec<Target> {
        let target = |instance: &Arc<Instance>| Target {
            name: instance.name().to_owned(),
            version: instance.version.clone(),
            path: instance.path.clone(),
            options: instance.specs.clone(),
            devices: instance.devices(),
        };
        self.inner.instances.iter().map(target).collect()
    }

    /// Lists the devices of all backends, unusable ones included. A backend without a driver has none:
    /// [`Runtime::targets`] says why.
    #[must_use]
    pub fn devices(&self) -> Vec<DeviceInfo> {
        self.inner.instances.iter().flat_map(|instance| instance.devices().unwrap_or_default()).collect()
    }

    /// Opens a device: `target:index`, `target:index.sub`, `target:name`, or `target` for index 0.
    ///
    /// # Errors
    /// `NotFound` for a wrong name, with the right ones; `Unavailable` for a device or backend that is not usable on
    /// this machine, with its reason; whatever else the backend says.
    pub fn open(&self, device: &str) -> Result<Arc<dyn CommonRuntime>> {
        self.open_with(device, &Options::new())
    }

    /// Opens a device with options of its backend, which [`Runtime::targets`] lists.
    ///
    /// # Errors
    /// As [`Runtime::open`]; `InvalidArgument` for an unknown or wrong option.
    pub fn open_with(&self, device: &str, options: &Options) -> Result<Arc<dyn CommonRuntime>> {
        self.open_selected(device, options).map_err(|error| error.in_operation("open"))
    }

    fn open_selected(&self, text: &str, options: &Options) -> Result<Arc<dyn CommonRuntime>> {
        let selector = DeviceRef::parse(text)?;
        let instance = self.instance(selector.target)?;
        let info = selector.pick(&instance.devices()?)?;
        let name = info.id.to_string();
        if let Some(reason) = &info.unusable {
            return Err(Error::new(ErrorKind::Unavailable, reason.clone()).on_device(&name));
        }
        let handle = instance.open_device(&info.id, options).map_err(|error| error.on_device(&name))?;
        Ok(device::open(OpenDevice::new(instance.clone(), self.inner.queues.clone(), info, handle)))
    }

    fn instance(&self, target: &str) -> Result<&Arc<Instance>> {
        let instances = &self.inner.instances;
        if let Some(instance) = instances.iter().find(|instance| instance.name() == target) {
            return Ok(instance);
        }
        let names: Vec<_> = instances.iter().map(|instance| instance.name()).collect();
        let known = match names.is_empty() {
            true => "no backend was loaded: `runtime doctor` says where they are looked for".to_owned(),
            false => suggest(target, &names),
        };
        let error = Error::new(ErrorKind::NotFound, format!("no target \"{target}\"; {known}"));
        let failed =
            |line: &&LoadReport| line.outcome == Outcome::Failed && line.target.as_deref() == Some(target);
        Err(match self.inner.report.iter().find(failed) {
            Some(line) => error.with_note(line),
            None => error,
        })
    }

    /// Says what became of every library and directory that was looked at, in order.
    #[must_use]
    pub fn load_report(&self) -> &[LoadReport] {
        &self.inner.report
    }
}

impl Default for Runtime {
    fn default() -> Self {
        Self::new()
    }
}

/// Makes a [`Runtime`] from a list of one's own.
#[must_use]
#[derive(Clone, Debug)]
pub struct RuntimeBuilder {
    registered: Vec<LinkedBackend>,
    libraries: Vec<PathBuf>,
    directories: Vec<PathBuf>,
    lowerings: Vec<Arc<dyn Lowering>>,
    discover: bool,
}

impl RuntimeBuilder {
    /// Adds the library at `path`, before everything that is discovered.
    ///
    /// # Safety
    /// Loading a library runs its code. This one is a backend that keeps the contract of [`abi`](crate::abi), and whoever
    /// may write to its directory is trusted. Libraries that [`RuntimeBuilder::discover`] finds are installed on the
    /// machine, or named by its user, who vouches for them.
    #[allow(unsafe_code, reason = "loads native code")]
    pub unsafe fn library(mut self, path: impl Into<PathBuf>) -> Self {
        self.libraries.push(path.into());
        self
    }

    /// Adds the libraries of a directory, before everything that is discovered.
    ///
    /// # Safety
    /// As [`RuntimeBuilder::library`], for each of them.
    #[allow(unsafe_code, reason = "loads native code")]
    pub unsafe fn directory(mut self, path: impl Into<PathBuf>) -> Self {
        self.directories.push(path.into());
        self
    }

    /// Adds a backend that is linked in: the `backend()` of its crate. It wins over a library of the same name.
    pub fn register(mut self, backend: LinkedBackend) -> Self {
        self.registered.push(backend);
        self
    }

    /// Brings in what lowers a format of portable code: `runtime_kernel::wgsl()` for WGSL. The first one of a format wins.
    pub fn lower_with(mut self, lowering: Arc<dyn Lowering>) -> Self {
        self.lowerings.push(lowering);
        self
    }

    /// Whether to look in the usual places too; the default is yes.
    pub fn discover(mut self, discover: bool) -> Self {
        self.discover = discover;
        self
    }

    /// Loads the backends. What does not load is a line in [`Runtime::load_report`].
    #[must_use]
    pub fn build(self) -> Runtime {
        let mut registry = Registry { lowerings: self.lowerings.into(), ..Registry::default() };
        for &backend in &self.registered {
            registry.register(backend);
        }
        let request =
            Request { libraries: self.libraries, directories: self.directories, discover: self.discover };
        for found in search(&request, &Environment::of_process()) {
            match found {
                Found::Library(path, origin) => registry.load(&path, origin),
                Found::Report(line) => registry.push(line),
            }
        }
        Runtime { inner: Arc::new(registry.inner) }
    }
}

/// What becomes of a backend that works.
enum Verdict {
    Loaded(String),
    Needless(String),
}

/// A `Runtime` in the making.
#[derive(Default)]
struct Registry {
    inner: Inner,
    lowerings: Arc<[Arc<dyn Lowering>]>,
    files: HashMap<(u64, u64), PathBuf>,
}

impl Registry {
    fn register(&mut self, backend: LinkedBackend) {
        let mut line = LoadReport::search(Path::new(""), "linked in", Outcome::Failed, "");
        line.stage = Stage::Table;
        let verdict = negotiated(backend).and_then(|backend| {
            line.target = Some(backend.name.clone());
            manifest::check_name(&backend.name)?;
            match self.rival(&backend.name) {
                Some(rival) => Ok(rival),
                None => self.open(backend, None, &mut line.stage),
            }
        });
        self.finish(line, verdict);
    }

    fn load(&mut self, path: &Path, origin: &'static str) {
        let mut line = LoadReport::search(path, origin, Outcome::Failed, "");
        let verdict = self.try_load(&mut line);
        self.finish(line, verdict);
    }

    fn try_load(&mut self, line: &mut LoadReport) -> Result<Verdict> {
        let file = loader::find(&line.path)?;
        if let Some(first) = self.files.insert(file.identity, file.path.clone()) {
            return Ok(Verdict::Needless(format!("the same file as {}", first.display())));
        }
        line.stage = Stage::Manifest;
        let name = manifest::read(&file.path)?.name;
        line.target = Some(name.clone());
        if let Some(rival) = self.rival(&name) {
            return Ok(rival);
        }
        let _span =
            tracing::debug_span!(target: "runtime::call", "was being loaded", backend = name).entered();
        let backend = loader::load(&file.path, &name, &mut line.stage)?;
        self.open(backend, Some(file.path), &mut line.stage)
    }

    fn open(
        &mut self,
        backend: ResolvedBackend,
        path: Option<PathBuf>,
        stage: &mut Stage,
    ) -> Result<Verdict> {
        *stage = Stage::Instance;
        let what =
            format!("{} {} (ABI {}.{})", backend.name, backend.version, crate::abi::MAJOR, backend.minor);
        let instance = Instance::open(backend, path, self.lowerings.clone())?;
        self.inner.instances.push(Arc::new(instance));
        Ok(Verdict::Loaded(what))
    }

    /// Says that a backend of this name is not needed, if one is there.
    fn rival(&self, name: &str) -> Option<Verdict> {
        let rival = self.inner.instances.iter().find(|instance| instance.name() == name)?;
        Some(Verdict::Needless(match &rival.path {
            Some(path) => {
                format!("target \"{name}\" already comes from {}, which was found first", path.display())
            }
            None => format!("target \"{name}\" is linked in, which wins"),
        }))
    }

    fn finish(&mut self, mut line: LoadReport, verdict: Result<Verdict>) {
        (line.outcome, line.reason) = match verdict {
            Ok(Verdict::Loaded(what)) => (Outcome::Loaded, what),
            Ok(Verdict::Needless(why)) => (Outcome::Skipped, why),
            Err(error) => (Outcome::Failed, error.to_string()),
        };
        self.push(line);
    }

    fn push(&mut self, line: LoadReport) {
        tracing::debug!(target: "runtime", "{line}");
        self.inner.report.push(line);
    }
}

#[allow(unsafe_code, reason = "negotiates a table that somebody vouches for")]
fn negotiated(backend: LinkedBackend) -> Result<ResolvedBackend> {
    // SAFETY: a `LinkedBackend` is a static table that follows the contract of `abi`.
    unsafe { negotiate(backend.table()) }
}
