//! `cargo xtask lint`: the documentation of each type that programs use has an example, which is a test.
//!
//! rustdoc's own lint, `missing_doc_code_examples`, needs a nightly compiler, and wants an example of every item.

use std::fs;

use crate::process::{Failure, Outcome};
use crate::workspace::Workspace;

/// Where these types are.
const FOLDER: &str = "runtime-core/src";
/// The types that the author of a framework or of kernels meets in the first week: a file, and the type.
const TYPES: &[&str] = &[
    "cache/mod.rs CodeCache",
    "cache/options.rs CacheOptions",
    "code/arg.rs Arg",
    "code/kernel.rs Kernel",
    "code/layout.rs TensorLayout",
    "code/module.rs Module",
    "code/record.rs Record",
    "code/source.rs ModuleSource",
    "device/accelerator.rs AcceleratorDevice",
    "device/common_runtime.rs CommonRuntime",
    "device/counters.rs CounterSet",
    "device/embedded.rs EmbeddedDevice",
    "device/host.rs Host",
    "device/methods.rs Device",
    "dispatch/arg_type.rs ArgType",
    "dispatch/builder.rs DispatcherBuilder",
    "dispatch/mod.rs Dispatcher",
    "dispatch/range.rs NdRange",
    "error.rs Error",
    "error.rs ErrorKind",
    "evaluate/benchmark.rs Benchmark",
    "evaluate/comparison.rs Tolerance",
    "evaluate/comparison.rs Validation",
    "evaluate/measurement.rs Measurement",
    "evaluate/mod.rs Evaluation",
    "evaluate/statistics.rs Statistics",
    "evaluate/timed_work.rs TimedWork",
    "evaluate/timing_options.rs Timing",
    "evaluate/turns.rs Turns",
    "fusion/mod.rs Fuser",
    "fusion/options.rs FusionOptions",
    "fusion/report.rs FusionReport",
    "graph/executable.rs ExecutableGraph",
    "graph/mod.rs Graph",
    "graph/recorder.rs Recording",
    "model/access.rs Access",
    "model/code_format.rs CodeFormat",
    "model/code_load.rs CodeLoad",
    "model/compiled.rs Compiled",
    "model/device_info.rs DeviceId",
    "model/device_info.rs DeviceInfo",
    "model/dtype.rs DType",
    "model/dtype.rs Element",
    "model/geometry.rs Geometry",
    "model/kernel_info.rs KernelInfo",
    "model/native.rs NativeHandles",
    "model/native.rs NativeTensor",
    "model/options.rs Options",
    "model/placement.rs Placement",
    "model/placement.rs QueueOptions",
    "plugin/load_report.rs LoadReport",
    "queue/mod.rs Queue",
    "queue/transfer.rs Download",
    "runtime/registry.rs Runtime",
    "runtime/registry.rs RuntimeBuilder",
    "runtime/registry.rs Target",
    "tensor/dlpack/export.rs DlpackTensor",
    "tensor/host_array.rs HostArray",
    "tensor/host_view.rs HostView",
    "tensor/host_view.rs HostViewMut",
    "tensor/mod.rs Tensor",
    "tensor/number.rs Number",
    "tensor/safetensors.rs Safetensors",
    "timeline/event/mod.rs Event",
    "timeline/event/status.rs EventStatus",
    "timeline/event/times.rs EventTimes",
];

pub(crate) fn check(workspace: &Workspace) -> Outcome {
    let folder = workspace.root.join(FOLDER);
    let problem = |entry: &&str| {
        let (file, name) = entry.split_once(' ')?;
        let text = fs::read_to_string(folder.join(file)).unwrap_or_default();
        match has_example(&text, name) {
            Some(true) => None,
            Some(false) => Some(format!("{entry}: its documentation has no example")),
            None => Some(format!("{entry}: there is no such public type any more")),
        }
    };
    let problems: Vec<_> = TYPES.iter().filter_map(problem).collect();
    match problems.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(format!("see xtask/src/examples.rs\n  {}", problems.join("\n  ")))),
    }
}

/// Whether the documentation of a type has code that is compiled; `None` if `text` has no such public type.
fn has_example(text: &str, name: &str) -> Option<bool> {
    let lines: Vec<_> = text.lines().collect();
    let at = lines.iter().position(|line| declares(line, name))?;
    let above = lines[..at].iter().rev().take_while(|line| !line.is_empty());
    // From the last line upwards, the end of a code block comes before its beginning.
    let mut beginnings = above.filter(|line| line.starts_with("/// ```")).skip(1).step_by(2);
    Some(beginnings.any(|line| matches!(*line, "/// ```" | "/// ```no_run")))
}

fn declares(line: &str, name: &str) -> bool {
    ["struct", "enum", "trait", "type"].iter().any(|kind| {
        let rest = line.strip_prefix(&format!("pub {kind} {name}"));
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_is_code_that_is_compiled() {
        let documented =
            |docs: &str| has_example(&format!("{docs}\n#[derive(Debug)]\npub struct A<T>(T);"), "A");
        assert_eq!(documented("/// A.\n///\n/// ```\n/// f();\n/// ```"), Some(true));
        assert_eq!(documented("/// ```no_run\n/// f();\n/// ```\n/// ```text\n/// a\n/// ```"), Some(true));
        assert_eq!(documented("/// ```text\n/// a\n/// ```"), Some(false));
        assert_eq!(documented("/// ```ignore\n/// f();\n/// ```"), Some(false));
        assert_eq!(
            documented("/// ```\n/// of_another_type();\n/// ```\npub struct B;\n\n/// A."),
            Some(false)
        );
    }

    #[test]
    fn a_type_that_is_gone_or_private_is_reported() {
        for text in ["pub struct Ab;", "struct A;", "pub(crate) struct A;", "pub fn A() {}", ""] {
            assert_eq!(has_example(text, "A"), None, "{text}");
        }
        for text in ["pub enum A {", "pub trait A: B {", "pub type A = B;"] {
            assert_eq!(has_example(text, "A"), Some(false), "{text}");
        }
    }

    #[test]
    fn every_type_that_programs_use_has_an_example() {
        check(&Workspace::read().unwrap()).unwrap();
    }
}
