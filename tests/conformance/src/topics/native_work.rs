//! Work that the program hands to the driver itself, in order with a queue.

use runtime_core::fusion::FusionOptions;
use runtime_core::queue::NativeHandles;
use runtime_core::{Error, ErrorKind, Event, Placement, Queue, Tensor, read, read_write, write};

use crate::case::{Failure, Requirement, Verdict, cases};
use crate::context::Context;
use crate::expect::{expect_all, expect_error};
use crate::foreign::Foreign;
use crate::test_data::Random;
use crate::wait;

cases! {
    [Requirement::Queues] => the_handles_of_a_device_and_a_tensor_are_listed, only_tensors_are_listed_as_uses,
        a_queue_that_is_not_of_the_device_is_refused, an_error_of_the_work_is_returned, a_panic_of_the_work_is_an_error, work_cannot_use_its_own_queue_or_tensors;
    [Requirement::Kernel("scale_f32")] => native_work_runs_between_two_launches,
        native_work_waits_for_other_queues, native_work_is_in_order_in_random_lists,
        a_queue_goes_on_after_native_work_that_failed, native_work_of_a_fuser_is_in_order,
        tensors_and_queues_may_be_dropped_at_once, an_event_of_native_work_is_waited_for, work_on_a_queue_of_the_program_is_in_order;
    [Requirement::Kernel("fail")] => native_work_on_a_failed_result_fails;
}

const N: usize = 64;
/// Lists of random work; ten times as many if everything is tested.
const LISTS: usize = 1000;

/// Where the driver can copy without the runtime: on the host in memory that it can address.
fn placement(context: &Context, driver: &Foreign) -> Result<Placement, Failure> {
    match driver {
        Foreign::Host => context.fixture().host_visible_placement().ok_or_else(|| {
            Failure::Unsupported(
                "the device has neither a driver nor memory that the host can address".to_owned(),
            )
        }),
        _ => Ok(Placement::default()),
    }
}

/// Tensors of the driver's memory.
struct Tensors {
    driver: Foreign,
    all: [Tensor; 3],
}

impl Tensors {
    fn new(context: &Context) -> Result<Self, Failure> {
        let device = context.fixture().device();
        let driver = Foreign::of(device)?;
        let placement = placement(context, &driver)?;
        let [x, y, z] = [1.0f32, 2.0, 3.0].map(|value| {
            let tensor = device.allocate(runtime_core::DType::F32, &[N], &placement)?;
            tensor.write(&[value; N])?;
            Ok::<_, Error>(tensor)
        });
        Ok(Self { driver, all: [x?, y?, z?] })
    }

    /// Copies one tensor to another, by a function of the driver.
    fn copy(&self, queue: &Queue, from: usize, to: usize) -> Result<Event, Failure> {
        let (from, to) = (&self.all[from], &self.all[to]);
        let places = (&to.native()?, &from.native()?);
        let copy = |handles: &NativeHandles| self.driver.copy(handles, places, N * size_of::<f32>());
        // SAFETY: the copy reads `from` and writes `to`, and is submitted to the queue that it gets.
        Ok(unsafe { queue.native((read(from), write(to)), copy)? })
    }
}

fn the_handles_of_a_device_and_a_tensor_are_listed(context: &Context) -> Verdict {
    let fixture = context.fixture();
    let device = fixture.device().native()?;
    assert!(device.iter().all(|handle| !handle.name.is_empty()), "a handle without a name");
    let missing = expect_error("handle", device.number("a handle"), ErrorKind::NotFound, &["a handle"]);
    missing?;
    let x = fixture.full(16, 1.0)?;
    let (whole, part) = match (x.native(), x.slice(0, 4..8)?.native()) {
        (Err(error), _) if error.kind() == ErrorKind::Unsupported => return Ok(()),
        (whole, part) => (whole?, part?),
    };
    assert!(whole.address.is_some() || !whole.handles.is_empty(), "neither address nor handle: {whole:?}");
    assert_eq!((part.byte_offset, &part.handles), (whole.byte_offset + 16, &whole.handles));
    assert_eq!(part.address, whole.address.map(|address| address + 16));
    assert_eq!(part.host_address, whole.host_address.map(|address| address + 16));
    Ok(())
}

fn only_tensors_are_listed_as_uses(context: &Context) -> Verdict {
    let queue = context.fixture().queue()?;
    // SAFETY: it does nothing.
    let refused = unsafe { queue.native((1.0f32,), |_| Ok(())) };
    expect_error("a number", refused, ErrorKind::InvalidArgument, &["argument 0", "only tensors"]).map(drop)
}

fn an_error_of_the_work_is_returned(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let x = fixture.full(N, 1.0)?;
    // SAFETY: it does nothing.
    let failed = unsafe { queue.native((&x,), |_| Err(Error::new(ErrorKind::Driver, "its own"))) };
    expect_error("native", failed, ErrorKind::Driver, &["native", "its own"])?;
    wait::event(&queue.fill(&x, &[0])?)?;
    expect_all("filled afterwards", &x, 0.0)
}

