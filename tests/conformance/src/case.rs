//! What a case is: a name, what it needs of a device, and a plain function.

use std::fmt;

use runtime_core::{Capabilities, DeviceKind, Error, abi};

use crate::context::Context;

/// Why a case did not pass.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The device answered with an error that the case did not expect.
    Error(Error),
    /// Data is not what it should be.
    Differs(String),
    /// The device is wrong in another way.
    Failed(String),
    /// The device does not have what turned out to be needed.
    Unsupported(String),
}

/// What became of a case.
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

/// What a case needs of a device.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Requirement {
    /// Memory and queues: a host or an accelerator.
    Queues,
    /// A kind.
    Kind(DeviceKind),
    /// All of these `CAP_*` bits.
    Capability(u64),
    /// Queues, and that the suite has kernels in a format of the device, with this one among them.
    Kernel(&'static str),
    /// An embedded device, and that the suite has this kernel as a program for it.
    Program(&'static str),
    /// A memory space that both the program and kernels can reach.
    HostVisible,
    /// That memory which another library allocated can become a tensor.
    ForeignMemory,
    /// A device option.
    Option(&'static str),
    /// That the backend's table can be had once more, to put a layer over it.
    Library,
    /// That no other case runs meanwhile: a driver may hold up a launch while another thread loads code or frees memory,
    /// which wait for running kernels (NVIDIA's do), and memory in use is counted for the whole process.
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
    /// Whether it launches kernels of the suite on queues.
    pub(crate) fn launches(&self) -> bool {
        self.requirements.iter().any(|requirement| matches!(requirement, Requirement::Kernel(_)))
    }

    /// Whether no other case may run meanwhile.
    pub(crate) fn is_alone(&self) -> bool {
        self.requirements.iter().any(|requirement| matches!(requirement, Requirement::Alone))
    }

    /// What the device lacks for it; empty when it can be run.
    pub(crate) fn missing(&self, context: &Context) -> Vec<MissingRequirement> {
        self.requirements.iter().filter_map(|requirement| requirement.missing(context)).collect()
    }
}

/// What a device lacks for a case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MissingRequirement {
    /// These `CAP_*` bits, of those that the case needs.
    Capability(u64),
    /// A kernel of the suite in a format of the device.
    Kernel(String),
    /// An option that simulated devices have.
    Option(&'static str),
    /// Something that only another kind of device has.
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

/// Makes the table of a topic out of functions, grouped by what they need.
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
    /// What the device lacks of it; `None` when it has it.
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
                let bits = if host { abi::CAP_IMPORT } else { abi::CAP_ADOPT };
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
