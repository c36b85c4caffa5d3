//! What kernels make their compilers read: with `--isolate` nothing outside of the folders of the spec and of the system. Each case
//! is run without the sandbox too, where it works. Ignored where the system lacks a part of the sandbox, or a board is not installed;
//! `RUNTIME_REQUIRE=sandbox` or `embedded` makes that a failure. Build the workspace first.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::{Completion, Failed, Trial};

use crate::{boards, sandboxed};

/// What a kernel says, and whether it may. `{outside}` is the path of a file beside the spec's folder.
struct Case {
    name: &'static str,
    /// In front of the kernel, which returns `VALUE`.
    code: &'static str,
    options: &'static str,
    device: &'static str,
    is_allowed: bool,
}

/// A board whose machine is emulated.
const BOARD: &str = "embedded:riscv64-virt";

static CASES: [Case; 12] = [
    refused("an_include", "#include \"{outside}.h\""),
    refused("a_relative_include", "#include \"../../outside.h\""),
    refused("an_include_of_a_macro", "#define FILE \"{outside}.h\"\n#include FILE"),
    refused(
        "a_binary",
        "__asm__(\".data\\n.globl value\\nvalue: .incbin \\\"{outside}.bin\\\"\\n.text\");\n\
         extern __attribute__((visibility(\"hidden\"))) const int value;\n#define VALUE value",
    ),
    refused(
        "a_question",
        "#if __has_include(\"{outside}.h\")\n#define VALUE 7\n#else\n#error it is not there\n#endif",
    ),
    refused("a_symbolic_link", "#include \"link.h\""),
    Case {
        options: "options = { libraries = \"{folder}/liboutside.so\" }\n",
        ..refused("a_header_beside_a_library", "#include \"{outside}.h\"")
    },
    Case { device: BOARD, ..refused("an_include_on_a_board", "#include \"{outside}.h\"") },
    Case { device: BOARD, ..allowed("the_specs_folder_on_a_board", "#include \"../inside.h\"", "") },
    allowed("the_specs_folder", "#include \"../inside.h\"", ""),
    allowed("a_header_of_the_system", "#include <math.h>\n#include <omp.h>\n#define VALUE 7", ""),
    allowed("a_folder_that_the_spec_names", "#include <outside.h>", "options = { include = \"{folder}\" }\n"),
];

const fn refused(name: &'static str, code: &'static str) -> Case {
    Case { name, code, options: "", device: "host:0", is_allowed: false }
}

const fn allowed(name: &'static str, code: &'static str, options: &'static str) -> Case {
    Case { name, code, options, device: "host:0", is_allowed: true }
}

pub(crate) fn trials() -> Vec<Trial> {
    let trial = |case: &'static Case| {
        let board = || Some(("embedded", boards::missing(case.device.strip_prefix("embedded:")?)?));
        sandboxed::trial_with(format!("compilers::{}", case.name), board, || {
            check(case).map(|()| Completion::Completed)
        })
    };
    CASES.iter().map(trial).collect()
}

fn check(case: &Case) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let outside = folder.path().join("outside");
    std::fs::write(outside.with_extension("h"), "#define VALUE 7\n")?;
    std::fs::write(outside.with_extension("bin"), 7_i32.to_le_bytes())?;
    let spec = write_spec(folder.path(), case, &outside)?;
    let free = status(&spec, case.device, "off")?;
    if free != "right" {
        return Err(format!("without a sandbox: {free}").into());
    }
    let confined = status(&spec, case.device, "required")?;
    let expected = if case.is_allowed { "right" } else { "failed: compile" };
    if confined != expected { Err(confined.into()) } else { Ok(()) }
}

/// Writes a spec whose code is in a folder below its own.
fn write_spec(folder: &Path, case: &Case, outside: &Path) -> std::io::Result<PathBuf> {
    let code = folder.join("spec/code");
    std::fs::create_dir_all(&code)?;
    std::os::unix::fs::symlink(outside.with_extension("h"), code.join("link.h"))?;
    std::fs::write(folder.join("spec/inside.h"), "#define VALUE 7\n")?;
    let named = |text: &str| {
        text.replace("{outside}", outside.to_str().unwrap()).replace("{folder}", folder.to_str().unwrap())
    };
    let text = format!("{}\nvoid kernel(int *x) {{ *x = VALUE; }}\n", named(case.code));
    std::fs::write(code.join("kernel.c"), text)?;
    if case.options.contains("liboutside.so") {
        let mut linker = Command::new("cc");
        linker.args(["-shared", "-x", "c", "/dev/null", "-o"]).arg(outside.with_file_name("liboutside.so"));
        assert!(linker.status()?.success());
    }
    std::fs::write(folder.join("spec/reference.c"), "void kernel(int *x) { *x = 7; }\n")?;
    let spec = folder.join("spec/kernel.toml");
    let text = "version = 1\n[kernel]\npath = \"code/kernel.c\"\nentry = \"kernel\"\n{options}[[arg]]\nname = \"x\"\n\
                dtype = \"i32\"\nshape = [1]\nuse = \"write\"\n[reference]\npath = \"reference.c\"\nentry = \"kernel\"\n\
                [eval]\nrepeat = 2\nnumber = 1\nwarmup = 1\n";
    std::fs::write(&spec, text.replace("{options}", &named(case.options)))?;
    Ok(spec)
}

/// The status of the row, and the kind of a failure.
fn status(spec: &Path, device: &str, policy: &str) -> Result<String, Failed> {
    let folder = spec.parent().unwrap();
    let mut command = sandboxed::command(folder, &["host", "embedded"]);
    command.arg(spec).args(["--device", device, "--sandbox", policy]);
    let (rows, said) = sandboxed::rows(&mut command, folder)?;
    let row = &rows[0];
    match row["outcome"]["kind"].as_str() {
        Some("ok") => Ok(row["status"].as_str().unwrap_or_default().to_owned()),
        Some("launch_failed") | None => Err(format!("{row}\n{said}").into()),
        Some(_) if row["error_kind"] == "CompileFailed" => Ok("failed: compile".to_owned()),
        Some(_) => Ok(format!("{row}")),
    }
}
