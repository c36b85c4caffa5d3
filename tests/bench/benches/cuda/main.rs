//! Compares our calls with raw driver calls on a CUDA device, alternating in one process; prints a table of ratios.
//!
//! The comparison of loading needs NVRTC.

#![allow(
    missing_docs,
    unsafe_code,
    clippy::print_stdout,
    reason = "a benchmark that calls the driver and reports"
)]

mod limits;
mod raw;

use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use raw::{Raw, ok};
use runtime_bench::median;
use runtime_core::dispatch::Dispatcher;
use runtime_core::{
    Arg, CodeFormat, CommonRuntime, DType, Element, Geometry, Kernel, ModuleSource, Options, Placement,
    Queue, Runtime, Tensor,
};

const PTX: &str = ".version 6.3\n.target sm_75\n.address_size 64\n.visible .entry touch(.param .u64 a, .param .u64 b, .param .u64 c, .param .f32 s)\n{\nret;\n}\n";
const CUDA_C: &str = "extern \"C\" __global__ void touch(float *a, float *b, float *c, float s) { if (s < 0) c[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x]; }";
/// Launches per batch: fewer than the capacity of a stream.
const BATCH: u64 = 400;
const ROUNDS: usize = 60;
const GIB: usize = 1 << 30;
const NODES: usize = 1000;

type Device = Arc<dyn CommonRuntime>;
type Part = fn(&Device, &Raw);

fn main() {
    if std::env::args().any(|argument| argument == "--list") {
        return;
    }
    let only = std::env::var("CUDA_BENCH_ONLY").unwrap_or_default();
    // Run only if named: they compare nothing.
    for (name, limit) in
        [("stress", limits::stress as fn()), ("memory", limits::memory), ("peers", limits::peers)]
    {
        if only.split(',').any(|wanted| wanted == name) {
            limit();
        }
    }
    let runtime = Runtime::new();
    let (Ok(device), Some(raw)) = (runtime.open("cuda"), Raw::open(PTX)) else {
        println!("no CUDA device here: nothing is compared");
        return;
    };
    let info = device.info();
    println!("{}, driver {}\n", info.name, info.driver_version.as_deref().unwrap_or_default());
    println!("| what | raw | ours | ratio |\n| --- | --- | --- | --- |");
    let parts: [(&str, Part); 10] = [
        ("submit", submit),
        ("dispatch", dispatch),
        ("signals", signals),
        ("threads", threads),
        ("wait", wait),
        ("graph", graph),
        ("allocate", allocate),
        ("rows", rows),
        ("load", load),
        ("pinned", pinned),
    ];
    for (name, part) in parts {
        if only.is_empty() || only.split(',').any(|wanted| wanted == name) {
            part(&device, &raw);
        }
    }
    drop(device);
    if only.is_empty() || only.contains("pageable") {
        pageable(&raw);
    }
}

/// Medians of two operations that alternate, so that both run under the same conditions.
fn compare(mut plain: impl FnMut() -> Duration, mut ours: impl FnMut() -> Duration) -> (f64, f64) {
    let (mut plain_ns, mut ours_ns) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS + 5 {
        let (first, second) = (plain(), ours());
        if round >= 5 {
            plain_ns.push(first.as_nanos() as f64);
            ours_ns.push(second.as_nanos() as f64);
        }
    }
    (median(plain_ns), median(ours_ns))
}

fn line(what: &str, (plain_ns, ours_ns): (f64, f64), calls: f64) {
    println!(
        "| {what} | {:.3} µs | {:.3} µs | {:.3}× |",
        plain_ns / calls / 1e3,
        ours_ns / calls / 1e3,
        ours_ns / plain_ns
    );
}

fn rate(what: &str, (plain_ns, ours_ns): (f64, f64), bytes: usize) {
    let bytes = bytes as f64;
    println!(
        "| {what} | {:.1} GB/s | {:.1} GB/s | {:.2}× |",
        bytes / plain_ns,
        bytes / ours_ns,
        plain_ns / ours_ns
    );
}

fn time(operation: impl FnOnce()) -> Duration {
    let begin = Instant::now();
    operation();
    begin.elapsed()
}

struct Fixture {
    queue: Queue,
    kernel: Kernel,
    tensors: [Tensor; 3],
}

impl Fixture {
    fn open(device: &Device) -> Self {
        // SAFETY: the kernel does nothing.
        let source = unsafe { ModuleSource::native(CodeFormat::PTX, PTX) };
        let kernel = device.kernel(&source, "touch").expect("the kernel loads");
        let queue = device.queue().expect("a queue opens");
        let tensors = std::array::from_fn(|_| tensor(device, 1024, "device"));
        Self { queue, kernel, tensors }
    }

