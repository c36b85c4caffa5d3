//! Geometry: the limits of a device, checked before any driver call.

use runtime_core::{Arg, ErrorKind, Geometry, LaunchConfig, abi};

use crate::case::{Failure, Requirement, Verdict, cases};
use crate::context::Context;
use crate::expect::{expect_equal, expect_error};
use crate::test_data::Guarded;
use crate::wait;

cases! {
    [Requirement::Kernel("noop")] => one_plain_call_is_always_right, groups_without_items_are_refused,
        too_many_groups_are_refused, too_large_a_group_is_refused, too_many_work_items_are_refused, what_the_device_lacks_is_unsupported,
        a_refused_geometry_takes_no_ticket;
    [Requirement::Kernel("noop"), Requirement::Capability(abi::CAP_GROUPS)] => the_limits_themselves_are_accepted;
    [Requirement::Kernel("group_ids_u32"), Requirement::Capability(abi::CAP_GROUPS), Requirement::Capability(abi::CAP_NOOP_KERNEL)] =>
        no_groups_run_nothing;
    [Requirement::Kernel("group_ids_u32"), Requirement::Capability(abi::CAP_GROUPS)] => every_work_item_runs_once,
        the_largest_group_runs_whole;
}

fn launch(context: &Context, config: impl Into<LaunchConfig>) -> Result<runtime_core::Result<()>, Failure> {
    let config = config.into();
    let group_size = config.geometry().map_or([1; 3], |geometry| geometry.group_size);
    let queue = context.fixture().queue()?;
    let kernel = context.fixture().kernel_for_group_size("noop", group_size)?;
    let launched = queue.launch(&kernel, config, &[]);
    assert!(launched.is_ok() || queue.submitted() == 0, "a refused launch takes no ticket");
    Ok(launched.and_then(|event| wait::event(&event)))
}

/// The expected kind of error: a limit on devices with groups, otherwise groups as such.
fn kind(context: &Context) -> ErrorKind {
    let groups = context.info().capabilities.has(abi::CAP_GROUPS);
    if groups { ErrorKind::InvalidArgument } else { ErrorKind::Unsupported }
}

fn one_plain_call_is_always_right(context: &Context) -> Verdict {
    Ok(launch(context, Geometry::single())??)
}

fn groups_without_items_are_refused(context: &Context) -> Verdict {
    for axis in 0..3 {
        let mut none = [1; 3];
        none[axis] = 0;
        if !context.info().capabilities.has(abi::CAP_GROUPS) {
            expect_error("groups", launch(context, Geometry::new(none, 1))?, kind(context), &["groups"])?;
        }
        expect_error("group_size", launch(context, Geometry::new(1, none))?, kind(context), &["group_size"])?;
    }
    Ok(())
}

fn too_many_groups_are_refused(context: &Context) -> Verdict {
    for (axis, name) in ["groups.x", "groups.y", "groups.z"].into_iter().enumerate() {
        let Ok(limit) = u32::try_from(context.info().limits.groups[axis]) else { continue };
        let Some(beyond) = limit.checked_add(1) else { continue };
        let mut groups = [1; 3];
        groups[axis] = beyond;
        let words = if kind(context) == ErrorKind::InvalidArgument {
            [name, &beyond.to_string()]
        } else {
            ["groups", "launch"]
        };
        expect_error(name, launch(context, Geometry::new(groups, 1))?, kind(context), &words)?;
    }
    Ok(())
}

fn too_large_a_group_is_refused(context: &Context) -> Verdict {
    for (axis, name) in ["group_size.x", "group_size.y", "group_size.z"].into_iter().enumerate() {
        let mut size = [1; 3];
        size[axis] = context.info().limits.group_size[axis].saturating_add(1);
        let words = if kind(context) == ErrorKind::InvalidArgument {
            [name, "limit"]
        } else {
            ["group_size", "launch"]
        };
        expect_error(name, launch(context, Geometry::new(1, size))?, kind(context), &words)?;
    }
    Ok(())
}

/// The largest group size of `kernel` along one axis.
fn largest(context: &Context, kernel: &str, axis: usize) -> Result<[u32; 3], Failure> {
    let limits = &context.info().limits;
    let of_kernel = context.fixture().kernel(kernel)?.info().max_group_items.unwrap_or(u32::MAX);
    let mut size = [1; 3];
    size[axis] = limits.group_size[axis].min(limits.group_items).min(of_kernel);
    Ok(size)
}

fn the_limits_themselves_are_accepted(context: &Context) -> Verdict {
    /// More groups than this take too long.
    const MOST_GROUPS: u64 = 1 << 16;
    if !context.fixture().kernels()?.grouped {
        return Err(Failure::Unsupported("the suite's kernels in this format run no groups".to_owned()));
    }
    for axis in 0..3 {
        launch(context, Geometry::new(1, largest(context, "noop", axis)?))??;
        let mut groups = [1; 3];
        groups[axis] = u32::try_from(context.info().limits.groups[axis].min(MOST_GROUPS)).unwrap_or(1);
        launch(context, Geometry::new(groups, 1))??;
    }
    Ok(())
}

