//! Error messages: one line that names the operation, the device and the remedy.

use runtime_core::{Arg, DType, Error, ErrorKind, Options, Placement};

use crate::case::{Requirement, Verdict, cases};
use crate::context::Context;
use crate::kernels;

cases! {
    [] => opening_errors_are_one_line, an_unavailable_device_says_why;
    [Requirement::Kernel("fill_f32")] => every_error_names_its_operation_and_device, messages_end_plainly,
        the_kind_decides_and_not_the_text;
}

/// One error of each kind that an incorrect program can cause.
fn collection(context: &Context) -> Result<Vec<(&'static str, Error)>, crate::case::Failure> {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let (x, ints) = (fixture.full(10, 1.0)?, fixture.tensor(&[1i32; 10])?);
    let frozen = fixture.full(10, 1.0)?;
    frozen.freeze()?;
    let reopened = context.reopen(&Options::new())?;
    let other = reopened.full(10, 1.0)?;
    let other_graph = reopened.queue()?.record(|recorder| recorder.fill(&other, &[0]))?;
    let args = |tensor| fixture.args("fill_f32", &[Arg::write(tensor), Arg::scalar(1.0f32)], 10);
    let (kernel, geometry) = (fixture.kernel("fill_f32")?, fixture.geometry(10));
    let device = fixture.device();
    let results = [
        ("allocate: space", device.allocate(DType::F32, &[1], &Placement::space("moon")).err()),
        ("allocate: alignment", device.allocate(DType::F32, &[1], &Placement::default().aligned(3)).err()),
        ("load: format", device.load(&kernels::unsupported_format()).err()),
        ("load: option", device.load(&fixture.kernels()?.source().option("no_such_option", 1)).err()),
        ("kernel", fixture.module()?.kernel("no_such_kernel").err()),
        ("launch: tensor", queue.launch(&kernel, geometry, &args(&other)?).err()),
        ("launch: frozen", queue.launch(&kernel, geometry, &args(&frozen)?).err()),
        ("launch: geometry", queue.launch(&kernel, runtime_core::Geometry::new(1, 0), &args(&x)?).err()),
        ("fill: pattern", queue.fill(&x, &[1; 3]).err()),
        ("copy: types", queue.copy(&x, &ints).err()),
        ("write: length", queue.write(&x, &[1; 3]).err()),
        ("instantiate", queue.instantiate(&other_graph).err()),
    ];
    Ok(results.into_iter().filter_map(|(what, error)| Some((what, error?))).collect())
}

fn every_error_names_its_operation_and_device(context: &Context) -> Verdict {
    let errors = collection(context)?;
    assert_eq!(errors.len(), 12, "one of them succeeded: {errors:?}");
    for (what, error) in errors {
        let operation = what.split(':').next().unwrap_or_default();
        assert!(
            error.operation().contains(operation),
            "{what}: {error:?} has operation \"{}\"",
            error.operation()
        );
        assert_eq!(error.device(), Some(context.name()), "{what}: {error:?}");
        let text = error.to_string();
        assert!(text.starts_with(context.name()) && text.contains(error.operation()), "{what}: {text}");
    }
    Ok(())
}

fn messages_end_plainly(context: &Context) -> Verdict {
    for (what, error) in collection(context)? {
        let text = error.to_string();
        assert!(!text.contains('\n') && text.len() < 600, "{what}: {text}");
        assert!(!text.ends_with(['.', ' ', ':', ';']), "{what}: {text}");
        assert!(!text.contains("::") && !text.contains("unwrap"), "{what} mentions source code: {text}");
    }
    Ok(())
}

fn the_kind_decides_and_not_the_text(context: &Context) -> Verdict {
    let kinds = [ErrorKind::InvalidArgument, ErrorKind::NotFound, ErrorKind::Unsupported];
    for (what, error) in collection(context)? {
        assert!(kinds.contains(&error.kind()), "{what}: {error:?}");
        assert_ne!(
            error.kind(),
            ErrorKind::Unavailable,
            "only missing hardware or software is `Unavailable`"
        );
    }
    Ok(())
}

fn opening_errors_are_one_line(context: &Context) -> Verdict {
    let target = &context.target().name;
    let names =
        ["no_such_target".to_owned(), format!("{target}:99"), format!("{target}:"), format!("{target}:0.99")];
    for name in names {
        let Err(error) = context.runtime().open(&name) else {
            return Err(crate::case::Failure::Failed(format!("{name} was opened")));
        };
        let text = error.to_string();
        assert!(!text.contains('\n') && error.operation().contains("open"), "{name}: {text}");
        assert!(
            text.contains("valid") || text.contains("did you mean") || text.contains("form"),
            "no remedy: {text}"
        );
    }
    Ok(())
}

fn an_unavailable_device_says_why(context: &Context) -> Verdict {
    let devices = context.target().devices.clone().unwrap_or_default();
    for info in devices.iter().filter(|info| info.unavailable_reason.is_some()) {
        let Err(error) = context.runtime().open(&info.id.to_string()) else {
            return Err(crate::case::Failure::Failed(format!("{} was opened", info.id)));
        };
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
        assert!(
            info.unavailable_reason.as_ref().is_some_and(|reason| error.to_string().contains(reason)),
            "{error}"
        );
    }
    Ok(())
}
