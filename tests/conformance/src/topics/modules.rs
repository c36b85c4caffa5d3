//! Modules: loaded code, its entry points, and errors of code that does not load.

use runtime_core::backend::{OptionScope, OptionSpec};
use runtime_core::{ErrorKind, Geometry, Options};

use crate::case::{Failure, Requirement, Verdict, cases};
use crate::context::Context;
use crate::expect::{expect_all, expect_error};
use crate::kernels;
use crate::wait;

cases! {
    [Requirement::Kernel("fill_f32")] => the_symbols_are_the_kernels, an_unknown_symbol_lists_those_that_exist,
        an_empty_symbol_is_not_found, broken_code_is_a_compile_error, an_eleventh_module_works,
        a_kernel_outlives_its_module, kernels_of_two_modules_share_a_queue,
        an_unknown_load_option_is_refused, a_missing_file_is_an_io_error, kernel_info_fits_the_device,
        occupancy_fits_the_device, loads_from_many_threads, a_failed_load_does_not_poison_the_next,
        code_for_a_debugger_gives_the_same_results;
    [] => an_unaccepted_format_lists_the_right_ones, portable_code_needs_a_lowering;
}

fn the_symbols_are_the_kernels(context: &Context) -> Verdict {
    let symbols = context.fixture().module()?.symbols()?;
    let kernels = context.fixture().kernels()?;
    let certain = kernels.names().filter(|name| kernels.has(name) == Some(true));
    let missing: Vec<_> = certain.filter(|name| !symbols.iter().any(|s| s == name)).collect();
    assert!(symbols.is_empty() || missing.is_empty(), "{missing:?} are not among {symbols:?}");
    Ok(())
}

fn an_unknown_symbol_lists_those_that_exist(context: &Context) -> Verdict {
    let module = context.fixture().module()?;
    let listed = if module.symbols()?.is_empty() { "fil_f32" } else { "did you mean \"fill_f32\"" };
    expect_error("kernel", module.kernel("fil_f32"), ErrorKind::NotFound, &["fil_f32", listed, "kernel"])
        .map(drop)
}

fn an_empty_symbol_is_not_found(context: &Context) -> Verdict {
    expect_error("kernel", context.fixture().module()?.kernel(""), ErrorKind::NotFound, &[]).map(drop)
}

fn broken_code_is_a_compile_error(context: &Context) -> Verdict {
    let kernels = context.fixture().kernels()?;
    context.fixture().module()?;
    let Err(error) = context.fixture().device().load(&kernels.broken()) else {
        return Err(Failure::Failed("broken code was loaded".to_owned()));
    };
    assert_eq!(error.kind(), ErrorKind::CompileFailed, "{error:?}");
    assert!(error.operation().contains("load") && !error.message().is_empty(), "{error:?}");
    assert_eq!(error.device(), Some(context.name()), "{error:?}");
    Ok(())
}

fn an_eleventh_module_works(context: &Context) -> Verdict {
    context.fixture().module()?;
    let source = context.fixture().kernels()?.source();
    let modules = (0..11).map(|_| context.fixture().device().load(&source)).collect::<Result<Vec<_>, _>>()?;
    let queue = context.fixture().queue()?;
    for (value, module) in (1..=11u8).zip(&modules) {
        let out = context.fixture().full(100, 0.0)?;
        let args = [runtime_core::Arg::write(&out), runtime_core::Arg::scalar(f32::from(value))];
        let args = context.fixture().args("fill_f32", &args, 100)?;
        wait::event(&queue.launch(&module.kernel("fill_f32")?, context.fixture().geometry(100), &args)?)?;
        expect_all(&format!("module {value}"), &out, f32::from(value))?;
    }
    Ok(())
}

