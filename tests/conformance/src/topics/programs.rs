//! Programs: long deterministic sequences of steps, compared with a model on the host.

use runtime_core::{Arg, Event, Options, Queue, Tensor};

use crate::case::{Requirement, Verdict, cases};
use crate::context::Context;
use crate::expect::expect_equal;
use crate::fixture::Fixture;
use crate::test_data::Random;
use crate::wait;

const N: usize = 256;
const STEPS: usize = 150;
const TENSORS: usize = 4;

cases! {
    [Requirement::Kernel("saxpy_f32")] => on_one_queue, on_two_queues, on_five_queues;
    [Requirement::Kernel("saxpy_f32"), Requirement::Option("delay_us")] => with_late_completions;
    [Requirement::Kernel("saxpy_f32"), Requirement::Option("needs_flush")] => with_batched_submissions;
    [Requirement::Kernel("saxpy_f32"), Requirement::Option("needs_signals")] => with_signals_alone;
    [Requirement::Kernel("saxpy_f32"), Requirement::Option("out_of_order")] => with_queues_out_of_order;
    [Requirement::Kernel("saxpy_f32"), Requirement::Option("fail_call")] => where_a_wait_on_the_device_is_refused;
}

/// A step: an operation on the tensor `to`.
#[derive(Clone, Copy)]
enum Step {
    Fill(f32),
    Copy,
    Subtract,
    Halve,
    Transfer,
    Pattern(f32),
    Pause,
    HostWrite,
}

impl Step {
    fn choose(random: &mut Random) -> Self {
        let value = f32::from(u8::try_from(random.below(100)).unwrap_or(0));
        match random.below(8) {
            0 => Self::Fill(value),
            1 => Self::Copy,
            2 => Self::Subtract,
            3 => Self::Halve,
            4 => Self::Transfer,
            5 => Self::Pattern(value),
            6 => Self::Pause,
            _ => Self::HostWrite,
        }
    }

    /// Runs the step on the device.
    fn run(
        self,
        fixture: &Fixture,
        queue: &Queue,
        (from, to): (&Tensor, &Tensor),
        source: &[f32],
    ) -> Result<Option<Event>, crate::case::Failure> {
        Ok(Some(match self {
            Self::Fill(value) => fixture.fill(queue, to, value)?,
            Self::Copy => fixture.copy(queue, from, to)?,
            Self::Subtract => fixture.launch(
                queue,
                "saxpy_f32",
                &[Arg::read(from), Arg::read_write(to), Arg::scalar(-1.0f32)],
                N,
            )?,
            Self::Halve => fixture.scale(queue, to, 0.5)?,
            Self::Transfer => queue.copy(to, from)?,
            Self::Pattern(value) => queue.fill(to, &value.to_le_bytes())?,
            Self::Pause => fixture.launch(queue, "spin", &[Arg::scalar(300i64)], 1)?,
            Self::HostWrite => {
                to.write(source)?;
                return Ok(None);
            }
        }))
    }

    /// Runs the step on the model.
    fn apply(self, source: &[f32], target: &mut [f32]) {
        match self {
            Self::Fill(value) | Self::Pattern(value) => target.fill(value),
            Self::Copy | Self::Transfer | Self::HostWrite => target.copy_from_slice(source),
            Self::Subtract => target.iter_mut().zip(source).for_each(|(y, x)| *y -= x),
            Self::Halve => target.iter_mut().for_each(|y| *y *= 0.5),
            Self::Pause => {}
        }
    }
}

/// Runs a program on `count` queues and compares all tensors with the model, at some steps and at the end.
fn program(fixture: &Fixture, count: usize, seed: u64) -> Verdict {
    let mut random = Random::new(seed);
    let mut model: Vec<_> = (0..TENSORS).map(|_| random.floats(N)).collect();
    let tensors = model.iter().map(|data| fixture.tensor(data)).collect::<Result<Vec<_>, _>>()?;
    let queues = (0..count).map(|_| fixture.queue()).collect::<Result<Vec<_>, _>>()?;
    let mut held = Vec::new();
    for number in 0..STEPS {
        let step = Step::choose(&mut random);
        let to = random.below(TENSORS);
        let from = (to + 1 + random.below(TENSORS - 1)) % TENSORS;
        let source = model[from].clone();
        let event =
            step.run(fixture, &queues[random.below(count)], (&tensors[from], &tensors[to]), &source)?;
        step.apply(&source, &mut model[to]);
        // Held events are signaled and dropped ones are not: cover both.
        held.extend(event.filter(|_| random.below(3) == 0));
        if random.below(20) == 0 {
            expect_equal(&format!("seed {seed}, step {number}"), &tensors[to].to_vec::<f32>()?, &model[to])?;
        }
        if random.below(10) == 0 {
            held.drain(..).try_for_each(|event| wait::event(&event))?;
        }
    }
    let check = |(tensor, model): (&Tensor, &Vec<f32>)| {
        expect_equal(&format!("seed {seed}, the end"), &tensor.to_vec::<f32>()?, model)
    };
    tensors.iter().zip(&model).try_for_each(check)?;
    queues.iter().try_for_each(|queue| Ok(wait::idle(queue)?))
}

fn programs(fixture: &Fixture, count: usize) -> Verdict {
    (1..=5).try_for_each(|seed| program(fixture, count, seed))
}

fn on_one_queue(context: &Context) -> Verdict {
    programs(context.fixture(), 1)
}

fn on_two_queues(context: &Context) -> Verdict {
    programs(context.fixture(), 2)
}

fn on_five_queues(context: &Context) -> Verdict {
    programs(context.fixture(), 5)
}

/// Runs on a simulated device with an option that a correct program must not notice.
fn with(context: &Context, options: &Options) -> Verdict {
    let fixture = context.reopen(options)?;
    [1, 2, 3].into_iter().try_for_each(|count| program(&fixture, count, 11))
}

fn with_late_completions(context: &Context) -> Verdict {
    with(context, &Options::new().with("delay_us", 200))
}

fn with_batched_submissions(context: &Context) -> Verdict {
    with(context, &Options::new().with("needs_flush", true))
}

fn with_signals_alone(context: &Context) -> Verdict {
    with(context, &Options::new().with("needs_signals", true))
}

fn with_queues_out_of_order(context: &Context) -> Verdict {
    with(context, &Options::new().with("out_of_order", true))?;
    with(
        context,
        &Options::new()
            .with("out_of_order", true)
            .with("delay_us", 100)
            .with("needs_flush", true)
            .with("needs_signals", true),
    )
}

fn where_a_wait_on_the_device_is_refused(context: &Context) -> Verdict {
    let refuse =
        |options: Options, nth: u32| options.with("fail_call", format!("wait_for:{nth}:unsupported"));
    with(context, &(1..=40).fold(Options::new(), refuse))
}
