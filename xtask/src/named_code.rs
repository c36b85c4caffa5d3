//! `cargo xtask lint`: a reviewed list of all safe public items that take code, a command or a path.
//!
//! Safe Rust must not be able to run native code that no unsafe call has vouched for. If you add a public function, field or trait
//! that takes code, a command or a path, either make it `unsafe`, or add it to the list under the reason that makes it safe.

use std::collections::BTreeSet;
use std::fs;

use crate::process::{Failure, Outcome};
use crate::tokens::of_product_code;
use crate::workspace::Workspace;

/// Types that are, name or describe code, commands and paths.
const TYPES: [&str; 14] = [
    "Command",
    "Compiled",
    "CompiledCode",
    "KernelSource",
    "LinkedBackend",
    "Lowering",
    "ModuleSource",
    "Options",
    "OsStr",
    "OsString",
    "Path",
    "PathBuf",
    "PortableSource",
    "SharedStore",
];

/// Why each of them is safe. An entry is the file and the name; a file ends with `.rs`, and begins after `runtime-`.
const REVIEWED: &[(&str, &[&str])] = &[
    (
        "Code that an unsafe constructor has vouched for, or portable code, which is checked; compiling it executes nothing.",
        &[
            "core/code/source.rs trait AsSource",
            "core/code/source.rs wgsl_file",
            "core/device/common_runtime.rs compile",
            "core/device/common_runtime.rs fits",
            "core/device/common_runtime.rs load",
            "core/device/embedded.rs flash",
            "core/device/embedded.rs flash_kernel",
            "core/device/embedded.rs kernel_info",
            "core/dispatch/builder.rs source",
            "core/dispatch/mod.rs new",
            "core/model/fusion.rs source",
            "core/model/lowering.rs lower",
            "core/model/lowering.rs signature",
            "core/runtime/registry.rs compile",
            "core/runtime/registry.rs register",
            "core/runtime/registry.rs with_lowering",
            "harness/job/packaged.rs fits",
            "package/choose.rs source",
        ],
    ),
    (
        "Options: one that names code is refused here, and load options of a backend by `code/lowering.rs` unless the source is trusted.",
        &[
            "core/backend/traits/backend.rs open_device",
            "core/runtime/registry.rs open_with",
            "harness/device.rs open",
        ],
    ),
    (
        "Options that are only read, or describe something: whoever uses them is checked.",
        &[
            "core/backend/staging/options.rs parse",
            "core/backend/traits/backend.rs process_variables",
            "core/backend/traits/module.rs options",
            "core/model/compiled.rs options",
            "core/model/device_info.rs open_options",
            "core/model/device_info.rs properties",
            "core/model/fusion.rs options",
            "core/model/lowering.rs options",
            "core/model/portable_source.rs options",
            "core/plugin/convert.rs properties",
            "core/runtime/registry.rs process_variables",
            "harness/describe.rs options",
            "kernel/parse/specialise.rs of_options",
            "package/builder.rs options",
            "package/manifest/mod.rs compiled_with",
            "package/manifest/mod.rs options",
            "package/target.rs options",
        ],
    ),
    (
        "Native code as data: only the unsafe `ModuleSource::compiled` makes a source of it.",
        &["core/model/compiled.rs native"],
    ),
    (
        "Files that are read or written as data, which is checked and not executed.",
        &[
            "build/lib.rs file",
            "build/lib.rs includes",
            "build/lib.rs package",
            "build/lib.rs target_with",
            "core/atomic_file.rs new",
            "core/backend/included_files.rs included_files",
            "core/backend/read_file.rs read_file",
            "core/cache/notes.rs in_folder",
            "core/cache/options.rs folder",
            "core/fuzzing.rs manifest",
            "core/model/code_format.rs from_path",
            "core/platform/program/sandbox/confined_thread.rs on_confined_thread",
            "core/platform/regular_file.rs open_regular_file",
            "core/platform/trust.rs read_trusted",
            "core/platform/trust.rs trusted_file",
            "core/platform/trust.rs trusted_folder",
            "core/tensor/npy.rs load_npy",
            "core/tensor/npy.rs save_npy",
            "core/tensor/safetensors.rs open",
            "core/tensor/safetensors/save.rs save",
            "harness/peak/store.rs in_folder",
            "harness/report/mod.rs read",
            "harness/server/socket.rs bind",
            "harness/text_file.rs read",
            "harness/tune/tuner.rs log",
            "package/builder.rs new",
            "package/builder.rs of_format",
            "package/builder.rs write",
            "package/extract.rs extract",
            "package/package.rs open",
        ],
    ),
    (
        "Paths in descriptions, which nothing opens.",
        &["core/plugin/load_report.rs path", "core/runtime/registry.rs path", "package/builder.rs path"],
    ),
    (
        "A folder that git looks at, which executes nothing that its repository names.",
        &["harness/commit.rs of"],
    ),
    (
        "A library that only an unsafe function opens: the closure, or the constructor that takes the filter.",
        &[
            "core/backend/library.rs find_library",
            "core/backend/library.rs open_library",
            "opencl/device_filter.rs library",
        ],
    ),
    (
        "Another process, which cannot reach the memory of this one, as with `std::process::Command`.",
        &[
            "core/platform/program/group.rs spawn_program",
            "core/platform/program/mod.rs find_program",
            "core/platform/program/mod.rs run_program",
            "core/platform/program/mod.rs start",
            "core/platform/program/sandbox/mod.rs read",
            "core/platform/program/sandbox/mod.rs run",
            "core/platform/program/sandbox/mod.rs spawn",
            "core/platform/program/sandbox/mod.rs write",
            "core/platform/program/sandbox/tools.rs flags",
            "core/platform/program/sandbox/tools.rs read_existing",
            "harness/pool/options.rs arguments",
            "harness/pool/options.rs new",
            "harness/pool/options.rs program",
            "harness/worker/supervisor.rs supervise",
        ],
    ),
    (
        "Specs and candidates are data: what runs them in this process is unsafe, and tuners and pools run them in others.",
        &[
            "harness/candidate.rs options",
            "harness/chain/request.rs specs",
            "harness/spec/mod.rs kernel",
            "harness/spec/mod.rs load",
            "harness/spec/mod.rs load_sweep",
            "harness/spec/mod.rs options",
            "harness/spec/mod.rs path",
            "harness/tune/best_spec.rs best_spec",
            "harness/tune/tuner.rs new",
            "harness/tune/tuner.rs options",
            "harness/tune/tuner.rs spec",
        ],
    ),
    (
        "Traits of backends: without the `unsafe impl Backend` around them, nothing calls them.",
        &[
            "core/backend/buffer.rs trait Buffer",
            "core/backend/staging/mod.rs trait StagedTransfer",
            "core/backend/staging/slots.rs trait StagingSlots",
            "core/backend/traits/counters.rs trait CounterSet",
            "core/backend/traits/device.rs trait Device",
            "core/backend/traits/graph.rs trait Graph",
            "core/backend/traits/module.rs trait Kernel",
            "core/backend/traits/module.rs trait Module",
            "core/backend/traits/queue.rs trait Queue",
            "embedded/gdb/transport.rs trait Transport",
            "mppa/counters/set.rs trait CounterSource",
        ],
    ),
    (
        "Traits that are sealed, or whose methods make arguments that a launch checks.",
        &[
            "core/code/argument_tuples.rs trait Arguments",
            "core/code/argument_tuples.rs trait IntoArg",
            "core/code/scalar.rs trait Scalar",
            "core/device/common_runtime.rs trait CommonRuntime",
            "core/device/common_runtime.rs trait Opened",
            "core/model/dtype.rs trait Element",
            "core/queue/host_task.rs trait HostTaskOutput",
            "core/queue/host_task.rs trait Sealed",
        ],
    ),
    (
        "Traits of the caller, whose methods take numbers.",
        &["core/evaluate/call_windows.rs trait CallWindows", "core/evaluate/window_data.rs trait WindowData"],
    ),
];

