//! The corruptions that can be injected, and the functions that each applies to.

/// A way in which a backend misbehaves without reporting an error correctly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Corruption {
    /// Success without executing the call: output values keep their previous contents.
    Skipped,
    /// An error, although the call succeeded.
    SpuriousError,
    /// An invalid pointer as the status.
    BogusStatus,
    /// An error without content: kind 0, no text, size 0.
    EmptyError,
    /// An error of an unknown kind whose strings are null, endless, and not UTF-8.
    GarbageError,
    /// Numbers and counts of 0.
    Zero,
    /// Numbers of 1, and counts of at most 1.
    One,
    /// Numbers and counts too large for any memory.
    Huge,
    /// Numbers and counts with all bits set.
    Max,
    /// Progress one ticket ahead.
    ProgressAhead,
    /// Progress a thousand tickets ahead.
    ProgressFarAhead,
    /// Progress that decreases.
    ProgressBackwards,
    /// A failure of the first ticket, which succeeded.
    FailedFirst,
    /// A failure of a ticket that was never submitted.
    FailedLater,
    /// A null pointer.
    NullPointer,
    /// A pointer below all mapped memory.
    LowPointer,
    /// A misaligned pointer.
    MisalignedPointer,
    /// A string at a null pointer.
    TextNull,
    /// A string of endless length.
    TextHuge,
    /// A string that is not UTF-8.
    TextBinary,
    /// An empty string.
    TextEmpty,
    /// A structure of size 0.
    SizeZero,
    /// A structure of impossible size.
    SizeMax,
    /// Lists in a structure that are too long for any memory.
    ListsHuge,
    /// Lists in a structure at null pointers.
    ListsNull,
    /// An unknown kind.
    UnknownKind,
    /// A device that is described as sub-device 0.
    SubDeviceZero,
    /// A device that is listed twice.
    DuplicateDevice,
    /// An alignment of 0.
    AlignmentZero,
    /// An alignment that is not a power of two.
    AlignmentOdd,
    /// The largest possible alignment.
    AlignmentMax,
    /// Limits of 0.
    LimitsZero,
    /// Limits with all bits set.
    LimitsMax,
    /// Missing capabilities.
    MissingCapabilities,
}

/// All corruptions, by name.
pub(super) const CORRUPTIONS: [(&str, Corruption); 34] = [
    ("skipped", Corruption::Skipped),
    ("spurious_error", Corruption::SpuriousError),
    ("bogus_status", Corruption::BogusStatus),
    ("empty_error", Corruption::EmptyError),
    ("garbage_error", Corruption::GarbageError),
    ("zero", Corruption::Zero),
    ("one", Corruption::One),
    ("huge", Corruption::Huge),
    ("max", Corruption::Max),
    ("progress_ahead", Corruption::ProgressAhead),
    ("progress_far_ahead", Corruption::ProgressFarAhead),
    ("progress_backwards", Corruption::ProgressBackwards),
    ("failed_first", Corruption::FailedFirst),
    ("failed_later", Corruption::FailedLater),
    ("null_pointer", Corruption::NullPointer),
    ("low_pointer", Corruption::LowPointer),
    ("misaligned_pointer", Corruption::MisalignedPointer),
    ("text_null", Corruption::TextNull),
    ("text_huge", Corruption::TextHuge),
    ("text_binary", Corruption::TextBinary),
    ("text_empty", Corruption::TextEmpty),
    ("size_zero", Corruption::SizeZero),
    ("size_max", Corruption::SizeMax),
    ("lists_huge", Corruption::ListsHuge),
    ("lists_null", Corruption::ListsNull),
    ("unknown_kind", Corruption::UnknownKind),
    ("sub_device_zero", Corruption::SubDeviceZero),
    ("duplicate_device", Corruption::DuplicateDevice),
    ("alignment_zero", Corruption::AlignmentZero),
    ("alignment_odd", Corruption::AlignmentOdd),
    ("alignment_max", Corruption::AlignmentMax),
    ("limits_zero", Corruption::LimitsZero),
    ("limits_max", Corruption::LimitsMax),
    ("missing_capabilities", Corruption::MissingCapabilities),
];

/// For every function that returns a status.
const ERRORS: &[Corruption] =
    &[Corruption::BogusStatus, Corruption::EmptyError, Corruption::GarbageError, Corruption::SpuriousError];
const COUNTS: &[Corruption] = &[
    Corruption::Skipped,
    Corruption::Zero,
    Corruption::One,
    Corruption::Huge,
    Corruption::Max,
    Corruption::NullPointer,
    Corruption::LowPointer,
    Corruption::MisalignedPointer,
];
const TEXTS: &[Corruption] =
    &[Corruption::TextNull, Corruption::TextHuge, Corruption::TextBinary, Corruption::TextEmpty];
const FIGURES: &[Corruption] =
    &[Corruption::Skipped, Corruption::Zero, Corruption::One, Corruption::Huge, Corruption::Max];