fn a_panic_of_the_work_is_an_error(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let x = fixture.full(N, 1.0)?;
    // SAFETY: it does nothing.
    let failed = unsafe { queue.native((&x,), |_| std::panic::panic_any("its own")) };
    expect_error("native", failed, ErrorKind::Failed, &["did not return", "its own"])?;
    wait::event(&queue.fill(&x, &[0])?)?;
    expect_all("filled afterwards", &x, 0.0)
}

fn work_cannot_use_its_own_queue_or_tensors(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let (x, other) = (fixture.full(N, 1.0)?, fixture.full(N, 1.0)?);
    let uses: [&dyn Fn() -> runtime_core::Result<()>; 3] =
        [&|| queue.fill(&other, &[0]).map(drop), &|| x.write(&[2.0f32; N]), &|| x.to_vec::<f32>().map(drop)];
    for own in uses {
        // SAFETY: none; the runtime finds that it would wait for itself.
        let refused = unsafe { queue.native((&x,), |_| own()) };
        expect_error("native", refused, ErrorKind::Failed, &["locks", "prepare"])?;
    }
    wait::event(&queue.fill(&x, &[0])?)?;
    expect_all("filled afterwards", &x, 0.0)
}

fn native_work_runs_between_two_launches(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let tensors = Tensors::new(context)?;
    let [x, y, _] = &tensors.all;
    fixture.delay(&queue)?;
    fixture.scale(&queue, x, 5.0)?;
    let copied = tensors.copy(&queue, 0, 1)?;
    fixture.scale(&queue, x, 100.0)?;
    fixture.scale(&queue, y, 2.0)?;
    wait::event(&copied)?;
    expect_all("copied before the next launch", y, 10.0)?;
    expect_all("scaled twice", x, 500.0)
}

fn native_work_waits_for_other_queues(context: &Context) -> Verdict {
    let fixture = context.fixture();
    let [first, second] = fixture.queues()?;
    let tensors = Tensors::new(context)?;
    let [x, y, _] = &tensors.all;
    fixture.delay(&first)?;
    fixture.scale(&first, x, 5.0)?;
    tensors.copy(&second, 0, 1)?;
    fixture.scale(&first, y, 3.0)?;
    expect_all("behind the other queue, and before it", y, 15.0)
}

fn native_work_is_in_order_in_random_lists(context: &Context) -> Verdict {
    let fixture = context.fixture();
    let queues: [Queue; 2] = fixture.queues()?;
    let tensors = Tensors::new(context)?;
    let mut random = Random::new(7);
    let mut expected = [1.0f32, 2.0, 3.0];
    let more = if std::env::var_os("RUNTIME_TEST_ALL").is_some() { 10 } else { 1 };
    for list in 0..LISTS * more {
        for _ in 0..=random.below(8) {
            let (queue, from, step) = (&queues[random.below(2)], random.below(3), random.below(2) + 1);
            let to = (from + step) % 3;
            let (source, destination) = (&tensors.all[from], &tensors.all[to]);
            match random.below(5) {
                0 => {
                    expected[to] = f32::from(u8::try_from(list % 200).unwrap_or(0));
                    fixture.fill(queue, destination, expected[to])?;
                }
                1 => {
                    expected[to] = -expected[to];
                    fixture.scale(queue, destination, -1.0)?;
                }
                2 => {
                    expected[to] = expected[from];
                    queue.copy(destination, source)?;
                }
                _ => {
                    expected[to] = expected[from];
                    tensors.copy(queue, from, to)?;
                }
            }
        }
        let read = random.below(3);
        expect_all(&format!("list {list}"), &tensors.all[read], expected[read])?;
    }
    queues.iter().try_for_each(|queue| Ok(wait::idle(queue)?))
}

fn a_queue_goes_on_after_native_work_that_failed(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let tensors = Tensors::new(context)?;
    let [x, y, _] = &tensors.all;
    let places = (&y.native()?, &x.native()?);
    fixture.delay(&queue)?;
    let copy_and_fail = |handles: &NativeHandles| {
        tensors.driver.copy(handles, places, N * size_of::<f32>())?;
        Err(Error::new(ErrorKind::Driver, "its own"))
    };
    // SAFETY: the copy reads x and writes y, and is submitted to the queue that it gets.
    let failed = unsafe { queue.native((read(x), write(y)), copy_and_fail) };
    expect_error("native", failed, ErrorKind::Driver, &["its own"])?;
    fixture.scale(&queue, y, 4.0)?;
    expect_all("what it had submitted is in order", y, 4.0)
}

