//! A program exits with work in flight, while another thread goes on to look at it: when a driver's exit handler runs, which
//! the stub adds at the first submission as LLVM does when it compiles for the first time, nothing is in flight any more, and
//! nothing is given to the driver from then on.

use std::process::ExitCode;
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use runtime_core::{Arg, DType, Geometry, ModuleSource, Placement, QueueOptions, Result, Runtime};
use vulkan_tests::{VALIDATION, again, beside, finish, is_again, lavapipe, layer, missing, on, stub};

const DEADLINE: Duration = Duration::from_secs(100);
/// How a program ends that did as it was told.
const DONE: i32 = 7;
/// So many groups make the work last.
const GROUPS: u32 = 10_000;
const LONG: &str = "
    @group(0) @binding(0) var<storage, read_write> out: array<u32>;
    @compute @workgroup_size(1) fn long() {
        var x = out[0];
        // Mesa leaves a loop of more rounds than 16 bits count.
        for (var i = 0u; i < 60000u; i++) { x = x * 1664525u + 1013904223u; }
        out[0] = x;
    }";

fn main() -> ExitCode {
    if is_again() {
        match beside("libruntime_vulkan.so").map(|library| {
            let builder = Runtime::builder().discover(false).lower_with(runtime_kernel::wgsl());
            // SAFETY: the backend of this workspace.
            #[allow(unsafe_code, reason = "loads the backend")]
            let builder = unsafe { builder.library(library) };
            builder.build()
        }) {
            Ok(runtime) => panic!("{:?}", leave(&runtime)),
            Err(reason) => panic!("{reason}"),
        }
    }
    let trials = match lavapipe() {
        Err(reason) => vec![missing("vulkan::exit", "vulkan", reason)],
        Ok(driver) => [("work_is_waited_for", false), ("so_it_is_under_the_layer", true)]
            .into_iter()
            .map(|(name, watched)| {
                let library = driver.library.clone();
                match layer() {
                    Err(reason) if watched => missing(name, "vulkan-validation", reason),
                    _ => Trial::test(name, move || exits(&library, watched)),
                }
            })
            .collect(),
    };
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn exits(library: &str, watched: bool) -> std::result::Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let mut command = again()?;
    on(&mut command, &stub(folder.path())?.manifest).env("STUB_VULKAN", format!("real={library},exits=yes"));
    if watched {
        command.env(VALIDATION, "1");
    }
    let ended = finish(&mut command, DEADLINE)?;
    if ended.status.code() == Some(DONE) {
        return Ok(());
    }
    Err(format!("{}: {}", ended.status, ended.text()).into())
}

/// Exits with work in flight; comes back only with an error.
fn leave(runtime: &Runtime) -> Result<()> {
    let device = runtime.open("vulkan:0")?;
    let long = device.load(&ModuleSource::wgsl(LONG))?.kernel("long")?;
    let queue = device.open_queue(&QueueOptions::default())?;
    let out = device.allocate(DType::U32, &[1], &Placement::default())?;
    let event = queue.launch(&long, &Geometry::cover(GROUPS, 1), &[Arg::read_write(&out)])?;
    queue.flush()?;
    assert!(!event.is_done()?, "the work is over too soon to be in flight");
    std::thread::spawn(move || {
        loop {
            let _ = event.wait_timeout(Duration::from_millis(1));
            let _ = (queue.fill(&out, &[0; 4]), queue.flush());
        }
    });
    std::process::exit(DONE)
}
