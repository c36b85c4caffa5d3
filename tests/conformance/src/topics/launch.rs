//! Launches and their arguments.

use runtime_core::{Arg, ErrorKind, Options};

use crate::case::{Failure, Requirement, Verdict, cases};
use crate::context::Context;
use crate::expect::{expect_all, expect_equal, expect_error};
use crate::test_data::{Guarded, Random, SIZES};
use crate::wait;

cases! {
    [Requirement::Kernel("add_f32")] => add_of_every_size, one_tensor_in_two_places,
        views_are_found_where_they_are;
    [Requirement::Kernel("saxpy_f32")] => a_thousand_launches_are_in_order;
    [Requirement::Kernel("sum9")] => a_call_returns_the_result;
    [Requirement::Kernel("iota_i32")] => integers_count;
    [Requirement::Kernel("fill_f32")] => a_call_comes_after_what_was_launched,
        a_frozen_tensor_is_read_but_not_written, a_kernel_of_another_opening_is_refused,
        a_refused_launch_takes_no_ticket, an_untracked_launch_runs, launches_from_four_threads;
    [Requirement::Kernel("fill_f32"), Requirement::HostVisible] => a_mapped_tensor_is_refused;
}

fn add_of_every_size(context: &Context) -> Verdict {
    let (fixture, queue, mut random) = (context.fixture(), context.fixture().queue()?, Random::new(8));
    for n in SIZES {
        let (a, b) = (random.floats(n), random.floats(n));
        let sum: Vec<_> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
        let (a, b, out) = (
            Guarded::new(fixture, &a)?,
            Guarded::new(fixture, &b)?,
            Guarded::new(fixture, &vec![-1.0f32; n])?,
        );
        let args = [Arg::read(a.tensor()), Arg::read(b.tensor()), Arg::write(out.tensor())];
        wait::event(&fixture.launch(&queue, "add_f32", &args, n)?)?;
        out.check(&format!("{n} sums"), &sum)?;
    }
    Ok(())
}

fn one_tensor_in_two_places(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    if fixture.kernels()?.portable {
        return Err(Failure::Unsupported("portable code rejects overlapping tensors".to_owned()));
    }
    let x = fixture.full(1000, 1.0)?;
    for _ in 0..4 {
        fixture.call(&queue, "add_f32", &[Arg::read(&x), Arg::read(&x), Arg::write(&x)], 1000)?;
    }
    expect_all("doubled four times", &x, 16.0)
}

fn views_are_found_where_they_are(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let data = Random::new(9).floats(1024);
    let whole = fixture.tensor(&data)?;
    let (a, b, out) = (whole.slice(0, 256..512)?, whole.slice(0, 512..768)?, whole.slice(0, 0..256)?);
    fixture.call(&queue, "add_f32", &[Arg::read(&a), Arg::read(&b), Arg::write(&out)], 256)?;
    let mut expected = data.clone();
    (0..256).for_each(|i| expected[i] = data[256 + i] + data[512 + i]);
    expect_equal("one buffer, three views", &whole.to_vec::<f32>()?, &expected)
}

fn a_thousand_launches_are_in_order(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let (one, y) = (fixture.full(64, 1.0)?, fixture.full(64, 0.0)?);
    for round in 0..1000 {
        drop(fixture.launch(
            &queue,
            "saxpy_f32",
            &[Arg::read(&one), Arg::read_write(&y), Arg::scalar(1.0f32)],
            64,
        )?);
        if round == 500 {
            drop(fixture.fill(&queue, &y, 7.0)?);
        }
    }
    wait::idle(&queue)?;
    expect_all("after all launches", &y, 506.0)
}

fn a_call_returns_the_result(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let out = fixture.tensor(&[0.0f64])?;
    for round in 0..100i64 {
        let (zero, none) = (Arg::scalar(0.0f64), Arg::scalar(0i64));
        fixture.call(
            &queue,
            "sum9",
            &[zero, Arg::scalar(round), zero, none, zero, none, zero, none, Arg::write(&out)],
            1,
        )?;
        expect_equal("at once", &out.to_vec::<f64>()?, &[f64::from(i32::try_from(round).unwrap_or(0))])?;
    }
    Ok(())
}

fn integers_count(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let out = Guarded::new(fixture, &vec![0i32; 5000])?;
    fixture.call(&queue, "iota_i32", &[Arg::write(out.tensor())], 5000)?;
    out.check("counted", &(0..5000).collect::<Vec<i32>>())
}

