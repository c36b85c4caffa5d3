//! Decides which data of the last job the next one reuses: a tuner's candidates often have the same inputs and expected outputs,
//! and computing these may take longer than everything else.

use runtime_core::CodeFormat;

use crate::job::Job;
use crate::spec::{Expected, KernelSource, Spec};

/// The job of `spec`, with the data of an old job of the same files as far as it is the same. The flag, of the old job and of
/// the new one, says whether the expected outputs are known.
#[allow(unsafe_code, reason = "workers run the code that their requests name")]
pub(super) fn carry_over(old: Option<(Job, bool)>, spec: Spec) -> (Job, bool) {
    let Some((old, has_expected)) = old.filter(|(old, _)| arguments(&old.spec) == arguments(&spec)) else {
        // SAFETY: whoever serves requests has vouched for the code that they name.
        return (unsafe { Job::new(spec) }, false);
    };
    let is_kept = has_expected && old.expected.is_ok() && has_same_reference(&old.spec, &spec);
    let job = match is_kept {
        true => Job { spec, ..old },
        false => Job { inputs: old.inputs, ..Job::without_data(spec) },
    };
    (job, is_kept)
}

fn arguments(spec: &Spec) -> String {
    let args: Vec<_> = spec.args.iter().map(|arg| (&arg.name, &arg.kind)).collect();
    format!("{args:?}")
}

/// Whether two specs of one file, with the same arguments, expect the same outputs.
fn has_same_reference(old: &Spec, new: &Spec) -> bool {
    if old.specialise.element != new.specialise.element {
        return false;
    }
    let (old, new) = (&old.specialise.constants, new);
    let changed = new.specialise.constants.iter().filter(|constant| !old.contains(constant));
    let changed: Vec<&str> = changed.map(|(name, _)| name.as_str()).collect();
    match new.reference.as_ref().map(|reference| &reference.expected) {
        Some(Expected::Kernel(code)) => changed.is_empty() || is_independent(code, &changed),
        Some(Expected::Files(_)) | None => true,
    }
}

/// Whether C code cannot depend on macros of these names: it does not contain them, and includes only headers of the system.
fn is_independent(code: &KernelSource, names: &[&str]) -> bool {
    code.format == CodeFormat::C
        && code.options.is_empty()
        && code.text().is_ok_and(|text| lacks(&text, names))
}

fn lacks(text: &str, names: &[&str]) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let has_name = text.split(|c: char| !is_part(c)).any(|word| names.contains(&word));
    let mut includes = text.split("include").skip(1);
    let has_own_header = includes.any(|rest| !rest.trim_start().starts_with('<'));
    // `a##b` makes names, and so does a line that goes on.
    let makes_names =
        text.contains("##") || text.contains("%:%:") || text.contains("\\\n") || text.contains("\\\r");
    !has_name && !has_own_header && !makes_names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_depends_on_the_names_in_it() {
        for (text, is_lacking) in [
            ("#include <math.h>\nfloat f(float x) { return TILES * x; }", true),
            ("int f(void) { return TILE; }", false),
            ("#include \"tile.h\"\nint x;", false),
            ("#include HEADER\nint x;", false),
            ("int x = TI##LE;", false),
            ("int x = TI\\\nLE;", false),
        ] {
            assert_eq!(lacks(text, &["TILE"]), is_lacking, "{text}");
        }
    }

    #[test]
    fn data_is_kept_as_far_as_it_is_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let text = "version = 1\n[kernel]\npath = \"k.c\"\nentry = \"k\"\n[[arg]]\nname = \"y\"\ndtype = \"element\"\n\
                    shape = [\"n\"]\nuse = \"write\"\n[[arg]]\nname = \"n\"\nscalar = \"i64\"\nvalue = 4\n[specialise]\n\
                    element = \"f32\"\nconstants = { A = 1, B = 1 }\n[reference]\npath = \"k.c\"\nentry = \"k\"\n";
        std::fs::write(folder.path().join("k.c"), "int x = A;").unwrap();
        std::fs::write(folder.path().join("k.toml"), text).unwrap();
        let keeps = |name: &str| {
            let spec = |overrides: &str| {
                let overrides = serde_json::from_str(overrides).unwrap();
                Spec::load(&folder.path().join("k.toml"), &overrides).unwrap()
            };
            let (old, _) = carry_over(None, spec("{}"));
            carry_over(Some((old, true)), spec(name)).1
        };
        assert!(keeps(r#"{"values": {"B": 2}}"#), "the reference does not contain it");
        assert!(!keeps(r#"{"values": {"A": 2}}"#));
        assert!(!keeps(r#"{"values": {"n": 5}}"#));
        assert!(!keeps(r#"{"element": "f64"}"#));
        assert!(keeps(r#"{"launch": {"group_size": [64]}, "options": {"flags": ["-O3"]}}"#));
    }
}
