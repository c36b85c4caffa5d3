//! Every kernel, shader and test program of the repository, for unit tests.

use std::path::Path;

use crate::{Program, Specialisation};

const FOLDERS: [&str; 5] = [
    "runtime-kernel/tests/shaders",
    "kernels",
    "tests/bench/kernels",
    "tests/portable/programs",
    "tests/kernel-fuzz/cases",
];

/// Those that need no option, with their file names.
pub(crate) fn programs() -> Vec<(String, Program)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut programs = Vec::new();
    for folder in FOLDERS {
        for entry in root.join(folder).read_dir().unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "wgsl") {
                continue;
            }
            let code = std::fs::read_to_string(&path).unwrap();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            // Files of specification tests hold many programs, each complete and preceded by a line with its name.
            let parts: Vec<_> = match code.contains("//# ") {
                true => code.split("//# ").map(part).collect(),
                false => vec![code],
            };
            let parts = parts.iter().filter(|part| part.contains("@compute"));
            let parsed = parts.map(|part| Program::parse(part, &name, &Specialisation::default()));
            programs.extend(parsed.flatten().map(|program| (name.clone(), program)));
        }
    }
    programs.sort_by(|(a, _), (b, _)| a.cmp(b));
    assert!(programs.len() > 150, "{}", programs.len());
    programs
}

/// A program of such a file, with the directive that it needs.
fn part(text: &str) -> String {
    let enables = if text.contains("//= needs subgroups") { "enable subgroups; " } else { "" };
    format!("{enables}// {text}")
}