fn a_call_comes_after_what_was_launched(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let x = fixture.full(100, 0.0)?;
    for _ in 0..5 {
        fixture.delay(&queue)?;
        drop(fixture.fill(&queue, &x, 3.0)?);
        fixture.call(&queue, "scale_f32", &[Arg::read_write(&x), Arg::scalar(2.0f32)], 100)?;
        expect_all("scaled after", &x, 6.0)?;
    }
    Ok(())
}

fn a_frozen_tensor_is_read_but_not_written(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let (x, y) = (fixture.full(100, 1.0)?, fixture.full(100, 0.0)?);
    x.freeze()?;
    wait::event(&fixture.copy(&queue, &x, &y)?)?;
    expect_all("read", &y, 1.0)?;
    let (kernel, args) =
        (fixture.kernel("fill_f32")?, fixture.args("fill_f32", &[Arg::write(&x), Arg::scalar(2.0f32)], 100)?);
    let launched = queue.launch(&kernel, fixture.geometry(100), &args);
    expect_error("written", launched, ErrorKind::InvalidArgument, &["argument 0", "frozen", "launch"])
        .map(drop)
}

fn a_kernel_of_another_opening_is_refused(context: &Context) -> Verdict {
    let (fixture, other) = (context.fixture(), context.reopen(&Options::new())?);
    let launched = fixture.queue()?.launch(&other.kernel("noop")?, fixture.geometry(1), &[]);
    expect_error("kernel", launched, ErrorKind::InvalidArgument, &["noop", context.name()]).map(drop)
}

fn a_refused_launch_takes_no_ticket(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let x = fixture.full(10, 1.0)?;
    x.freeze()?;
    drop(fixture.launch(&queue, "noop", &[], 1)?);
    let before = queue.submitted();
    assert!(fixture.fill(&queue, &x, 2.0).is_err());
    assert_eq!(queue.submitted(), before);
    let next = fixture.launch(&queue, "noop", &[], 1)?;
    assert_eq!(next.ticket(), before + 1);
    Ok(wait::event(&next)?)
}

#[allow(unsafe_code, reason = "launches without tracking, in order on one queue")]
fn an_untracked_launch_runs(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let x = fixture.full(100, 1.0)?;
    let args = fixture.args("scale_f32", &[Arg::read_write(&x), Arg::scalar(2.0f32)], 100)?;
    let kernel = fixture.kernel("scale_f32")?;
    let launched = (0..3).try_for_each(|_| {
        // SAFETY: only this queue uses the tensor, which lives until the wait below.
        unsafe { queue.launch_untracked(&kernel, fixture.geometry(100), &args) }.map(drop)
    });
    // Wait even after an error: launches that were accepted must end before the tensor is dropped.
    wait::idle(&queue).or_else(|_| wait::idle(&queue))?;
    launched?;
    expect_all("three times", &x, 8.0)
}

fn launches_from_four_threads(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let x = fixture.full(64, 0.0)?;
    let one = fixture.full(64, 1.0)?;
    one.freeze()?;
    let work = || -> Verdict {
        for _ in 0..50 {
            drop(fixture.launch(
                &queue,
                "saxpy_f32",
                &[Arg::read(&one), Arg::read_write(&x), Arg::scalar(1.0f32)],
                64,
            )?);
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| Err(Failure::Failed("a panic".to_owned())))
        })
    })?;
    assert_eq!(queue.submitted(), 200);
    expect_all("two hundred", &x, 200.0)
}

fn a_mapped_tensor_is_refused(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let (x, y) = (fixture.host_visible_tensor(10, 1.0)?, fixture.full(10, 0.0)?);
    let view = x.map()?;
    wait::event(&fixture.copy(&queue, &x, &y)?)?;
    assert!(
        fixture.fill(&queue, &x, 2.0).is_err_and(|failure| failure.to_string().contains("host view")),
        "written under a view"
    );
    drop(view);
    let view = x.map_mut()?;
    assert!(
        fixture.copy(&queue, &x, &y).is_err_and(|failure| failure.to_string().contains("host view")),
        "read under a write view"
    );
    drop(view);
    wait::event(&fixture.fill(&queue, &x, 2.0)?)?;
    expect_all("afterwards", &x, 2.0)
}
