//! Where the time of a burst goes: driver calls one by one, and our launches one by one. Printed only on request, since it
//! compares nothing.

#![allow(unsafe_code, reason = "calls the driver: that is what is timed")]

use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::time::Instant;

use ash::vk;
use runtime_core::QueueOptions;

use crate::raw::Raw;
use crate::{BURST, Device, Fixture, ROUNDS, median, time};

static LOCKED: AtomicU32 = AtomicU32::new(0);

/// Bytes of a small transfer.
const COPIED: usize = 64 << 10;

type Record = fn(&Raw, vk::CommandBuffer);

/// Ways to record one launch.
const WAYS: [(&str, Record); 10] = [
    ("all, as by hand", |raw, commands| raw.dispatch(commands, 3.0)),
    ("barrier2 of storage, dispatch", |raw, commands| {
        raw.barrier(commands);
        bare(raw, commands);
    }),
    // A locked instruction waits until the driver's writes have completed: its commands may be in write-combining memory.
    ("barrier2 of storage, dispatch, a locked instruction", |raw, commands| {
        raw.barrier(commands);
        bare(raw, commands);
        LOCKED.fetch_add(1, Ordering::Relaxed);
    }),
    ("barrier of shaders and copies, dispatch", |raw, commands| {
        first(raw, commands, BOTH, BOTH, WRITTEN, ACCESSED);
        bare(raw, commands);
    }),
    ("barrier of shaders, dispatch", |raw, commands| {
        let shader = vk::PipelineStageFlags::COMPUTE_SHADER;
        let accessed = vk::AccessFlags::SHADER_READ | vk::AccessFlags::SHADER_WRITE;
        first(raw, commands, shader, shader, vk::AccessFlags::SHADER_WRITE, accessed);
        bare(raw, commands);
    }),
    ("barrier2 of shaders' storage, dispatch", |raw, commands| {
        use vk::{AccessFlags2 as Access, PipelineStageFlags2 as Stage};
        let (read, write) = (Access::SHADER_STORAGE_READ, Access::SHADER_STORAGE_WRITE);
        second(raw, commands, Stage::COMPUTE_SHADER, write, read | write);
        bare(raw, commands);
    }),
    ("barrier2 of storage and copies, dispatch", |raw, commands| {
        use vk::{AccessFlags2 as Access, PipelineStageFlags2 as Stage};
        let write = Access::SHADER_STORAGE_WRITE | Access::TRANSFER_WRITE;
        let read = Access::SHADER_STORAGE_READ | Access::TRANSFER_READ;
        second(raw, commands, Stage::COMPUTE_SHADER | Stage::ALL_TRANSFER, write, read | write);
        bare(raw, commands);
    }),
    ("barrier without memory, dispatch", |raw, commands| {
        let none = vk::DependencyFlags::empty();
        // SAFETY: the command buffer is being recorded.
        unsafe { raw.device.cmd_pipeline_barrier(commands, BOTH, BOTH, none, &[], &[], &[]) };
        bare(raw, commands);
    }),
    ("dispatch", bare),
    ("pipeline, constants, dispatch", |raw, commands| {
        raw.bind(commands, 3.0);
        bare(raw, commands);
    }),
];

const BOTH: vk::PipelineStageFlags = vk::PipelineStageFlags::from_raw(
    vk::PipelineStageFlags::COMPUTE_SHADER.as_raw() | vk::PipelineStageFlags::TRANSFER.as_raw(),
);
const WRITTEN: vk::AccessFlags = vk::AccessFlags::from_raw(
    vk::AccessFlags::SHADER_WRITE.as_raw() | vk::AccessFlags::TRANSFER_WRITE.as_raw(),
);
const ACCESSED: vk::AccessFlags = vk::AccessFlags::from_raw(
    WRITTEN.as_raw() | vk::AccessFlags::SHADER_READ.as_raw() | vk::AccessFlags::TRANSFER_READ.as_raw(),
);

fn bare(raw: &Raw, commands: vk::CommandBuffer) {
    // SAFETY: the command buffer is being recorded, and what the kernel needs was bound before.
    unsafe { raw.device.cmd_dispatch(commands, 1, 1, 1) };
}

