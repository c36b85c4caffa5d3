//! Validation: what a timed evaluation reports for correct, wrong and unwritten results.

use runtime_core::evaluate::{DataLocation, Evaluation, EvaluationArg, Validation, Warmup};
use runtime_core::{Access, Arg, ErrorKind, HostArray};

use super::evaluation::{FillEvaluation, N, evaluate, measure};
use crate::case::{Failure, Requirement, Verdict, cases};
use crate::context::Context;
use crate::expect::{expect_all, expect_error};

cases! {
    [Requirement::Kernel("fill_f32")] => a_right_result_passes, a_wrong_result_is_detected,
        an_unwritten_result_is_detected, without_a_reference_nothing_is_compared,
        validation_can_be_declined, read_write_contents_are_put_back, a_wrong_reference_is_refused;
}

fn a_right_result_passes(context: &Context) -> Verdict {
    let reference = HostArray::from_slice(&[N], &[3.0f32; N])?;
    let measured = measure(context, |evaluation| evaluation.reference.push((0, reference)))?;
    match measured.validation {
        Validation::Passed(agreement) => assert_eq!(agreement.elements, N),
        other => return Err(Failure::Failed(format!("{other:?}"))),
    }
    Ok(())
}

fn a_wrong_result_is_detected(context: &Context) -> Verdict {
    let mut data = [3.0f32; N];
    data[777] = 4.0;
    let reference = HostArray::from_slice(&[N], &data)?;
    let measured = measure(context, |evaluation| evaluation.reference.push((0, reference)))?;
    let Validation::Failed(mismatch) = measured.validation else {
        return Err(Failure::Failed(format!("{:?}", measured.validation)));
    };
    assert_eq!(
        (mismatch.arg, mismatch.wrong, mismatch.elements, mismatch.unwritten),
        (0, 1, N, 0),
        "{mismatch}"
    );
    assert_eq!(
        (&mismatch.index[..], &*mismatch.actual, &*mismatch.expected),
        (&[777][..], "3.0", "4.0"),
        "{mismatch}"
    );
    assert_eq!(measured.samples_ns.len(), 5, "a wrong result is not an error: times are reported");
    Ok(())
}

fn an_unwritten_result_is_detected(context: &Context) -> Verdict {
    let fixture = context.fixture();
    let (kernel, out) = (fixture.kernel("scale_f32")?, fixture.full(N, 3.0)?);
    if kernel.info().params.is_some() || !fixture.kernels()?.takes_count {
        return Err(Failure::Unsupported("no kernel of the suite can leave its tensor unwritten".to_owned()));
    }
    // With an element count of 0, the kernel writes nothing.
    let out_arg = EvaluationArg::tensor(&out, Access::Write, DataLocation::Device);
    let args = vec![out_arg, Arg::scalar(2.0f32).into(), Arg::scalar(0i64).into()];
    let mut evaluation = Evaluation::new(&kernel, fixture.geometry(1), args);
    evaluation.reference.push((0, HostArray::from_slice(&[N], &[3.0f32; N])?));
    evaluation.timing.repeat = 1;
    evaluation.timing.number = Some(1);
    match evaluate(fixture, &mut evaluation)?.validation {
        Validation::Failed(mismatch) => {
            assert_eq!((mismatch.wrong, mismatch.unwritten), (N, N), "{mismatch}");
        }
        other => {
            return Err(Failure::Failed(format!("a stale correct value was accepted as written: {other:?}")));
        }
    }
    Ok(())
}

fn without_a_reference_nothing_is_compared(context: &Context) -> Verdict {
    let measured = measure(context, |_| {})?;
    assert!(matches!(measured.validation, Validation::Skipped { reason } if reason.contains("reference")));
    Ok(())
}

fn validation_can_be_declined(context: &Context) -> Verdict {
    let wrong = HostArray::from_slice(&[N], &[0.0f32; N])?;
    let measured = measure(context, |evaluation| {
        evaluation.reference.push((0, wrong));
        evaluation.validate = false;
    })?;
    assert!(matches!(measured.validation, Validation::Skipped { .. }));
    Ok(())
}

fn read_write_contents_are_put_back(context: &Context) -> Verdict {
    let fixture = context.fixture();
    let (kernel, x) = (fixture.kernel("scale_f32")?, fixture.full(N, 3.0)?);
    let rest = fixture.args("scale_f32", &[Arg::scalar(2.0f32)], N)?;
    let args = std::iter::once(EvaluationArg::tensor(&x, Access::ReadWrite, DataLocation::Device))
        .chain(rest.into_iter().map(EvaluationArg::from));
    let mut evaluation = Evaluation::new(&kernel, fixture.geometry(N), args.collect());
    evaluation.reference.push((0, HostArray::from_slice(&[N], &[6.0f32; N])?));
    evaluation.timing.repeat = 1;
    evaluation.timing.number = Some(1);
    evaluation.timing.warmup = Warmup::Calls(1);
    let measured = evaluate(fixture, &mut evaluation)?;
    assert!(measured.validation.is_passed(), "{:?}", measured.validation);
    assert_eq!(measured.calls, 3, "one to validate, one to warm up, one sample");
    expect_all("as without validation", &x, 12.0)
}

fn a_wrong_reference_is_refused(context: &Context) -> Verdict {
    let references = [
        (0, HostArray::from_slice(&[N + 1], &[3.0f32; N + 1])?, "[1001]"),
        (0, HostArray::from_slice(&[N], &[3i32; N])?, "i32"),
        (1, HostArray::from_slice(&[N], &[3.0f32; N])?, "argument 1"),
        (9, HostArray::from_slice(&[N], &[3.0f32; N])?, "arguments"),
    ];
    for (index, array, word) in references {
        let subject = FillEvaluation::new(context.fixture())?;
        let mut evaluation = subject.evaluation(context.fixture())?;
        evaluation.reference.push((index, array));
        expect_error(
            "reference",
            evaluate(context.fixture(), &mut evaluation),
            ErrorKind::InvalidArgument,
            &["reference", word],
        )?;
    }
    Ok(())
}
