//! The code of images, and its options. An image is flashed with its arguments, so there are no modules.

use runtime_core::backend::OptionSpec;
use runtime_core::{Error, Options, Result};

/// The formats that a board accepts, the preferred one first.
pub(crate) const FORMATS: [&str; 2] = ["c", "elf"];
/// The option that names more folders of the code: those of a spec.
pub(crate) const READABLE: &str = "readable";
/// Most calls of the kernel in a run.
const MAX_CALLS: i64 = 1 << 30;

/// The options of images.
pub(crate) fn options() -> Vec<OptionSpec> {
    vec![
        OptionSpec::module("entry", "", "Function to call; default: the only one that is not static."),
        OptionSpec::module("flags", "", "Additional flags for the C compiler, separated by spaces."),
        OptionSpec::module("define", "", "Macro to define, NAME or NAME=VALUE; a list."),
        OptionSpec::module(
            "calls",
            1,
            "Calls of the kernel per run; the count is that of all calls. 0 runs the firmware only.",
        ),
        OptionSpec::module(
            "convention",
            "plain",
            "How the kernel takes its arguments: `plain`, or `groups`, as lowered portable code does.",
        )
        .choices(&["plain", "groups"]),
        OptionSpec::module("groups", "1,1,1", "With the convention `groups`: the work-groups per dimension."),
        OptionSpec::module(
            "functions",
            "",
            "File that each run fills with the count of each function, as lines NAME COUNT; emulators only.",
        ),
        OptionSpec::module(
            "executed",
            false,
            "Count what the emulator executes, from the start of the counter until the firmware waits again.",
        ),
        OptionSpec::module("debug", false, "Compile for a debugger."),
        OptionSpec::module(
            READABLE,
            "",
            "Folder that the compiler may read in a sandbox, besides that of the code; a list.",
        ),
    ]
}

/// The work-groups per dimension of code of that convention; `None` for a plain function.
///
/// # Errors
/// `InvalidArgument` for anything but three numbers.
pub(crate) fn groups(options: &Options) -> Result<Option<[u32; 3]>> {
    if options.text("convention") != Some("groups") {
        return Ok(None);
    }
    let text = options.text("groups").unwrap_or("1,1,1");
    let numbers: Option<Vec<u32>> = text.split(',').map(|number| number.trim().parse().ok()).collect();
    match numbers.as_deref() {
        Some(&[x, y, z]) => Ok(Some([x, y, z])),
        _ => {
            Err(Error::invalid(format!("option \"groups\" is \"{text}\"; give three numbers, such as 4,1,1")))
        }
    }
}

/// The macros to define, as flags of the compiler.
///
/// # Errors
/// `InvalidArgument` for one without a name.
pub(crate) fn defines(options: &Options) -> Result<Vec<String>> {
    let defines = options.texts("define").filter(|define| !define.is_empty());
    defines
        .map(|define| match define.starts_with(['=', '-']) {
            true => {
                Err(Error::invalid(format!("option \"define\" is \"{define}\"; give NAME or NAME=VALUE")))
            }
            false => Ok(format!("-D{define}")),
        })
        .collect()
}

/// The number of calls per run.
pub(crate) fn calls(options: &Options) -> Result<u32> {
    let calls = options.integer_within("calls", 1, 0..=MAX_CALLS)?;
    Ok(u32::try_from(calls).unwrap_or(u32::MAX))
}
