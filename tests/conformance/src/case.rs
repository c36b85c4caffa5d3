//! Test cases: a name, the requirements on the device, and a plain function.

use std::fmt;

use runtime_core::device::Capabilities;
use runtime_core::{DeviceKind, Error, abi};

use crate::context::Context;

/// The reason that a case did not pass.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The device returned an unexpected error.
    Error(Error),
    /// Data has the wrong value.
    Differs(String),
    /// Another expectation failed.
    Failed(String),
    /// The device lacks something, as the case found out while running.
    Unsupported(String),
}

/// The result of a case.
pub(crate) type Verdict = Result<(), Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(error) => write!(f, "{error:?}"),
            Self::Differs(text) | Self::Failed(text) | Self::Unsupported(text) => f.write_str(text),
        }
    }
}

/// A requirement of a case.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Requirement {
    /// Memory and queues: a host or accelerator device.
    Queues,
    /// A kind of device.
    Kind(DeviceKind),
    /// All of these `CAP_*` bits.
    Capability(u64),
    /// Queues, and this kernel of the suite in a format of the device.
    Kernel(&'static str),
    /// An embedded device, and this kernel of the suite as a program for it.
    Program(&'static str),
    /// A memory space that is both host-visible and kernel-visible.
    HostVisible,
    /// Import of memory that another library allocated.
    ForeignMemory,
    /// A device option.
    Option(&'static str),
    /// A backend table that can be loaded again, to put a layer over it.
    Library,
    /// No other case at the same time: NVIDIA's driver blocks launches while another thread loads code, and memory usage
    /// is measured for the whole process.
    Alone,
}

/// A case.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) requirements: &'static [Requirement],
    pub(crate) run: fn(&Context) -> Verdict,
}

impl Case {
    /// Whether the case launches kernels of the suite.
    pub(crate) fn launches(&self) -> bool {
        self.requirements.iter().any(|requirement| matches!(requirement, Requirement::Kernel(_)))
    }

    /// Whether the case must run alone.
    pub(crate) fn is_alone(&self) -> bool {
        self.requirements.iter().any(|requirement| matches!(requirement, Requirement::Alone))
    }

    /// The requirements that the device does not meet; empty if the case can run.
    pub(crate) fn missing(&self, context: &Context) -> Vec<MissingRequirement> {
        self.requirements.iter().filter_map(|requirement| requirement.missing(context)).collect()
    }
}

/// A requirement that a device does not meet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MissingRequirement {
    /// The missing ones of the required `CAP_*` bits.
    Capability(u64),
    /// A kernel of the suite in a format of the device.
    Kernel(String),
    /// An option of simulated devices.
    Option(&'static str),
    /// A feature of another kind of device.
    Kind(String),
    /// Host-visible memory.
    HostVisible,
}

impl fmt::Display for MissingRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capability(bits) => write!(f, "capability {}", Capabilities(*bits).names().join(" and ")),
            Self::Kernel(what) | Self::Kind(what) => f.write_str(what),
            Self::Option(key) => write!(f, "device option \"{key}\""),
            Self::HostVisible => f.write_str("host-visible memory"),
        }
    }
}

/// Builds the table of a topic from functions, grouped by their requirements.
macro_rules! cases {
    ($($requirements:expr => $($run:ident),+ ;)+) => {
        /// The cases of this topic.
        pub(crate) const CASES: &[$crate::case::Case] = &[$($(
            $crate::case::Case { name: stringify!($run), requirements: &$requirements, run: $run },
        )+)+];
    };
}
pub(crate) use cases;

impl Requirement {
    /// The part of the requirement that the device does not meet; `None` if it meets it.
    pub(crate) fn missing(&self, context: &Context) -> Option<MissingRequirement> {
        let info = context.info();
        let embedded = info.kind == DeviceKind::Embedded;
        let (there, missing) = match *self {
            Self::Alone => return None,
            Self::Queues => (!embedded, MissingRequirement::Kind("queues".to_owned())),
            Self::Kind(kind) => (info.kind == kind, MissingRequirement::Kind(format!("the kind {kind:?}"))),
            Self::Capability(bits) => {
                (info.capabilities.has(bits), MissingRequirement::Capability(bits & !info.capabilities.0))
            }
            Self::Kernel(_) if embedded => (false, MissingRequirement::Kind("queues".to_owned())),
            Self::Program(_) if !embedded => {
                (false, MissingRequirement::Kind("the kind Embedded".to_owned()))
            }
            Self::Kernel(name) => {
                return context.fixture().missing_kernel(name).map(MissingRequirement::Kernel);
            }
            Self::Program(name) => {
                return context.fixture().missing_program(name).map(MissingRequirement::Kernel);
            }
            Self::Library => (
                context.has_library(),
                MissingRequirement::Kind("a library: the backend is linked in".to_owned()),
            ),
            Self::ForeignMemory => {
                let host = info.kind == DeviceKind::Host;
                let bits = if host { abi::CAP_IMPORT_HOST } else { abi::CAP_IMPORT_DEVICE_MEMORY };
                (info.capabilities.has(bits), MissingRequirement::Capability(bits))
            }
            Self::HostVisible => {
                (context.fixture().host_visible_placement().is_some(), MissingRequirement::HostVisible)
            }
            Self::Option(key) => (context.has_option(key), MissingRequirement::Option(key)),
        };
        (!there).then_some(missing)
    }
}