    fn args(&self) -> [Arg<'_>; 4] {
        let [a, b, c] = &self.tensors;
        [Arg::read(a), Arg::read(b), Arg::write(c), Arg::scalar(3.0f32)]
    }

    #[inline]
    fn launch(&self) -> runtime_core::Event {
        self.queue.launch(&self.kernel, Geometry::single(), &self.args()).expect("the queue takes it")
    }
}

/// Kernels per round of [`dispatch`].
const DISPATCHES: usize = 10_000;

/// A dispatcher against a launch of its kernel, and kernels submitted against kernels called one after the other.
fn dispatch(device: &Device, _: &Raw) {
    let fixture = Fixture::open(device);
    // SAFETY: the kernel accesses one element of each tensor for each work-item of a group.
    let source = unsafe { ModuleSource::native(CodeFormat::CUDA_C, CUDA_C) };
    let builder = Dispatcher::builder("touch").source(source.clone());
    let builder = builder.signature("read_write f32, read_write f32, read_write f32, f32");
    let touch = builder.build().expect("a valid signature");
    let [a, b, c] = &fixture.tensors;
    let queue = device.default_queue().expect("a queue opens");
    let submit = || drop(touch.submit(1, &[], (a, b, c, 3.0f32)).expect("the queue takes it"));
    let kernel = device.kernel(&source, "touch").expect("the kernel loads");
    let args = [Arg::read_write(a), Arg::read_write(b), Arg::read_write(c), Arg::scalar(3.0f32)];
    let launch = || drop(queue.launch(&kernel, (1, 1), &args).expect("the queue takes it"));
    let many = |operation: &dyn Fn()| {
        let took = time(|| (0..DISPATCHES).for_each(|_| operation()));
        queue.wait_idle().expect("the queue ends");
        took
    };
    line("dispatch, against a launch", compare(|| many(&launch), || many(&submit)), DISPATCHES as f64);
    let until_done = |operation: &dyn Fn()| {
        time(|| {
            (0..DISPATCHES).for_each(|_| operation());
            queue.wait_idle().expect("the queue ends");
        })
    };
    let call = || touch.call(1, (a, b, c, 3.0f32)).expect("the kernel runs");
    let called = compare(|| until_done(&call), || until_done(&submit));
    line("10,000 kernels submitted, against called", called, DISPATCHES as f64);
}

fn tensor(device: &Device, count: usize, space: &str) -> Tensor {
    device.allocate(f32::DTYPE, &[count], &Placement::space(space)).expect("memory")
}

fn submit(device: &Device, raw: &Raw) {
    let fixture = Fixture::open(device);
    let plain = || {
        let elapsed = time(|| (0..BATCH).for_each(|_| raw.launch(raw.stream, 3.0)));
        raw.wait(raw.stream);
        elapsed
    };
    let dropped = || {
        let elapsed = time(|| (0..BATCH).for_each(|_| drop(fixture.launch())));
        fixture.queue.wait_idle().expect("the queue ends");
        elapsed
    };
    line("submit, event dropped", compare(plain, dropped), BATCH as f64);
    let mut held = None;
    let kept = || {
        let elapsed = time(|| (0..BATCH).for_each(|_| held = Some(fixture.launch())));
        fixture.queue.wait_idle().expect("the queue ends");
        elapsed
    };
    line("submit, event kept", compare(plain, kept), BATCH as f64);
}

/// The cost of the driver's ways to signal a launch: one event reused, one event each, or a word in memory.
fn signals(_device: &Device, raw: &Raw) {
    let events: Vec<_> = (0..BATCH).map(|_| raw.open_event()).collect();
    let launches = |mark: &mut dyn FnMut(usize)| {
        let elapsed = time(|| {
            (0..events.len()).for_each(|index| {
                raw.launch(raw.stream, 3.0);
                mark(index);
            });
        });
        raw.wait(raw.stream);
        elapsed
    };
    let word = raw.open_word();
    let plain = || launches(&mut |_| {});
    for (what, count) in [("one event", 1), ("32 events by turns", 32), ("an event each", events.len())] {
        let ours = || launches(&mut |index| raw.record(events[index % count], raw.stream));
        line(&format!("raw launch, and raw with {what} recorded"), compare(plain, ours), BATCH as f64);
    }
    let ours = || launches(&mut |index| raw.write_word(word, index as u64 + 1));
    line("raw launch, and raw with a word written", compare(plain, ours), BATCH as f64);
}

