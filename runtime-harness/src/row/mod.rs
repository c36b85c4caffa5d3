//! The result of a kernel on a device, as plain data. `docs/output.md` documents every field.

mod counters;
mod counts;
mod floor;
mod fusion;
#[cfg(test)]
mod golden_tests;
mod judged;
mod noise;
mod outcome;
mod placement;
mod rates;
mod resource_usage;
mod roofline;
mod validation;
mod workload;

use std::collections::BTreeMap;

use runtime_core::evaluate::{Measurement, Validation};
use runtime_core::{DeviceInfo, Error, ErrorKind};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::commit::Commit;
use crate::describe;
use crate::job::PackageChoice;
use crate::origin::now;
use crate::settings::{EffectiveSettings, Settings};
use crate::spec::Spec;

pub use counters::{CounterValue, Energy};
pub use counts::{Counts, ImageUsage, StackUsage};
pub use floor::{Bound, Floor, UnknownFloor};
pub use fusion::{ChainRun, FusedKernel, Fusion, TensorCheck};
pub use judged::{CacheState, Check, Finding, Inputs, Judged};
pub use noise::{Defect, DeviceNoise, HostNoise, Noise, OtherProcess};
pub use outcome::{Outcome, Phase, Status, error_text, headline};
pub use placement::{ArgumentPlacement, ArgumentTransfer};
pub use resource_usage::{Occupancy, ResourceUsage};
pub use roofline::{ComputeRoof, Limit, MemoryRoof, Roofline, Unit};
pub use validation::status_of;

/// The result of a kernel on a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Path of the spec, as given.
    pub spec: String,
    /// The kernel.
    pub kernel: KernelIdentity,
    /// The device string.
    pub device: String,
    /// The device, as [`describe::device`] describes it; `None` if it does not exist.
    pub device_info: Option<Value>,
    /// Resource usage of the code; `None` if nothing was timed.
    pub code: Option<ResourceUsage>,
    /// What the device took from the package; `None` if the code is no package, or was not loaded.
    #[serde(default)]
    pub package: Option<PackageChoice>,
    /// Values set by the command line, a sweep or a tuner, by name.
    #[serde(default)]
    pub parameters: BTreeMap<String, Value>,
    /// When it was made (RFC 3339, UTC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// The commit of the folder of its spec, if that is in a repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<Commit>,
    /// A hash of the code that was loaded; `None` if its file cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_sha256: Option<String>,
    /// The settings in effect.
    pub settings: EffectiveSettings,
    /// The status.
    pub status: Status,
    /// Why it is not [`Status::Right`].
    pub reason: Option<String>,
    /// The kind of the error, if there was one.
    pub error_kind: Option<String>,
    /// How the evaluation ended.
    pub outcome: Outcome,
    /// How it was judged; `None` if the process that made the row believes it. Versions before 0.2 say `runner`.
    #[serde(default, alias = "runner", skip_serializing_if = "Option::is_none")]
    pub judged: Option<Judged>,
    /// Why its native code ran in the worker that made the row, and was believed, although candidates are not trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub believed: Option<String>,
    /// The command that repeats it with the same inputs, if it is rejected and a worker has evaluated it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The comparison with the expected outputs; `None` if there was none.
    pub validation: Option<Validation>,
    /// The tensors, and how they reached the kernel; empty if nothing was measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<ArgumentPlacement>,
    /// The times; `None` if nothing was timed.
    #[serde(serialize_with = "rates::perhaps_with_rates")]
    pub measurement: Option<Measurement>,
    /// What an embedded device has counted; `None` for other devices, and if nothing was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<Box<Counts>>,
    /// The element type that the kernel computes with, if its tensors tell.
    #[serde(default)]
    pub dtype: Option<String>,
    /// The bytes of its tensors.
    #[serde(default)]
    pub working_set_bytes: Option<u64>,
    /// Of a chain, which was measured fused: what it is one by one, and what was fused; `None` for a single kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fusion: Option<Box<Fusion>>,
    /// How close it comes to the limits of its device; `None` without a cost or saved peaks.
    #[serde(default)]
    pub roofline: Option<Roofline>,
    /// The least time of a call; `None` without a cost, for chains, and if nothing was timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub floor: Option<Floor>,
    /// Counters per call, in the order in which they were asked for; empty if none was, or nothing was timed.
    #[serde(default)]
    pub counters: Vec<CounterValue>,
    /// Energy per call; `None` if it was not asked for, or nothing was timed.
    #[serde(default)]
    pub energy: Option<Energy>,
    /// Paths of the trace files that the evaluation has left; empty if the device records none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traces: Vec<String>,
    /// What may have disturbed it; `None` if nothing was timed.
    #[serde(default)]
    pub noise: Option<Noise>,
    /// What spoils the result, and what to do about it; empty for a good result.
    #[serde(default)]
    pub advice: Vec<String>,
}

