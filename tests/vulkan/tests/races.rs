//! The validation layer's words reach the log: work whose order is taken away is a race, and is said to be one.

#![allow(unsafe_code, reason = "changes the table of a backend")]

use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use runtime_core::abi::{BackendTable, Handle, Launch, Place, QueueTable, Status};
use runtime_core::{Arg, Geometry, ModuleSource, QueueOptions, Runtime, Tensor};
use vulkan_tests::{Messages, VALIDATION, again, end, is_again, lavapipe, layer, missing, on};

const DEADLINE: Duration = Duration::from_secs(60);
/// Set where the order is taken away.
const DISORDER: &str = "VULKAN_TESTS_DISORDER";
/// One kernel writes what the other one only reads: what two kernels write, the layer takes for different elements.
const PASS_ON: &str = "
    @group(0) @binding(0) var<storage, read_write> x: array<f32>;
    @compute @workgroup_size(32) fn count(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&x) { x[id.x] += 1.0; }
    }
    @group(0) @binding(0) var<storage, read> from: array<f32>;
    @group(0) @binding(1) var<storage, read_write> to: array<f32>;
    @compute @workgroup_size(32) fn pass(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&to) { to[id.x] = from[id.x]; }
    }";

type LaunchCall = unsafe extern "C" fn(Handle, Place, Handle, *const Launch) -> Status;

fn main() -> ExitCode {
    if is_again() {
        return match work() {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    let trials = match (lavapipe(), layer()) {
        (Err(reason), _) => vec![missing("vulkan::races", "vulkan", reason)],
        (_, Err(reason)) => vec![missing("vulkan::races", "vulkan-validation", reason)],
        (Ok(driver), Ok(())) => {
            let other = driver.clone();
            vec![
                Trial::test("dependent_launches_are_in_order", move || {
                    let text = said(&driver.manifest, false)?;
                    if text.contains("messages: 0\n") { Ok(()) } else { Err(text.into()) }
                }),
                Trial::test("a_race_is_seen", move || {
                    let text = said(&other.manifest, true)?;
                    if text.contains("SYNC-HAZARD") { Ok(()) } else { Err(text.into()) }
                }),
            ]
        }
    };
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn said(manifest: &std::path::Path, disorder: bool) -> Result<String, Failed> {
    let mut command = again()?;
    on(&mut command, manifest).env(VALIDATION, "1");
    if disorder {
        command.env(DISORDER, "1");
    }
    let ended = end(&mut command, DEADLINE)?;
    if ended.status.success() {
        Ok(ended.text)
    } else {
        Err(format!("{}: {}", ended.status, ended.text).into())
    }
}

/// Launches that depend on one another; prints what was logged.
#[allow(clippy::print_stdout, reason = "the parent reads it")]
fn work() -> Result<(), String> {
    let messages = Messages::collect()?;
    let table = if std::env::var_os(DISORDER).is_some() { disordered() } else { runtime_vulkan::backend() };
    let runtime =
        Runtime::builder().discover(false).register(table).lower_with(runtime_kernel::wgsl()).build();
    pass_on(&runtime).map_err(|error| println!("{error}")).map_err(|()| String::new())?;
    drop(runtime);
    let list = messages.list();
    println!("messages: {}\n{}", list.len(), list.join("\n"));
    Ok(())
}

fn pass_on(runtime: &Runtime) -> runtime_core::Result<()> {
    let device = runtime.open("vulkan:0")?;
    let module = device.load(&ModuleSource::wgsl(PASS_ON))?;
    let (count, pass) = (module.kernel("count")?, module.kernel("pass")?);
    let queue = device.open_queue(&QueueOptions::default())?;
    let tensor = || Tensor::from_slice(&*device, &[64], &[0.0f32; 64]);
    let (x, y) = (tensor()?, tensor()?);
    for _ in 0..8 {
        drop(queue.launch(&count, &Geometry::cover(64, 32), &[Arg::read_write(&x)])?);
        drop(queue.launch(&pass, &Geometry::cover(64, 32), &[Arg::read(&x), Arg::write(&y)])?);
    }
    y.to_vec::<f32>().map(drop)
}

/// The backend's table, but for launches, which are told that they depend on nothing.
fn disordered() -> &'static BackendTable {
    let table = runtime_vulkan::backend();
    // SAFETY: the tables of a backend are static, and of this version of the crate.
    let mut queues: QueueTable = unsafe { std::ptr::read(table.queue) };
    if let Some(launch) = queues.launch {
        let _ = REAL.set(launch);
        queues.launch = Some(without_order);
    }
    // SAFETY: as above.
    let mut table: BackendTable = unsafe { std::ptr::read(table) };
    table.queue = Box::leak(Box::new(queues));
    Box::leak(Box::new(table))
}

static REAL: OnceLock<LaunchCall> = OnceLock::new();

unsafe extern "C" fn without_order(
    queue: Handle,
    place: Place,
    kernel: Handle,
    launch: *const Launch,
) -> Status {
    let real = REAL.get().expect("set before the table was given out");
    // SAFETY: the caller's arguments, but for the order.
    unsafe { real(queue, Place { after: 0, ..place }, kernel, launch) }
}
