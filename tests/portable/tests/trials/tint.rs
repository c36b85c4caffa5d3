//! The test shaders of Tint, the WGSL compiler of Chromium: each compute shader without textures and without experimental
//! extensions is accepted, and compiles in every language, or is refused for a known reason. They are not part of this repository:
//! `RUNTIME_TEST_TINT` names the folder `test/tint` of a clone of Dawn. Without it the tests are ignored.

use std::path::{Path, PathBuf};

use libtest_mimic::{Completion, Failed, Trial};

use crate::corpus::{check, tools};
use runtime_kernel::Specialisation;

const VARIABLE: &str = "RUNTIME_TEST_TINT";

/// Words of a text that is not for this project: textures, and what no standard describes yet.
const FOREIGN: &[&str] = &[
    "texture",
    "sampler",
    "chromium_",
    "clip_distances",
    "subgroup_size_control",
    "atomic_vec",
    "input_attachment",
    "print(",
    "buffer<",
    ": buffer",
];

/// Reasons for which a shader may be refused, as words of the error: a value that only a program gives, and limits of
/// docs/kernels.md.
const REFUSALS: &[&str] = &[
    "has no default; give it a value",
    "the var<immediate> must be a struct of scalars",
    "is not supported in immediates",
    "is a pointer to `immediate`",
    "bytes of stack for work-group memory and variables",
    "type is too large",
];

/// Shaders that fail, each with the reason. One that passes does not belong here.
const FAILURES: &[(&str, &str)] = &[
    (
        "benchmark/uniformity-analysis-pointer-parameters.wgsl",
        "a function of 255 pointers to variables is not analysed, so that its results vary",
    ),
    ("bug/chromium/1367602_storage_space.wgsl", "a value of 4 MB, more than the stack of a work-item has"),
    ("bug/chromium/1449538.wgsl", "a value of more than 2 GB, whose error has no line"),
    (
        "bug/chromium/339704114.wgsl",
        "an argument that its parameter cannot hold, beside `false &&`, is an error here",
    ),
    ("bug/tint/1697.wgsl", "naga 30 has no element of a constant by an index that is an override"),
    ("extensions/immediates/f16_scalar.wgsl", "immediates are structures (docs/kernels.md)"),
    ("extensions/immediates/f16_vec3.wgsl", "immediates are structures (docs/kernels.md)"),
    ("statements/assign/swizzle_assign.wgsl", "naga 30 lacks the language extension swizzle_assignment"),
    (
        "types/functions/shader_io/compute_subgroup_builtins_struct.wgsl",
        "built-in values of emulated subgroups are parameters, not members (docs/kernels.md)",
    ),
];

pub(crate) fn trials() -> Vec<Trial> {
    let Some(folder) = std::env::var_os(VARIABLE).map(PathBuf::from) else {
        let missing =
            || Ok(Completion::ignored_with("RUNTIME_TEST_TINT is not set to `test/tint` of a clone of Dawn"));
        return vec![Trial::ignorable_test("tint", missing)];
    };
    let (mut files, tools) = (Vec::new(), tools());
    collect(&folder, &mut files);
    files.sort();
    let trial = |file: PathBuf| {
        let text = std::fs::read_to_string(&file).ok()?;
        let is_ours = text.contains("@compute") && !FOREIGN.iter().any(|word| text.contains(word));
        let name = file.strip_prefix(&folder).unwrap_or(&file).display().to_string();
        let tools = tools.clone();
        is_ours.then(|| {
            let failure = FAILURES.iter().find(|(file, _)| *file == name);
            Trial::ignorable_test(format!("tint::{name}"), move || {
                let result = check(text, Specialisation::default(), &tools, REFUSALS);
                match failure {
                    None => result,
                    Some((_, reason)) if result.is_err() => Ok(Completion::ignored_with(*reason)),
                    Some(_) => Err(Failed::from("it passes: remove it from FAILURES")),
                }
            })
        })
    };
    files.into_iter().filter_map(trial).collect()
}

/// Adds the shaders in a folder, without what Tint makes of them.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "wgsl")
            && !path.to_string_lossy().contains(".expected.")
        {
            files.push(path);
        }
    }
}
