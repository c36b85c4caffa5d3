//! Kernels may use names that compilers and C headers define as macros.
//!
//! The names are read from the compilers (`-dM -E`), so that those of newer compilers are covered too.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use libtest_mimic::{Completion, Failed, Trial};
use portable::module::Language;
use portable::tool::{self, Tool};
use runtime_kernel::{Checks, Dialect, Program, Specialisation};
use test_process::sample;

const HEADERS: [&str; 10] = [
    "complex.h",
    "errno.h",
    "features.h",
    "float.h",
    "limits.h",
    "math.h",
    "stdatomic.h",
    "stdbool.h",
    "stdint.h",
    "stdio.h",
];

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = vec![Trial::ignorable_test("names::host C", host)];
    for (name, tool) in tool::all() {
        trials.push(Trial::ignorable_test(format!("names::{name}"), move || match tool {
            Ok(tool) => tool_takes(name, &tool),
            Err(remedy) => Ok(Completion::ignored_with(format!("{name} is missing: {remedy}"))),
        }));
    }
    trials
}

/// The output of a compiler; `None` if it cannot be run or fails.
fn output(command: &str, arguments: &[&str], text: &str) -> Option<String> {
    let mut child = Command::new(command);
    child.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = child.spawn().ok()?;
    child.stdin.take()?.write_all(text.as_bytes()).ok()?;
    let output = child.wait_with_output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The names of all macros that are valid WGSL identifiers.
fn macros() -> Vec<String> {
    let includes: String = HEADERS.iter().map(|header| format!("#include <{header}>\n")).collect();
    let clangs = ["clang", "clang-14", "clang-15", "clang-16", "clang-17", "clang-18", "clang-19"];
    let open_cl = ["-x", "cl", "-cl-std=CL2.0", "-Xclang", "-finclude-default-header", "-dM", "-E", "-"];
    let mut texts = vec![output("cc", &["-x", "c", "-dM", "-E", "-"], &includes)];
    texts.push(output(
        "c++",
        &["-x", "c++", "-dM", "-E", "-"],
        &includes.replace("#include <stdatomic.h>\n", ""),
    ));
    for clang in clangs {
        texts.push(output(clang, &["-x", "c", "-dM", "-E", "-"], &includes));
        texts.push(output(clang, &open_cl, ""));
    }
    let lines: Vec<_> = texts.into_iter().flatten().collect();
    let words = lines.iter().flat_map(|text| text.lines()).filter_map(|line| line.strip_prefix("#define "));
    let end = |letter: char| letter == ' ' || letter == '(';
    let names: BTreeSet<_> = words.filter_map(|word| word.split(end).next()).collect();
    names.into_iter().filter(|name| program(&[name]).is_ok()).map(str::to_owned).collect()
}

/// A kernel that uses these names for every kind of declaration.
fn program(names: &[&str]) -> runtime_core::Result<Program> {
    let mut text = "@group(0) @binding(0) var<storage, read_write> y: array<u32>;\n".to_owned();
    let mut body = String::new();
    for (number, name) in names.iter().enumerate() {
        text.push_str(&format!(
            "struct T{number} {{ {name}: u32 }}
             fn f{number}({name}: u32) -> u32 {{
                 let x = T{number}({name}); {{ var {name} = x.{name} + 1u; {name} += y[0]; return {name} * 2u; }}
             }}\n"
        ));
        text.push_str(&match number % 3 {
            0 => format!("const {name} = {number}u;\n"),
            1 => format!("fn {name}() -> u32 {{ y[1] += 1u; return y[1]; }}\n"),
            _ => format!("struct {name} {{ a: u32 }}\n"),
        });
        let value = match number % 3 {
            0 => (*name).to_owned(),
            1 => format!("{name}()"),
            _ => format!("{name}(3u).a"),
        };
        body.push_str(&format!("y[{number}] = f{number}(y[2]) + {value};\n"));
    }
    text.push_str(&format!("@compute @workgroup_size(1) fn entry() {{ {body} }}"));
    Program::parse(&text, "names.wgsl", &Specialisation::default())
}

/// Kernels with all names, a few hundred in each.
fn all() -> Result<Vec<Program>, Failed> {
    static NAMES: LazyLock<Vec<String>> = LazyLock::new(macros);
    let names: Vec<_> = NAMES.iter().map(String::as_str).collect();
    if ["M_PI", "FLT_MAX", "EOF"].iter().any(|name| !names.contains(name)) {
        return Err(Failed::from(format!("no compiler found: {names:?}")));
    }
    Ok(names.chunks(400).map(program).collect::<Result<_, _>>()?)
}

fn host() -> Result<Completion, Failed> {
    for compiler in ["cc", "clang", "clang-15"] {
        if output(compiler, &["--version"], "").is_some() {
            for program in all()? {
                let code = program.c(Dialect::Host, Checks::Bounded)?;
                output(compiler, &["-x", "c", "-fsyntax-only", "-"], &code.text).ok_or(compiler)?;
            }
        }
    }
    Ok(Completion::Completed)
}

fn tool_takes(name: &str, tool: &Tool) -> Result<Completion, Failed> {
    for program in sample(&format!("names for {name}"), all()?, 1) {
        let code = match tool.language() {
            Language::C(dialect) => program.c(dialect, Checks::Bounded)?.text.into_bytes(),
            Language::Spirv => {
                program.spirv(Checks::Bounded)?.iter().flat_map(|word| word.to_le_bytes()).collect()
            }
        };
        tool.check(&code, &[])?;
    }
    Ok(Completion::Completed)
}
