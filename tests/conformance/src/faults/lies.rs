//! The wrong values that a backend may return: which there are, and which function can return which.

/// A wrong value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lie {
    /// Success, though nothing was done: what should have been filled in is left as it was.
    Silent,
    /// An error, though everything was done.
    Anyway,
    /// A number where a pointer to an error is due.
    Number,
    /// An error that says nothing: kind 0, no text, no size.
    Blank,
    /// An error whose texts are null, endless, and not UTF-8, of a kind that does not exist.
    Broken,
    /// Numbers and counts that are 0.
    Zero,
    /// Numbers and counts that are 1, where there are as many.
    One,
    /// Numbers and counts that no memory holds.
    Huge,
    /// Numbers and counts with all bits set.
    Max,
    /// Progress of one more than was done.
    Ahead,
    /// Progress of a thousand more than was done.
    FarAhead,
    /// Progress of less than was reported.
    Back,
    /// A failure of the first ticket, which did not fail.
    FailedFirst,
    /// A failure of a ticket that was never submitted.
    FailedLater,
    /// A null pointer.
    Null,
    /// A pointer below all memory.
    Low,
    /// A misaligned pointer.
    Odd,
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
    KindWild,
    /// A whole device that calls itself a part.
    SubZero,
    /// A device that is listed again.
    Twice,
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
    Incapable,
}

/// The lies by their names.
pub(super) const LIES: [(&str, Lie); 34] = [
    ("silent", Lie::Silent),
    ("anyway", Lie::Anyway),
    ("number", Lie::Number),
    ("blank", Lie::Blank),
    ("broken", Lie::Broken),
    ("zero", Lie::Zero),
    ("one", Lie::One),
    ("huge", Lie::Huge),
    ("max", Lie::Max),
    ("ahead", Lie::Ahead),
    ("far_ahead", Lie::FarAhead),
    ("back", Lie::Back),
    ("failed_first", Lie::FailedFirst),
    ("failed_later", Lie::FailedLater),
    ("null", Lie::Null),
    ("low", Lie::Low),
    ("odd", Lie::Odd),
    ("text_null", Lie::TextNull),
    ("text_huge", Lie::TextHuge),
    ("text_binary", Lie::TextBinary),
    ("text_empty", Lie::TextEmpty),
    ("size_zero", Lie::SizeZero),
    ("size_max", Lie::SizeMax),
    ("lists_huge", Lie::ListsHuge),
    ("lists_null", Lie::ListsNull),
    ("kind_wild", Lie::KindWild),
    ("sub_zero", Lie::SubZero),
    ("twice", Lie::Twice),
    ("alignment_zero", Lie::AlignmentZero),
    ("alignment_odd", Lie::AlignmentOdd),
    ("alignment_max", Lie::AlignmentMax),
    ("limits_zero", Lie::LimitsZero),
    ("limits_max", Lie::LimitsMax),
    ("incapable", Lie::Incapable),
];

/// Whatever returns a status.
const ERRORS: &[Lie] = &[Lie::Number, Lie::Blank, Lie::Broken, Lie::Anyway];
const COUNTS: &[Lie] =
    &[Lie::Silent, Lie::Zero, Lie::One, Lie::Huge, Lie::Max, Lie::Null, Lie::Low, Lie::Odd];
const TEXTS: &[Lie] = &[Lie::TextNull, Lie::TextHuge, Lie::TextBinary, Lie::TextEmpty];
const FIGURES: &[Lie] = &[Lie::Silent, Lie::Zero, Lie::One, Lie::Huge, Lie::Max];
const STRUCTURE: &[Lie] = &[Lie::KindWild, Lie::ListsHuge, Lie::ListsNull];
const DEVICE: &[Lie] = &[
    Lie::SizeZero,
    Lie::SizeMax,
    Lie::SubZero,
    Lie::Twice,
    Lie::AlignmentZero,
    Lie::AlignmentOdd,
    Lie::AlignmentMax,
    Lie::LimitsZero,
    Lie::LimitsMax,
    Lie::Incapable,
];
const PROGRESS: &[Lie] = &[Lie::Ahead, Lie::FarAhead, Lie::Back, Lie::FailedFirst, Lie::FailedLater];

/// What a function of the tables can lie about.
///
/// A handle is a lie only when it is null: core looks at no other, and the backend below would follow it. Whatever makes
/// the backend itself hang or lose count of its tickets (a launch that was never made) is a hang of the backend, and none.
pub(super) fn lies_of(entry: &str) -> Vec<Lie> {
    let parts: &[&[Lie]] = match entry {
        "instance.options" => &[ERRORS, COUNTS, TEXTS, &[Lie::KindWild]],
        "instance.devices" => &[ERRORS, COUNTS, TEXTS, STRUCTURE, DEVICE],
        "module.symbols" => &[ERRORS, COUNTS, TEXTS],
        "module.kernel_info" => &[ERRORS, FIGURES, STRUCTURE, &[Lie::Low, Lie::Odd]],
        "queue.poll" => &[ERRORS, FIGURES, PROGRESS],
        "device.memory_usage"
        | "device.peer_access"
        | "device.telemetry"
        | "module.occupancy"
        | "queue.read_timestamp"
        | "embedded.run" => &[ERRORS, FIGURES],
        // An address that could be is believed: what lies there is the backend's to know.
        "memory.allocate" => &[ERRORS, &[Lie::Silent, Lie::Null, Lie::Low, Lie::Odd]],
        // Of imported memory nobody asks an alignment.
        "memory.import" | "memory.adopt" => &[ERRORS, &[Lie::Silent, Lie::Null, Lie::Low]],
        "instance.open"
        | "instance.open_device"
        | "module.load"
        | "module.kernel"
        | "queue.open"
        | "graph.instantiate" => &[ERRORS, &[Lie::Silent, Lie::Null]],
        "queue.claim" => &[&[Lie::Max]],
        // Without an answer below, what is asked for would never end.
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
            .flat_map(|entry| lies_of(entry))
            .collect();
        for (name, lie) in LIES {
            assert!(told.contains(&lie), "{name}");
            assert_eq!(LIES.iter().filter(|(other, _)| *other == name).count(), 1);
        }
    }
}
