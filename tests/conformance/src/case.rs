//! What a case is: a name, what it needs of a device, and a plain function.

use std::fmt;

use runtime_core::{Capabilities, DeviceKind, Error};

use crate::context::Context;

/// Why a case did not pass.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The device is wrong.
    Failed(String),
    /// The device does not have what turned out to be needed.
    Unsupported(String),
}

/// What became of a case.
pub(crate) type Verdict = Result<(), Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Failed(format!("{error:?}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Failed(text) | Self::Unsupported(text)) = self;
        f.write_str(text)
    }
}

/// What a case needs of a device.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Need {
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
    /// A device option.
    Option(&'static str),
}

/// A case.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) needs: &'static [Need],
    pub(crate) run: fn(&Context) -> Verdict,
}

/// Makes the table of a topic out of functions, grouped by what they need.
macro_rules! cases {
    ($($needs:expr => $($run:ident),+ ;)+) => {
        /// The cases of this topic.
        pub(crate) const CASES: &[$crate::case::Case] = &[$($(
            $crate::case::Case { name: stringify!($run), needs: &$needs, run: $run },
        )+)+];
    };
}
pub(crate) use cases;

impl Need {
    /// Why the device does not have it; `None` when it does.
    pub(crate) fn missing(&self, context: &Context) -> Option<String> {
        let info = context.info();
        let embedded = info.kind == DeviceKind::Embedded;
        let (there, what) = match *self {
            Self::Queues => (!embedded, "queues".to_owned()),
            Self::Kind(kind) => (info.kind == kind, format!("the kind {kind:?}")),
            Self::Capability(bits) => (
                info.capabilities.has(bits),
                format!("capability {}", Capabilities(bits).names().join(" and ")),
            ),
            Self::Kernel(_) if embedded => (false, "queues".to_owned()),
            Self::Program(_) if !embedded => (false, "the kind Embedded".to_owned()),
            Self::Kernel(name) | Self::Program(name) => return context.lab().lacks_kernel(name),
            Self::HostVisible => (context.lab().mappable().is_some(), "host-visible memory".to_owned()),
            Self::Option(key) => (context.has_option(key), format!("device option \"{key}\"")),
        };
        (!there).then_some(what)
    }
}