/// Every crate that programs use; the command is a program itself.
fn is_library(file: &str) -> bool {
    let is_test = |part: &str| part == "tests" || part == "tests.rs" || part.ends_with("_tests.rs");
    file.starts_with("runtime-")
        && !file.starts_with("runtime-cli/")
        && file.contains("/src/")
        && file.ends_with(".rs")
        && !file.split('/').any(is_test)
}

pub(crate) fn check(workspace: &Workspace) -> Outcome {
    let mut found = BTreeSet::new();
    for file in workspace.tracked_files()?.iter().filter(|file| is_library(file)) {
        let text = fs::read_to_string(workspace.root.join(file))
            .map_err(|error| Failure::new(format!("{file}: {error}")))?;
        let place = file.trim_start_matches("runtime-").replacen("/src/", "/", 1);
        found.extend(names(&of_product_code(&text)).into_iter().map(|name| format!("{place} {name}")));
    }
    compare(&found, REVIEWED)
}

/// Compares what there is with the list.
fn compare(found: &BTreeSet<String>, reviewed: &[(&str, &[&str])]) -> Outcome {
    let listed: Vec<_> = reviewed.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    let mut problems = Vec::new();
    for name in found.iter().filter(|name| !listed.contains(&name.as_str())) {
        problems
            .push(format!("{name}: safe code can pass it code, a command or a path; make it unsafe, or add it under the reason that makes it safe"));
    }
    for name in &listed {
        if !found.contains(*name) {
            problems.push(format!("{name}: there is no such public item any more"));
        }
        if listed.iter().filter(|other| other == &name).count() > 1 {
            problems.push(format!("{name}: it is listed twice"));
        }
    }
    match problems.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(format!("see xtask/src/named_code.rs\n  {}", problems.join("\n  ")))),
    }
}

