//! What a driver does differently from the specification, as plain data. A vendor's backend supplies its own.

/// How a device is partitioned into sub-devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Partition {
    /// By NUMA node where there are several, else equally, into at most 16.
    #[default]
    Automatic,
    /// Into sub-devices of this many compute units.
    Equally(u32),
    /// Not at all.
    Whole,
}

/// What a driver does differently from the OpenCL specification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quirks {
    /// The driver is not thread-safe: every call holds one lock.
    pub serial: bool,
    /// Shared virtual memory works.
    pub svm: bool,
    /// Unified shared memory works.
    pub usm: bool,
    /// A failure ends everything behind it, so launches are submitted without events.
    pub fails_for_good: bool,
    /// Releasing an object waits for every running kernel: releases are deferred until the device is idle.
    pub releases_wait: bool,
    /// A kernel is compiled at its first launch, by a compiler that is not thread-safe: a first launch returns when the kernel
    /// runs.
    pub compiles_at_launch: bool,
    /// The driver's blocking waits are unreliable, so every wait polls.
    pub polls: bool,
    /// A command that waits for a user event keeps the commands behind it from starting.
    pub holds: bool,
    /// Maximum work-items of a group, where the driver reports more than actually work.
    pub group_items: Option<u32>,
    /// How devices are partitioned into sub-devices.
    pub partition: Partition,
    /// Compiler options for every build.
    pub build_options: String,
}

impl Default for Quirks {
    fn default() -> Self {
        Self {
            serial: false,
            svm: true,
            usm: true,
            fails_for_good: false,
            releases_wait: false,
            compiles_at_launch: false,
            polls: false,
            holds: true,
            group_items: None,
            partition: Partition::default(),
            build_options: String::new(),
        }
    }
}
