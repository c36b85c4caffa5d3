//! A driver that refuses one submission in the middle: the work in it fails, with everything that depends on it, and nothing else
//! does. Every submission of a random program on three queues is refused once, each time in its own process, on the stub.

#![allow(clippy::print_stdout, reason = "the parent reads it")]

use std::process::ExitCode;
use std::time::Duration;

use libtest_mimic::{Failed, Trial};
use runtime_core::{
    Arg, Device, Error, ErrorKind, Event, Geometry, Kernel, ModuleSource, Queue, Result, Runtime, Tensor,
};
use vulkan_tests::{Driver, finish, install_stub, lavapipe, missing, respawn, use_driver};

const DEADLINE: Duration = Duration::from_secs(180);
/// For work that never ends: other tests may keep the processors for many seconds.
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);
/// Submissions to refuse: all of the program, and those that create its tensors.
const SUBMISSIONS: u32 = 24;
const STEPS: usize = 40;
/// Steps between two polls, each of which submits what was recorded.
const POLL_INTERVAL: usize = 3;
const QUEUES: usize = 3;
const TENSORS: usize = 4;
const ELEMENTS: usize = 64;
const NEXT: &str = "
    @group(0) @binding(0) var<storage, read> x: array<u32>;
    @group(0) @binding(1) var<storage, read_write> y: array<u32>;
    @compute @workgroup_size(64) fn next(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&y) { y[id.x] = x[id.x] + 1u; }
    }";

pub(crate) fn trials() -> Vec<Trial> {
    match lavapipe() {
        Err(reason) => vec![missing("vulkan::refused_submissions", "vulkan", reason)],
        Ok(driver) => {
            vec![Trial::test(
                "refused_submissions::a_refused_submission_fails_what_depends_on_it",
                move || refuse_each(&driver),
            )]
        }
    }
}

fn refuse_each(driver: &Driver) -> std::result::Result<(), Failed> {
    let mut partial = 0;
    for submission in 1..=SUBMISSIONS {
        let folder = tempfile::tempdir()?;
        let mut command = respawn("refused_submissions")?;
        use_driver(&mut command, &install_stub(folder.path())?.manifest)
            .env("STUB_VULKAN", format!("real={},fail=vkQueueSubmit:-2:{submission}", driver.library));
        let ended = finish(&mut command, DEADLINE)?;
        if !ended.status.success() {
            return Err(format!("submission {submission}: {}: {}", ended.status, ended.text()).into());
        }
        partial += u32::from(ended.text().contains("partial"));
    }
    if partial < SUBMISSIONS / 2 {
        Err(format!("only {partial} failed in the middle").into())
    } else {
        Ok(())
    }
}

