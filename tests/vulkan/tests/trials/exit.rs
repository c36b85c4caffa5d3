//! Process exit with work in flight, while another thread keeps polling: when the driver's exit handler runs, no work is in
//! flight, and no call reaches the driver afterwards. The stub registers that handler at the first submission, as LLVM does
//! when it first compiles.

use std::process::ExitCode;
use std::time::Duration;

use libtest_mimic::{Failed, Trial};
use runtime_core::{Arg, Geometry, ModuleSource, Result, Runtime};
use vulkan_tests::{
    VALIDATION_VARIABLE, built_file, finish, install_stub, lavapipe, missing, respawn, use_driver,
    validation_layer,
};

const DEADLINE: Duration = Duration::from_secs(100);
/// Exit code of a child that got as far as exiting.
const DONE: i32 = 7;
/// Enough groups to keep the device busy.
const GROUPS: u32 = 10_000;
const LONG: &str = "
    @group(0) @binding(0) var<storage, read_write> out: array<u32>;
    @compute @workgroup_size(1) fn long() {
        var x = out[0];
        // Mesa breaks out of a loop after 65535 iterations.
        for (var i = 0u; i < 60000u; i++) { x = x * 1664525u + 1013904223u; }
        out[0] = x;
    }";

pub(crate) fn child() -> ExitCode {
    match built_file("libruntime_vulkan.so").map(|library| {
        let builder = Runtime::builder().discover(false).with_lowering(runtime_kernel::wgsl());
        // SAFETY: the backend of this workspace.
        #[allow(unsafe_code, reason = "loads the backend")]
        let builder = unsafe { builder.library(library) };
        builder.build()
    }) {
        Ok(runtime) => panic!("{:?}", exit_with_work_in_flight(&runtime)),
        Err(reason) => panic!("{reason}"),
    }
}

pub(crate) fn trials() -> Vec<Trial> {
    match lavapipe() {
        Err(reason) => vec![missing("vulkan::exit", "vulkan", reason)],
        Ok(driver) => [("exit_waits_for_work", false), ("exit_waits_for_work_under_the_layer", true)]
            .into_iter()
            .map(|(name, validated)| {
                let library = driver.library.clone();
                match validation_layer() {
                    Err(reason) if validated => missing(name, "vulkan-validation", reason),
                    _ => Trial::test(format!("exit::{name}"), move || exits(&library, validated)),
                }
            })
            .collect(),
    }
}

fn exits(library: &str, validated: bool) -> std::result::Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let mut command = respawn("exit")?;
    use_driver(&mut command, &install_stub(folder.path())?.manifest)
        .env("STUB_VULKAN", format!("real={library},exit_handler=yes"));
    if validated {
        command.env(VALIDATION_VARIABLE, "1");
    }
    let ended = finish(&mut command, DEADLINE)?;
    if ended.status.code() == Some(DONE) {
        return Ok(());
    }
    Err(format!("{}: {}", ended.status, ended.text()).into())
}

/// Returns only with an error.
fn exit_with_work_in_flight(runtime: &Runtime) -> Result<()> {
    let device = runtime.open("vulkan:0")?;
    let long = device.kernel(ModuleSource::wgsl(LONG), "long")?;
    let queue = device.queue()?;
    let out = device.empty::<u32>([1])?;
    let event = queue.launch(&long, Geometry::cover(GROUPS, 1), &[Arg::read_write(&out)])?;
    queue.flush()?;
    assert!(!event.is_done()?, "the work completed too soon to be in flight");
    std::thread::spawn(move || {
        loop {
            let _ = event.wait_timeout(Duration::from_millis(1));
            let _ = (queue.fill(&out, &[0; 4]), queue.flush());
        }
    });
    std::process::exit(DONE)
}
