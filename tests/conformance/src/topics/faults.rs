//! Faults inside the backend, injected by device options: errors, panics, and a device that does not open.

use runtime_core::{Arg, Error, ErrorKind, Options};

use crate::case::{Failure, Requirement, Verdict, cases};
use crate::context::Context;
use crate::expect::{expect_all, expect_error};
use crate::fixture::Fixture;
use crate::wait::{self, block_on};

cases! {
    [Requirement::Kernel("spin"), Requirement::Option("fail_call")] => a_refused_submission_poisons_nothing,
        a_refusal_after_a_wait_poisons_nothing, a_refused_transfer_is_an_error,
        a_refused_signal_loses_no_work, a_refusal_of_any_call_ends, an_allocation_that_fails_once_works_again,
        an_error_kind_reaches_the_caller;
    [Requirement::Kernel("spin"), Requirement::Option("panic_in")] => a_panic_is_an_error, a_panic_of_any_call_ends;
    [Requirement::Kernel("spin"), Requirement::Option("fail_ticket")] => a_failing_ticket_is_the_one,
        a_transfer_that_fails_is_an_error;
    [Requirement::Option("open_fails")] => a_device_that_does_not_open_says_why;
}

pub(super) fn open_faulty(
    context: &Context,
    key: &str,
    value: impl Into<runtime_core::OptionValue>,
) -> Result<Fixture, Failure> {
    context.reopen(&Options::new().with(key, value))
}

fn a_refused_submission_poisons_nothing(context: &Context) -> Verdict {
    let fixture = open_faulty(context, "fail_call", "launch:2:out_of_resources")?;
    let (queue, x) = (fixture.queue()?, fixture.full(10, 1.0)?);
    let first = fixture.scale(&queue, &x, 2.0)?;
    let again = fixture.try_launch(&queue, "scale_f32", &[Arg::read_write(&x), Arg::scalar(2.0f32)], 10)?;
    expect_error("the second", again, ErrorKind::OutOfResources, &["launch", context.name()])?;
    assert_eq!(queue.submitted(), 1);
    let third = fixture.scale(&queue, &x, 3.0)?;
    assert_eq!(third.ticket(), 2);
    [first, third].iter().try_for_each(wait::event)?;
    expect_all("added twice, not three times", &x, 6.0)
}

fn a_refusal_after_a_wait_poisons_nothing(context: &Context) -> Verdict {
    let fixture = open_faulty(context, "fail_call", "launch:3")?;
    let [a, b] = fixture.queues()?;
    let (x, y, z) = (fixture.full(10, 0.0)?, fixture.full(10, 0.0)?, fixture.full(1, 0.0)?);
    fixture.delay(&a)?;
    let failing = fixture.fail(&a, &z, &x)?;
    // Waits for the other queue, then fails: the wait must not make the next submission fail.
    let dependent = fixture.try_launch(&b, "copy_f32", &[Arg::read(&x), Arg::write(&y)], 10)?;
    expect_error("the dependent", dependent, ErrorKind::Driver, &[])?;
    let next = fixture.fill(&b, &y, 1.0)?;
    assert!(wait::event(&failing).is_err());
    wait::event(&next)?;
    expect_all("depends on no failed data", &y, 1.0)
}

fn a_refused_transfer_is_an_error(context: &Context) -> Verdict {
    let fixture = open_faulty(context, "fail_call", "read:1")?;
    let x = fixture.full(10, 1.0)?;
    expect_error("read", x.to_vec::<f32>(), ErrorKind::Driver, &["read"])?;
    expect_all("the next one", &x, 1.0)
}

fn a_refused_signal_loses_no_work(context: &Context) -> Verdict {
    for nth in 1..=4 {
        let fixture = open_faulty(context, "fail_call", format!("signal:{nth}"))?;
        let queue = fixture.queue()?;
        // One of the waits and transfers hits the failing signal; it works when retried.
        let x = fixture.full(10, 1.0).or_else(|_| fixture.full(10, 1.0))?;
        let event = fixture.scale(&queue, &x, 2.0)?;
        wait::event(&event).or_else(|_| wait::event(&event))?;
        let data = x.to_vec::<f32>().or_else(|_| x.to_vec::<f32>())?;
        crate::expect::expect_equal("done", &data, &[2.0; 10])?;
    }
    Ok(())
}

fn an_allocation_that_fails_once_works_again(context: &Context) -> Verdict {
    let fixture = open_faulty(context, "fail_call", "allocate:2:out_of_memory")?;
    let _first = fixture.full(10, 1.0)?;
    expect_error("the second", fixture.full(10, 1.0), ErrorKind::OutOfMemory, &["allocate", context.name()])?;
    expect_all("the third", &fixture.full(10, 1.0)?, 1.0)
}

