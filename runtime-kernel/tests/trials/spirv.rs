//! `spirv-val` accepts all generated SPIR-V for Vulkan 1.2. Without that tool the cases are reported as ignored, and fail
//! if `RUNTIME_REQUIRE` names `spirv-val`.

use std::io::ErrorKind::NotFound;
use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::{Failed, Trial};
use runtime_core::DType;
use runtime_core::ErrorKind::Unsupported;
use runtime_kernel::{Checks, Program, Specialisation};

const TOOL: &str = "spirv-val";

pub(crate) fn trials() -> Vec<Trial> {
    let missing = is_missing();
    let mut trials = Vec::new();
    for path in shaders() {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let code = std::fs::read_to_string(&path).unwrap_or_default();
        let elements: &[_] = match code.contains("alias T =") {
            true => &[None, Some(DType::F16), Some(DType::F64)],
            false => &[None],
        };
        for &element in elements {
            for checks in [Checks::Bounded, Checks::BoundedOnce, Checks::Unchecked] {
                let of = element.map(|dtype| format!("_{dtype}")).unwrap_or_default();
                let (code, path) = (code.clone(), path.clone());
                let case = move || is_valid(&code, &path, element, checks);
                let case = Trial::test(format!("spirv::{name}{of}_{checks:?}").to_lowercase(), case);
                trials.push(
                    case.with_kind(if missing { "no spirv-val" } else { "" }).with_ignored_flag(missing),
                );
            }
        }
    }
    trials.push(Trial::test("spirv::enough_shaders", || match shaders().len() {
        0..12 => Err("fewer than a dozen shaders were found".into()),
        _ => Ok(()),
    }));
    trials
}

fn is_missing() -> bool {
    let found = Command::new(TOOL).arg("--version").output();
    found.is_err_and(|error| error.kind() == NotFound) && !test_process::required(TOOL)
}

/// The shaders of this test, and the kernels of the repository.
fn shaders() -> Vec<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = [here.join("tests/shaders"), here.join("../kernels")];
    let files = folders.iter().filter_map(|folder| folder.read_dir().ok()).flatten().flatten();
    let mut files: Vec<_> = files.map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "wgsl"));
    files.sort();
    files
}

fn is_valid(code: &str, path: &Path, element: Option<DType>, checks: Checks) -> Result<(), Failed> {
    let specialisation = Specialisation { element, ..Specialisation::default() };
    let program = Program::parse(code, &path.to_string_lossy(), &specialisation)?;
    let words = match program.spirv(checks) {
        Err(error) if element == Some(DType::F64) && error.to_string().contains("of f64 in SPIR-V") => {
            return if error.kind() == Unsupported { Ok(()) } else { Err(error.into()) };
        }
        words => words?,
    };
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>())?;
    let output = Command::new(TOOL).args(["--target-env", "vulkan1.2"]).arg(file.path()).output()?;
    match output.status.success() && output.stdout.is_empty() && output.stderr.is_empty() {
        true => Ok(()),
        false => {
            Err(Failed::from(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()))
        }
    }
}
