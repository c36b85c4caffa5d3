//! Compute shaders of other projects, which `corpus/files.txt` lists: each is accepted as it is, or refused for a known
//! reason, and each accepted one compiles in every language. Their texts are not part of this repository:
//! `corpus/gather.py` copies them out of clones. Without `RUNTIME_TEST_SHADERS`, their folder, the tests are ignored.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use portable::module::Module;
use portable::tool::{self, Tool};
use runtime_kernel::{Program, Specialisation};

/// Reasons for which a shader may be refused, as words of the error.
const REFUSALS: &[&str] = &[
    // Templates, preprocessors, and files that are parts of others.
    "is not WGSL yet",
    "no definition in scope for identifier",
    "expected global item",
    "expected type",
    // Extensions that portable kernels do not have.
    "is a sampler",
    "is a texture that is no tensor",
    "enable extension is not enabled",
    "CUBE_ARRAY_TEXTURES",
    // Values that the program sets when it loads the shader.
    "has no default; give it a value",
    // A text for an older naga.
    "@must_use",
];

fn main() -> ExitCode {
    let mut trials = Vec::new();
    match std::env::var_os("RUNTIME_TEST_SHADERS").map(PathBuf::from) {
        None => trials.push(Trial::ignorable_test("corpus", || {
            Ok(Completion::ignored_with("RUNTIME_TEST_SHADERS is not set; corpus/gather.py makes its folder"))
        })),
        Some(folder) => {
            let tools: Vec<_> = tool::all().into_iter().filter_map(|(_, tool)| tool.ok()).collect();
            let tools = Arc::new(tools);
            for line in include_str!("../corpus/files.txt").lines() {
                let mut words = line.splitn(3, ' ');
                let (repository, path) = (words.next().unwrap_or_default(), words.nth(1).unwrap_or_default());
                let file = folder.join(repository.replace('/', "+")).join(path);
                let tools = tools.clone();
                trials.push(Trial::ignorable_test(format!("{repository}/{path}"), move || {
                    check(&file, &tools)
                }));
            }
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn check(file: &Path, tools: &[Tool]) -> Result<Completion, Failed> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let program = match Program::parse(&text, "", &Specialisation::default()) {
        Ok(program) => program,
        Err(error) => {
            let said = error.to_string();
            return match REFUSALS.iter().any(|words| said.contains(words)) {
                true => Ok(Completion::ignored_with(said.lines().next().unwrap_or_default().to_owned())),
                false => Err(Failed::from(said)),
            };
        }
    };
    let needs = program.features().iter().map(|feature| feature.to_string()).collect();
    let module = Module { name: String::new(), text, needs, specialisation: Specialisation::default() };
    for tool in tools {
        let code =
            module.lower(tool.language()).map_err(|error| format!("{:?}: {error}", tool.language()))?;
        tool.check(&code, &module.needs)?;
    }
    Ok(Completion::Completed)
}