const STRUCTURE: &[Corruption] = &[Corruption::UnknownKind, Corruption::ListsHuge, Corruption::ListsNull];
const DEVICE: &[Corruption] = &[
    Corruption::SizeZero,
    Corruption::SizeMax,
    Corruption::SubDeviceZero,
    Corruption::DuplicateDevice,
    Corruption::AlignmentZero,
    Corruption::AlignmentOdd,
    Corruption::AlignmentMax,
    Corruption::LimitsZero,
    Corruption::LimitsMax,
    Corruption::MissingCapabilities,
];
const PROGRESS: &[Corruption] = &[
    Corruption::ProgressAhead,
    Corruption::ProgressFarAhead,
    Corruption::ProgressBackwards,
    Corruption::FailedFirst,
    Corruption::FailedLater,
];

/// The corruptions that apply to functions; to all others, only [`ERRORS`] apply.
///
/// A handle is corrupted only to null: core never dereferences handles, and the backend below would. No corruption
/// makes the backend itself hang or lose count of its tickets (such as a launch that is skipped, which would make waits
/// endless), because that would test the backend instead of core.
const BY_FUNCTION: &[(&[&str], &[&[Corruption]])] = &[
    (
        &["instance.options", "instance.diagnose", "instance.process_variables"],
        &[ERRORS, COUNTS, TEXTS, &[Corruption::UnknownKind]],
    ),
    (&["instance.devices"], &[ERRORS, COUNTS, TEXTS, STRUCTURE, DEVICE]),
    (&["module.symbols", "counters.list"], &[ERRORS, COUNTS, TEXTS]),
    (
        &["counters.info"],
        &[
            ERRORS,
            FIGURES,
            &[
                Corruption::ListsHuge,
                Corruption::ListsNull,
                Corruption::LowPointer,
                Corruption::MisalignedPointer,
            ],
        ],
    ),
    (
        &["module.kernel_info"],
        &[ERRORS, FIGURES, STRUCTURE, &[Corruption::LowPointer, Corruption::MisalignedPointer]],
    ),
    (
        &["module.compiled_code"],
        &[
            ERRORS,
            TEXTS,
            &[
                Corruption::Skipped,
                Corruption::ListsHuge,
                Corruption::ListsNull,
                Corruption::LowPointer,
                Corruption::MisalignedPointer,
            ],
        ],
    ),
    // Core reads a description that a pointer of any other value leads to.
    (
        &["instance.architecture"],
        &[ERRORS, &[Corruption::Skipped, Corruption::NullPointer, Corruption::LowPointer]],
    ),
    (&["queue.poll"], &[ERRORS, FIGURES, PROGRESS]),
    (
        &[
            "device.memory_usage",
            "device.peer_access",
            "device.telemetry",
            "device.throttle_reasons",
            "device.processes",
            "module.compiler_identity",
            "module.fits",
            "module.occupancy",
            "queue.read_timestamp",
            "counters.read",
            "embedded.run",
            "embedded.inspect",
        ],
        &[ERRORS, FIGURES],
    ),
    // Any plausible address is accepted: only the backend can validate it.
    (
        &["memory.allocate"],
        &[
            ERRORS,
            &[
                Corruption::Skipped,
                Corruption::NullPointer,
                Corruption::LowPointer,
                Corruption::MisalignedPointer,
            ],
        ],
    ),
    // The alignment of imported memory is not checked.
    (
        &["memory.import_host", "memory.import_device_memory"],
        &[ERRORS, &[Corruption::Skipped, Corruption::NullPointer, Corruption::LowPointer]],
    ),
    (
        &[
            "instance.open",
            "instance.open_device",
            "instance.compile_for",
            "module.compile",
            "module.load",
            "module.kernel",
            "queue.open",
            "graph.instantiate",
            "counters.open",
        ],
        &[ERRORS, &[Corruption::Skipped, Corruption::NullPointer]],
    ),
    (&["queue.try_begin_inline"], &[&[Corruption::Max]]),
];

/// The corruptions that apply to a function.
pub(super) fn corruptions_of(function: &str) -> Vec<Corruption> {
    let listed = BY_FUNCTION.iter().find(|(functions, _)| functions.contains(&function));
    listed.map_or(&[ERRORS][..], |(_, corruptions)| corruptions).concat()
}

#[cfg(test)]
mod tests {
    use super::super::layer::FUNCTIONS;
    use super::*;

    #[test]
    fn the_table_names_functions_of_the_abi() {
        let named = BY_FUNCTION.iter().flat_map(|(functions, _)| *functions);
        for function in named {
            assert!(FUNCTIONS.contains(function), "{function} is not in the tables");
        }
    }

    #[test]
    fn every_corruption_applies_to_some_function() {
        let applicable: Vec<_> = ["instance.devices", "module.kernel_info", "queue.poll"]
            .iter()
            .flat_map(|function| corruptions_of(function))
            .collect();
        for (name, corruption) in CORRUPTIONS {
            assert!(applicable.contains(&corruption), "{name}");
            assert_eq!(CORRUPTIONS.iter().filter(|(other, _)| *other == name).count(), 1);
        }
    }
}