fn native_work_on_a_failed_result_fails(context: &Context) -> Verdict {
    let fixture = context.fixture();
    let [broken, healthy] = fixture.queues()?;
    let (x, y) = (fixture.full(N, 1.0)?, fixture.full(N, 2.0)?);
    fixture.fail(&broken, &x, &y)?;
    // SAFETY: it does nothing.
    let event = unsafe { healthy.native((read(&y), read_write(&x)), |_| Ok(())) };
    assert!(event.and_then(|event| wait::event(&event)).is_err(), "it read the result of failed work");
    Ok(())
}

fn native_work_of_a_fuser_is_in_order(context: &Context) -> Verdict {
    context.needs_portable_code()?;
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let tensors = Tensors::new(context)?;
    let [x, y, _] = &tensors.all;
    let fuser = queue.fuser(&FusionOptions::default())?;
    fixture.scale(fuser.queue(), x, 5.0)?;
    tensors.copy(fuser.queue(), 0, 1)?;
    fixture.scale(fuser.queue(), y, 2.0)?;
    drop(fuser);
    expect_all("between launches of a fuser", y, 10.0)
}

fn tensors_and_queues_may_be_dropped_at_once(context: &Context) -> Verdict {
    let fixture = context.fixture();
    let mut tensors = Tensors::new(context)?;
    for round in 0..20u8 {
        let queue = fixture.queue()?;
        fixture.delay(&queue)?;
        let value = f32::from(round);
        let fresh = fixture.device().allocate(
            runtime_core::DType::F32,
            &[N],
            &placement(context, &tensors.driver)?,
        )?;
        fixture.fill(&queue, &fresh, value)?;
        tensors.all[0] = fresh;
        tensors.copy(&queue, 0, 1)?;
        tensors.all[0] = tensors.all[2].clone();
        drop(queue);
        expect_all("of a tensor that was dropped", &tensors.all[1], value)?;
    }
    Ok(())
}

fn an_event_of_native_work_is_waited_for(context: &Context) -> Verdict {
    let fixture = context.fixture();
    let [first, second] = fixture.queues()?;
    let tensors = Tensors::new(context)?;
    let [x, y, _] = &tensors.all;
    fixture.delay(&first)?;
    fixture.scale(&first, x, 7.0)?;
    let copied = tensors.copy(&first, 0, 1)?;
    second.wait_for(&copied)?;
    fixture.scale(&second, y, 2.0)?;
    expect_all("behind the event of native work", y, 14.0)
}

fn a_queue_that_is_not_of_the_device_is_refused(context: &Context) -> Verdict {
    let device = context.fixture().device();
    let (driver, handles) = (Foreign::of(device)?, device.native()?);
    // SAFETY: refused before it is used.
    let refused = |handle| unsafe { device.queue_from_native(handle) };
    match &driver {
        // The default stream of a thread.
        Foreign::Cuda(_) => {
            expect_error("per thread", refused(2), ErrorKind::InvalidArgument, &["thread"])?;
        }
        Foreign::OpenCl(_) => {
            let Some(unordered) = driver.open_queue(&handles, false)? else { return Ok(()) };
            expect_error(
                "out of order",
                refused(unordered.handle()),
                ErrorKind::InvalidArgument,
                &["order"],
            )?;
        }
        Foreign::Host => {
            let refused = refused(0).err().map(|error| error.kind());
            assert!(
                matches!(refused, Some(ErrorKind::Unsupported | ErrorKind::InvalidArgument)),
                "{refused:?}"
            );
        }
        Foreign::Vulkan(_) => {
            expect_error("native queue", refused(1), ErrorKind::Unsupported, &["queue"])?;
        }
    }
    Ok(())
}

fn work_on_a_queue_of_the_program_is_in_order(context: &Context) -> Verdict {
    let fixture = context.fixture();
    let tensors = Tensors::new(context)?;
    let [x, y, _] = &tensors.all;
    let handles = fixture.device().native()?;
    let Some(own) = tensors.driver.open_queue(&handles, true)? else {
        return Err(Failure::Unsupported("the runtime takes no queues of the program here".to_owned()));
    };
    // SAFETY: the queue is closed after the runtime's has been dropped, with no work left.
    let queue = unsafe { fixture.device().queue_from_native(own.handle())? };
    fixture.delay(&queue)?;
    fixture.scale(&queue, x, 5.0)?;
    tensors.copy(&queue, 0, 1)?;
    fixture.scale(&queue, y, 2.0)?;
    wait::idle(&queue)?;
    expect_all("on the program's queue", y, 10.0)?;
    let other = fixture.queue()?;
    fixture.delay(&queue)?;
    fixture.scale(&queue, x, 3.0)?;
    fixture.scale(&other, x, -1.0)?;
    expect_all("behind the program's queue", x, -15.0)?;
    wait::idle(&queue)?;
    drop(queue);
    drop(own);
    // Nothing of the runtime still refers to the queue that is gone.
    fixture.scale(&other, y, 2.0)?;
    expect_all("after it is closed", y, 20.0)
}
