//! Real counters: software events work in virtual machines; those of the processor work or have a reason.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use runtime_core::ErrorKind;

/// Touches fresh pages on a thread that exists before the pass.
fn touch_pages(pages: usize) {
    let page_bytes = usize::try_from(crate::platform::page_bytes()).unwrap();
    let mut fresh = vec![0u8; (pages + 1) * page_bytes];
    for page in 0..pages {
        // Volatile, so that the stores are not removed.
        std::hint::black_box(&mut fresh[page * page_bytes]).clone_from(&1);
    }
    std::hint::black_box(fresh);
}

#[test]
fn page_faults_of_a_thread_that_exists_are_counted() {
    let mut set = HostCounters::open(&["page-faults", "task-clock"]).unwrap();
    if let Some(reason) = &set.unavailable_reasons()[0] {
        assert!(reason.contains("perf_event_paranoid") || reason.contains("seccomp"), "{reason}");
        return;
    }
    let pages = 20_000;
    let (start, started) = std::sync::mpsc::channel::<()>();
    let (finish, finished) = std::sync::mpsc::channel();
    let worker = std::thread::spawn(move || {
        started.recv().unwrap();
        touch_pages(pages);
        finish.send(()).unwrap();
    });
    set.begin(0).unwrap();
    start.send(()).unwrap();
    finished.recv().unwrap();
    set.end().unwrap();
    worker.join().unwrap();
    let readings = set.read().unwrap();
    let faults = readings[0].unwrap();
    // Huge pages need fewer faults; other tests of this process may add some.
    assert!(faults.value >= pages as f64 / 512.0, "{faults:?}");
    assert!(readings[1].unwrap().value > 0.0, "{readings:?}");
}

#[test]
fn threads_started_in_the_pass_are_counted() {
    let mut set = HostCounters::open(&["task-clock"]).unwrap();
    if set.unavailable_reasons()[0].is_some() {
        return;
    }
    set.begin(0).unwrap();
    let busy = std::thread::spawn(|| {
        let start = std::time::Instant::now();
        while start.elapsed().as_millis() < 50 {
            std::hint::spin_loop();
        }
        cpu_time_ns()
    });
    let spent_ns = busy.join().unwrap();
    set.end().unwrap();
    let clock = set.read().unwrap()[0].unwrap();
    assert!(clock.value >= spent_ns * 0.5, "{clock:?}, the thread alone used {spent_ns} ns");
}

/// Processor time of the calling thread, from `/proc`.
fn cpu_time_ns() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split_whitespace().next().and_then(|ns| ns.parse().ok()).unwrap_or(0.0)
}

#[test]
fn every_listed_counter_has_a_value_or_a_reason() {
    for info in list() {
        let mut set = HostCounters::open(&[&info.name]).unwrap();
        set.begin(0).unwrap();
        set.end().unwrap();
        let readings = set.read().unwrap();
        match &info.unavailable_reason {
            Some(reason) => assert!(!reason.is_empty() && readings[0].is_none(), "{info:?}"),
            None => assert!(readings[0].is_none_or(|reading| reading.value >= 0.0), "{info:?}"),
        }
    }
}

#[test]
fn a_multiplexed_counter_is_extrapolated_and_marked() {
    let mut total = Total::default();
    total.add(100, 10, 10);
    assert_eq!(total.reading(), Some(CounterReading { value: 100.0, counted: 1.0, is_ratio: false }));
    total.add(50, 30, 10);
    assert_eq!(total.reading(), Some(CounterReading { value: 250.0, counted: 0.5, is_ratio: false }));
    let mut never = Total::default();
    never.add(0, 10, 0);
    assert_eq!(never.reading(), None, "it never counted");
    assert_eq!(Total::default().reading().unwrap().value, 0.0, "no thread ran");
}

#[test]
fn an_unknown_name_is_not_found() {
    assert_eq!(HostCounters::open(&["page-fault"]).unwrap_err().kind(), ErrorKind::NotFound);
}
