//! Breakpoints at lines of a WGSL text, in gdb: on the host with its work-items in order, in code for a debugger.
//!
//! gdb runs this program again, with `debuggee` and a folder as its arguments.

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use libtest_mimic::{Completion, Failed, Trial};
use runtime_core::{Arg, Geometry, ModuleSource, Options, Result, Runtime};

/// Line 6 runs for each of the 8 items, and line 13 after the barrier.
const CODE: &str = "@group(0) @binding(0) var<storage, read_write> y: array<u32>;
var<workgroup> total: atomic<u32>;

fn squared(value: u32) -> u32 {
    let factor = value;
    return factor * value;
}

@compute @workgroup_size(4) fn sums(@builtin(global_invocation_id) id: vec3u) {
    let own = squared(id.x);
    atomicAdd(&total, own);
    workgroupBarrier();
    y[id.x] = own + atomicLoad(&total);
}
";
const FILE: &str = "sums_of_squares.wgsl";

/// What this process does instead of the tests, if one of them started it.
pub(crate) fn child() -> Option<ExitCode> {
    let words: Vec<_> = std::env::args().collect();
    let [_, mode, folder] = &words[..] else { return None };
    (mode == "debuggee").then(|| match debuggee(Path::new(folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => panic!("{error}"),
    })
}

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::ignorable_test("debugger::breakpoints_stop_at_lines_of_a_wgsl_file", in_file),
        Trial::ignorable_test("debugger::text_from_memory_is_found_in_the_dump_folder", from_memory),
        Trial::ignorable_test("debugger::variables_live_across_barriers", across_barriers),
    ]
}

/// Runs the kernel from the file in the folder, then from memory.
fn debuggee(folder: &Path) -> Result<()> {
    let runtime = Runtime::builder().discover(false).register(runtime_host::backend());
    let runtime = runtime.with_lowering(runtime_kernel::wgsl()).build();
    let device = runtime.open_with("host", &Options::new().with("serial_items", true))?;
    for source in [ModuleSource::wgsl_file(folder.join(FILE)), ModuleSource::wgsl(CODE)] {
        let kernel = device.kernel(source.debug(true), "sums")?;
        let y = device.tensor([8], &[0_u32; 8])?;
        device.queue()?.call(&kernel, Geometry::new([2, 1, 1], [4, 1, 1]), &[Arg::read_write(&y)])?;
        assert_eq!(y.to_vec::<u32>()?, [14, 15, 18, 23, 142, 151, 162, 175]);
    }
    Ok(())
}

/// What gdb prints for `commands` before and after the program has started; `None` if gdb cannot run programs here.
fn gdb(before: &[&str], after: &[&str]) -> std::result::Result<Option<String>, Failed> {
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join(FILE), CODE)?;
    let mut command = Command::new("gdb");
    command.args(["-nx", "-batch", "-ex", "set breakpoint pending on", "-ex", "set debuginfod enabled off"]);
    let sources = format!("directory {}", folder.path().join("dump").display());
    for line in [&[sources.as_str()], before, &["run"], after].concat() {
        command.args(["-ex", line]);
    }
    command.arg("--args").arg(std::env::current_exe()?).arg("debuggee").arg(folder.path());
    command.stdin(Stdio::null()).env("RUNTIME_CACHE", "off");
    command.env("RUNTIME_DUMP", format!("lowered {}", folder.path().join("dump").display()));
    let output = match command.output() {
        Ok(output) => output,
        Err(_) => return Ok(None),
    };
    let text =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    let cannot = ["ptrace: Operation not permitted", "Could not trace the inferior process"];
    Ok(Some(text).filter(|text| !cannot.iter().any(|words| text.contains(words))))
}

/// Checks that gdb prints these words in this order.
fn check(before: &[&str], after: &[&str], expected: &[&str]) -> std::result::Result<Completion, Failed> {
    let Some(text) = gdb(before, after)? else {
        if portable::required("gdb") {
            return Err("gdb is missing, or may not run programs here".into());
        }
        return Ok(Completion::ignored_with("install gdb, and allow it to trace processes"));
    };
    let mut rest = text.as_str();
    for words in expected {
        let Some((_, behind)) = rest.split_once(words) else {
            return Err(format!("\"{words}\" is missing or out of order in:\n{text}").into());
        };
        rest = behind;
    }
    Ok(Completion::Completed)
}

fn in_file() -> std::result::Result<Completion, Failed> {
    let after = [
        "print value",
        "up",
        "print id",
        "break sums_of_squares.wgsl:13",
        "continue",
        "print own",
        "continue",
    ];
    check(
        &["break sums_of_squares.wgsl:6 if value == 5"],
        &[&after[..], &["print own", "delete", "continue"]].concat(),
        &[
            "Breakpoint 1, squared_w",
            "sums_of_squares.wgsl:6\n6",
            "return factor * value;",
            "$1 = 5",
            "sums_w_range",
            "sums_of_squares.wgsl:10\n10",
            "$2 = {x = 5, y = 0, z = 0}",
            "Breakpoint 2, sums_w_range",
            "13\t    y[id.x] = own + atomicLoad(&total);",
            "$3 = 16",
            "Breakpoint 2, sums_w_range",
            "$4 = 25",
            "exited normally",
        ],
    )
}

fn from_memory() -> std::result::Result<Completion, Failed> {
    check(
        // A breakpoint in a file stops in no other.
        &["tbreak sums.wgsl:11", "info breakpoints"],
        &["print own", "next", "info source", "continue"],
        &[
            "sums.wgsl:11",
            "Temporary breakpoint 1, sums_w_range",
            "11\t    atomicAdd(&total, own);",
            "$1 = 0",
            "sums.wgsl",
            "exited normally",
        ],
    )
}

fn across_barriers() -> std::result::Result<Completion, Failed> {
    // Both groups: after the barrier, items run in order again, and each sees its own value.
    let print = "commands\nsilent\nprintf \"%u %u\\n\", id.x, own\ncontinue\nend";
    let stops: Vec<String> = (0..8_u32).map(|item| format!("{item} {}\n", item * item)).collect();
    let mut expected: Vec<&str> = stops.iter().map(String::as_str).collect();
    expected.push("exited normally");
    let script = tempfile::NamedTempFile::new()?;
    std::fs::write(script.path(), format!("break sums_of_squares.wgsl:13\n{print}\n"))?;
    check(&[&format!("source {}", script.path().display())], &[], &expected)
}
