//! Counters: the list, sets, passes, and values around work.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use runtime_core::device::{CounterInfo, CounterSet};
use runtime_core::{Error, ErrorKind, abi};

use crate::case::{Failure, Requirement, Verdict, cases};
use crate::context::Context;
use crate::expect::{expect_all, expect_error};
use crate::wait;

const N: usize = 1000;
/// Few enough for a set of one pass on most devices, so that the cases stay fast.
const MAX_OPENED: usize = 4;

cases! {
    [Requirement::Capability(abi::CAP_COUNTERS)] => every_counter_is_named_and_described,
        the_list_does_not_change, an_unknown_counter_is_refused, sets_without_or_with_equal_names_are_refused,
        a_pass_that_has_not_begun_cannot_end, a_set_can_be_dropped_in_a_pass, a_set_keeps_its_device_open;
    [Requirement::Capability(abi::CAP_COUNTERS), Requirement::Kernel("scale_f32")] =>
        every_counter_has_a_value_or_a_reason, a_set_can_be_read_again;
    [Requirement::Queues] => counters_are_listed_or_unsupported;
}

/// Held by cases that count: a device may have one set in its passes at a time, and cases run in parallel.
fn exclusive() -> MutexGuard<'static, ()> {
    static COUNTING: Mutex<()> = Mutex::new(());
    COUNTING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn listed(context: &Context) -> Result<Vec<CounterInfo>, Failure> {
    match context.fixture().device().counters() {
        // For example a profiling library that is not installed.
        Err(error) if error.kind() == ErrorKind::Unavailable => Err(Failure::Unsupported(error.to_string())),
        listed => Ok(listed?),
    }
}

/// The names of some counters, available ones first.
fn some_names(context: &Context) -> Result<Vec<String>, Failure> {
    let mut counters = listed(context)?;
    counters.sort_by_key(|counter| counter.unavailable_reason.is_some());
    Ok(counters.into_iter().take(MAX_OPENED).map(|counter| counter.name).collect())
}

fn open(context: &Context) -> Result<CounterSet, Failure> {
    Ok(context.fixture().device().counter_set(&some_names(context)?)?)
}

fn every_counter_is_named_and_described(context: &Context) -> Verdict {
    let counters = listed(context)?;
    assert!(!counters.is_empty(), "the device declares counters and lists none");
    let mut names = HashSet::new();
    for counter in &counters {
        assert!(!counter.name.is_empty() && !counter.description.is_empty(), "{counter:?}");
        assert!(!counter.description.contains('\n'), "{counter:?}");
        assert!(names.insert(&counter.name), "{} twice", counter.name);
    }
    Ok(())
}

fn the_list_does_not_change(context: &Context) -> Verdict {
    assert_eq!(listed(context)?, listed(context)?);
    Ok(())
}

fn an_unknown_counter_is_refused(context: &Context) -> Verdict {
    listed(context)?;
    let names = ["no such counter"];
    let opened = context.fixture().device().counter_set(&names);
    expect_error("an unknown name", opened, ErrorKind::NotFound, &["no such counter"]).map(drop)
}

fn sets_without_or_with_equal_names_are_refused(context: &Context) -> Verdict {
    let (device, name) = (context.fixture().device(), some_names(context)?.remove(0));
    expect_error("no name", device.counter_set::<&str>(&[]), ErrorKind::InvalidArgument, &[])?;
    expect_error("a name twice", device.counter_set(&[&name, &name]), ErrorKind::InvalidArgument, &["twice"])
        .map(drop)
}

fn every_counter_has_a_value_or_a_reason(context: &Context) -> Verdict {
    let _exclusive = exclusive();
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let x = fixture.full(N, 1.0)?;
    let mut set = open(context)?;
    let mut passes = 0;
    let readings = set.measure(|| {
        passes += 1;
        match fixture.scale(&queue, &x, 2.0) {
            Ok(event) => wait::event(&event),
            Err(Failure::Error(error)) => Err(error),
            Err(other) => Err(Error::invalid(other.to_string())),
        }
    })?;
    assert_eq!(passes, set.passes());
    for (index, reading) in readings.iter().enumerate() {
        // A counter without a reading has a reason, or never got a register of the hardware.
        if let Some(reading) = reading {
            assert!(reading.value >= 0.0 && reading.counted > 0.0, "counter {index}: {reading:?}");
            assert!(set.unavailable_reason(index).is_none(), "counter {index} has a value and a reason");
        }
    }
    expect_all("once per pass", &x, 2f32.powi(i32::try_from(passes).unwrap_or(0)))
}

fn a_set_can_be_read_again(context: &Context) -> Verdict {
    let _exclusive = exclusive();
    let mut set = open(context)?;
    let first = set.measure(|| Ok(()))?;
    let again = set.measure(|| Ok(()))?;
    assert_eq!(first.len(), again.len());
    assert_eq!(set.read()?, again, "reading has no effect on the values");
    Ok(())
}

fn a_pass_that_has_not_begun_cannot_end(context: &Context) -> Verdict {
    let _exclusive = exclusive();
    let mut set = open(context)?;
    expect_error("end", set.end(), ErrorKind::InvalidArgument, &[])?;
    expect_error("read", set.read(), ErrorKind::InvalidArgument, &[])?;
    set.begin()?;
    expect_error("a second begin", set.begin(), ErrorKind::InvalidArgument, &[])?;
    expect_error("read in a pass", set.read(), ErrorKind::InvalidArgument, &[])?;
    Ok(set.end()?)
}

fn a_set_can_be_dropped_in_a_pass(context: &Context) -> Verdict {
    let _exclusive = exclusive();
    for _ in 0..3 {
        let mut set = open(context)?;
        set.begin()?;
    }
    open(context)?.measure(|| Ok(()))?;
    Ok(())
}

fn a_set_keeps_its_device_open(context: &Context) -> Verdict {
    let _exclusive = exclusive();
    let names = some_names(context)?;
    let device = context.runtime().open(context.name())?;
    let mut set = device.counter_set(&names)?;
    drop(device);
    set.measure(|| Ok(()))?;
    Ok(())
}

/// Without the capability a device must not pretend to have counters.
fn counters_are_listed_or_unsupported(context: &Context) -> Verdict {
    let device = context.fixture().device();
    let declared = context.info().capabilities.has(abi::CAP_COUNTERS);
    match device.counters() {
        Ok(_) => assert!(declared, "counters are listed, but the capability is missing"),
        Err(error) if declared => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
            expect_error("a set", device.counter_set(&["cycles"]), ErrorKind::Unsupported, &[])?;
        }
    }
    Ok(())
}
