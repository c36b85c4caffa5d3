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
    ("idioms", include_str!("../programs/idioms.wgsl")),
    ("constants", include_str!("../programs/constants.wgsl")),
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

    /// What shaders of other projects do, with programs that do it.
    const IDIOMS: &[(&str, &[&str])] = &[
        (
            "uniform structures",
            &["uniform_struct", "uniform_array", "uniform_matrix", "uniform_of_everything"],
        ),
        ("uniform buffers with the layout of storage buffers", &["standard_layout", "standard_by_value"]),
        (
            "uniform buffers by value",
            &["by_value_struct", "by_value_whole", "by_value_matrix", "by_value_two"],
        ),
        ("gaps in bindings, other groups", &["gaps", "other_groups", "second_entry"]),
        ("f16", &["half_casts", "element_f16"]),
        ("casts between words and halves", &["half_casts_inferred", "half_casts", "half_casts_keep_bits"]),
        ("subgroups", &["subgroup_sums", "uniform_subgroups"]),
        ("overrides without default", &["overrides_by_name", "override_given"]),
        ("textures", &["tex_sampled", "tex_store_rgba8unorm", "tex_layers", "tex_volume", "tex_modify"]),
        ("unused bindings, other stages", &["unused_bindings", "other_stages"]),
        ("zero-filled work-group memory", &["zeroed_counts", "zeroed_index", "zeroed_padding"]),
        (
            "uniform barriers",
            &["barrier_in_uniform_if", "barrier_in_switch", "barrier_by_the_launch", "uniform_flag"],
        ),
        ("a structure with only a run-time array", &["a_run_time_array_alone"]),
        ("atomics beside lists, sums of floats", &["list_of_work", "float_sum", "atomic_structs"]),
        ("loops over the whole launch", &["grid_stride"]),
        ("names of other languages", &["reserved_names", "names_of_macros"]),
        ("pointers to tensors and to work-group memory", &["pointers_to_tensors", "pointers_to_atomics"]),
        ("pointers", &["function_pointers", "private_pointers", "pointer_to_parts"]),
    ];

    #[test]
    fn each_idiom_has_its_programs() {
        let all = all();
        let entries: Vec<_> =
            all.iter().flat_map(|(_, programs)| programs).map(|program| &program.entry).collect();
        for (idiom, names) in IDIOMS {
            let missing = names.iter().find(|name| !entries.iter().any(|entry| entry == *name));
            assert_eq!(missing, None, "{idiom}");
        }
    }

    #[test]
    fn there_are_hundreds_of_checks() {
        let checks: usize =
            all().iter().flat_map(|(_, programs)| programs).map(|program| program.checks.len()).sum();
        assert!(checks >= 400, "{checks}");
    }
}
