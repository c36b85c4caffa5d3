//! Launches and their arguments.

use runtime_core::{Arg, ErrorKind, Geometry, Options};

use crate::case::{Failure, Need, Verdict, cases};
use crate::context::Context;
use crate::data::{Guarded, Random, SIZES, all, refused, same};
use crate::wait;

cases! {
    [Need::Kernel("add_f32")] => add_of_every_size, one_tensor_in_two_places, views_are_found_where_they_are;
    [Need::Kernel("saxpy_f32")] => a_thousand_launches_are_in_order;
    [Need::Kernel("sum9")] => nine_arguments, a_call_returns_the_result;
    [Need::Kernel("sum20")] => twenty_arguments_of_every_type;
    [Need::Kernel("sum_record")] => bytes_by_value, bytes_by_value_are_taken_at_once;
    [Need::Kernel("reverse_f32")] => work_group_memory, too_much_work_group_memory_is_an_error;
    [Need::Kernel("iota_i32")] => integers_count;
    [Need::Kernel("fill_f32")] => a_call_comes_after_what_was_launched, a_frozen_tensor_is_read_but_not_written,
        a_tensor_of_another_opening_is_refused, a_kernel_of_another_opening_is_refused,
        a_refused_launch_takes_no_ticket, an_untracked_launch_runs, a_wrong_argument_count_is_refused,
        a_wrong_element_type_is_refused, a_wrong_access_is_refused, a_wrong_kind_is_refused, launches_from_four_threads;
    [Need::Kernel("fill_f32"), Need::HostVisible] => a_mapped_tensor_is_refused;
}

fn add_of_every_size(context: &Context) -> Verdict {
    let (lab, queue, mut random) = (context.lab(), context.lab().queue()?, Random::new(8));
    for n in SIZES {
        let (a, b) = (random.floats(n), random.floats(n));
        let sum: Vec<_> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
        let (a, b, out) = (Guarded::new(lab, &a)?, Guarded::new(lab, &b)?, Guarded::new(lab, &vec![-1.0f32; n])?);
        let args = [Arg::read(a.tensor()), Arg::read(b.tensor()), Arg::write(out.tensor())];
        wait::done(&lab.launch(&queue, "add_f32", &args, n)?)?;
        out.check(&format!("{n} sums"), &sum)?;
    }
    Ok(())
}

fn one_tensor_in_two_places(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let x = lab.full(1000, 1.0)?;
    for _ in 0..4 {
        lab.call(&queue, "add_f32", &[Arg::read(&x), Arg::read(&x), Arg::write(&x)], 1000)?;
    }
    all("doubled four times", &x, 16.0)
}

fn views_are_found_where_they_are(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let data = Random::new(9).floats(1024);
    let whole = lab.tensor(&data)?;
    let (a, b, out) = (whole.slice(0, 256..512)?, whole.slice(0, 512..768)?, whole.slice(0, 0..256)?);
    lab.call(&queue, "add_f32", &[Arg::read(&a), Arg::read(&b), Arg::write(&out)], 256)?;
    let mut expected = data.clone();
    (0..256).for_each(|i| expected[i] = data[256 + i] + data[512 + i]);
    same("one buffer, three views", &whole.to_vec::<f32>()?, &expected)
}

fn a_thousand_launches_are_in_order(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let (one, y) = (lab.full(64, 1.0)?, lab.full(64, 0.0)?);
    for round in 0..1000 {
        drop(lab.launch(&queue, "saxpy_f32", &[Arg::read(&one), Arg::read_write(&y), Arg::scalar(1.0f32)], 64)?);
        if round == 500 {
            drop(lab.fill(&queue, &y, 7.0)?);
        }
    }
    wait::idle(&queue)?;
    all("seven and the later half", &y, 506.0)
}