/// The kernel of a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelIdentity {
    /// Name of the row.
    pub name: String,
    /// Path of the code.
    pub path: String,
    /// Name of the entry point.
    pub entry: String,
    /// Format of the code.
    pub format: String,
    /// Name of the kernel file in a package, if the spec names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Options that the code is loaded with.
    pub options: Map<String, Value>,
}

impl KernelIdentity {
    fn of(spec: &Spec) -> Self {
        Self {
            name: spec.name.clone(),
            path: spec.kernel.path.display().to_string(),
            entry: spec.kernel.entry.clone(),
            format: spec.kernel.format.to_string(),
            file: spec.kernel.file.clone(),
            options: describe::options(&spec.kernel.options),
        }
    }
}

impl Row {
    /// A row of `spec` on `device` that was not measured, with its reason.
    #[must_use]
    pub fn unmeasured(spec: &Spec, settings: &Settings, device: &str, outcome: Outcome) -> Self {
        Self {
            spec: spec.path.display().to_string(),
            kernel: KernelIdentity::of(spec),
            device: device.to_owned(),
            device_info: None,
            code: None,
            package: None,
            parameters: spec.overrides.parameters(),
            time: Some(now()),
            commit: None,
            code_sha256: None,
            settings: settings.effective(),
            status: outcome.status(),
            reason: outcome.reason(),
            error_kind: outcome.error_kind().map(|kind| kind.to_string()),
            outcome,
            judged: None,
            believed: None,
            command: None,
            validation: None,
            arguments: Vec::new(),
            measurement: None,
            counts: None,
            dtype: workload::dtype(spec).map(|dtype| dtype.to_string()),
            working_set_bytes: workload::working_set_bytes(spec),
            fusion: None,
            roofline: None,
            floor: None,
            counters: Vec::new(),
            energy: None,
            traces: Vec::new(),
            noise: None,
            advice: Vec::new(),
        }
    }

    /// A row of a kernel that failed with `error` in `phase`.
    #[must_use]
    pub fn failed(spec: &Spec, settings: &Settings, device: &str, error: &Error, phase: Phase) -> Self {
        Self {
            reason: Some(error_text(error)),
            error_kind: Some(error.kind().to_string()),
            ..Self::unmeasured(spec, settings, device, Outcome::of_error(error, phase))
        }
    }

    /// A row of a chain that was measured. Its outputs are right if all are, one by one and fused.
    #[must_use]
    pub fn fused(
        spec: &Spec,
        settings: &Settings,
        device: &str,
        measurement: Measurement,
        fusion: Fusion,
    ) -> Self {
        let row = Self::compared(spec, settings, device, fusion.validation());
        let (reason, fusion) = (fusion.reason(), Some(Box::new(fusion)));
        Self { reason, measurement: Some(measurement), fusion, ..row }
    }

    /// A row of a kernel that was measured.
    #[must_use]
    pub fn measured(
        spec: &Spec,
        settings: &Settings,
        device: &str,
        (code, measurement): (ResourceUsage, Measurement),
    ) -> Self {
        let row = Self::validated(spec, settings, device, &measurement.validation);
        Self { code: Some(code), measurement: Some(measurement), ..row }
    }

