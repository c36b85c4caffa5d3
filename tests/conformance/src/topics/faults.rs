//! Faults of the backend itself, injected by device options: refusals, panics, a device.

use runtime_core::{Arg, Error, ErrorKind, Options};

use crate::case::{Failure, Need, Verdict, cases};
use crate::context::Context;
use crate::data::{all, refused};
use crate::lab::Lab;
use crate::wait::{self, block_on};

cases! {
    [Need::Kernel("spin"), Need::Option("fail_call")] => a_refused_submission_poisons_nothing,
        a_refusal_after_a_wait_poisons_nothing, a_refused_transfer_is_an_error,
        a_refused_mark_loses_no_work, a_refusal_of_any_call_ends, an_allocation_that_fails_once_works_again,
        a_kind_crosses_the_seam;
    [Need::Kernel("spin"), Need::Option("panic_in")] => a_panic_is_an_error, a_panic_of_any_call_ends;
    [Need::Kernel("spin"), Need::Option("fail_ticket")] => a_failing_ticket_is_the_one,
        a_transfer_that_fails_is_an_error;
    [Need::Option("open_fails")] => a_device_that_does_not_open_says_why;
}

pub(super) fn faulty(
    context: &Context,
    key: &str,
    value: impl Into<runtime_core::Value>,
) -> Result<Lab, Failure> {
    context.reopen(&Options::new().with(key, value))
}

fn a_refused_submission_poisons_nothing(context: &Context) -> Verdict {
    let lab = faulty(context, "fail_call", "launch:2:out_of_resources")?;
    let (queue, x) = (lab.queue()?, lab.full(10, 1.0)?);
    let first = lab.scale(&queue, &x, 2.0)?;
    let again = lab.attempt(&queue, "scale_f32", &[Arg::read_write(&x), Arg::scalar(2.0f32)], 10)?;
    refused("the second", again, ErrorKind::OutOfResources, &["launch", context.name()])?;
    assert_eq!(queue.submitted(), 1);
    let third = lab.scale(&queue, &x, 3.0)?;
    assert_eq!(third.ticket(), 2);
    [first, third].iter().try_for_each(wait::done)?;
    all("twice, not three times", &x, 6.0)
}

fn a_refusal_after_a_wait_poisons_nothing(context: &Context) -> Verdict {
    let lab = faulty(context, "fail_call", "launch:3")?;
    let [a, b] = lab.queues()?;
    let (x, y, z) = (lab.full(10, 0.0)?, lab.full(10, 0.0)?, lab.full(1, 0.0)?);
    lab.delay(&a)?;
    let failing = lab.fail(&a, &z, &x)?;
    // It waits for the other queue, and is then refused: the wait must not tie what comes next to that failure.
    let dependent = lab.attempt(&b, "copy_f32", &[Arg::read(&x), Arg::write(&y)], 10)?;
    refused("the dependent", dependent, ErrorKind::Driver, &[])?;
    let next = lab.fill(&b, &y, 1.0)?;
    assert!(wait::done(&failing).is_err());
    wait::done(&next)?;
    all("of nobody's data", &y, 1.0)
}

fn a_refused_transfer_is_an_error(context: &Context) -> Verdict {
    let lab = faulty(context, "fail_call", "read:1")?;
    let x = lab.full(10, 1.0)?;
    refused("read", x.to_vec::<f32>(), ErrorKind::Driver, &["read"])?;
    all("the next one", &x, 1.0)
}

fn a_refused_mark_loses_no_work(context: &Context) -> Verdict {
    for nth in 1..=4 {
        let lab = faulty(context, "fail_call", format!("mark:{nth}"))?;
        let queue = lab.queue()?;
        // One of the waits and transfers is refused, whichever comes to the mark; it works when it is tried again.
        let x = lab.full(10, 1.0).or_else(|_| lab.full(10, 1.0))?;
        let event = lab.scale(&queue, &x, 2.0)?;
        wait::done(&event).or_else(|_| wait::done(&event))?;
        let data = x.to_vec::<f32>().or_else(|_| x.to_vec::<f32>())?;
        crate::data::same("done", &data, &[2.0; 10])?;
    }
    Ok(())
}

