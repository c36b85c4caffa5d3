//! The registry: discovers backends, lists their devices and opens them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::backend::LinkedBackend;
use crate::cache::CodeCache;
use crate::code::compile;
use crate::device::common_runtime::CommonRuntime;
use crate::model::code_load::{CodeLoad, LoadHook};
use crate::model::compiled::Compiled;
use crate::model::lowering::Lowering;
use crate::model::options::{OptionScope, OptionSpec, did_you_mean};
use crate::plugin::instance::{CodeServices, Instance};
use crate::plugin::load_report::{LoadOutcome, LoadReport, LoadStage};
use crate::plugin::negotiate::{ResolvedBackend, negotiate};
use crate::plugin::search::{Environment, Found, Request, search};
use crate::plugin::{loader, manifest};
use crate::runtime::device_string::DeviceRef;
use crate::timeline::open_device::OpenDevice;
use crate::timeline::queue_table::QueueTable;
use crate::{DeviceInfo, Error, ErrorKind, ModuleSource, Options, Result, device};

/// The backends of this project: target, crate, and the crate's name in code.
const BACKEND_CRATES: [(&str, &str, &str); 6] = [
    ("cuda", "runtime-gpu", "runtime_gpu"),
    ("embedded", "runtime-embedded", "runtime_embedded"),
    ("host", "runtime-host", "runtime_host"),
    ("mppa", "runtime-mppa", "runtime_mppa"),
    ("opencl", "runtime-opencl", "runtime_opencl"),
    ("vulkan", "runtime-vulkan", "runtime_vulkan"),
];
/// Where backend libraries must be.
const SEARCHED: &str = "`runtime doctor` lists where they are searched for";

/// The registry of backends and their devices. Cheap to clone; a process may have several.
///
/// Creating one loads the backend libraries but calls no driver.
///
/// ```
/// let runtime = runtime_core::Runtime::new();
/// for device in runtime.devices() {
///     println!("{}: {} {}", device.id, device.name, device.unavailable_reason.unwrap_or_default());
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

/// A backend and its devices on this machine.
///
/// ```
/// # use runtime_core::Runtime;
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// for target in runtime.targets() {
///     match target.devices {
///         Ok(devices) => println!("{} {}: {} devices", target.name, target.version, devices.len()),
///         Err(error) => println!("{}: {error}", target.name), // e.g. no driver
///     }
///     let keys: Vec<_> = target.options.iter().map(|option| option.key.as_str()).collect();
///     assert!(keys.contains(&"compiler")); // for `Runtime::open_with`
/// }
/// ```
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct Target {
    /// Name of the target: the first part of a device string.
    pub name: String,
    /// Version of the backend.
    pub version: String,
    /// The library it was loaded from; `None` if it is linked in.
    pub path: Option<PathBuf>,
    /// The options accepted by its devices and modules.
    pub options: Vec<OptionSpec>,
    /// Its devices, including unusable ones; `Unavailable`, with the reason, if there is no driver.
    pub devices: Result<Vec<DeviceInfo>>,
}

impl Runtime {
    /// Discovers the backends of this machine. Never fails: [`Runtime::load_report`] has the outcome for each
    /// library.
    ///
    /// Searches, in this order: the files and directories in `RUNTIME_BACKENDS`, which replaces the rest; the
    /// directories in `RUNTIME_BACKEND_PATH`; `../lib/runtime` relative to the executable's directory; the
    /// executable's directory; `~/.local/lib/runtime`; `/usr/local/lib/runtime`, `/usr/lib/runtime` and the
    /// architecture-specific library directory.
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Configures a `Runtime`: linked-in backends, libraries and directories, with or without discovery.
    pub fn builder() -> RuntimeBuilder {
        RuntimeBuilder {
            registered: Vec::new(),
            libraries: Vec::new(),
            directories: Vec::new(),
            lowerings: Vec::new(),
            cache: CodeCache::from_environment(),
            load_hook: None,
            fusion: std::env::var_os("RUNTIME_FUSION").is_none_or(|value| value != "off"),
            discover: true,
        }
    }

    /// Lists the backends with their devices. Queries the drivers, which may take a while the first time.
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

    /// The options that a backend declares. Queries no driver.
    ///
    /// # Errors
    /// `NotFound` for an unknown backend, with the valid ones.
    pub fn options(&self, target: &str) -> Result<Vec<OptionSpec>> {
        Ok(self.instance(target)?.specs.clone())
    }