fn threads(device: &Device, raw: &Raw) {
    const THREADS: usize = 16;
    let fixtures: Vec<_> = (0..THREADS).map(|_| Fixture::open(device)).collect();
    let streams: Vec<_> = (0..THREADS).map(|_| raw.open_stream().expose_provenance()).collect();
    let each = |work: &(dyn Fn(usize) + Sync)| {
        let barrier = Barrier::new(THREADS);
        let elapsed = std::sync::Mutex::new(Duration::ZERO);
        std::thread::scope(|scope| {
            for index in 0..THREADS {
                let (barrier, elapsed) = (&barrier, &elapsed);
                scope.spawn(move || {
                    raw.enter();
                    barrier.wait();
                    let took = time(|| work(index));
                    let mut longest = elapsed.lock().expect("no panic");
                    *longest = took.max(*longest);
                });
            }
        });
        *elapsed.lock().expect("no panic")
    };
    let stream = |index: usize| std::ptr::with_exposed_provenance_mut(streams[index]);
    let plain = || {
        let elapsed = each(&|index| (0..BATCH).for_each(|_| raw.launch(stream(index), 3.0)));
        (0..THREADS).for_each(|index| raw.wait(stream(index)));
        elapsed
    };
    let ours = || {
        let elapsed = each(&|index| (0..BATCH).for_each(|_| drop(fixtures[index].launch())));
        fixtures.iter().for_each(|fixture| fixture.queue.wait_idle().expect("the queue ends"));
        elapsed
    };
    line(
        "submit from 16 threads, a queue each, per launch of all",
        compare(plain, ours),
        (BATCH * THREADS as u64) as f64,
    );
}

fn wait(device: &Device, raw: &Raw) {
    const CALLS: u64 = 200;
    let fixture = Fixture::open(device);
    let plain = || {
        time(|| {
            (0..CALLS).for_each(|_| {
                raw.launch(raw.stream, 3.0);
                raw.wait(raw.stream);
            });
        })
    };
    let ours = || time(|| (0..CALLS).for_each(|_| fixture.launch().wait().expect("the kernel ends")));
    line("launch + wait", compare(plain, ours), CALLS as f64);
    let event = raw.open_event();
    let looks = |wait: &dyn Fn()| {
        time(|| {
            (0..CALLS).for_each(|_| {
                raw.launch(raw.stream, 3.0);
                wait();
            });
        })
    };
    let (by_stream, by_event) = (|| looks(&|| raw.wait_by_stream()), || looks(&|| raw.wait_by_event(event)));
    line("raw launch + wait, and raw that asks the stream", compare(plain, by_stream), CALLS as f64);
    line("raw launch + wait, and raw that asks an event", compare(plain, by_event), CALLS as f64);
}

fn graph(device: &Device, raw: &Raw) {
    let fixture = Fixture::open(device);
    let executable = raw.graph(NODES);
    let recorded = fixture.queue.record(|recorder| {
        let launch = |_| recorder.launch(&fixture.kernel, Geometry::single(), &fixture.args()).map(drop);
        (0..NODES).try_for_each(launch)
    });
    let replayed = recorded.and_then(|graph| fixture.queue.instantiate(&graph)).expect("the graph is built");
    assert!(replayed.is_native(), "the graph is the driver's");
    let plain = || {
        time(|| {
            // SAFETY: graph and stream are alive.
            ok(unsafe { (raw.calls.cuGraphLaunch)(executable, raw.stream) });
            raw.wait(raw.stream);
        })
    };
    let ours =
        || time(|| fixture.queue.replay(&replayed).and_then(|event| event.wait()).expect("the graph ends"));
    line("graph replay, per node of 1000", compare(plain, ours), NODES as f64);
}