fn nine_arguments(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let out = lab.tensor(&[0.0f64])?;
    let [a, c, e, g] = [1.5f64, -2.25, 1e9, 0.125].map(Arg::scalar);
    let [b, d, f, h] = [1i64, -20, 1 << 40, 7].map(Arg::scalar);
    wait::done(&lab.launch(&queue, "sum9", &[a, b, c, d, e, f, g, h, Arg::write(&out)], 1)?)?;
    let sum = 1.5 - 2.25 + 1e9 + 0.125 + 1.0 - 20.0 + 1_099_511_627_776.0 + 7.0;
    same("the sum", &out.to_vec::<f64>()?, &[sum])
}

fn a_call_returns_the_result(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let out = lab.tensor(&[0.0f64])?;
    for round in 0..100i64 {
        let (zero, none) = (Arg::scalar(0.0f64), Arg::scalar(0i64));
        lab.call(&queue, "sum9", &[zero, Arg::scalar(round), zero, none, zero, none, zero, none, Arg::write(&out)], 1)?;
        same("at once", &out.to_vec::<f64>()?, &[f64::from(i32::try_from(round).unwrap_or(0))])?;
    }
    Ok(())
}

fn twenty_arguments_of_every_type(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let out = lab.tensor(&[0.0f64])?;
    let f = |value: f64| Arg::scalar(value);
    let args = [
        Arg::scalar(-1i32), f(0.5), Arg::scalar(-3i64), Arg::scalar(4.5f32), Arg::scalar(200u8), f(6.0),
        Arg::scalar(-700i16), Arg::scalar(8.0f32), Arg::scalar(4_000_000_000u32), f(10.0), Arg::scalar(1i64 << 40),
        f(12.0), Arg::scalar(-13i8), f(14.0), Arg::scalar(1u64 << 41), f(16.0), Arg::scalar(60_000u16), f(18.0),
        Arg::scalar(19.0f32), Arg::write(&out),
    ];
    let sum = -1.0 + 0.5 - 3.0 + 4.5 + 200.0 + 6.0 - 700.0 + 8.0 + 4e9 + 10.0 + 1_099_511_627_776.0 + 12.0 - 13.0 + 14.0
        + 2_199_023_255_552.0 + 16.0 + 60_000.0 + 18.0 + 19.0;
    lab.call(&queue, "sum20", &args, 1)?;
    same("called", &out.to_vec::<f64>()?, &[sum])?;
    out.fill(&[0])?;
    wait::done(&lab.launch(&queue, "sum20", &args, 1)?)?;
    same("launched", &out.to_vec::<f64>()?, &[sum])
}

fn record() -> Vec<u8> {
    [&7i32.to_le_bytes()[..], &0.5f32.to_le_bytes(), &(1i64 << 33).to_le_bytes()].concat()
}

fn bytes_by_value(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let (out, bytes) = (lab.tensor(&[0.0f64])?, record());
    lab.call(&queue, "sum_record", &[Arg::bytes(&bytes), Arg::write(&out)], 1)?;
    same("of a record", &out.to_vec::<f64>()?, &[8_589_934_599.5])
}

fn bytes_by_value_are_taken_at_once(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let (out, mut bytes) = (lab.tensor(&[0.0f64])?, record());
    lab.delay(&queue)?;
    drop(lab.launch(&queue, "sum_record", &[Arg::bytes(&bytes), Arg::write(&out)], 1)?);
    bytes.fill(0xff);
    drop(bytes);
    same("of what it was", &out.to_vec::<f64>()?, &[8_589_934_599.5])
}

fn work_group_memory(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    for n in [1, 64, 1000] {
        let data = Random::new(10).floats(n);
        let (from, to) = (lab.tensor(&data)?, Guarded::new(lab, &vec![0.0f32; n])?);
        let args = [Arg::read(&from), Arg::write(to.tensor()), Arg::local(4 * n as u64)];
        let reversed: Vec<_> = data.into_iter().rev().collect();
        lab.call(&queue, "reverse_f32", &args, n)?;
        to.check("called", &reversed)?;
        to.tensor().fill(&[0])?;
        wait::done(&lab.launch(&queue, "reverse_f32", &args, n)?)?;
        to.check("launched", &reversed)?;
    }
    Ok(())
}