    /// A row of a kernel whose calls an embedded device has counted.
    #[must_use]
    pub fn counted(
        spec: &Spec,
        settings: &Settings,
        device: &str,
        validation: &Validation,
        counts: Counts,
    ) -> Self {
        Self { counts: Some(Box::new(counts)), ..Self::validated(spec, settings, device, validation) }
    }

    /// A row of a whole program whose runs were timed.
    #[must_use]
    pub fn timed(
        spec: &Spec,
        settings: &Settings,
        device: &str,
        validation: &Validation,
        measurement: Measurement,
    ) -> Self {
        Self { measurement: Some(measurement), ..Self::validated(spec, settings, device, validation) }
    }

    /// A row of a kernel that ran, with the result of its validation.
    fn validated(spec: &Spec, settings: &Settings, device: &str, ran: &Validation) -> Self {
        let name = |index: usize| spec.args.get(index).map(|arg| arg.name.clone());
        let row = Self::compared(spec, settings, device, validation::named(ran, name));
        Self { reason: validation::reason(ran), ..row }
    }

    /// A row of a kernel that ran; its status follows from the comparison of its outputs.
    fn compared(spec: &Spec, settings: &Settings, device: &str, validation: Option<Validation>) -> Self {
        let outcome = match &validation {
            Some(Validation::Failed(mismatch)) => Outcome::WrongResult(mismatch.clone()),
            _ => Outcome::Ok,
        };
        Self {
            status: validation.as_ref().map_or(Status::Unchecked, status_of),
            validation,
            ..Self::unmeasured(spec, settings, device, outcome)
        }
    }

    /// The same row with an outcome that takes its times away, unless it is wrong or failed anyway.
    pub(crate) fn doubted(self, doubt: Option<Outcome>) -> Self {
        match doubt {
            Some(outcome) if matches!(self.outcome, Outcome::Ok) => {
                Self { status: outcome.status(), reason: outcome.reason(), outcome, ..self }
            }
            _ => self,
        }
    }

    /// The same row of a candidate that was judged.
    pub(crate) fn with_judged(self, judged: Judged) -> Self {
        let reason = match (self.reason, &judged.found) {
            (Some(reason), Some(found)) => Some(format!("{reason}; {found}")),
            (reason, _) => reason,
        };
        Self { reason, judged: Some(judged), ..self }
    }

    /// Whether its calls were timed or counted.
    #[must_use]
    pub const fn is_measured(&self) -> bool {
        self.measurement.is_some() || self.counts.is_some()
    }

    /// Whether this device string names its device. A target without an index means the first device.
    #[must_use]
    pub fn is_on(&self, device: &str) -> bool {
        self.device == device || self.device.strip_suffix(":0") == Some(device)
    }

    /// Whether it is the result of evaluating `spec` with these settings on the device.
    #[must_use]
    pub fn is_of(&self, spec: &Spec, settings: &Settings, device: &str) -> bool {
        self.is_on(device)
            && self.spec == spec.path.display().to_string()
            && self.kernel == KernelIdentity::of(spec)
            && self.settings == settings.effective()
            // Reports from before this field have it in the kernel's name only.
            && (self.parameters.is_empty() || self.parameters == spec.overrides.parameters())
    }

    /// The same row with its arguments on a device, if it was measured.
    pub(crate) fn with_arguments(self, spec: &Spec, device: Option<&DeviceInfo>) -> Self {
        let placed = device.filter(|_| self.is_measured()).map(|info| ArgumentPlacement::of(spec, info));
        Self { arguments: placed.unwrap_or_default(), ..self }
    }

    /// The same row with the paths of `spec`, where another machine has measured it.
    pub(crate) fn identified_as(self, spec: &Spec) -> Self {
        Self { spec: spec.path.display().to_string(), kernel: KernelIdentity::of(spec), ..self }
    }

    /// The same row with a description of its device.
    #[must_use]
    pub fn on(self, device_info: Option<Value>) -> Self {
        Self { device_info, ..self }
    }
}

/// Whether an error says that the device cannot run the kernel, rather than that it failed.
const fn is_skipped(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Unavailable | ErrorKind::Unsupported)
}
