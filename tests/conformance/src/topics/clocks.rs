//! Clocks of timed evaluations: which are available, and that times carry the name of their clock.

use runtime_core::evaluate::{Clock, ClockChoice};
use runtime_core::{ErrorKind, abi};

use super::evaluation::{FillEvaluation, evaluate, measure};
use crate::case::{Requirement, Verdict, cases};
use crate::context::Context;
use crate::expect::expect_error;

cases! {
    [Requirement::Kernel("fill_f32")] => the_clock_is_named, times_come_without_counters,
        the_overhead_is_measured_where_it_can_be, the_submit_clock_works,
        a_clock_that_the_device_lacks_is_refused;
}

fn the_clock_is_named(context: &Context) -> Verdict {
    let measured = measure(context, |_| {})?;
    assert!(Clock::ALL.contains(&measured.clock) && !measured.clock.name().is_empty());
    let timestamps = context.info().capabilities.has(abi::CAP_TIMESTAMPS);
    assert!(timestamps || !measured.clock.is_device(), "a device clock on a device without timestamps");
    Ok(())
}

fn times_come_without_counters(context: &Context) -> Verdict {
    let measured = measure(context, |_| {})?;
    assert!(measured.samples_ns.iter().all(|sample| sample.is_finite() && *sample >= 0.0), "{measured:?}");
    let wall = measure(context, |evaluation| evaluation.timing.clock = ClockChoice::Use(Clock::HostWall))?;
    assert!(wall.samples_ns.iter().all(|sample| *sample > 0.0), "{wall:?}");
    Ok(())
}

fn the_overhead_is_measured_where_it_can_be(context: &Context) -> Verdict {
    let measured = measure(context, |_| {})?;
    let has_empty = context.info().capabilities.has(abi::CAP_NOOP_KERNEL);
    assert_eq!(measured.overhead_ns.is_some(), has_empty);
    assert!(measured.overhead_ns.is_none_or(|overhead| overhead >= 0.0 && overhead.is_finite()));
    Ok(())
}

fn the_submit_clock_works(context: &Context) -> Verdict {
    let measured =
        measure(context, |evaluation| evaluation.timing.clock = ClockChoice::Use(Clock::HostSubmit))?;
    assert_eq!((measured.clock, measured.samples_ns.len()), (Clock::HostSubmit, 5));
    Ok(())
}

fn a_clock_that_the_device_lacks_is_refused(context: &Context) -> Verdict {
    for clock in [Clock::DeviceKernel, Clock::DeviceBatch] {
        let subject = FillEvaluation::new(context.fixture())?;
        let mut evaluation = subject.evaluation(context.fixture())?;
        evaluation.timing.clock = ClockChoice::Use(clock);
        let measured = evaluate(context.fixture(), &mut evaluation);
        if context.info().capabilities.has(abi::CAP_TIMESTAMPS) {
            assert_eq!(measured?.clock, clock);
        } else {
            expect_error("clock", measured, ErrorKind::Unsupported, &[clock.name(), "host_wall"])?;
        }
    }
    Ok(())
}