/// The safe public functions that take one of the types, the public fields that have one, and all safe public traits.
fn names(tokens: &[&str]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let (mut depth, mut traits) = (0_usize, Vec::new());
    for (at, token) in tokens.iter().enumerate() {
        match *token {
            "{" => depth += 1,
            "}" => {
                depth = depth.saturating_sub(1);
                traits.retain(|&outer| outer < depth);
            }
            "pub" if tokens.get(at + 1) != Some(&"(") => {
                let item = Item::of(&tokens[at + 1..]);
                if item.is_trait() {
                    traits.push(depth);
                }
                found.extend(item.name());
            }
            // The functions of a public trait are public.
            "fn" if traits.last().is_some_and(|outer| outer + 1 == depth) => {
                let modifiers = tokens[..at].iter().rev().take_while(|token| is_modifier(token));
                found.extend(Item::of(&tokens[at - modifiers.count()..]).name());
            }
            _ => {}
        }
    }
    found
}

fn is_modifier(token: &str) -> bool {
    ["unsafe", "const", "async", "extern", "auto"].contains(&token)
}

/// A public item.
struct Item<'a> {
    is_unsafe: bool,
    /// Without modifiers.
    tokens: &'a [&'a str],
}

impl<'a> Item<'a> {
    fn of(tokens: &'a [&'a str]) -> Self {
        let modifiers = tokens.iter().take_while(|token| is_modifier(token)).count();
        // A constant.
        let modifiers = if tokens.get(modifiers + 1) == Some(&":") { 0 } else { modifiers };
        Self { is_unsafe: tokens[..modifiers].contains(&"unsafe"), tokens: &tokens[modifiers..] }
    }

    fn is_trait(&self) -> bool {
        self.tokens.first() == Some(&"trait")
    }

    /// Its name, if it belongs into the list.
    fn name(&self) -> Option<String> {
        let (kind, name) = (*self.tokens.first()?, *self.tokens.get(1)?);
        let is_named = match kind {
            _ if self.is_unsafe => return None,
            "trait" => return Some(format!("trait {name}")),
            "fn" => has_type(signature(&self.tokens[2..])),
            _ if name == ":" => has_type(until(&self.tokens[2..], &[",", "}", ";", "="])),
            _ => false,
        };
        is_named.then(|| if name == ":" { kind } else { name }.to_owned())
    }
}

