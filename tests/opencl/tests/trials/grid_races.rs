//! Launches of one kernel with different numbers of groups, on queues of several threads: PoCL before 6.0 aborts if they overlap. The
//! stub aborts every time.

#![allow(clippy::unwrap_used, unsafe_code, reason = "a test that loads code")]

use std::process::ExitCode;
use std::time::Duration;

use libtest_mimic::{Failed, Trial};
use opencl::{DEADLINE, Driver, IcdFolder, current_program, stub};
use runtime_core::{
    Arg, CodeFormat, Device, Event, Geometry, Kernel, ModuleSource, Queue, Result, Runtime, Tensor,
};

/// Set in the child.
const CHILD: &str = "RUNTIME_TEST_OPENCL_GRID_RACES";
/// No launch takes this long.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Takes longer than it takes to submit the next launch.
const SLOW: u32 = 20_000_000;
const CODE: &str = "kernel void turns(global uint *x, uint n) {
    uint a = get_global_id(0);
    for (uint i = 0; i < n; i++) a = a * 3 + i;
    x[get_global_id(0)] = a;
}";

pub(crate) fn trials() -> Vec<Trial> {
    match Driver::Pocl.library() {
        Ok(_) => vec![Trial::test("grid_races::launches_of_one_kernel_are_kept_apart", on_stub)],
        Err(remedy) => vec![opencl::missing_trial(Driver::Pocl.requirement(), remedy)],
    }
}

fn on_stub() -> std::result::Result<(), Failed> {
    let icd_folder = IcdFolder::with_drivers(&[Driver::Pocl]).map_err(|(_, remedy)| remedy)?;
    let library = stub::build(icd_folder.path())?;
    let mut command = stub::command(&icd_folder, &current_program()?, &library, "grids")?;
    opencl::finish(command.env(CHILD, "1"), DEADLINE)?.success()?;
    Ok(())
}

/// What this process does instead of the tests, if one of them started it.
pub(crate) fn child() -> Option<ExitCode> {
    std::env::var_os(CHILD)?;
    // SAFETY: the backend of this workspace.
    let runtime = unsafe { Runtime::builder().discover(false).library(opencl::backend().unwrap()) }.build();
    let device = runtime.open("opencl:0").unwrap();
    let parts = [two_queues, a_held_queue, a_binary_that_is_read, growing_launches];
    parts.iter().try_for_each(|part| part(&device)).unwrap();
    Some(ExitCode::SUCCESS)
}

fn code() -> ModuleSource {
    // SAFETY: the kernel writes as many elements as it has items.
    unsafe { ModuleSource::native(CodeFormat::OPENCL_C, CODE) }
}

struct Subject {
    queue: Queue,
    kernel: Kernel,
    out: Tensor,
}

impl Subject {
    fn new(device: &Device) -> Result<Self> {
        let kernel = device.load(&code())?.kernel("turns")?;
        Ok(Self { queue: device.queue()?, kernel, out: device.zeros::<u32>([1 << 16])? })
    }

    fn launch(&self, groups: u32, turns: u32) -> Result<Event> {
        let args = [Arg::write(&self.out), Arg::scalar(turns)];
        self.queue.launch(&self.kernel, Geometry::new(groups, 16), &args)
    }
}

fn two_queues(device: &Device) -> Result<()> {
    let (a, b) = (Subject::new(device)?, Subject::new(device)?);
    let mut events = Vec::new();
    for groups in 1..4 {
        events.extend([a.launch(groups, SLOW)?, a.launch(groups + 1, 1)?, b.launch(groups + 1, SLOW)?]);
    }
    events.iter().try_for_each(|event| event.wait_timeout(TIMEOUT))
}

/// Launches on other queues do not wait for held ones, nor end the hold; held ones wait for these when the hold ends.
fn a_held_queue(device: &Device) -> Result<()> {
    let (a, b) = (Subject::new(device)?, Subject::new(device)?);
    let held = a.queue.hold()?;
    let first = a.launch(1, 1)?;
    b.launch(2, 1)?.wait_timeout(TIMEOUT)?;
    let second = b.launch(3, SLOW)?;
    assert!(held.resume()?, "nothing ended the hold early");
    [first, second].iter().try_for_each(|event| event.wait_timeout(TIMEOUT))
}

fn a_binary_that_is_read(device: &Device) -> Result<()> {
    let a = Subject::new(device)?;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("turns.bin").display().to_string();
    let event = a.launch(1, SLOW)?;
    device.load(&code().option("save_binary", path))?;
    event.wait_timeout(TIMEOUT)
}

fn growing_launches(device: &Device) -> Result<()> {
    let grow = |first: u32| {
        let subject = Subject::new(device)?;
        let events =
            (0..300).map(|step| subject.launch(first + 7 * step, 200)).collect::<Result<Vec<_>>>()?;
        events.iter().try_for_each(|event| event.wait_timeout(TIMEOUT))
    };
    std::thread::scope(|scope| {
        let threads = [1, 2, 3].map(|first| scope.spawn(move || grow(first)));
        threads.into_iter().try_for_each(|thread| thread.join().unwrap())
    })
}
