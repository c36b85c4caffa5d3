//! Launch arguments: every kind, and invalid ones.

use runtime_core::code::Record;
use runtime_core::{Arg, DeviceKind, ErrorKind, Options};

use crate::case::{Failure, Requirement, Verdict, cases};
use crate::context::Context;
use crate::expect::{expect_all, expect_equal, expect_error};
use crate::test_data::{Guarded, Random};
use crate::wait;

cases! {
    [Requirement::Kernel("sum9")] => nine_arguments;
    [Requirement::Kernel("sum20")] => twenty_arguments_of_every_type;
    [Requirement::Kernel("sum_record")] => structures_are_passed_by_value, structures_are_copied_at_once,
        bytes_by_value;
    [Requirement::Kernel("reverse_f32")] => work_group_memory, too_much_work_group_memory_is_an_error;
    [Requirement::Kernel("fill_f32")] => a_tensor_of_another_opening_is_refused, a_wrong_argument_count_is_refused,
        a_wrong_element_type_is_refused, a_written_input_is_refused, a_wrong_kind_is_refused;
    [Requirement::Kernel("copy_f32")] => an_output_that_is_only_read_is_refused;
}

fn nine_arguments(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let out = fixture.tensor(&[0.0f64])?;
    let [a, c, e, g] = [1.5f64, -2.25, 1e9, 0.125].map(Arg::scalar);
    let [b, d, f, h] = [1i64, -20, 1 << 40, 7].map(Arg::scalar);
    wait::event(&fixture.launch(&queue, "sum9", &[a, b, c, d, e, f, g, h, Arg::write(&out)], 1)?)?;
    let sum = 1.5 - 2.25 + 1e9 + 0.125 + 1.0 - 20.0 + 1_099_511_627_776.0 + 7.0;
    expect_equal("the sum", &out.to_vec::<f64>()?, &[sum])
}

fn twenty_arguments_of_every_type(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let out = fixture.tensor(&[0.0f64])?;
    let f = |value: f64| Arg::scalar(value);
    let args = [
        Arg::scalar(-1i32),
        f(0.5),
        Arg::scalar(-3i64),
        Arg::scalar(4.5f32),
        Arg::scalar(200u8),
        f(6.0),
        Arg::scalar(-700i16),
        Arg::scalar(8.0f32),
        Arg::scalar(4_000_000_000u32),
        f(10.0),
        Arg::scalar(1i64 << 40),
        f(12.0),
        Arg::scalar(-13i8),
        f(14.0),
        Arg::scalar(1u64 << 41),
        f(16.0),
        Arg::scalar(60_000u16),
        f(18.0),
        Arg::scalar(19.0f32),
        Arg::write(&out),
    ];
    let sum = -1.0 + 0.5 - 3.0 + 4.5 + 200.0 + 6.0 - 700.0 + 8.0 + 4e9 + 10.0 + 1_099_511_627_776.0 + 12.0
        - 13.0
        + 14.0
        + 2_199_023_255_552.0
        + 16.0
        + 60_000.0
        + 18.0
        + 19.0;
    fixture.call(&queue, "sum20", &args, 1)?;
    expect_equal("called", &out.to_vec::<f64>()?, &[sum])?;
    out.fill(&[0])?;
    wait::event(&fixture.launch(&queue, "sum20", &args, 1)?)?;
    expect_equal("launched", &out.to_vec::<f64>()?, &[sum])
}

fn record() -> Record {
    Record::new().with(7i32).with(0.5f32).with(1i64 << 33)
}

fn structures_are_passed_by_value(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let (out, record) = (fixture.tensor(&[0.0f64])?, record());
    fixture.call(&queue, "sum_record", &[Arg::record(&record), Arg::write(&out)], 1)?;
    expect_equal("sum of a structure", &out.to_vec::<f64>()?, &[8_589_934_599.5])
}

