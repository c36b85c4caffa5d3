//! Hazards between queues and the host: reads, writes, maps, freezing.

use runtime_core::{Arg, Placement};

use crate::case::{Requirement, Verdict, cases};
use crate::context::Context;
use crate::expect::{expect_all, expect_equal};
use crate::wait;

const N: usize = 4096;

cases! {
    [Requirement::Kernel("spin")] => a_host_read_waits_for_the_writer, a_host_read_of_a_view_waits_too,
        a_host_write_waits_for_the_reader, a_host_write_waits_for_the_writer,
        a_partial_host_write_waits_for_the_reader, a_host_fill_waits_for_the_reader,
        a_launch_sees_what_the_host_wrote, to_device_waits_for_the_writer, freezing_waits_for_the_writer,
        reading_a_frozen_tensor_waits_for_nobody;
    [Requirement::Kernel("spin"), Requirement::HostVisible] => a_map_waits_for_the_writer,
        a_write_map_waits_for_the_reader, a_launch_sees_what_a_map_wrote, a_map_holds_up_no_reader;
}

fn a_host_read_waits_for_the_writer(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let x = fixture.full(N, 0.0)?;
    fixture.delay(&queue)?;
    drop(fixture.fill(&queue, &x, 7.0)?);
    expect_all("read", &x, 7.0)
}

fn a_host_read_of_a_view_waits_too(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let x = fixture.full(N, 0.0)?;
    fixture.delay(&queue)?;
    drop(fixture.fill(&queue, &x.slice(0, 0..1000)?, 7.0)?);
    expect_all("a strided view", &x.view(&[500], &[2], 0)?, 7.0)?;
    expect_all("a part", &x.slice(0, 999..1000)?, 7.0)
}

fn a_host_write_waits_for_the_reader(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let (x, y) = (fixture.full(N, 1.0)?, fixture.full(N, 0.0)?);
    fixture.delay(&queue)?;
    drop(fixture.copy(&queue, &x, &y)?);
    x.write(&[9.0f32; N])?;
    expect_all("read before", &y, 1.0)?;
    expect_all("written after", &x, 9.0)
}

fn a_host_write_waits_for_the_writer(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let x = fixture.full(N, 0.0)?;
    fixture.delay(&queue)?;
    let event = fixture.fill(&queue, &x, 1.0)?;
    x.write(&[2.0f32; N])?;
    wait::event(&event)?;
    expect_all("the later one", &x, 2.0)
}

fn a_partial_host_write_waits_for_the_reader(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let (x, y) = (fixture.full(N, 1.0)?, fixture.full(N, 0.0)?);
    fixture.delay(&queue)?;
    drop(fixture.copy(&queue, &x, &y)?);
    x.slice(0, 0..10)?.write(&[9.0f32; 10])?;
    x.view(&[10], &[100], 100)?.write(&[9.0f32; 10])?;
    expect_all("read before", &y, 1.0)
}

fn a_host_fill_waits_for_the_reader(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let (x, y) = (fixture.full(N, 1.0)?, fixture.full(N, 0.0)?);
    fixture.delay(&queue)?;
    drop(fixture.copy(&queue, &x, &y)?);
    x.fill(&9.0f32.to_le_bytes())?;
    expect_all("read before", &y, 1.0)
}

fn a_launch_sees_what_the_host_wrote(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let (x, y) = (fixture.full(N, 0.0)?, fixture.full(N, 0.0)?);
    for round in 1..=10u8 {
        x.write(&[f32::from(round); N])?;
        drop(fixture.copy(&queue, &x, &y)?);
        expect_all("each round", &y, f32::from(round))?;
    }
    Ok(())
}

fn to_device_waits_for_the_writer(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let x = fixture.full(N, 0.0)?;
    fixture.delay(&queue)?;
    drop(fixture.fill(&queue, &x, 7.0)?);
    expect_all("the copy", &x.to_device(fixture.device(), &Placement::default())?, 7.0)
}

fn freezing_waits_for_the_writer(context: &Context) -> Verdict {
    let (fixture, [a, b]) = (context.fixture(), context.fixture().queues()?);
    let (x, y) = (fixture.full(N, 0.0)?, fixture.full(N, 0.0)?);
    fixture.delay(&a)?;
    let event = fixture.fill(&a, &x, 7.0)?;
    x.freeze()?;
    assert!(event.is_done()?, "frozen before it was written");
    drop(fixture.copy(&b, &x, &y)?);
    expect_all("read", &y, 7.0)
}

fn reading_a_frozen_tensor_waits_for_nobody(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let (x, y) = (fixture.full(N, 7.0)?, fixture.full(N, 0.0)?);
    x.freeze()?;
    fixture.delay(&queue)?;
    let event = fixture.copy(&queue, &x, &y)?;
    expect_all("while it is read", &x, 7.0)?;
    wait::event(&event)?;
    expect_all("and copied", &y, 7.0)
}

fn a_map_waits_for_the_writer(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let x = fixture.host_visible_tensor(N, 0.0)?;
    fixture.delay(&queue)?;
    drop(fixture.fill(&queue, &x, 7.0)?);
    expect_equal("mapped", x.map()?.as_slice::<f32>()?, &[7.0; N])
}

fn a_write_map_waits_for_the_reader(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let (x, y) = (fixture.host_visible_tensor(N, 1.0)?, fixture.full(N, 0.0)?);
    fixture.delay(&queue)?;
    drop(fixture.copy(&queue, &x, &y)?);
    x.map_mut()?.as_mut_slice::<f32>()?.fill(9.0);
    expect_all("read before", &y, 1.0)?;
    fixture.delay(&queue)?;
    drop(fixture.copy(&queue, &x, &y)?);
    x.slice(0, 0..10)?.map_mut()?.as_mut_slice::<f32>()?.fill(3.0);
    expect_all("read before the part", &y, 9.0)
}

fn a_launch_sees_what_a_map_wrote(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let (x, y) = (fixture.host_visible_tensor(N, 0.0)?, fixture.full(N, 0.0)?);
    for round in 1..=10u8 {
        x.map_mut()?.as_mut_slice::<f32>()?.fill(f32::from(round));
        fixture.call(&queue, "copy_f32", &[Arg::read(&x), Arg::write(&y)], N)?;
        expect_all("each round", &y, f32::from(round))?;
    }
    Ok(())
}

fn a_map_holds_up_no_reader(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let (x, y) = (fixture.host_visible_tensor(N, 7.0)?, fixture.full(N, 0.0)?);
    let view = x.map()?;
    wait::event(&fixture.copy(&queue, &x, &y)?)?;
    expect_equal("still mapped", view.as_slice::<f32>()?, &[7.0; N])?;
    expect_all("read", &y, 7.0)
}
