//! The context of a case: the device under test, its backend, and ways to open it again.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use runtime_core::backend::LinkedBackend;
use runtime_core::{
    CodeFormat, DeviceInfo, DeviceKind, Error, ErrorKind, Options, Runtime, RuntimeBuilder, Target,
};

use crate::backend_table;
use crate::call_counter;
use crate::case::{Failure, Verdict};
use crate::fixture::Fixture;
use crate::kernels::KernelProvider;

/// The device under test. All cases share one opened device; they run concurrently.
#[derive(Debug)]
pub(crate) struct Context {
    runtime: Runtime,
    target: Target,
    name: String,
    fixture: Arc<Fixture>,
    kernel_provider: KernelProvider,
    linked: Option<LinkedBackend>,
    counting_fixture: OnceLock<Result<Mutex<Fixture>, Error>>,
}

impl Context {
    /// Opens the device; each device has a kernel provider of its own.
    pub(crate) fn open(
        runtime: &Runtime,
        target: &Target,
        name: String,
        kernel_provider: KernelProvider,
    ) -> runtime_core::Result<Self> {
        let fixture = Arc::new(Fixture::new(runtime.open(&name)?, kernel_provider.clone()));
        let (runtime, target) = (runtime.clone(), target.clone());
        Ok(Self {
            runtime,
            target,
            name,
            fixture,
            kernel_provider,
            linked: None,
            counting_fixture: OnceLock::new(),
        })
    }

    /// Skips the case if no queue of the device runs portable kernels.
    pub(crate) fn needs_portable_code(&self) -> Verdict {
        match self.info().accepts(&CodeFormat::WGSL) && self.info().kind != DeviceKind::Embedded {
            true => Ok(()),
            false => Err(Failure::Unsupported("the device runs no portable kernels".to_owned())),
        }
    }

    /// Skips the case if the device does not run portable kernels with groups of so many items.
    pub(crate) fn needs_portable_groups(&self, items: u32) -> Verdict {
        self.needs_portable_code()?;
        match self.info().limits.group_items {
            most if most >= items => Ok(()),
            most => Err(Failure::Unsupported(format!(
                "the device's groups have at most {most} items, and those of these kernels {items}"
            ))),
        }
    }

    /// Marks the backend as linked in.
    pub(crate) fn linked(mut self, backend: LinkedBackend) -> Self {
        self.linked = Some(backend);
        self
    }

    /// A new `Runtime` with the same backend.
    pub(crate) fn another_runtime(&self) -> Result<Runtime, Failure> {
        self.another_runtime_with(|builder| builder)
    }

    /// A new `Runtime` with the same backend, set up by `change`.
    pub(crate) fn another_runtime_with(
        &self,
        change: impl FnOnce(RuntimeBuilder) -> RuntimeBuilder,
    ) -> Result<Runtime, Failure> {
        let builder = change(crate::builder().discover(false));
        match (self.linked, &self.target.path) {
            (Some(backend), _) => Ok(builder.register(backend).build()),
            // SAFETY: the user selected this library for the suite.
            #[allow(unsafe_code, reason = "loads the backend under test")]
            (None, Some(path)) => Ok(unsafe { builder.library(path) }.build()),
            (None, None) => Err(Failure::Unsupported("the backend is linked in".to_owned())),
        }
    }

    /// Whether the backend's table can be loaded again.
    pub(crate) fn has_library(&self) -> bool {
        self.linked.is_some() || self.target.path.is_some()
    }

    /// The device behind a layer that counts the calls of its queues. It is opened once, and lent to one case at a time,
    /// because dropping an object polls all queues of the device.
    pub(crate) fn counting_fixture(&self) -> Result<MutexGuard<'_, Fixture>, Failure> {
        let counted = self.counting_fixture.get_or_init(|| self.open_counting_fixture().map(Mutex::new));
        let counted = counted.as_ref().map_err(|error| Failure::from(error.clone()))?;
        Ok(counted.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Like [`Context::counting_fixture`], but opens the device anew, for exclusive use.
    pub(crate) fn open_counting_fixture(&self) -> Result<Fixture, Error> {
        let linked_in = || Error::new(ErrorKind::Unsupported, "the backend is linked in");
        let load = || backend_table::load(self.target.path.as_ref().ok_or_else(linked_in)?);
        let backend = self.linked.map_or_else(load, Ok)?;
        let runtime = crate::builder().discover(false).register(call_counter::layer_over(backend)?).build();
        Ok(Fixture::new(runtime.open(&self.name)?, self.kernel_provider.clone()))
    }

    /// Where the kernels of this device come from, and how many were launched.
    pub(crate) fn kernel_provider(&self) -> &KernelProvider {
        &self.kernel_provider
    }

    /// The runtime that opened the device.
    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// The backend.
    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    /// The device string.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The shared fixture. A case that breaks its device opens another one.
    pub(crate) fn fixture(&self) -> &Fixture {
        &self.fixture
    }

    /// The description of the device.
    pub(crate) fn info(&self) -> &DeviceInfo {
        self.fixture.device().info()
    }

    /// Opens the device again.
    pub(crate) fn reopen(&self, options: &Options) -> Result<Fixture, Failure> {
        Ok(Fixture::new(self.runtime.open_with(&self.name, options)?, self.kernel_provider.clone()))
    }

    /// Whether the backend has a device option of this name.
    pub(crate) fn has_option(&self, key: &str) -> bool {
        self.target
            .options
            .iter()
            .any(|spec| spec.key == key && spec.scope == runtime_core::backend::OptionScope::Device)
    }
}