fn too_much_work_group_memory_is_an_error(context: &Context) -> Verdict {
    let lab = context.lab();
    for bytes in [1 << 50, u64::MAX / 2, u64::MAX] {
        let (queue, x) = (lab.queue()?, lab.full(4, 1.0)?);
        let args = [Arg::read(&x), Arg::write(&x), Arg::local(bytes)];
        let outcome = lab.launch(&queue, "reverse_f32", &args, 4).map(|event| wait::done(&event));
        assert!(!matches!(outcome, Ok(Ok(()))), "{bytes} bytes of work-group memory were given");
    }
    all("afterwards", &lab.full(4, 1.0)?, 1.0)
}

fn integers_count(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let out = Guarded::new(lab, &[0i32; 5000])?;
    lab.call(&queue, "iota_i32", &[Arg::write(out.tensor())], 5000)?;
    out.check("counted", &(0..5000).collect::<Vec<i32>>())
}

fn a_call_comes_after_what_was_launched(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let x = lab.full(100, 0.0)?;
    for _ in 0..5 {
        lab.delay(&queue)?;
        drop(lab.fill(&queue, &x, 3.0)?);
        lab.call(&queue, "scale_f32", &[Arg::read_write(&x), Arg::scalar(2.0f32)], 100)?;
        all("scaled after", &x, 6.0)?;
    }
    Ok(())
}

fn a_frozen_tensor_is_read_but_not_written(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let (x, y) = (lab.full(100, 1.0)?, lab.full(100, 0.0)?);
    x.freeze()?;
    wait::done(&lab.copy(&queue, &x, &y)?)?;
    all("read", &y, 1.0)?;
    let (kernel, args) = (lab.kernel("fill_f32")?, lab.args("fill_f32", &[Arg::write(&x), Arg::scalar(2.0f32)], 100)?);
    let launched = queue.launch(&kernel, &lab.geometry(100), &args);
    refused("written", launched, ErrorKind::InvalidArgument, &["argument 0", "frozen", "launch"]).map(drop)
}

fn a_tensor_of_another_opening_is_refused(context: &Context) -> Verdict {
    let (lab, other) = (context.lab(), context.reopen(&Options::new())?);
    let (queue, x) = (lab.queue()?, other.full(10, 1.0)?);
    let args = lab.args("fill_f32", &[Arg::write(&x), Arg::scalar(2.0f32)], 10)?;
    let launched = queue.launch(&lab.kernel("fill_f32")?, &lab.geometry(10), &args);
    refused("tensor", launched, ErrorKind::InvalidArgument, &["argument 0", "fill_f32", "copy it"])?;
    all("untouched", &x, 1.0)
}

fn a_kernel_of_another_opening_is_refused(context: &Context) -> Verdict {
    let (lab, other) = (context.lab(), context.reopen(&Options::new())?);
    let launched = lab.queue()?.launch(&other.kernel("noop")?, &lab.geometry(1), &[]);
    refused("kernel", launched, ErrorKind::InvalidArgument, &["noop", context.name()]).map(drop)
}

fn a_refused_launch_takes_no_ticket(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let x = lab.full(10, 1.0)?;
    x.freeze()?;
    drop(lab.launch(&queue, "noop", &[], 1)?);
    let before = queue.submitted();
    assert!(lab.fill(&queue, &x, 2.0).is_err());
    assert_eq!(queue.submitted(), before);
    let next = lab.launch(&queue, "noop", &[], 1)?;
    assert_eq!(next.ticket(), before + 1);
    Ok(wait::done(&next)?)
}

#[allow(unsafe_code, reason = "launches without tracking, in order on one queue")]
fn an_untracked_launch_runs(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let x = lab.full(100, 1.0)?;
    let args = lab.args("scale_f32", &[Arg::read_write(&x), Arg::scalar(2.0f32)], 100)?;
    for _ in 0..3 {
        // SAFETY: nothing but this queue uses the tensor, which lives until the wait below.
        let event = unsafe { queue.launch_untracked(&lab.kernel("scale_f32")?, &lab.geometry(100), &args) }?;
        drop(event);
    }
    wait::idle(&queue)?;
    all("three times", &x, 8.0)
}

