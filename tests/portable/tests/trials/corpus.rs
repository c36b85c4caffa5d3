//! Compute shaders of other projects, which `corpus/files.txt` lists: each is accepted as it is, or refused for a known
//! reason with its line, and each accepted one compiles in every language. Their texts are not part of this repository:
//! `corpus/gather.py` copies them out of clones. Without `RUNTIME_TEST_SHADERS`, their folder, the tests are ignored.

use std::path::PathBuf;
use std::sync::Arc;

use libtest_mimic::{Completion, Failed, Trial};
use portable::corpus::shaders;
use portable::module::Module;
use portable::tool::{self, Tool};
use runtime_kernel::{Program, Specialisation};

/// Reasons for which a shader may be refused, as words of the error.
const REFUSALS: &[&str] = &[
    // Templates, preprocessors, and files that need declarations which the program writes.
    "is not WGSL yet",
    "no definition in scope for identifier",
    // Extensions that portable kernels do not have.
    "is a sampler",
    "is a texture that is no tensor",
    "enable extension is not enabled",
    "unknown enable-extension",
    // Texts for an older naga, which WGSL does not allow.
    "@must_use",
    "a barrier must be reached by all invocations",
    "without parentheses",
    "is part of subgroups",
    "a subgroup operation must be reached by all invocations",
    "have one second argument for all invocations of a subgroup",
    "this loop never ends",
];

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    match std::env::var_os("RUNTIME_TEST_SHADERS").map(PathBuf::from) {
        None => trials.push(Trial::ignorable_test("corpus", || {
            Ok(Completion::ignored_with("RUNTIME_TEST_SHADERS is not set; corpus/gather.py makes its folder"))
        })),
        Some(folder) => {
            let tools = tools();
            for shader in shaders(&folder) {
                let tools = tools.clone();
                trials.push(Trial::ignorable_test(format!("corpus::{}", shader.name), move || {
                    let text = shader.text()?;
                    let specialisation = shader.specialisation(&text);
                    check(text, specialisation, &tools, REFUSALS)
                }));
            }
        }
    }
    trials
}

/// The compilers and validators of this machine.
pub(crate) fn tools() -> Arc<Vec<Tool>> {
    Arc::new(tool::all().into_iter().filter_map(|(_, tool)| tool.ok()).chain([Tool::Cc]).collect())
}

/// Lowers a text to the language of each tool, and compiles that. A text that is refused with one of the words in `refusals` counts
/// as ignored.
pub(crate) fn check(
    text: String,
    specialisation: Specialisation,
    tools: &[Tool],
    refusals: &[&str],
) -> Result<Completion, Failed> {
    let program = match Program::parse(&text, "", &specialisation) {
        Ok(program) => program,
        Err(error) => {
            let said = error.to_string();
            let is_known = refusals.iter().any(|words| said.contains(words)) && names_line(&said);
            return match is_known {
                true => Ok(Completion::ignored_with(said.lines().next().unwrap_or_default().to_owned())),
                false => Err(Failed::from(said)),
            };
        }
    };
    let needs = program.features().iter().map(|feature| feature.to_string()).collect();
    let module = Module { name: String::new(), text, needs, specialisation };
    for tool in tools {
        let code =
            module.lower(tool.language()).map_err(|error| format!("{:?}: {error}", tool.language()))?;
        tool.check(&code, &module.needs)?;
    }
    Ok(Completion::Completed)
}

/// Whether an error has the line of a text without a path.
fn names_line(said: &str) -> bool {
    let digit = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    said.split("wgsl:").skip(1).any(digit)
}