    /// Lists the devices of all backends, including unusable ones. A backend without a driver has none;
    /// [`Runtime::targets`] has the reason.
    #[must_use]
    pub fn devices(&self) -> Vec<DeviceInfo> {
        self.inner.instances.iter().flat_map(|instance| instance.devices().unwrap_or_default()).collect()
    }

    /// Opens a device: `target:index`, `target:index.sub`, `target:name`, or `target` for index 0.
    ///
    /// # Errors
    /// `NotFound` for an unknown name, with the valid ones; `Unavailable` for a device or backend that is not
    /// usable on this machine, with the reason; any other error of the backend.
    pub fn open(&self, device: &str) -> Result<Arc<dyn CommonRuntime>> {
        self.open_with(device, &Options::new())
    }

    /// Opens a device with options of its backend, listed by [`Runtime::targets`].
    ///
    /// # Errors
    /// As [`Runtime::open`]; `InvalidArgument` for an unknown or invalid option, and for one that names code.
    pub fn open_with(&self, device: &str, options: &Options) -> Result<Arc<dyn CommonRuntime>> {
        self.open_device(device, options, OptionScope::Device).map_err(|error| error.in_operation("open"))
    }

    /// As [`Runtime::open_with`], also with options that name code which is executed, or where it comes from: those with the scope
    /// [`OptionScope::DeviceCode`](crate::backend::OptionScope::DeviceCode).
    ///
    /// # Safety
    /// What these options name must be code that does not harm the process. Where kernels depend on it, they must do what
    /// [`ModuleSource::native`](crate::ModuleSource::native) demands.
    ///
    /// # Errors
    /// As [`Runtime::open`]; `InvalidArgument` for an unknown or invalid option.
    #[allow(unsafe_code, reason = "the caller is responsible for the code that options name")]
    pub unsafe fn open_with_code(&self, device: &str, options: &Options) -> Result<Arc<dyn CommonRuntime>> {
        self.open_device(device, options, OptionScope::DeviceCode).map_err(|error| error.in_operation("open"))
    }

    /// Describes the device that code for an architecture is compiled for: `target:architecture`, such as `cuda:sm_90`, or
    /// `target` for the backend's default. Needs no device.
    ///
    /// # Errors
    /// `NotFound` for an unknown target or architecture, with the valid ones; `Unsupported` if the backend compiles for
    /// open devices only.
    pub fn architecture(&self, architecture: &str) -> Result<DeviceInfo> {
        let (target, name) = architecture.split_once(':').unwrap_or((architecture, ""));
        let described = self.instance(target)?.architecture(name);
        described.map_err(|error| error.in_operation("architecture").on_device(architecture))
    }

    /// Compiles code, lowered first if it is portable, to native code of an architecture (as for
    /// [`Runtime::architecture`]), without a device.
    ///
    /// # Errors
    /// As [`Runtime::architecture`]; `Unavailable` without the compiler; `CompileFailed`, with the complete log.
    pub fn compile(&self, architecture: &str, source: &ModuleSource) -> Result<Compiled> {
        let (target, name) = architecture.split_once(':').unwrap_or((architecture, ""));
        let compiled = compile::compile_for_architecture(self.instance(target)?, name, source);
        compiled.map_err(|error| error.in_operation("compile").on_device(architecture))
    }

    /// What a backend finds on this machine, for its authors to explain a failure: texts by title, which may name users and
    /// the machine. Calls no driver.
    ///
    /// # Errors
    /// `NotFound` for an unknown target, with the valid ones; `Unsupported` if the backend has no diagnosis of its own.
    pub fn diagnose(&self, target: &str) -> Result<Options> {
        let diagnosis = self.instance(target)?.diagnose();
        diagnosis.map_err(|error| error.in_operation("diagnose").on_device(target))
    }

    /// The environment variables that a process needs from its start to open a device with options: there are drivers that
    /// read them once per process. None if this process can open it as it is. Calls no driver.
    ///
    /// # Errors
    /// `NotFound` for an unknown target, with the valid ones; `InvalidArgument` for an unknown or invalid option; any other
    /// error of the backend.
    pub fn process_variables(&self, device: &str, options: &Options) -> Result<Options> {
        let (target, name) = device.split_once(':').unwrap_or((device, "0"));
        let variables = self.instance(target)?.process_variables(name, options);
        variables.map_err(|error| error.in_operation("process_variables").on_device(device))
    }