fn an_error_kind_reaches_the_caller(context: &Context) -> Verdict {
    let kinds = [
        ("driver", ErrorKind::Driver),
        ("unsupported", ErrorKind::Unsupported),
        ("invalid_argument", ErrorKind::InvalidArgument),
        ("out_of_memory", ErrorKind::OutOfMemory),
        ("out_of_resources", ErrorKind::OutOfResources),
        ("timeout", ErrorKind::Timeout),
        ("device_lost", ErrorKind::DeviceLost),
        ("internal", ErrorKind::Internal),
    ];
    for (name, kind) in kinds {
        let fixture = open_faulty(context, "fail_call", format!("open_queue:1:{name}"))?;
        expect_error(name, fixture.queue(), kind, &["open_queue", context.name(), "fail_call"])?;
    }
    Ok(())
}

/// The functions that [`use_everything`] calls and whose errors reach the caller.
const REPORTED: [&str; 22] = [
    "allocate",
    "copy",
    "fill",
    "flush",
    "kernel",
    "launch",
    "load",
    "signal",
    "memory_usage",
    "noop",
    "open_device",
    "open_queue",
    "poll",
    "read",
    "read_timestamp",
    "telemetry",
    "throttle_reasons",
    "processes",
    "timestamp",
    "wait",
    "wait_for",
    "write",
];

/// Durations of the first work in microseconds, tried in turn: `wait` is called only while the work runs, and on a
/// busy machine this thread may be late.
const WORK_US: [i64; 4] = [5_000, 50_000, 500_000, 5_000_000];

/// Collects errors.
#[derive(Debug, Default)]
struct Errors(Vec<Error>);

impl Errors {
    /// Stores an error and continues.
    fn note<T>(&mut self, result: Result<T, impl Into<Failure>>) -> Option<T> {
        match result.map_err(Into::into) {
            Ok(value) => Some(value),
            Err(Failure::Error(error)) => self.push(error),
            Err(failure) => self.push(Error::new(ErrorKind::Internal, failure.to_string())),
        }
    }

    fn push<T>(&mut self, error: Error) -> Option<T> {
        self.0.push(error);
        None
    }

    /// Whether there is an error of this kind that contains `word`.
    fn contains(&self, kind: ErrorKind, word: &str) -> bool {
        self.0.iter().any(|error| error.kind() == kind && error.to_string().contains(word))
    }
}

/// Expects that [`use_everything`] reports the fault that the options inject into `slot`.
fn expect_reported(context: &Context, options: &Options, slot: &str, kind: ErrorKind, word: &str) {
    for work_us in WORK_US {
        let errors = use_everything(context, options, work_us).unwrap_or_default();
        if errors.contains(kind, word) {
            return;
        }
        let may_come_late = slot == "wait" && work_us != WORK_US[WORK_US.len() - 1];
        assert!(may_come_late, "{slot}: no error of kind {kind:?} says \"{word}\": {errors:?}");
    }
}

/// Calls a bit of everything, behind work of so many microseconds, and continues after errors; `None` if the options
/// are rejected.
fn use_everything(context: &Context, options: &Options, work_us: i64) -> Option<Errors> {
    let mut errors = Errors::default();
    let device = match context.runtime().open_with(context.name(), options) {
        Err(error) if error.kind() == ErrorKind::InvalidArgument => return None,
        opened => errors.note(opened),
    };
    if let Some(device) = device {
        let fixture = Fixture::new(device, context.kernel_provider().clone());
        use_device(context, &fixture, work_us, &mut errors);
    }
    Some(errors)
}

fn use_device(context: &Context, fixture: &Fixture, work_us: i64, errors: &mut Errors) {
    errors.note(fixture.device().memory_usage(&context.info().spaces[0].name));
    errors.note(fixture.device().telemetry());
    errors.note(fixture.device().throttle_reasons());
    errors.note(fixture.device().processes());
    errors.note(fixture.module().and_then(|module| Ok(module.symbols()?)));
    let (Some(queue), Some(other)) = (errors.note(fixture.queue()), errors.note(fixture.queue())) else {
        return;
    };
    let (x, y) = (errors.note(fixture.full(10, 1.0)), errors.note(fixture.full(10, 1.0)));
    let (Some(x), Some(y)) = (x, y) else { return };
    let spins = fixture.launch(&queue, "spin", &[Arg::scalar(work_us)], 1);
    let held = errors.note(spins.and_then(|_| fixture.fill(&queue, &x, 2.0)));
    let copied = errors.note(fixture.copy(&other, &x, &y));
    let submitted = [queue.fill(&x, &[1]), queue.copy(&y, &x), queue.launch_noop()];
    let filled = submitted.map(|submitted| errors.note(submitted));
    errors.note(queue.write(&x, &[0; 40]));
    errors.note(queue.read(&y, &mut [0; 40]));
    if let Some(event) = errors.note(queue.timestamp()) {
        errors.note(wait::event(&event).and_then(|()| queue.read_timestamp(&event)));
    }
    errors.note(queue.flush());
    errors.note(queue.completed());
    errors.note(x.to_vec::<f32>());
    errors.note(y.write(&[0.0f32; 10]));
    for event in filled.into_iter().chain([held, copied]).flatten() {
        errors.note(event.is_done());
        errors.note(wait::event(&event));
        errors.note(block_on(event));
    }
    errors.note(wait::idle(&queue));
    errors.note(wait::idle(&other));
}