/// What a function takes: without its result, but with its bounds.
fn signature<'a>(tokens: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    let (mut depth, mut in_result) = (0_usize, false);
    tokens.windows(2).map_while(move |pair| {
        match (pair[0], pair[1]) {
            ("{" | ";", _) if depth == 0 => return None,
            ("(" | "[", _) => depth += 1,
            (")" | "]", _) => depth = depth.saturating_sub(1),
            ("-", ">") if depth == 0 => in_result = true,
            ("where", _) if depth == 0 => in_result = false,
            _ => {}
        }
        Some(if in_result { "" } else { pair[0] })
    })
}

/// A type, up to one of `ends`.
fn until<'a>(tokens: &'a [&'a str], ends: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    let mut depth = 0_usize;
    tokens.iter().copied().take_while(move |token| {
        match *token {
            "(" | "[" | "<" => depth += 1,
            ")" | "]" | ">" => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > 0 || !ends.contains(token)
    })
}

fn has_type<'a>(mut tokens: impl Iterator<Item = &'a str>) -> bool {
    tokens.any(|token| TYPES.contains(&token))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        names(&of_product_code(text)).into_iter().collect()
    }

    #[test]
    fn what_takes_code_is_found() {
        assert_eq!(found("impl A { pub fn f(&self, path: &Path) -> Result<()> { } }"), ["f"]);
        assert_eq!(found("pub const fn f<P: AsRef<Path>>(path: P) { }"), ["f"]);
        assert_eq!(found("pub fn f<P>(path: P) -> A where P: Into<PathBuf> { }"), ["f"]);
        assert_eq!(found("pub fn f(run: impl FnOnce(&mut Command) -> bool) { }"), ["f"]);
        assert_eq!(found("pub struct A { pub a: Option<PathBuf>, pub b: u32 }"), ["a"]);
        assert_eq!(found("pub struct A { pub a: Map<A, B>, pub b: Arc<dyn SharedStore> }"), ["b"]);
        assert_eq!(
            found("pub trait A { fn f(&self, source: &ModuleSource); fn g(&self); }"),
            ["f", "trait A"]
        );
    }

    #[test]
    fn what_takes_no_code_or_is_unsafe_is_not() {
        for text in [
            "pub unsafe fn f(path: &Path) { }",
            "pub(crate) fn f(path: &Path) { }",
            "fn f(path: &Path) { }",
            "pub fn f(&self) -> Option<&Path> { let path: Path; }",
            "pub struct A { a: PathBuf }",
            "pub unsafe trait A { unsafe fn f(&self, path: &Path); }",
            "pub const A: &str = \"Path\"; pub static B: u32 = 1;",
            "#[cfg(test)] mod tests { pub fn f(path: &Path) { } }",
        ] {
            assert_eq!(found(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn what_is_new_or_gone_fails() {
        let found = BTreeSet::from(["core/a.rs f".to_owned(), "core/a.rs g".to_owned()]);
        let fails =
            |names: &[&str]| compare(&found, &[("reason", names)]).err().map(|error| error.to_string());
        assert_eq!(fails(&["core/a.rs f", "core/a.rs g"]), None);
        assert!(fails(&["core/a.rs f"]).unwrap().contains("core/a.rs g: safe code"));
        assert!(
            fails(&["core/a.rs f", "core/a.rs g", "core/a.rs h"]).unwrap().contains("h: there is no such")
        );
        assert!(fails(&["core/a.rs f", "core/a.rs g", "core/a.rs g"]).unwrap().contains("listed twice"));
    }

    #[test]
    fn everything_is_reviewed() {
        check(&Workspace::read().unwrap()).unwrap();
    }
}
