//! From a selection to devices: what is opened, what is not there, and what does not load.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use runtime_core::{DeviceInfo, Error, ErrorKind, Outcome, Runtime, Stage, Target};

use crate::context::Context;
use crate::selection::Selection;

/// What is tested, and what cannot be.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) devices: Vec<Arc<Context>>,
    pub(crate) absent: Vec<Absent>,
}

/// A backend or device that is not tested.
#[derive(Clone, Debug)]
pub(crate) struct Absent {
    pub(crate) name: String,
    pub(crate) reason: String,
    /// Not on this machine, and not required: ignored. Otherwise a failure.
    pub(crate) excused: bool,
}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.reason)
    }
}

/// Looks for everything that is selected, and opens it.
pub(crate) fn plan(selection: &Selection) -> Plan {
    let mut plan = Plan::default();
    let (paths, names): (Vec<_>, Vec<_>) = selection.backends.iter().partition(|backend| is_path(backend));
    if !paths.is_empty() {
        let builder = paths.iter().fold(crate::builder(), |builder, path| builder.library(path));
        let runtime = builder.discover(false).build();
        plan.refused(&runtime, |_| true);
        runtime.targets().iter().for_each(|target| plan.target(selection, &runtime, target));
    }
    if !names.is_empty() || paths.is_empty() {
        let runtime = crate::builder().build();
        plan.discovered(selection, &runtime, &names);
        plan.required(selection, &runtime);
    }
    plan
}

fn is_path(backend: &str) -> bool {
    backend.contains(std::path::MAIN_SEPARATOR)
        || Path::new(backend).extension().is_some_and(|end| end == "so")
}

fn target_of(name: &str) -> &str {
    name.split_once(':').map_or(name, |(target, _)| target)
}

impl Plan {
    fn discovered(&mut self, selection: &Selection, runtime: &Runtime, names: &[&String]) {
        let targets = runtime.targets();
        let wanted = |target: &str| names.is_empty() || names.iter().any(|name| target_of(name) == target);
        self.refused(runtime, wanted);
        if names.is_empty() {
            targets.iter().for_each(|target| self.target(selection, runtime, target));
        }
        for name in names {
            match targets.iter().find(|target| target.name == target_of(name)) {
                Some(target) if target.name == **name => self.target(selection, runtime, target),
                Some(target) => self.device(selection, runtime, target, name),
                // The error lists the targets, and says why one did not load.
                None => self.absent(
                    name,
                    runtime.open(name).map_or_else(|error| error.to_string(), |_| String::new()),
                ),
            }
        }
    }

    /// All whole devices of a target.
    fn target(&mut self, selection: &Selection, runtime: &Runtime, target: &Target) {
        match &target.devices {
            Err(error) => self.failed(selection, &target.name, &target.name, error),
            Ok(devices) if devices.is_empty() => {
                let error = Error::new(ErrorKind::Unavailable, "it has no devices on this machine");
                self.failed(selection, &target.name, &target.name, &error);
            }
            Ok(devices) => {
                for device in devices.iter().filter(|device| device.id.sub.is_none()) {
                    self.device(selection, runtime, target, &device.id.to_string());
                }
            }
        }
    }

    fn device(&mut self, selection: &Selection, runtime: &Runtime, target: &Target, name: &str) {
        match Context::open(runtime, target, name.to_owned()) {
            Ok(context) => self.devices.push(Arc::new(context)),
            // One of several devices may be unusable where another one meets what is required.
            Err(error) => {
                let usable = |device: &DeviceInfo| device.unusable.is_none();
                let met = target.devices.as_ref().is_ok_and(|devices| devices.iter().any(usable));
                self.failed(selection, if met { "" } else { &target.name }, name, &error);
            }
        }
    }

    fn failed(&mut self, selection: &Selection, target: &str, name: &str, error: &Error) {
        let excused = error.kind() == ErrorKind::Unavailable && !selection.requires(target);
        self.absent.push(Absent { name: name.to_owned(), reason: error.to_string(), excused });
    }

    fn absent(&mut self, name: &str, reason: String) {
        self.absent.push(Absent { name: name.to_owned(), reason, excused: false });
    }

    /// Libraries that were found and did not load: a failure, whatever the reason.
    fn refused(&mut self, runtime: &Runtime, wanted: impl Fn(&str) -> bool) {
        for line in runtime.load_report().iter().filter(|line| line.outcome == Outcome::Failed) {
            let given = line.origin == "given by the program";
            let library = line.stage != Stage::Search || line.target.is_some();
            if given || (library && line.target.as_deref().is_none_or(&wanted)) {
                self.absent(
                    &line.target.clone().unwrap_or_else(|| line.path.display().to_string()),
                    line.to_string(),
                );
            }
        }
    }

    /// Required targets of which nothing is known at all.
    fn required(&mut self, selection: &Selection, runtime: &Runtime) {
        let targets = runtime.targets();
        for name in &selection.required {
            if !targets.iter().any(|target| target.name == *name)
                && !self.absent.iter().any(|absent| absent.name == *name)
            {
                self.absent(
                    name,
                    format!(
                        "RUNTIME_REQUIRE names \"{name}\", but no such backend was found; build it first"
                    ),
                );
            }
        }
    }
}
