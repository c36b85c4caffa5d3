//! All lowered code compiles: SPIR-V with `spirv-val`, OpenCL C with clang, CUDA C++ with NVRTC.
//!
//! A missing tool is ignored, with a hint how to install it; with `spirv-val`, `clang` or `nvrtc` in
//! `RUNTIME_REQUIRE`, it is a failure.

use std::path::Path;
use std::sync::Arc;

use libtest_mimic::{Completion, Failed, Trial};
use portable::module::{self, Module};
use portable::required;
use portable::tool::{self, Tool};
use runtime_kernel::{Checks, Dialect, Program, Specialisation};
use test_process::sample;

pub(crate) fn trials() -> Vec<Trial> {
    let modules = module::all();
    let mut trials = Vec::new();
    for (name, tool) in tool::all() {
        match tool {
            Ok(tool) => {
                let tool = Arc::new(tool);
                trials.extend(modules.iter().map(|module| trial(name, &tool, module.clone())));
                trials.push(coarsened(name, &tool, modules.clone()));
                if name == "clang" {
                    trials.push(loops(&tool, modules.clone()));
                }
                trials.extend(MATRIX_KERNELS.map(|kernel| emulated_matrices(name, &tool, kernel)));
                if name == "nvrtc" {
                    trials.extend(MATRIX_KERNELS.map(|kernel| matrix_units(&tool, kernel)));
                    trials.extend(
                        modules
                            .iter()
                            .filter(|module| module.needs.is_empty())
                            .step_by(4)
                            .map(|module| asserted(&tool, module.clone())),
                    );
                }
            }
            Err(remedy) => trials.push(missing(name, remedy)),
        }
    }
    trials
}

fn missing(tool: &'static str, remedy: String) -> Trial {
    Trial::ignorable_test(format!("compile::{tool}::open"), move || {
        let reason = format!("{tool} is missing: {remedy}");
        if required(tool) { Err(Failed::from(reason)) } else { Ok(Completion::ignored_with(reason)) }
    })
}

fn trial(name: &str, tool: &Arc<Tool>, module: Module) -> Trial {
    let tool = tool.clone();
    // These languages support everything the modules need: nothing may be unsupported.
    Trial::test(format!("compile::{name}::{}", module.name), move || match module.lower(tool.language()) {
        Ok(code) => tool
            .check(&code, &module.needs)
            .map_err(|said| Failed::from(format!("{said}\n{}", listing(&code)))),
        Err(error) => Err(Failed::from(error.to_string())),
    })
}

/// So many modules are element-wise at least, and are compiled.
const ELEMENT_WISE: usize = 5;

/// Code whose items do the work of several compiles too.
fn coarsened(name: &'static str, tool: &Arc<Tool>, modules: Vec<Module>) -> Trial {
    let tool = tool.clone();
    Trial::test(format!("compile::{name}::coarsened"), move || {
        let mut lowered = Vec::new();
        for module in modules {
            let code = module.lower_coarsened(tool.language()).map_err(|error| error.to_string())?;
            lowered.extend(code.map(|code| (module, code)));
        }
        if lowered.len() < ELEMENT_WISE {
            return Err(format!("only {} modules are element-wise", lowered.len()).into());
        }
        for (module, code) in sample(&format!("coarsened modules for {name}"), lowered, ELEMENT_WISE) {
            let checked = tool.check(&code, &module.needs);
            checked.map_err(|said| format!("{}: {said}\n{}", module.name, listing(&code)))?;
        }
        Ok(())
    })
}

const MATRIX_KERNELS: [&str; 3] = ["gemm", "forms", "attention"];

fn matrix_kernel(kernel: &str) -> Result<Program, Failed> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels/matrix_units");
    let text = std::fs::read_to_string(folder.join(kernel).with_extension("wgsl"))?;
    Ok(Program::parse(&text, kernel, &Specialisation::default())?)
}

/// Kernels whose matrices are emulated compile too.
fn emulated_matrices(name: &str, tool: &Arc<Tool>, kernel: &'static str) -> Trial {
    let tool = tool.clone();
    Trial::test(format!("compile::{name}::emulated_matrices::{kernel}"), move || {
        let program = matrix_kernel(kernel)?.with_emulated_subgroups(None)?;
        let code = Module::write(&program, tool.language())?;
        Ok(tool.check(&code, &[]).map_err(|said| format!("{said}\n{}", listing(&code)))?)
    })
}

/// Kernels for matrix units, which only CUDA's compiler knows here.
fn matrix_units(tool: &Arc<Tool>, kernel: &'static str) -> Trial {
    let tool = tool.clone();
    Trial::test(format!("compile::nvrtc::matrix_units::{kernel}"), move || {
        for checks in [Checks::Bounded, Checks::BoundedOnce, Checks::Unchecked] {
            let program = matrix_kernel(kernel)?;
            let code = program.c(Dialect::Cuda, checks)?.text.into_bytes();
            tool.check(&code, &[]).map_err(|said| format!("{checks:?}: {said}\n{}", listing(&code)))?;
        }
        Ok(())
    })
}

/// OpenCL C whose groups run as loops compiles too.
fn loops(tool: &Arc<Tool>, modules: Vec<Module>) -> Trial {
    let tool = tool.clone();
    Trial::test("compile::clang::group_loops", move || {
        let can_run = |module: &&Module| !module.needs.iter().any(|need| need == "subgroups");
        for (module, work_items) in modules.iter().filter(can_run).zip([1, 4, 16].into_iter().cycle()) {
            let code = module.lower_loops(work_items).map_err(|error| error.to_string())?;
            let checked = tool.check(&code, &module.needs);
            checked.map_err(|said| format!("{}: {said}\n{}", module.name, listing(&code)))?;
        }
        Ok(())
    })
}

/// Code with asserted proofs compiles too.
fn asserted(tool: &Arc<Tool>, module: Module) -> Trial {
    let tool = tool.clone();
    Trial::test(format!("compile::nvrtc::asserted::{}", module.name), move || {
        let code = module.lower_asserted().map_err(|error| Failed::from(error.to_string()))?;
        tool.check(&code, &module.needs).map_err(|said| Failed::from(format!("{said}\n{}", listing(&code))))
    })
}

/// The code, if requested: it is long.
fn listing(code: &[u8]) -> String {
    match std::env::var_os("RUNTIME_TEST_VERBOSE") {
        Some(_) => String::from_utf8_lossy(code).into_owned(),
        None => "set RUNTIME_TEST_VERBOSE=1 to see the code".to_owned(),
    }
}