fn allocate(device: &Device, raw: &Raw) {
    const CALLS: usize = 500;
    const BYTES: usize = 1 << 20;
    raw.keep_freed();
    let queue = device.queue().expect("a queue opens");
    let once = |sync: bool| {
        let mut address = 0;
        // SAFETY: the out-parameter is writable and the stream alive.
        ok(unsafe { (raw.calls.cuMemAllocAsync)(&raw mut address, BYTES, raw.stream) });
        if sync {
            raw.wait(raw.stream);
        }
        // SAFETY: allocated above.
        ok(unsafe { (raw.calls.cuMemFreeAsync)(address, raw.stream) });
    };
    let raw_calls = |sync: bool| {
        let elapsed = time(|| (0..CALLS).for_each(|_| once(sync)));
        raw.wait(raw.stream);
        elapsed
    };
    let placement = Placement::default();
    let on_queue = || {
        let elapsed = time(|| {
            (0..CALLS).for_each(|_| drop(queue.allocate(DType::U8, &[BYTES], &placement).expect("memory")));
        });
        queue.wait_idle().expect("the queue ends");
        elapsed
    };
    line("allocate + free 1 MiB on a queue", compare(|| raw_calls(false), on_queue), CALLS as f64);
    let anywhere = || {
        time(|| {
            (0..CALLS).for_each(|_| drop(device.allocate(DType::U8, &[BYTES], &placement).expect("memory")));
        })
    };
    line(
        "allocate + free 1 MiB for any use, raw synchronised",
        compare(|| raw_calls(true), anywhere),
        CALLS as f64,
    );
}

/// Copies a quarter of the columns of a 64 MiB matrix to a contiguous tensor.
fn rows(device: &Device, raw: &Raw) {
    const ROWS: usize = 4096;
    const COLUMNS: usize = 4096;
    let queue = device.queue().expect("a queue opens");
    let dense = tensor(device, ROWS * COLUMNS / 4, "device").reshape(&[ROWS, COLUMNS / 4]).expect("as many");
    let (mut address, mut there, mut host) = (0, 0, std::ptr::null_mut());
    // SAFETY: the out-parameters are writable.
    ok(unsafe { (raw.calls.cuMemAlloc_v2)(&raw mut there, ROWS * COLUMNS) });
    // SAFETY: as above.
    ok(unsafe { (raw.calls.cuMemAlloc_v2)(&raw mut address, ROWS * COLUMNS * 4) });
    // SAFETY: as above.
    ok(unsafe { (raw.calls.cuMemHostAlloc)(&raw mut host, ROWS * COLUMNS * 4, 0) });
    for (space, from) in [("device", address), ("pinned", host.expose_provenance() as u64)] {
        let matrix = tensor(device, ROWS * COLUMNS, space).reshape(&[ROWS, COLUMNS]).expect("as many");
        let block = matrix.slice(1, 512..512 + COLUMNS / 4).expect("a block of columns");
        let plain = || {
            time(|| {
                raw.copy_2d((there, COLUMNS), (from + 2048, COLUMNS * 4), COLUMNS, ROWS);
                raw.wait(raw.stream);
            })
        };
        let ours =
            || time(|| queue.copy(&dense, &block).and_then(|event| event.wait()).expect("the copy ends"));
        rate(&format!("columns of a matrix, {space} to device"), compare(plain, ours), ROWS * COLUMNS);
    }
}

/// Loading of code that the code cache has, in memory or on disk, beside reading a file and `cuModuleLoadData`.
fn load(device: &Device, raw: &Raw) {
    const CALLS: usize = 50;
    // SAFETY: the kernel does nothing.
    let source = unsafe { ModuleSource::native(CodeFormat::CUDA_C, CUDA_C) };
    let Ok(compiled) = device.compile(&source).map(|compiled| compiled.native) else {
        println!("| load | NVRTC is missing | | |");
        return;
    };
    let path = std::env::temp_dir().join(format!("cuda-bench-{}.cubin", std::process::id()));
    std::fs::write(&path, &compiled.code).expect("the cubin can be written");
    let read_and_load = || {
        let code = std::fs::read(&path).expect("the cubin is readable");
        let (module, _) = raw.load(code.as_ptr().cast(), c"touch");
        // SAFETY: loaded above.
        ok(unsafe { (raw.calls.cuModuleUnload)(module) });
    };
    let plain = || time(|| (0..CALLS).for_each(|_| read_and_load()));
    // SAFETY: as above.
    let cubin = unsafe { ModuleSource::native(CodeFormat::CUBIN, compiled.code.clone()) };
    for (what, source) in [("a cubin", &cubin), ("CUDA C, warm from disk", &source)] {
        let ours =
            || time(|| (0..CALLS).for_each(|_| drop(device.kernel(source, "touch").expect("it loads"))));
        line(&format!("load {what}, get the function, unload"), compare(plain, ours), CALLS as f64);
    }
    let kept = device.load(&source).expect("it loads");
    let ours = || time(|| (0..CALLS).for_each(|_| drop(device.load(&source).expect("it loads"))));
    line("load what is loaded already", compare(plain, ours), CALLS as f64);
    drop(kept);
    // Nothing depends on it any more.
    let _ = std::fs::remove_file(&path);
}