fn first(
    raw: &Raw,
    commands: vk::CommandBuffer,
    from: vk::PipelineStageFlags,
    to: vk::PipelineStageFlags,
    written: vk::AccessFlags,
    accessed: vk::AccessFlags,
) {
    let barriers = [vk::MemoryBarrier::default().src_access_mask(written).dst_access_mask(accessed)];
    let none = vk::DependencyFlags::empty();
    // SAFETY: the command buffer is being recorded.
    unsafe { raw.device.cmd_pipeline_barrier(commands, from, to, none, &barriers, &[], &[]) };
}

fn second(
    raw: &Raw,
    commands: vk::CommandBuffer,
    stages: vk::PipelineStageFlags2,
    written: vk::AccessFlags2,
    accessed: vk::AccessFlags2,
) {
    let barriers = [vk::MemoryBarrier2::default()
        .src_stage_mask(stages)
        .src_access_mask(written)
        .dst_stage_mask(stages)
        .dst_access_mask(accessed)];
    let info = vk::DependencyInfo::default().memory_barriers(&barriers);
    // SAFETY: the command buffer is being recorded.
    unsafe { raw.device.cmd_pipeline_barrier2(commands, &info) };
}

/// A burst in batches of these sizes, submitted one by one: nanoseconds per launch, and to its end.
fn burst(raw: &mut Raw, commands: &[vk::CommandBuffer], sizes: &[u32], way: Record) -> [f64; 2] {
    let begin = Instant::now();
    for (commands, size) in commands.iter().zip(sizes) {
        raw.begin(*commands);
        raw.bind_all(*commands, 3.0);
        (0..*size).for_each(|_| way(raw, *commands));
        raw.submit(*commands);
    }
    let submitted = begin.elapsed();
    raw.wait();
    [submitted, begin.elapsed()].map(|elapsed| elapsed.as_nanos() as f64 / f64::from(BURST))
}

fn one_each(raw: &mut Raw, commands: &[vk::CommandBuffer]) -> [f64; 2] {
    let begin = Instant::now();
    for commands in commands {
        raw.begin(*commands);
        raw.dispatch(*commands, 3.0);
        raw.submit(*commands);
    }
    let submitted = begin.elapsed();
    raw.wait();
    [submitted, begin.elapsed()].map(|elapsed| elapsed.as_nanos() as f64 / f64::from(BURST))
}

/// Medians of a single sample, and after five hundred submissions, which fill the caches.
fn line(what: &str, raw: &mut Raw, each: &[vk::CommandBuffer], mut sample: impl FnMut(&mut Raw) -> f64) {
    let alone: Vec<f64> = (0..ROUNDS).map(|_| sample(raw)).collect();
    let behind = (0..ROUNDS).map(|_| {
        one_each(raw, each);
        sample(raw)
    });
    let behind: Vec<f64> = behind.collect();
    println!("| {what} | {:.1} ns | {:.1} ns |", median(alone), median(behind));
}

/// Alternates the ways of recording, because the machine's speed varies: nanoseconds per launch, and to its end.
fn ways(fixture: &Fixture, raw: &mut Raw, each: &[vk::CommandBuffer]) {
    let four = ("barrier2 of storage, dispatch; in four submissions", WAYS[1].1);
    let mut samples = vec![[const { Vec::new() }; 2]; WAYS.len() + 3];
    for _ in 0..ROUNDS {
        let mut all = vec![one_each(raw, each)];
        all.extend(WAYS.iter().map(|(_, way)| burst(raw, each, &[BURST], *way)));
        all.push(burst(raw, each, &[1, 7, 56, BURST - 64], four.1));
        all.push(fixture.timed_burst().map(|elapsed| elapsed.as_nanos() as f64 / f64::from(BURST)));
        for (samples, [submitted, ended]) in samples.iter_mut().zip(all) {
            samples[0].push(submitted);
            samples[1].push(ended);
        }
    }
    println!("\n| per launch of a burst | to submit | to the end |\n| --- | --- | --- |");
    let names = WAYS.iter().map(|(what, _)| *what).chain([four.0, "ours"]);
    for (what, [submitted, ended]) in std::iter::once("a submission for each").chain(names).zip(samples) {
        println!("| {what} | {:.1} ns | {:.1} ns |", median(submitted), median(ended));
    }
}