fn the_largest_group_runs_whole(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    for axis in 0..3 {
        let size = largest(context, "group_ids_u32", axis)?;
        let items = size.iter().product::<u32>();
        let out = Guarded::new(fixture, &vec![u32::MAX; 2 * items as usize])?;
        let (kernel, geometry) =
            (fixture.kernel_for_group_size("group_ids_u32", size)?, Geometry::new([2, 1, 1], size));
        wait::event(&queue.launch(&kernel, geometry, &[Arg::write(out.tensor())])?)?;
        let mut ids = out.tensor().to_vec::<u32>()?;
        ids.sort_unstable();
        expect_equal("every number exactly once", &ids, &(0..2 * items).collect::<Vec<_>>())?;
    }
    Ok(())
}

fn too_many_work_items_are_refused(context: &Context) -> Verdict {
    let limits = &context.info().limits;
    let [x, y, z] = limits.group_size;
    if u64::from(x) * u64::from(y) * u64::from(z) <= u64::from(limits.group_items) {
        return Err(Failure::Unsupported(
            "each axis at its limit is still within the limit of a group".to_owned(),
        ));
    }
    let words = ["work-items", &limits.group_items.to_string()];
    expect_error("group", launch(context, Geometry::new(1, [x, y, z]))?, ErrorKind::InvalidArgument, &words)
        .map(drop)
}

fn what_the_device_lacks_is_unsupported(context: &Context) -> Verdict {
    let single = Geometry::single();
    let all = [
        (abi::CAP_GROUPS, "groups", LaunchConfig::from((2, 1))),
        (abi::CAP_GROUPS, "groups", (1, 2).into()),
        (abi::CAP_RANGE, "range", (0..4).into()),
        (abi::CAP_RANGE, "range", (0..0).into()),
        (abi::CAP_COOPERATIVE, "cooperative", Geometry { cooperative: true, ..single }.into()),
        (abi::CAP_CLUSTERS, "cluster", Geometry { cluster: [2, 1, 1], ..single }.into()),
    ];
    for (capability, word, config) in all {
        if !context.info().capabilities.has(capability) {
            expect_error(word, launch(context, config)?, ErrorKind::Unsupported, &[word, context.name()])?;
        }
    }
    Ok(())
}

fn a_refused_geometry_takes_no_ticket(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let kernel = fixture.kernel_for_group_size("noop", [1; 3])?;
    drop(queue.launch(&kernel, Geometry::single(), &[])?);
    assert!(queue.launch(&kernel, Geometry::new(1, 0), &[]).is_err());
    assert!(queue.call(&kernel, Geometry::new(1, [1, 0]), &[]).is_err());
    assert_eq!(queue.submitted(), 1);
    wait::event(&queue.launch(&kernel, Geometry::single(), &[])?)?;
    Ok(())
}

fn no_groups_run_nothing(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let kernel = fixture.kernel_for_group_size("group_ids_u32", [4, 1, 1])?;
    let out = Guarded::new(fixture, &[7_u32; 8])?;
    for groups in [[0, 1, 1], [2, 0, 1], [1, 1, 0], [0; 3]] {
        let geometry = Geometry::new(groups, 4);
        wait::event(&queue.launch(&kernel, geometry, &[Arg::write(out.tensor())])?)?;
        queue.call(&kernel, geometry, &[Arg::write(out.tensor())])?;
        out.check("nothing was written", &[7_u32; 8])?;
    }
    assert_eq!(queue.submitted(), 8, "each is a submission with an event");
    wait::event(&queue.launch(&kernel, Geometry::new(2, 4), &[Arg::write(out.tensor())])?)?;
    out.check("the queue still works", &[0_u32, 1, 2, 3, 4, 5, 6, 7])
}

fn every_work_item_runs_once(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let shapes = [
        ([1, 1, 1], [1, 1, 1]),
        ([7, 1, 1], [64, 1, 1]),
        ([3, 2, 2], [4, 2, 2]),
        ([1, 5, 3], [1, 8, 4]),
        ([5, 1, 2], [1, 4, 4]),
    ];
    // Each size is below the limits per dimension of every device with groups of so many items.
    let most = context.info().limits.group_items;
    for (groups, size) in shapes.into_iter().filter(|(_, size)| size.iter().product::<u32>() <= most) {
        let items = groups.iter().chain(&size).product::<u32>();
        let out = Guarded::new(fixture, &vec![u32::MAX; items as usize])?;
        let kernel = fixture.kernel_for_group_size("group_ids_u32", size)?;
        wait::event(&queue.launch(&kernel, Geometry::new(groups, size), &[Arg::write(out.tensor())])?)?;
        let mut ids = out.tensor().to_vec::<u32>()?;
        ids.sort_unstable();
        expect_equal("every number exactly once", &ids, &(0..items).collect::<Vec<_>>())?;
        out.check("in their places", &(0..items).collect::<Vec<_>>())?;
    }
    Ok(())
}