/// Launches `fill_f32` with these arguments where its parameters are known, and expects a refusal.
fn wrong(context: &Context, args: &[Arg<'_>], words: &[&str]) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let kernel = lab.kernel("fill_f32")?;
    if kernel.info().params.is_none() {
        return Err(Failure::Unsupported("this code does not tell its parameters".to_owned()));
    }
    refused("launch", queue.launch(&kernel, &Geometry::single(), args), ErrorKind::InvalidArgument, words)?;
    refused("call", queue.call(&kernel, &Geometry::single(), args), ErrorKind::InvalidArgument, words)?;
    assert_eq!(queue.submitted(), 0, "a refused launch takes no ticket");
    Ok(())
}

fn a_wrong_argument_count_is_refused(context: &Context) -> Verdict {
    let x = context.lab().full(10, 1.0)?;
    wrong(context, &[], &["fill_f32", "0"])?;
    wrong(context, &[Arg::write(&x)], &["fill_f32", "1"])?;
    wrong(context, &[Arg::write(&x); 7], &["fill_f32", "7"])
}

fn a_wrong_element_type_is_refused(context: &Context) -> Verdict {
    let (x, ints) = (context.lab().full(10, 1.0)?, context.lab().tensor(&[1i32; 10])?);
    let args = context.lab().args("fill_f32", &[Arg::write(&ints), Arg::scalar(1.0f32)], 10)?;
    wrong(context, &args, &["argument 0", "i32", "f32"])?;
    let args = context.lab().args("fill_f32", &[Arg::write(&x), Arg::scalar(1.0f64)], 10)?;
    wrong(context, &args, &["argument 1", "f64", "f32"])
}

fn a_wrong_access_is_refused(context: &Context) -> Verdict {
    let x = context.lab().full(10, 1.0)?;
    let args = context.lab().args("fill_f32", &[Arg::read(&x), Arg::scalar(1.0f32)], 10)?;
    wrong(context, &args, &["argument 0", "read", "writes"])
}

fn a_wrong_kind_is_refused(context: &Context) -> Verdict {
    let x = context.lab().full(10, 1.0)?;
    let args = context.lab().args("fill_f32", &[Arg::write(&x), Arg::bytes(&[0; 4])], 10)?;
    wrong(context, &args, &["argument 1", "Bytes", "Scalar"])?;
    let args = context.lab().args("fill_f32", &[Arg::scalar(1.0f32), Arg::scalar(1.0f32)], 10)?;
    wrong(context, &args, &["argument 0", "Scalar", "Tensor"])
}

fn launches_from_four_threads(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let x = lab.full(64, 0.0)?;
    let one = lab.full(64, 1.0)?;
    one.freeze()?;
    let work = || -> Verdict {
        for _ in 0..50 {
            drop(lab.launch(&queue, "saxpy_f32", &[Arg::read(&one), Arg::read_write(&x), Arg::scalar(1.0f32)], 64)?);
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| Err(Failure::Failed("a panic".to_owned()))))
    })?;
    assert_eq!(queue.submitted(), 200);
    all("two hundred", &x, 200.0)
}

fn a_mapped_tensor_is_refused(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let (x, y) = (lab.mapped(10, 1.0)?, lab.full(10, 0.0)?);
    let view = x.map()?;
    wait::done(&lab.copy(&queue, &x, &y)?)?;
    assert!(lab.fill(&queue, &x, 2.0).is_err_and(|failure| failure.to_string().contains("host view")), "written under a view");
    drop(view);
    let view = x.map_mut()?;
    assert!(lab.copy(&queue, &x, &y).is_err_and(|failure| failure.to_string().contains("host view")), "read under a write view");
    drop(view);
    wait::done(&lab.fill(&queue, &x, 2.0)?)?;
    all("afterwards", &x, 2.0)
}