/// Prints what the driver's calls cost.
pub(crate) fn calls(device: &Device, raw: &mut Raw) {
    let each = raw.command_buffers(BURST);
    let fixture = Fixture::open(device, &QueueOptions::default());
    ways(&fixture, raw, &each);
    println!("\n| one call | alone | behind 500 submissions |\n| --- | --- | --- |");
    let commands = each[0];
    let empty = |raw: &mut Raw| {
        let begin = Instant::now();
        raw.begin(commands);
        raw.submit(commands);
        let elapsed = begin.elapsed();
        raw.wait();
        elapsed.as_nanos() as f64
    };
    line("begin, end and submit nothing", raw, &each, empty);
    for (what, launches) in [("begin what had one launch", 1), ("begin what had 500 launches", BURST)] {
        line(what, raw, &each, |raw| {
            burst(raw, &each, &[launches], WAYS[1].1);
            let elapsed = time(|| raw.begin(commands)).as_nanos() as f64;
            raw.submit(commands);
            raw.wait();
            elapsed
        });
        line(&format!("{what}, its pool reset"), raw, &each, |raw| {
            let (pool, own) = raw.command_buffer_of_its_own();
            burst(raw, &[own], &[launches], WAYS[1].1);
            let elapsed = time(|| {
                raw.reset(pool);
                raw.begin(own);
            });
            raw.submit(own);
            raw.wait();
            elapsed.as_nanos() as f64
        });
    }
    line("look at the semaphore", raw, &each, |raw| {
        let begin = Instant::now();
        raw.value();
        begin.elapsed().as_nanos() as f64
    });
    if let Some(buffer) = raw.reachable_buffer(COPIED as u64) {
        let data = vec![1u8; COPIED];
        let copy = |fenced: bool| {
            let begin = Instant::now();
            // SAFETY: the buffer is mapped, of this size, and the device does not use it.
            unsafe { buffer.mapped.copy_from_nonoverlapping(data.as_ptr(), COPIED) };
            if fenced {
                fence(Ordering::SeqCst);
            }
            begin.elapsed().as_nanos() as f64
        };
        line("copy 64 KiB into memory that the program reaches", raw, &each, |_| copy(false));
        line("the same, and wait until it is there", raw, &each, |_| copy(true));
    }
    launch_by_launch(&fixture, raw, &each);
}

/// Our launches alone, for a profiler.
pub(crate) fn bursts(device: &Device, _raw: &mut Raw) {
    let fixture = Fixture::open(device, &QueueOptions::default());
    let samples: Vec<f64> =
        (0..ROUNDS).map(|_| fixture.burst().as_nanos() as f64 / f64::from(BURST)).collect();
    println!("\nours: {:.1} ns per launch", median(samples));
}

/// Nanoseconds of each launch of ours: the median, and the slow ones.
fn launch_by_launch(fixture: &Fixture, raw: &mut Raw, each: &[vk::CommandBuffer]) {
    const SLOW: usize = 12;
    let mut samples = vec![Vec::new(); BURST as usize + 1];
    for _ in 0..ROUNDS {
        one_each(raw, each);
        for sample in &mut samples[..BURST as usize] {
            sample.push(time(|| drop(fixture.launch())).as_nanos() as f64);
        }
        samples[BURST as usize].push(time(|| fixture.queue.flush().expect("taken")).as_nanos() as f64);
        fixture.queue.wait_idle().expect("the queue ends");
    }
    let medians: Vec<f64> = samples.into_iter().map(median).collect();
    let mut slow: Vec<(usize, f64)> = medians.iter().copied().enumerate().collect();
    slow.sort_by(|a, b| b.1.total_cmp(&a.1));
    let words: Vec<String> = slow[..SLOW].iter().map(|(at, ns)| format!("{at}: {ns:.0}")).collect();
    println!("\nours, launch by launch: median {:.0} ns, slow {}", median(medians), words.join(", "));
}
