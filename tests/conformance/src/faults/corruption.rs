//! The wrong values that a backend may return: which there are, and which function can return which.

/// A wrong value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Corruption {
    /// Success, though nothing was done: what should have been filled in is left as it was.
    Skipped,
    /// An error, though everything was done.
    SpuriousError,
    /// A number where a pointer to an error is due.
    BogusStatus,
    /// An error that says nothing: kind 0, no text, no size.
    EmptyError,
    /// An error whose texts are null, endless, and not UTF-8, of a kind that does not exist.
    GarbageError,
    /// Numbers and counts that are 0.
    Zero,
    /// Numbers and counts that are 1, where there are as many.
    One,
    /// Numbers and counts that no memory holds.
    Huge,
    /// Numbers and counts with all bits set.
    Max,
    /// Progress of one more than was done.
    ProgressAhead,
    /// Progress of a thousand more than was done.
    ProgressFarAhead,
    /// Progress of less than was reported.
    ProgressBackwards,
    /// A failure of the first ticket, which did not fail.
    FailedFirst,
    /// A failure of a ticket that was never submitted.
    FailedLater,
    /// A null pointer.
    NullPointer,
    /// A pointer below all memory.
    LowPointer,
    /// A misaligned pointer.
    MisalignedPointer,
    /// Text at a null pointer.
    TextNull,
    /// Text without an end.
    TextHuge,
    /// Text that is not UTF-8.
    TextBinary,
    /// Text that is empty.
    TextEmpty,
    /// A structure whose size was forgotten.
    SizeZero,
    /// A structure of impossible size.
    SizeMax,
    /// Lists inside a structure that no memory holds.
    ListsHuge,
    /// Lists inside a structure at null pointers.
    ListsNull,
    /// A kind that does not exist.
    UnknownKind,
    /// A whole device that calls itself a part.
    SubDeviceZero,
    /// A device that is listed again.
    DuplicateDevice,
    /// An alignment of 0.
    AlignmentZero,
    /// An alignment that is no power of two.
    AlignmentOdd,
    /// The largest alignment.
    AlignmentMax,
    /// Limits of 0.
    LimitsZero,
    /// No limits.
    LimitsMax,
    /// Capabilities that it has not.
    MissingCapabilities,
}

/// The lies by their names.
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

/// Whatever returns a status.
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

/// What a function of the tables can corruption about.
///
/// A handle is a corruption only when it is null: core looks at no other, and the backend below would follow it. Whatever makes
/// the backend itself hang or lose count of its tickets (a launch that was never made) is a hang of the backend, and none.
pub(super) fn corruptions_of(function: &str) -> Vec<Corruption> {
    let parts: &[&[Corruption]] = match function {
        "instance.options" => &[ERRORS, COUNTS, TEXTS, &[Corruption::UnknownKind]],
        "instance.devices" => &[ERRORS, COUNTS, TEXTS, STRUCTURE, DEVICE],
        "module.symbols" => &[ERRORS, COUNTS, TEXTS],
        "module.kernel_info" => {
            &[ERRORS, FIGURES, STRUCTURE, &[Corruption::LowPointer, Corruption::MisalignedPointer]]
        }
        "queue.poll" => &[ERRORS, FIGURES, PROGRESS],
        "device.memory_usage"
        | "device.peer_access"
        | "device.telemetry"
        | "module.occupancy"
        | "queue.read_timestamp"
        | "embedded.run" => &[ERRORS, FIGURES],
        // An address that could be is believed: what lies there is the backend's to know.
        "memory.allocate" => &[
            ERRORS,
            &[
                Corruption::Skipped,
                Corruption::NullPointer,
                Corruption::LowPointer,
                Corruption::MisalignedPointer,
            ],
        ],
        // Of imported memory nobody asks an alignment.
        "memory.import" | "memory.adopt" => {
            &[ERRORS, &[Corruption::Skipped, Corruption::NullPointer, Corruption::LowPointer]]
        }
        "instance.open"
        | "instance.open_device"
        | "module.load"
        | "module.kernel"
        | "queue.open"
        | "graph.instantiate" => &[ERRORS, &[Corruption::Skipped, Corruption::NullPointer]],
        "queue.claim" => &[&[Corruption::Max]],
        // Without an result below, what is asked for would never end.
        _ => &[ERRORS],
    };
    parts.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lie_is_told_by_some_function() {
        let told: Vec<_> = ["instance.devices", "module.kernel_info", "queue.poll"]
            .iter()
            .flat_map(|function| corruptions_of(function))
            .collect();
        for (name, corruption) in CORRUPTIONS {
            assert!(told.contains(&corruption), "{name}");
            assert_eq!(CORRUPTIONS.iter().filter(|(other, _)| *other == name).count(), 1);
        }
    }
}