fn structures_are_copied_at_once(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let (out, record) = (fixture.tensor(&[0.0f64])?, record());
    fixture.delay(&queue)?;
    drop(fixture.launch(&queue, "sum_record", &[Arg::record(&record), Arg::write(&out)], 1)?);
    drop(record);
    let other = Record::new().with(1i32).with(2.0f32).with(3i64);
    expect_equal("sum of the original", &out.to_vec::<f64>()?, &[8_589_934_599.5])?;
    fixture.call(&queue, "sum_record", &[Arg::record(&other), Arg::write(&out)], 1)?;
    expect_equal("sum of another", &out.to_vec::<f64>()?, &[6.0])
}

/// Accelerators pass opaque bytes as they are. The host cannot: where C passes a structure depends on its fields.
fn bytes_by_value(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let (out, mut bytes) = (fixture.tensor(&[0.0f64])?, record().as_bytes().to_vec());
    if context.info().kind == DeviceKind::Host {
        let args = [Arg::bytes(&bytes), Arg::write(&out)];
        let refused = fixture.try_launch(&queue, "sum_record", &args, 1)?;
        let refused = refused.and_then(|event| wait::event(&event));
        return expect_error("bytes", refused, ErrorKind::Unsupported, &["argument 0", "Arg::record"])
            .map(drop);
    }
    fixture.delay(&queue)?;
    drop(fixture.launch(&queue, "sum_record", &[Arg::bytes(&bytes), Arg::write(&out)], 1)?);
    bytes.fill(0xff);
    drop(bytes);
    expect_equal("sum of the original bytes", &out.to_vec::<f64>()?, &[8_589_934_599.5])
}

fn work_group_memory(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    for n in [1, 64, 1000] {
        let data = Random::new(10).floats(n);
        let (from, to) = (fixture.tensor(&data)?, Guarded::new(fixture, &vec![0.0f32; n])?);
        let args = [Arg::read(&from), Arg::write(to.tensor()), Arg::local(4 * n as u64)];
        let reversed: Vec<_> = data.into_iter().rev().collect();
        fixture.call(&queue, "reverse_f32", &args, n)?;
        to.check("called", &reversed)?;
        to.tensor().fill(&[0])?;
        wait::event(&fixture.launch(&queue, "reverse_f32", &args, n)?)?;
        to.check("launched", &reversed)?;
    }
    Ok(())
}

fn too_much_work_group_memory_is_an_error(context: &Context) -> Verdict {
    let fixture = context.fixture();
    for bytes in [1 << 50, u64::MAX / 2, u64::MAX] {
        let (queue, x) = (fixture.queue()?, fixture.full(4, 1.0)?);
        let args = [Arg::read(&x), Arg::write(&x), Arg::local(bytes)];
        let outcome = fixture.launch(&queue, "reverse_f32", &args, 4).map(|event| wait::event(&event));
        assert!(!matches!(outcome, Ok(Ok(()))), "{bytes} bytes of work-group memory were accepted");
    }
    let limit = context.info().limits.shared_bytes;
    let (queue, x) = (fixture.queue()?, fixture.full(4, 1.0)?);
    // Without a known signature any number of `local` arguments is accepted: their sum exceeds the limit.
    let signature_known = fixture.kernel("reverse_f32")?.info().params.is_some();
    let mut args = vec![Arg::read(&x), Arg::write(&x), Arg::local(limit + u64::from(signature_known))];
    args.extend((!signature_known).then_some(Arg::local(1)));
    let launched = fixture.try_launch(&queue, "reverse_f32", &args, 4)?;
    expect_error("one byte more", launched, ErrorKind::OutOfResources, &["reverse_f32", &limit.to_string()])?;
    assert_eq!(queue.submitted(), 0);
    expect_all("afterwards", &fixture.full(4, 1.0)?, 1.0)
}