pub(crate) fn child() -> ExitCode {
    let builder = Runtime::builder().discover(false).register(runtime_vulkan::backend());
    let runtime = builder.with_lowering(runtime_kernel::wgsl()).build();
    let opened = runtime.open("vulkan:0").and_then(|device| Program::open(&device));
    let mut program = match opened {
        Ok(program) => program,
        // The submission that was refused belongs to a tensor.
        Err(error) => {
            println!("not started: {error}");
            return if error.kind() == ErrorKind::OutOfMemory {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            };
        }
    };
    match program.run() {
        Ok(failed) => {
            println!(
                "{failed} of {STEPS} failed{}",
                if failed > 0 && failed < STEPS { ": partial" } else { "" }
            );
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// A launch of `next`.
struct Step {
    queue: usize,
    from: usize,
    to: usize,
    /// `None` if it was refused, because of a failure that was known already.
    event: Option<Event>,
}

struct Program {
    next: Kernel,
    queues: Vec<Queue>,
    tensors: Vec<Tensor>,
    random: u64,
}

impl Program {
    fn open(device: &Device) -> Result<Self> {
        let next = device.kernel(ModuleSource::wgsl(NEXT), "next")?;
        let queues = (0..QUEUES).map(|_| device.queue()).collect::<Result<_>>()?;
        let zeros = |_| device.tensor([ELEMENTS], &[0u32; ELEMENTS]);
        let tensors = (0..TENSORS).map(zeros).collect::<Result<_>>()?;
        Ok(Self { next, queues, tensors, random: 7 })
    }

    fn below(&mut self, limit: usize) -> usize {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(self.random >> 33).unwrap_or(0) % limit
    }

    /// Runs the steps, and checks what failed; returns how many did.
    fn run(&mut self) -> Result<usize> {
        let mut steps = Vec::new();
        for number in 0..STEPS {
            let step = self.launch()?;
            if let Some(event) = step.event.as_ref().filter(|_| number % POLL_INTERVAL == 0) {
                event.is_done().or_else(|error| expect_refusal(&error).map(|()| true))?;
            }
            steps.push(step);
        }
        self.check(&steps)
    }

    fn launch(&mut self) -> Result<Step> {
        let (queue, from) = (self.below(QUEUES), self.below(TENSORS));
        let to = (from + 1 + self.below(TENSORS - 1)) % TENSORS;
        let args = [Arg::read(&self.tensors[from]), Arg::write(&self.tensors[to])];
        let launched = self.queues[queue].launch(&self.next, Geometry::cover(64, 64), &args);
        launched.as_ref().err().map_or(Ok(()), expect_refusal)?;
        Ok(Step { queue, from, to, event: launched.ok() })
    }

    fn check(&self, steps: &[Step]) -> Result<usize> {
        let mut failed_queues = [false; QUEUES];
        // The value of each tensor; `None` if its last writer failed.
        let mut values = [Some(0); TENSORS];
        let (mut failed, mut origins) = (0, 0);
        for (at, step) in steps.iter().enumerate() {
            let outcome = step.event.as_ref().map(|event| event.wait_timeout(WAIT_TIMEOUT));
            let succeeded = matches!(outcome, Some(Ok(())));
            // A launch may leave a part of what it writes, so that a failure of the earlier writer remains.
            let are_valid = values[step.from].is_some() && values[step.to].is_some();
            let may_succeed = are_valid && !failed_queues[step.queue];
            match outcome {
                Some(Ok(())) if !may_succeed => return fail(format!("step {at} succeeded behind a failure")),
                Some(Err(error)) => expect_refusal(&error)?,
                None if may_succeed => return fail(format!("step {at} was refused without a failure")),
                _ => {}
            }
            if step.event.is_some() {
                values[step.to] = values[step.from].filter(|_| succeeded).map(|value| value + 1);
                failed_queues[step.queue] |= !succeeded;
            }
            origins += u32::from(!succeeded && may_succeed);
            failed += usize::from(!succeeded);
        }
        self.check_contents(&values, failed > 0)?;
        if origins > 1 { fail(format!("{origins} queues failed by themselves")) } else { Ok(failed) }
    }

    fn check_contents(&self, values: &[Option<u32>; TENSORS], failed: bool) -> Result<()> {
        for (tensor, value) in self.tensors.iter().zip(values) {
            match (tensor.to_vec::<u32>(), value) {
                (Ok(data), Some(value)) if data.iter().all(|element| element == value) => {}
                (Err(error), None) => expect_refusal(&error)?,
                // The refused submission was the read.
                (Err(error), Some(_)) if !failed => expect_refusal(&error)?,
                (contents, value) => return fail(format!("{contents:?} instead of {value:?}")),
            }
        }
        Ok(())
    }
}

/// Checks that an error is, or results from, the refusal.
fn expect_refusal(error: &Error) -> Result<()> {
    let is_refusal = error.kind() == ErrorKind::OutOfMemory && error.to_string().contains("vkQueueSubmit");
    if is_refusal { Ok(()) } else { fail(format!("another error: {error}")) }
}

fn fail<T>(message: String) -> Result<T> {
    Err(Error::new(ErrorKind::Failed, message))
}
