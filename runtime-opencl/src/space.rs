//! The memory spaces of a device.

/// A memory space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    /// `cl_mem` buffers.
    Device,
    /// Host memory that the device reads in place: unified shared memory.
    UsmHost,
    /// Likewise: shared virtual memory of a device that uses the host's memory.
    SvmHost,
    /// A permanently mapped buffer: fast to transfer, but kernels get a copy.
    Mapped,
    /// Memory that migrates to the side that accesses it: unified shared memory.
    UsmShared,
    /// Likewise: shared virtual memory.
    Svm,
}

impl Space {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::UsmHost | Self::SvmHost | Self::Mapped => "pinned",
            Self::UsmShared | Self::Svm => "shared",
        }
    }

    pub(crate) fn host_visible(self) -> bool {
        self != Self::Device
    }
}