/// The functions that can be made to fail.
fn injectable_functions(context: &Context, key: &str) -> Vec<String> {
    context
        .target()
        .options
        .iter()
        .filter(|spec| spec.key == key)
        .flat_map(|spec| spec.choices.clone())
        .collect()
}

fn a_refusal_of_any_call_ends(context: &Context) -> Verdict {
    let slots = injectable_functions(context, "panic_in");
    assert!(slots.len() > 10, "{slots:?}");
    let kinds = [
        ("driver", ErrorKind::Driver),
        ("device_lost", ErrorKind::DeviceLost),
        ("unsupported", ErrorKind::Unsupported),
    ];
    for slot in slots {
        for (name, kind) in kinds {
            for nth in 1..=3 {
                let options = Options::new().with("fail_call", format!("{slot}:{nth}:{name}"));
                // Without copies or waits on the device, core falls back to another way.
                let helped = kind == ErrorKind::Unsupported && ["copy", "wait_for"].contains(&&*slot);
                if nth == 1 && REPORTED.contains(&&*slot) && !helped {
                    expect_reported(context, &options, &slot, kind, "fail_call");
                } else {
                    // Functions that cannot fail are rejected as options.
                    use_everything(context, &options, WORK_US[0]);
                }
            }
        }
    }
    expect_all("afterwards", &context.reopen(&Options::new())?.full(10, 1.0)?, 1.0)
}

fn a_panic_is_an_error(context: &Context) -> Verdict {
    let fixture = open_faulty(context, "panic_in", "launch")?;
    let (queue, x) = (fixture.queue()?, fixture.full(10, 1.0)?);
    let launched = fixture.try_launch(&queue, "noop", &[], 1)?;
    expect_error("launch", launched, ErrorKind::Internal, &["launch", "panic"])?;
    assert_eq!(queue.submitted(), 0);
    wait::event(&queue.fill(&x, &[0])?)?;
    expect_all("the queue still works", &x, 0.0)
}

fn a_panic_of_any_call_ends(context: &Context) -> Verdict {
    let slots = injectable_functions(context, "panic_in");
    assert!(slots.len() > 10, "{slots:?}");
    for slot in slots {
        let options = Options::new().with("panic_in", &*slot);
        if REPORTED.contains(&&*slot) {
            expect_reported(context, &options, &slot, ErrorKind::Internal, "panic");
        } else {
            use_everything(context, &options, WORK_US[0]);
        }
    }
    expect_all("afterwards", &context.reopen(&Options::new())?.full(10, 1.0)?, 1.0)
}

fn a_failing_ticket_is_the_one(context: &Context) -> Verdict {
    let fixture = open_faulty(context, "fail_ticket", 3)?;
    for queue in fixture.queues::<2>()? {
        let events = (0..5).map(|_| fixture.launch(&queue, "noop", &[], 1)).collect::<Vec<_>>();
        for (event, ticket) in events.into_iter().zip(1..) {
            let outcome = event.and_then(|event| Ok(wait::event(&event)?));
            assert_eq!(outcome.is_ok(), ticket < 3, "ticket {ticket}");
        }
    }
    Ok(())
}

fn a_transfer_that_fails_is_an_error(context: &Context) -> Verdict {
    let fixture = open_faulty(context, "fail_ticket", 1)?;
    let (queue, x) = (fixture.queue()?, fixture.uninitialized::<f32>(10)?);
    expect_error("queue write", queue.write(&x, &[0; 40]), ErrorKind::Failed, &["ticket 1"])?;
    expect_error(
        "queue read",
        fixture.queue()?.read(&fixture.uninitialized::<f32>(10)?, &mut [0; 40]),
        ErrorKind::Failed,
        &["ticket 1"],
    )?;
    Ok(())
}

fn a_device_that_does_not_open_says_why(context: &Context) -> Verdict {
    let opened = context.runtime().open_with(context.name(), &Options::new().with("open_fails", true));
    expect_error("open", opened, ErrorKind::Driver, &["open", context.name(), "open_fails"]).map(drop)
}
