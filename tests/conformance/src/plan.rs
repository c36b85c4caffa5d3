//! Turns a selection into a plan: opens the devices, and lists what is missing or fails to load.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use runtime_core::backend::{LoadOutcome, LoadStage};
use runtime_core::{DeviceInfo, Error, ErrorKind, Result, Runtime, Target};

use crate::context::Context;
use crate::kernels::{KernelFolder, KernelProvider};
use crate::selection::Selection;

/// The devices to test, and those that cannot be tested.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) devices: Vec<Arc<Context>>,
    pub(crate) absent: Vec<Absent>,
    kernel_folder: Option<&'static KernelFolder>,
}

/// A backend or device that is not tested.
#[derive(Clone, Debug)]
pub(crate) struct Absent {
    pub(crate) name: String,
    pub(crate) reason: String,
    /// Unavailable on this machine and not required: ignored instead of a failure.
    pub(crate) excused: bool,
}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.reason)
    }
}

/// Finds and opens everything that is selected.
///
/// # Errors
/// The folder of kernels cannot be used.
pub(crate) fn plan(selection: &Selection) -> Result<Plan> {
    let kernel_folder = selection.kernels.as_deref().map(KernelFolder::read).transpose()?;
    let mut plan = Plan { kernel_folder, ..Plan::default() };
    let (paths, names): (Vec<_>, Vec<_>) = selection.backends.iter().partition(|backend| is_path(backend));
    if !paths.is_empty() {
        // SAFETY: the user selected these libraries for the suite.
        #[allow(unsafe_code, reason = "loads the backends under test")]
        let builder = paths.iter().fold(crate::builder(), |builder, path| unsafe { builder.library(path) });
        let runtime = builder.discover(false).build();
        plan.add_failed_libraries(&runtime, |_| true);
        runtime.targets().iter().for_each(|target| plan.add_target(selection, &runtime, target));
    }
    for backend in &selection.linked {
        let runtime = crate::builder().discover(false).register(*backend).build();
        plan.add_failed_libraries(&runtime, |_| true);
        let opened = plan.devices.len();
        runtime.targets().iter().for_each(|target| plan.add_target(selection, &runtime, target));
        let devices = plan
            .devices
            .drain(opened..)
            .map(|context| Arc::into_inner(context).map(|context| Arc::new(context.linked(*backend))));
        let devices: Vec<_> = devices.flatten().collect();
        plan.devices.extend(devices);
    }
    if !names.is_empty() || paths.is_empty() && selection.linked.is_empty() {
        let runtime = crate::builder().build();
        plan.add_discovered(selection, &runtime, &names);
        plan.add_missing_required(selection, &runtime);
    }
    Ok(plan)
}

fn is_path(backend: &str) -> bool {
    backend.contains(std::path::MAIN_SEPARATOR)
        || Path::new(backend).extension().is_some_and(|end| end == "so")
}

fn target_of(name: &str) -> &str {
    name.split_once(':').map_or(name, |(target, _)| target)
}

impl Plan {
    /// The error for a folder of kernels that no device can load; `None` if one can, or without a folder.
    pub(crate) fn unused_kernels(&self) -> Option<String> {
        let kernel_folder = self.kernel_folder?;
        let mut formats: Vec<_> =
            self.devices.iter().flat_map(|context| context.info().format_names()).collect();
        formats.sort_unstable();
        formats.dedup();
        let used = self.devices.iter().any(|context| kernel_folder.supports(context.info()));
        (!used && !self.devices.is_empty()).then(|| kernel_folder.unused(&formats))
    }

    fn add_discovered(&mut self, selection: &Selection, runtime: &Runtime, names: &[&String]) {
        let targets = runtime.targets();
        let wanted = |target: &str| names.is_empty() || names.iter().any(|name| target_of(name) == target);
        self.add_failed_libraries(runtime, wanted);
        if names.is_empty() {
            targets.iter().for_each(|target| self.add_target(selection, runtime, target));
        }
        for name in names {
            match targets.iter().find(|target| target.name == target_of(name)) {
                Some(target) if target.name == **name => self.add_target(selection, runtime, target),
                Some(target) => self.add_device(selection, runtime, target, name),
                // The error lists the targets and the reasons of load failures.
                None => self.add_absent(
                    name,
                    runtime.open(name).map_or_else(|error| error.to_string(), |_| String::new()),
                ),
            }
        }
    }