    fn open_device(
        &self,
        text: &str,
        options: &Options,
        scope: OptionScope,
    ) -> Result<Arc<dyn CommonRuntime>> {
        let reference = DeviceRef::parse(text)?;
        let instance = self.instance(reference.target)?;
        let mut info = reference.resolve(&instance.devices()?)?;
        let name = info.id.to_string();
        if let Some(reason) = &info.unavailable_reason {
            return Err(Error::new(ErrorKind::Unavailable, reason.clone()).on_device(&name));
        }
        let handle =
            instance.open_device(&info.id, options, scope).map_err(|error| error.on_device(&name))?;
        info.open_options = options.clone();
        Ok(device::open(OpenDevice::new(instance.clone(), self.inner.queues.clone(), info, handle)))
    }

    fn instance(&self, target: &str) -> Result<&Arc<Instance>> {
        let instances = &self.inner.instances;
        if let Some(instance) = instances.iter().find(|instance| instance.name() == target) {
            return Ok(instance);
        }
        let names: Vec<_> = instances.iter().map(|instance| instance.name()).collect();
        let known = match BACKEND_CRATES.iter().find(|(name, ..)| *name == target) {
            Some((_, package, path)) => format!(
                "its backend was not loaded: link in the crate `{package}` (`RuntimeBuilder::register({path}::backend())`) or \
                 install its library; {SEARCHED}"
            ),
            None if names.is_empty() => format!(
                "no backend was loaded: link one in (`RuntimeBuilder::register`) or install the backend libraries; {SEARCHED}"
            ),
            None => did_you_mean(target, &names),
        };
        let error = Error::new(ErrorKind::NotFound, format!("no target \"{target}\"; {known}"));
        let failed = |line: &&LoadReport| {
            line.outcome == LoadOutcome::Failed && line.target.as_deref() == Some(target)
        };
        Err(match self.inner.report.iter().find(failed) {
            Some(line) => error.with_note(line),
            None => error,
        })
    }

    /// The outcome for every library and directory examined, in order.
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

/// Configures and builds a [`Runtime`].
///
/// ```
/// # use runtime_core::Runtime;
/// use runtime_core::cache::CodeCache;
///
/// let runtime = Runtime::builder()
///     .register(runtime_host::backend()) // linked in; no library is needed
///     .with_lowering(runtime_kernel::wgsl()) // portable kernels
///     .code_cache(CodeCache::off()) // compile on every load
///     .discover(false) // ignore installed backends
///     .build();
/// let names: Vec<_> = runtime.targets().into_iter().map(|target| target.name).collect();
/// assert_eq!(names, ["host"]);
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct RuntimeBuilder {
    registered: Vec<LinkedBackend>,
    libraries: Vec<PathBuf>,
    directories: Vec<PathBuf>,
    lowerings: Vec<Arc<dyn Lowering>>,
    cache: CodeCache,
    load_hook: Option<LoadHook>,
    fusion: bool,
    discover: bool,
}

impl RuntimeBuilder {
    /// Adds the library at `path`. It takes precedence over discovered ones.
    ///
    /// # Safety
    /// Loading a library runs its code. This one must be a backend that upholds the contract of
    /// [`abi`](crate::abi), and everyone who can write to its directory must be trusted. (Libraries found by
    /// [`RuntimeBuilder::discover`] are installed on the machine or named by its user, who is responsible for
    /// them.)
    #[allow(unsafe_code, reason = "loads native code")]
    pub unsafe fn library(mut self, path: impl Into<PathBuf>) -> Self {
        self.libraries.push(path.into());
        self
    }

    /// Adds the libraries in a directory. They take precedence over discovered ones.
    ///
    /// # Safety
    /// As for [`RuntimeBuilder::library`], for each of them.
    #[allow(unsafe_code, reason = "loads native code")]
    pub unsafe fn directory(mut self, path: impl Into<PathBuf>) -> Self {
        self.directories.push(path.into());
        self
    }

    /// Adds a linked-in backend: the `backend()` of its crate. It takes precedence over a library of the same
    /// name.
    pub fn register(mut self, backend: LinkedBackend) -> Self {
        self.registered.push(backend);
        self
    }

    /// Adds a lowering for a format of portable code: `runtime_kernel::wgsl()` for WGSL. The first one for a
    /// format wins.
    pub fn with_lowering(mut self, lowering: Arc<dyn Lowering>) -> Self {
        self.lowerings.push(lowering);
        self
    }

    /// Sets the cache of compiled code; by default [`CodeCache::from_environment`].
    pub fn code_cache(mut self, cache: CodeCache) -> Self {
        self.cache = cache;
        self
    }