fn an_allocation_that_fails_once_works_again(context: &Context) -> Verdict {
    let lab = faulty(context, "fail_call", "allocate:2:out_of_memory")?;
    let _first = lab.full(10, 1.0)?;
    refused("the second", lab.full(10, 1.0), ErrorKind::OutOfMemory, &["allocate", context.name()])?;
    all("the third", &lab.full(10, 1.0)?, 1.0)
}

fn a_kind_crosses_the_seam(context: &Context) -> Verdict {
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
        let lab = faulty(context, "fail_call", format!("open_queue:1:{name}"))?;
        refused(name, lab.queue(), kind, &["open_queue", context.name(), "fail_call"])?;
    }
    Ok(())
}

/// The functions that [`use_everything`] calls, and whose end the caller is told.
const TOLD: [&str; 20] = [
    "allocate",
    "copy",
    "empty",
    "fill",
    "flush",
    "kernel",
    "launch",
    "load",
    "mark",
    "memory_usage",
    "open_device",
    "open_queue",
    "poll",
    "read",
    "read_timestamp",
    "telemetry",
    "timestamp",
    "wait",
    "wait_for",
    "write",
];

/// How many microseconds the first work lasts, in turn: `wait` is called only while it does, and a thread that the
/// machine holds up comes later.
const LASTS: [i64; 4] = [5_000, 50_000, 500_000, 5_000_000];

/// What went wrong while something was done.
#[derive(Debug, Default)]
struct Errors(Vec<Error>);

impl Errors {
    /// Passes an error over, and keeps it.
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

    /// Whether one of them is of this kind, and says who caused it.
    fn tell(&self, kind: ErrorKind, word: &str) -> bool {
        self.0.iter().any(|error| error.kind() == kind && error.to_string().contains(word))
    }
}

/// Expects that [`use_everything`] is told of what the options make fail in `slot`.
fn expect_told(context: &Context, options: &Options, slot: &str, kind: ErrorKind, word: &str) {
    for lasts in LASTS {
        let errors = use_everything(context, options, lasts).unwrap_or_default();
        if errors.tell(kind, word) {
            return;
        }
        let may_come_late = slot == "wait" && lasts != LASTS[LASTS.len() - 1];
        assert!(may_come_late, "{slot}: no error of kind {kind:?} says \"{word}\": {errors:?}");
    }
}

/// Does a little of everything, behind work of so many microseconds, and goes on after what fails; `None` if the options
/// are refused.
fn use_everything(context: &Context, options: &Options, lasts: i64) -> Option<Errors> {
    let mut errors = Errors::default();
    let device = match context.runtime().open_with(context.name(), options) {
        Err(error) if error.kind() == ErrorKind::InvalidArgument => return None,
        opened => errors.note(opened),
    };
    if let Some(device) = device {
        let lab = Lab::new(device, context.suite().clone());
        use_device(context, &lab, lasts, &mut errors);
    }
    Some(errors)
}

fn use_device(context: &Context, lab: &Lab, lasts: i64, errors: &mut Errors) {
    errors.note(lab.device().memory_usage(&context.info().spaces[0].name));
    errors.note(lab.device().telemetry());
    errors.note(lab.module().and_then(|module| Ok(module.symbols()?)));
    let (Some(queue), Some(other)) = (errors.note(lab.queue()), errors.note(lab.queue())) else { return };
    let (x, y) = (errors.note(lab.full(10, 1.0)), errors.note(lab.full(10, 1.0)));
    let (Some(x), Some(y)) = (x, y) else { return };
    let spins = lab.launch(&queue, "spin", &[Arg::scalar(lasts)], 1);
    let held = errors.note(spins.and_then(|_| lab.fill(&queue, &x, 2.0)));
    let copied = errors.note(lab.copy(&other, &x, &y));
    let submitted = [queue.fill(&x, &[1]), queue.copy(&y, &x), queue.empty()];
    let filled = submitted.map(|submitted| errors.note(submitted));
    errors.note(queue.write(&x, &[0; 40]));
    errors.note(queue.read(&y, &mut [0; 40]));
    if let Some(event) = errors.note(queue.timestamp()) {
        errors.note(wait::done(&event).and_then(|()| queue.read_timestamp(&event)));
    }
    errors.note(queue.flush());
    errors.note(queue.completed());
    errors.note(x.to_vec::<f32>());
    errors.note(y.write(&[0.0f32; 10]));
    for event in filled.into_iter().chain([held, copied]).flatten() {
        errors.note(event.is_done());
        errors.note(wait::done(&event));
        errors.note(block_on(event));
    }
    errors.note(wait::idle(&queue));
    errors.note(wait::idle(&other));
}