fn a_kernel_outlives_its_module(context: &Context) -> Verdict {
    let fixture = context.fixture();
    fixture.module()?;
    let module = fixture.device().load(&fixture.kernels()?.source())?;
    let kernel = module.kernel("fill_f32")?;
    drop(module);
    let (queue, out) = (fixture.queue()?, fixture.full(100, 0.0)?);
    let args = [runtime_core::Arg::write(&out), runtime_core::Arg::scalar(2.0f32)];
    wait::event(&queue.launch(&kernel, fixture.geometry(100), &fixture.args("fill_f32", &args, 100)?)?)?;
    assert_eq!(kernel.name(), "fill_f32");
    expect_all("without a module", &out, 2.0)
}

fn kernels_of_two_modules_share_a_queue(context: &Context) -> Verdict {
    let (first, second) = (context.fixture(), context.fixture());
    first.module()?;
    let module = second.device().load(&second.kernels()?.source())?;
    let (queue, x) = (first.queue()?, first.full(100, 3.0)?);
    let scale = module.kernel("scale_f32")?;
    for _ in 0..5 {
        drop(first.scale(&queue, &x, 2.0)?);
        let args = [runtime_core::Arg::read_write(&x), runtime_core::Arg::scalar(0.5f32)];
        drop(queue.launch(&scale, first.geometry(100), &first.args("scale_f32", &args, 100)?)?);
    }
    wait::idle(&queue)?;
    expect_all("after both kernels", &x, 3.0)
}

fn an_unknown_load_option_is_refused(context: &Context) -> Verdict {
    let source = context.fixture().kernels()?.source().option("no_such_option", 1);
    expect_error(
        "option",
        context.fixture().device().load(&source),
        ErrorKind::InvalidArgument,
        &["no_such_option", "load"],
    )
    .map(drop)
}

fn a_missing_file_is_an_io_error(context: &Context) -> Verdict {
    context.fixture().module()?;
    let source = kernels::missing_file(context.fixture().kernels()?.format);
    expect_error("file", context.fixture().device().load(&source), ErrorKind::Io, &["/no/such/folder/kernel"])
        .map(drop)
}

fn kernel_info_fits_the_device(context: &Context) -> Verdict {
    let limits = &context.info().limits;
    for name in
        context.fixture().kernels()?.names().filter(|name| context.fixture().missing_kernel(name).is_none())
    {
        let kernel = context.fixture().kernel(name)?;
        let info = kernel.info();
        assert!(
            info.shared_bytes.is_none_or(|bytes| u64::from(bytes) <= limits.shared_bytes),
            "{name}: {info:?}"
        );
        assert!(info.max_group_items.is_none_or(|items| items >= 1), "{name}: {info:?}");
        assert!(info.registers.is_none_or(|registers| registers < 100_000), "{name}: {info:?}");
        assert!(info.preferred_multiple.is_none_or(|items| (1..=4096).contains(&items)), "{name}: {info:?}");
        if let (Some(private), Some(spilled)) = (info.private_bytes, info.spilled_bytes) {
            assert!(private >= spilled, "{name}: {info:?}");
        }
    }
    Ok(())
}

/// Occupancy fits a compute unit, and decreases with the group size.
fn occupancy_fits_the_device(context: &Context) -> Verdict {
    let (kernel, limits) = (context.fixture().kernel("fill_f32")?, &context.info().limits);
    let most = limits.group_items.min(kernel.info().max_group_items.unwrap_or(u32::MAX));
    let sizes = [1, 64, most].map(|size| size.min(most).min(limits.group_size[0]));
    let mut before = u32::MAX;
    for size in sizes {
        let sized = context.fixture().kernel_for_group_size("fill_f32", [size, 1, 1])?;
        let occupancy = match sized.occupancy(&Geometry::new(1, size), 0) {
            Err(error) if error.kind() == ErrorKind::Unsupported => {
                return Err(Failure::Unsupported("the backend reports no occupancy".to_owned()));
            }
            occupancy => occupancy?,
        };
        assert!(occupancy.groups >= 1 && occupancy.groups <= before, "{size}: {occupancy:?} after {before}");
        assert!(occupancy.sub_groups >= occupancy.groups, "{size}: {occupancy:?}");
        assert!(occupancy.sub_groups <= occupancy.max_sub_groups, "{size}: {occupancy:?}");
        assert!(occupancy.fraction() > 0.0 && occupancy.fraction() <= 1.0, "{size}: {occupancy:?}");
        before = occupancy.groups;
    }
    let too_large = kernel.occupancy(&Geometry::new(1, most.saturating_add(1)), 0);
    // The device could hold a group that is too large for the kernel only.
    let of_device = most == limits.group_items.min(limits.group_size[0]);
    let kind = if of_device { ErrorKind::InvalidArgument } else { ErrorKind::OutOfResources };
    expect_error("group size", too_large, kind, &["occupancy", "group_size"])?;
    let too_much = kernel.occupancy(&Geometry::new(1, sizes[0]), limits.shared_bytes.saturating_add(1));
    expect_error("memory", too_much, ErrorKind::OutOfResources, &["occupancy", "work-group memory"]).map(drop)
}

