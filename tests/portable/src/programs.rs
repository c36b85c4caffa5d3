//! All programs of this crate, by topic.

use crate::program::Program;
use crate::{annotated, table};

const TABLES: &[(&str, &str)] = &[
    ("integer", include_str!("../table/integer.txt")),
    ("bits", include_str!("../table/bits.txt")),
    ("float", include_str!("../table/float.txt")),
    ("conversion", include_str!("../table/conversion.txt")),
    ("wide", include_str!("../table/wide.txt")),
    ("half", include_str!("../table/half.txt")),
];

const ANNOTATED: &[(&str, &str)] = &[
    ("control_flow", include_str!("../programs/control_flow.wgsl")),
    ("calls", include_str!("../programs/calls.wgsl")),
    ("memory", include_str!("../programs/memory.wgsl")),
    ("groups", include_str!("../programs/groups.wgsl")),
    ("ranges", include_str!("../programs/ranges.wgsl")),
    ("zeros", include_str!("../programs/zeros.wgsl")),
    ("wide_indices", include_str!("../programs/wide_indices.wgsl")),
    ("schedule", include_str!("../programs/schedule.wgsl")),
    ("sums", include_str!("../programs/sums.wgsl")),
    ("layouts", include_str!("../programs/layouts.wgsl")),
    ("textures", include_str!("../programs/textures.wgsl")),
    ("bindings", include_str!("../programs/bindings.wgsl")),
];

/// The programs of all tables and annotated files.
#[must_use]
pub fn all() -> Vec<(&'static str, Vec<Program>)> {
    let tables = TABLES.iter().map(|(topic, text)| (*topic, table::parse(topic, text)));
    tables.chain(ANNOTATED.iter().map(|(topic, text)| (*topic, annotated::parse(text)))).collect()
}

/// Whether a topic is a table of expressions.
#[must_use]
pub fn is_table(topic: &str) -> bool {
    TABLES.iter().any(|(table, _)| *table == topic)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::module;

    #[test]
    fn the_front_end_accepts_every_module() {
        let wrong = |module: &module::Module| {
            module.parse().err().map(|error| format!("{}: {}", module.name, error.message()))
        };
        let wrong: Vec<_> = module::all().iter().filter_map(wrong).collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn there_are_hundreds_of_checks() {
        let checks: usize =
            all().iter().flat_map(|(_, programs)| programs).map(|program| program.checks.len()).sum();
        assert!(checks >= 400, "{checks}");
    }
}
