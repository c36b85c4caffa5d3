//! What a case is given: the device under test.

use std::sync::Arc;

use runtime_core::abi::BackendTable;
use runtime_core::{DeviceInfo, Options, Runtime, Target};

use crate::case::Failure;
use crate::lab::Lab;

/// The device under test. Its opening is shared by all cases, which run beside each other.
#[derive(Debug)]
pub(crate) struct Context {
    runtime: Runtime,
    target: Target,
    name: String,
    lab: Arc<Lab>,
    table: Option<&'static BackendTable>,
}

impl Context {
    /// Opens the device.
    pub(crate) fn open(runtime: &Runtime, target: &Target, name: String) -> runtime_core::Result<Self> {
        let lab = Arc::new(Lab::new(runtime.open(&name)?));
        Ok(Self { runtime: runtime.clone(), target: target.clone(), name, lab, table: None })
    }

    /// Says that the backend is linked in by this table.
    pub(crate) fn linked(mut self, table: &'static BackendTable) -> Self {
        self.table = Some(table);
        self
    }

    /// A `Runtime` of its own with the same backend.
    pub(crate) fn another_runtime(&self) -> Result<Runtime, Failure> {
        let builder = crate::builder().discover(false);
        match (self.table, &self.target.path) {
            (Some(table), _) => Ok(builder.register(table).build()),
            (None, Some(path)) => Ok(builder.library(path).build()),
            (None, None) => Err(Failure::Unsupported("the backend is linked in".to_owned())),
        }
    }

    /// The registry that the device came from.
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

    /// The shared opening. A case that breaks a device opens one of its own.
    pub(crate) fn lab(&self) -> &Lab {
        &self.lab
    }

    /// The description of the device.
    pub(crate) fn info(&self) -> &DeviceInfo {
        self.lab.device().info()
    }

    /// Opens the device once more.
    pub(crate) fn reopen(&self, options: &Options) -> Result<Lab, Failure> {
        Ok(Lab::new(self.runtime.open_with(&self.name, options)?))
    }

    /// Whether the backend has a device option of this name.
    pub(crate) fn has_option(&self, key: &str) -> bool {
        self.target
            .options
            .iter()
            .any(|spec| spec.key == key && spec.scope == runtime_core::OptionScope::Device)
    }
}