    /// Adds all devices of a target, without sub-devices.
    fn add_target(&mut self, selection: &Selection, runtime: &Runtime, target: &Target) {
        match &target.devices {
            Err(error) => self.add_unusable(selection, &target.name, &target.name, error),
            Ok(devices) if devices.is_empty() => {
                let error = Error::new(ErrorKind::Unavailable, "no devices on this machine");
                self.add_unusable(selection, &target.name, &target.name, &error);
            }
            Ok(devices) => {
                for device in devices.iter().filter(|device| device.id.sub.is_none()) {
                    self.add_device(selection, runtime, target, &device.id.to_string());
                }
            }
        }
    }

    fn add_device(&mut self, selection: &Selection, runtime: &Runtime, target: &Target, name: &str) {
        match Context::open(runtime, target, name.to_owned(), KernelProvider::new(self.kernel_folder)) {
            Ok(context) => self.devices.push(Arc::new(context)),
            // An unusable device is excused if another device of the target is usable.
            Err(error) => {
                let usable = |device: &DeviceInfo| device.unavailable_reason.is_none();
                let met = target.devices.as_ref().is_ok_and(|devices| devices.iter().any(usable));
                self.add_unusable(selection, if met { "" } else { &target.name }, name, &error);
            }
        }
    }

    fn add_unusable(&mut self, selection: &Selection, target: &str, name: &str, error: &Error) {
        let excused = error.kind() == ErrorKind::Unavailable && !selection.requires(target);
        self.absent.push(Absent { name: name.to_owned(), reason: error.to_string(), excused });
    }

    fn add_absent(&mut self, name: &str, reason: String) {
        self.absent.push(Absent { name: name.to_owned(), reason, excused: false });
    }

    /// Adds libraries that were found and failed to load: always a failure.
    fn add_failed_libraries(&mut self, runtime: &Runtime, wanted: impl Fn(&str) -> bool) {
        for line in runtime.load_report().iter().filter(|line| line.outcome == LoadOutcome::Failed) {
            let requested = line.origin == "given by the program";
            let library = line.stage != LoadStage::Search || line.target.is_some();
            if requested || (library && line.target.as_deref().is_none_or(&wanted)) {
                self.add_absent(
                    &line.target.clone().unwrap_or_else(|| line.path.display().to_string()),
                    line.to_string(),
                );
            }
        }
    }

    /// Adds required targets that were not found at all.
    fn add_missing_required(&mut self, selection: &Selection, runtime: &Runtime) {
        let targets = runtime.targets();
        for name in &selection.required {
            if !targets.iter().any(|target| target.name == *name)
                && !self.absent.iter().any(|absent| absent.name == *name)
            {
                self.add_absent(
                    name,
                    format!(
                        "RUNTIME_REQUIRE names \"{name}\", but no such backend was found; build it first"
                    ),
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the absence of `x:0` is excused with these required targets.
    fn is_excused(required: &[&str], kind: ErrorKind) -> bool {
        let required = required.iter().map(|name| (*name).to_owned()).collect();
        let selection = Selection { required, ..Selection::new(Vec::new()) };
        let mut plan = Plan::default();
        plan.add_unusable(&selection, "x", "x:0", &Error::new(kind, "there is no driver"));
        plan.absent[0].excused
    }

    #[test]
    fn only_what_is_not_required_may_be_missing() {
        assert!(is_excused(&["y"], ErrorKind::Unavailable));
        assert!(!is_excused(&["y", "x"], ErrorKind::Unavailable), "it is required");
        assert!(!is_excused(&["y"], ErrorKind::Driver), "it is present but broken");
    }
}