/// The functions that can be made to fail.
fn slots(context: &Context, key: &str) -> Vec<String> {
    context
        .target()
        .options
        .iter()
        .filter(|spec| spec.key == key)
        .flat_map(|spec| spec.choices.clone())
        .collect()
}

fn a_refusal_of_any_call_ends(context: &Context) -> Verdict {
    let slots = slots(context, "panic_in");
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
                // Without a copy or a wait on the device core goes another way.
                let helped = kind == ErrorKind::Unsupported && ["copy", "wait_for"].contains(&&*slot);
                if nth == 1 && TOLD.contains(&&*slot) && !helped {
                    expect_told(context, &options, &slot, kind, "fail_call");
                } else {
                    // Those that cannot fail are refused as options.
                    use_everything(context, &options, LASTS[0]);
                }
            }
        }
    }
    all("afterwards", &context.reopen(&Options::new())?.full(10, 1.0)?, 1.0)
}

fn a_panic_is_an_error(context: &Context) -> Verdict {
    let lab = faulty(context, "panic_in", "launch")?;
    let (queue, x) = (lab.queue()?, lab.full(10, 1.0)?);
    let launched = lab.attempt(&queue, "noop", &[], 1)?;
    refused("launch", launched, ErrorKind::Internal, &["launch", "panic"])?;
    assert_eq!(queue.submitted(), 0);
    wait::done(&queue.fill(&x, &[0])?)?;
    all("the queue goes on", &x, 0.0)
}

fn a_panic_of_any_call_ends(context: &Context) -> Verdict {
    let slots = slots(context, "panic_in");
    assert!(slots.len() > 10, "{slots:?}");
    for slot in slots {
        let options = Options::new().with("panic_in", &*slot);
        if TOLD.contains(&&*slot) {
            expect_told(context, &options, &slot, ErrorKind::Internal, "panic");
        } else {
            use_everything(context, &options, LASTS[0]);
        }
    }
    all("afterwards", &context.reopen(&Options::new())?.full(10, 1.0)?, 1.0)
}

fn a_failing_ticket_is_the_one(context: &Context) -> Verdict {
    let lab = faulty(context, "fail_ticket", 3)?;
    for queue in lab.queues::<2>()? {
        let events = (0..5).map(|_| lab.launch(&queue, "noop", &[], 1)).collect::<Vec<_>>();
        for (event, ticket) in events.into_iter().zip(1..) {
            let outcome = event.and_then(|event| Ok(wait::done(&event)?));
            assert_eq!(outcome.is_ok(), ticket < 3, "ticket {ticket}");
        }
    }
    Ok(())
}

fn a_transfer_that_fails_is_an_error(context: &Context) -> Verdict {
    let lab = faulty(context, "fail_ticket", 1)?;
    let (queue, x) = (lab.queue()?, lab.room::<f32>(10)?);
    refused("queue write", queue.write(&x, &[0; 40]), ErrorKind::Failed, &["ticket 1"])?;
    refused(
        "queue read",
        lab.queue()?.read(&lab.room::<f32>(10)?, &mut [0; 40]),
        ErrorKind::Failed,
        &["ticket 1"],
    )?;
    Ok(())
}

fn a_device_that_does_not_open_says_why(context: &Context) -> Verdict {
    let opened = context.runtime().open_with(context.name(), &Options::new().with("open_fails", true));
    refused("open", opened, ErrorKind::Driver, &["open", context.name(), "open_fails"]).map(drop)
}