    /// Calls `hook` after each load of a module, on the thread that loads it: where its code came from, and how long each
    /// stage took.
    pub fn on_load(mut self, hook: impl Fn(&CodeLoad) + Send + Sync + 'static) -> Self {
        self.load_hook = Some(LoadHook(Arc::new(hook)));
        self
    }

    /// Whether launches may be fused ([`Queue::fuser`](crate::Queue::fuser)); by default, unless the environment variable
    /// `RUNTIME_FUSION` is `off`. If not, everything runs unfused, and nothing else changes.
    pub fn fusion(mut self, fusion: bool) -> Self {
        self.fusion = fusion;
        self
    }

    /// Whether to search the standard locations too (default: yes).
    pub fn discover(mut self, discover: bool) -> Self {
        self.discover = discover;
        self
    }

    /// Loads the backends. Failures are reported in [`Runtime::load_report`].
    #[must_use]
    pub fn build(self) -> Runtime {
        let code = CodeServices {
            lowerings: self.lowerings.into(),
            cache: self.cache,
            load_hook: self.load_hook,
            fusion: self.fusion,
        };
        let mut registry = Registry { inner: Inner::default(), code, files: HashMap::new() };
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

/// The result of adding a backend that works: its description, or why it is not needed.
enum Registration {
    Loaded(String),
    Duplicate(String),
}

/// A `Runtime` under construction.
struct Registry {
    inner: Inner,
    code: CodeServices,
    files: HashMap<(u64, u64), PathBuf>,
}

impl Registry {
    fn register(&mut self, backend: LinkedBackend) {
        let mut line = LoadReport::search(Path::new(""), "linked in", LoadOutcome::Failed, "");
        line.stage = LoadStage::Table;
        let registration = negotiate_linked(backend).and_then(|backend| {
            line.target = Some(backend.name.clone());
            manifest::check_name(&backend.name)?;
            match self.existing(&backend.name) {
                Some(existing) => Ok(existing),
                None => self.open(backend, None, &mut line.stage),
            }
        });
        self.record(line, registration);
    }

    fn load(&mut self, path: &Path, origin: &'static str) {
        let mut line = LoadReport::search(path, origin, LoadOutcome::Failed, "");
        let registration = self.try_load(&mut line);
        self.record(line, registration);
    }

    fn try_load(&mut self, line: &mut LoadReport) -> Result<Registration> {
        let file = loader::find(&line.path)?;
        if let Some(first) = self.files.insert(file.identity, file.path.clone()) {
            return Ok(Registration::Duplicate(format!("the same file as {}", first.display())));
        }
        line.stage = LoadStage::Manifest;
        let name = manifest::read(&file.path)?.name;
        line.target = Some(name.clone());
        if let Some(existing) = self.existing(&name) {
            return Ok(existing);
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
        stage: &mut LoadStage,
    ) -> Result<Registration> {
        *stage = LoadStage::Instance;
        let what =
            format!("{} {} (ABI {}.{})", backend.name, backend.version, crate::abi::MAJOR, backend.minor);
        let instance = Instance::open(backend, path, self.code.clone())?;
        self.inner.instances.push(Arc::new(instance));
        Ok(Registration::Loaded(what))
    }

    /// `Duplicate` if a backend of this name is already registered.
    fn existing(&self, name: &str) -> Option<Registration> {
        let existing = self.inner.instances.iter().find(|instance| instance.name() == name)?;
        Some(Registration::Duplicate(match &existing.path {
            Some(path) => {
                format!("target \"{name}\" already comes from {}, which was found first", path.display())
            }
            None => format!("target \"{name}\" is linked in, which wins"),
        }))
    }

    fn record(&mut self, mut line: LoadReport, registration: Result<Registration>) {
        (line.outcome, line.reason) = match registration {
            Ok(Registration::Loaded(what)) => (LoadOutcome::Loaded, what),
            Ok(Registration::Duplicate(why)) => (LoadOutcome::Skipped, why),
            Err(error) => (LoadOutcome::Failed, error.to_string()),
        };
        self.push(line);
    }

    fn push(&mut self, line: LoadReport) {
        tracing::debug!(target: "runtime", "{line}");
        self.inner.report.push(line);
    }
}

#[allow(unsafe_code, reason = "negotiates a table whose contract the caller guarantees")]
fn negotiate_linked(backend: LinkedBackend) -> Result<ResolvedBackend> {
    // SAFETY: a `LinkedBackend` is a static table that upholds the contract of `abi`.
    unsafe { negotiate(backend.table()) }
}