fn loads_from_many_threads(context: &Context) -> Verdict {
    context.fixture().module()?;
    let source = context.fixture().kernels()?.source();
    let load = || {
        context
            .fixture()
            .device()
            .load(&source)
            .and_then(|module| module.kernel("noop").map(|kernel| kernel.name().to_owned()))
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(load)).collect();
        threads.into_iter().try_for_each(|thread| {
            let name = thread.join().map_err(|_| Failure::Failed("a thread panicked".to_owned()))??;
            assert_eq!(name, "noop");
            Ok(())
        })
    })
}

fn a_failed_load_does_not_poison_the_next(context: &Context) -> Verdict {
    let fixture = context.reopen(&Options::new())?;
    for source in [fixture.kernels()?.broken(), kernels::unsupported_format()] {
        assert!(fixture.device().load(&source).is_err());
    }
    let (queue, out) = (fixture.queue()?, fixture.full(10, 0.0)?);
    wait::event(&fixture.fill(&queue, &out, 4.0)?)?;
    expect_all("afterwards", &out, 4.0)
}

fn code_for_a_debugger_gives_the_same_results(context: &Context) -> Verdict {
    let fixture = context.fixture();
    fixture.module()?;
    let is_debug = |spec: &&OptionSpec| spec.key == "debug" && spec.scope == OptionScope::Module;
    if !context.target().options.iter().any(|spec| is_debug(&spec)) {
        return Err(Failure::Unsupported("the backend has no load option \"debug\"".to_owned()));
    }
    let source = fixture.kernels()?.source().debug(true);
    // Once from the compiler, and once from the cache if there is one.
    for factor in [2.0, 3.0] {
        let kernel = fixture.device().load(&source.clone().unshared())?.kernel("scale_f32")?;
        let (queue, x) = (fixture.queue()?, fixture.full(100, 5.0)?);
        let args = [runtime_core::Arg::read_write(&x), runtime_core::Arg::scalar(factor)];
        let args = fixture.args("scale_f32", &args, 100)?;
        wait::event(&queue.launch(&kernel, fixture.geometry(100), &args)?)?;
        expect_all("scaled by code for a debugger", &x, 5.0 * factor)?;
    }
    Ok(())
}

fn an_unaccepted_format_lists_the_right_ones(context: &Context) -> Verdict {
    let words = ["no-such-format", context.info().formats[0].as_str(), "load"];
    expect_error(
        "format",
        context.fixture().device().load(&kernels::unsupported_format()),
        ErrorKind::Unsupported,
        &words,
    )
    .map(drop)
}

fn portable_code_needs_a_lowering(context: &Context) -> Verdict {
    let source = runtime_core::ModuleSource::wgsl("@compute @workgroup_size(1) fn main() {}");
    if context.info().kind == runtime_core::DeviceKind::Embedded {
        return Err(Failure::Unsupported("an embedded device loads no modules".to_owned()));
    }
    if context.info().accepts(&runtime_core::CodeFormat::WGSL) {
        context.fixture().device().load(&source)?;
        return Ok(());
    }
    expect_error("wgsl", context.fixture().device().load(&source), ErrorKind::Unsupported, &["wgsl"])
        .map(drop)
}