/// Fewer rounds: each copies 1 GiB.
fn copies(mut plain: impl FnMut(), mut ours: impl FnMut()) -> (f64, f64) {
    let (mut plain_ns, mut ours_ns) = (Vec::new(), Vec::new());
    for round in 0..8 {
        let (first, second) = (time(&mut plain), time(&mut ours));
        if round > 0 {
            plain_ns.push(first.as_nanos() as f64);
            ours_ns.push(second.as_nanos() as f64);
        }
    }
    (median(plain_ns), median(ours_ns))
}

fn pinned(device: &Device, raw: &Raw) {
    let queue = device.queue().expect("a queue opens");
    let (there, here) = (tensor(device, GIB / 4, "device"), tensor(device, GIB / 4, "pinned"));
    let mut address = 0;
    // SAFETY: the out-parameter is writable.
    ok(unsafe { (raw.calls.cuMemAlloc_v2)(&raw mut address, GIB) });
    let mut host = std::ptr::null_mut();
    // SAFETY: the out-parameter is writable.
    ok(unsafe { (raw.calls.cuMemHostAlloc)(&raw mut host, GIB, 0) });
    let up = || {
        // SAFETY: both have 1 GiB.
        ok(unsafe { (raw.calls.cuMemcpyHtoDAsync_v2)(address, host, GIB, raw.stream) });
        raw.wait(raw.stream);
    };
    let copy =
        |to: &Tensor, from: &Tensor| queue.copy(to, from).and_then(|event| event.wait()).expect("copied");
    rate("pinned 1 GiB to the device", copies(up, || copy(&there, &here)), GIB);
    let down = || {
        // SAFETY: both have 1 GiB.
        ok(unsafe { (raw.calls.cuMemcpyDtoHAsync_v2)(host, address, GIB, raw.stream) });
        raw.wait(raw.stream);
    };
    rate("pinned 1 GiB back", copies(down, || copy(&here, &there)), GIB);
    // SAFETY: allocated above.
    ok(unsafe { (raw.calls.cuMemFree_v2)(address) });
    // SAFETY: allocated above.
    ok(unsafe { (raw.calls.cuMemFreeHost)(host) });
}

/// Each setting in a separate `Runtime`, because the first opening of a device determines it.
fn pageable(raw: &Raw) {
    let mut host = vec![1_u8; GIB];
    let mut address = 0;
    // SAFETY: the out-parameter is writable.
    ok(unsafe { (raw.calls.cuMemAlloc_v2)(&raw mut address, GIB) });
    let tunings: &[(i64, i64)] = if std::env::var_os("CUDA_BENCH_SWEEP").is_some() {
        &[(1024, 3), (1024, 4), (1024, 6), (1024, 8), (1024, 12), (256, 8), (512, 8), (2048, 8), (4096, 8)]
    } else {
        &[(1024, 8), (1024, 6), (2048, 8)]
    };
    for &(slot, threads) in tunings {
        let options = Options::new().with("staging_slot_kib", slot).with("staging_threads", threads);
        let runtime = Runtime::new();
        let device = runtime.open_with("cuda", &options).expect("the device opens");
        let queue = device.queue().expect("a queue opens");
        let there = device.empty::<u8>([GIB]).expect("memory");
        let mut other = vec![2_u8; GIB];
        let plain = || {
            // SAFETY: both have 1 GiB.
            ok(unsafe { (raw.calls.cuMemcpyHtoDAsync_v2)(address, host.as_ptr().cast(), GIB, raw.stream) });
            raw.wait(raw.stream);
        };
        let ours = || queue.write(&there, &other).expect("written");
        rate(
            &format!("pageable 1 GiB to the device, {threads} threads, {slot} KiB"),
            copies(plain, ours),
            GIB,
        );
        let plain = || {
            // SAFETY: both have 1 GiB.
            ok(unsafe {
                (raw.calls.cuMemcpyDtoHAsync_v2)(host.as_mut_ptr().cast(), address, GIB, raw.stream)
            });
            raw.wait(raw.stream);
        };
        let ours = || queue.read(&there, &mut other).expect("read");
        rate(&format!("pageable 1 GiB back, {threads} threads, {slot} KiB"), copies(plain, ours), GIB);
        assert!(other.iter().all(|&byte| byte == 2), "what was written came back");
    }
}