fn a_tensor_of_another_opening_is_refused(context: &Context) -> Verdict {
    let (fixture, other) = (context.fixture(), context.reopen(&Options::new())?);
    let (queue, x) = (fixture.queue()?, other.full(10, 1.0)?);
    let args = fixture.args("fill_f32", &[Arg::write(&x), Arg::scalar(2.0f32)], 10)?;
    let launched = queue.launch(&fixture.kernel("fill_f32")?, fixture.geometry(10), &args);
    expect_error("tensor", launched, ErrorKind::InvalidArgument, &["argument 0", "fill_f32", "copy it"])?;
    expect_all("untouched", &x, 1.0)
}

/// Launches `fill_f32` with these arguments if its signature is known, and expects an error.
fn wrong(context: &Context, args: &[Arg<'_>], words: &[&str]) -> Verdict {
    wrong_for(context, "fill_f32", args, words)
}

fn wrong_for(context: &Context, kernel: &str, args: &[Arg<'_>], words: &[&str]) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let kernel = fixture.kernel(kernel)?;
    if kernel.info().params.is_none() {
        return Err(Failure::Unsupported("the code format has no signatures".to_owned()));
    }
    expect_error(
        "launch",
        queue.launch(&kernel, fixture.geometry(1), args),
        ErrorKind::InvalidArgument,
        words,
    )?;
    expect_error("call", queue.call(&kernel, fixture.geometry(1), args), ErrorKind::InvalidArgument, words)?;
    assert_eq!(queue.submitted(), 0, "a refused launch takes no ticket");
    Ok(())
}

fn a_wrong_argument_count_is_refused(context: &Context) -> Verdict {
    let x = context.fixture().full(10, 1.0)?;
    wrong(context, &[], &["fill_f32", "0"])?;
    wrong(context, &[Arg::write(&x)], &["fill_f32", "1"])?;
    wrong(context, &[Arg::write(&x); 7], &["fill_f32", "7"])
}

fn a_wrong_element_type_is_refused(context: &Context) -> Verdict {
    let (x, ints) = (context.fixture().full(10, 1.0)?, context.fixture().tensor(&[1i32; 10])?);
    let args = context.fixture().args("fill_f32", &[Arg::write(&ints), Arg::scalar(1.0f32)], 10)?;
    wrong(context, &args, &["argument 0", "i32", "f32"])?;
    let args = context.fixture().args("fill_f32", &[Arg::write(&x), Arg::scalar(1.0f64)], 10)?;
    wrong(context, &args, &["argument 1", "f64", "f32"])
}

/// Where the code states that the tensor is written, which a pointer without `const` does not.
fn a_written_input_is_refused(context: &Context) -> Verdict {
    let x = context.fixture().full(10, 1.0)?;
    let kernel = context.fixture().kernel("fill_f32")?;
    if kernel.info().params.as_ref().is_some_and(|params| params[0].access.is_none()) {
        return Err(Failure::Unsupported("the code does not state how it accesses tensors".to_owned()));
    }
    let args = context.fixture().args("fill_f32", &[Arg::read(&x), Arg::scalar(1.0f32)], 10)?;
    wrong(context, &args, &["argument 0", "read", "writes"])
}

fn an_output_that_is_only_read_is_refused(context: &Context) -> Verdict {
    let (x, y) = (context.fixture().full(10, 1.0)?, context.fixture().full(10, 1.0)?);
    let args = context.fixture().args("copy_f32", &[Arg::write(&x), Arg::write(&y)], 10)?;
    wrong_for(context, "copy_f32", &args, &["argument 0", "write", "reads"])
}

fn a_wrong_kind_is_refused(context: &Context) -> Verdict {
    let x = context.fixture().full(10, 1.0)?;
    let args = context.fixture().args("fill_f32", &[Arg::write(&x), Arg::bytes(&[0; 4])], 10)?;
    wrong(context, &args, &["argument 1", "Bytes", "Scalar"])?;
    let args = context.fixture().args("fill_f32", &[Arg::scalar(1.0f32), Arg::scalar(1.0f32)], 10)?;
    wrong(context, &args, &["argument 0", "Scalar", "Tensor"])
}
