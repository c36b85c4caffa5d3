//! Memory: sizes, alignment, spaces, limits, and exhaustion.

use runtime_core::{DType, Element, ErrorKind, Options, Placement, Tensor, abi};

use crate::case::{Failure, Requirement, Verdict, cases};
use crate::context::Context;
use crate::expect::{expect_all, expect_equal, expect_error};
use crate::test_data::{Guarded, Random, SIZES};
use crate::wait;

cases! {
    [Requirement::Queues] => sizes_round_trip, odd_numbers_of_bytes_round_trip, zero_size_tensors_work, every_dtype_round_trips,
        every_space_holds_data, an_unknown_space_is_refused, a_wrong_alignment_is_refused,
        an_overflowing_shape_is_refused, an_allocation_failure_is_an_error, the_limit_of_an_allocation_is_kept, memory_usage_is_plausible,
        usage_of_an_unknown_space_is_refused, many_small_tensors_are_apart,
        allocates_from_many_threads, huge_pages_work_or_say_why;
    [Requirement::Queues, Requirement::Alone] => freed_memory_comes_back;
    [Requirement::HostVisible] => alignment_is_kept, a_map_sees_what_was_written, what_a_map_writes_is_seen,
        a_map_of_a_view_is_its_part, maps_exclude_each_other;
    [Requirement::Queues, Requirement::Option("out_of_memory_after_bytes")] => exhausted_memory_is_an_error_and_recovers,
        exhaustion_leaves_nothing_behind, exhaustion_with_work_in_flight_recovers;
    [Requirement::Kind(runtime_core::DeviceKind::Host), Requirement::Capability(abi::CAP_IMPORT_HOST)] =>
        imported_memory_is_shared;
}

fn sizes_round_trip(context: &Context) -> Verdict {
    let mut random = Random::new(1);
    for n in SIZES {
        let data = random.floats(n);
        Guarded::new(context.fixture(), &data)?.check(&format!("{n} elements"), &data)?;
    }
    Ok(())
}

fn odd_numbers_of_bytes_round_trip(context: &Context) -> Verdict {
    let mut random = Random::new(12);
    for n in [1, 3, 255, 257, 4095, 4096, 4097, 65_535, 65_537, (8 << 20) + 1] {
        let data = random.bytes(n);
        Guarded::new(context.fixture(), &data)?.check(&format!("{n} bytes"), &data)?;
    }
    Ok(())
}

fn zero_size_tensors_work(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    for shape in [&[0][..], &[0, 5], &[3, 0, 7]] {
        let tensor = fixture.device().empty::<f64>(shape)?;
        assert_eq!((tensor.len(), tensor.size_bytes()), (0, 0));
        assert!(tensor.to_vec::<f64>()?.is_empty());
        tensor.write::<f64>(&[])?;
        queue.write(&tensor, &[])?;
        queue.read(&tensor, &mut [])?;
        queue.fill(&tensor, &[1])?.wait_timeout(wait::WAIT_TIMEOUT)?;
        queue.copy(&tensor, &tensor.clone())?.wait_timeout(wait::WAIT_TIMEOUT)?;
    }
    let scalar = fixture.device().allocate(DType::F64, &[], &Placement::default())?;
    scalar.write(&[2.5f64])?;
    expect_equal("a scalar", &scalar.to_vec::<f64>()?, &[2.5])
}

fn every_dtype_round_trips(context: &Context) -> Verdict {
    let mut random = Random::new(2);
    for dtype in DType::all() {
        let tensor = context.fixture().device().allocate(dtype, &[3, 7], &Placement::default())?;
        let data = random.bytes(21 * dtype.bytes());
        tensor.write_bytes(&data)?;
        let mut back = vec![0; data.len()];
        tensor.read_bytes(&mut back)?;
        expect_equal(&dtype.to_string(), &back, &data)?;
    }
    Ok(())
}

fn every_space_holds_data(context: &Context) -> Verdict {
    for space in &context.info().spaces {
        let tensor =
            context.fixture().device().allocate(DType::F32, &[1025], &Placement::space(&space.name))?;
        assert_eq!(tensor.space(), space.name);
        tensor.write(&[6.5f32; 1025])?;
        expect_all(&space.name, &tensor, 6.5)?;
    }
    assert_eq!(
        context.fixture().full(1, 0.0)?.space(),
        context.info().spaces[0].name,
        "the first space is the default"
    );
    Ok(())
}

fn an_unknown_space_is_refused(context: &Context) -> Verdict {
    let tensor = context.fixture().device().allocate(DType::F32, &[4], &Placement::space("moon"));
    let words = ["moon", &context.info().spaces[0].name, "allocate"];
    expect_error("space", tensor, ErrorKind::InvalidArgument, &words).map(drop)
}

fn a_wrong_alignment_is_refused(context: &Context) -> Verdict {
    let tensor = context.fixture().device().allocate(DType::F32, &[4], &Placement::default().aligned(48));
    expect_error("alignment", tensor, ErrorKind::InvalidArgument, &["alignment_bytes", "48", "power of two"])
        .map(drop)
}

fn an_overflowing_shape_is_refused(context: &Context) -> Verdict {
    for shape in [&[usize::MAX, 2][..], &[1 << 62, 2], &[usize::MAX / 4, 1], &[1 << 40, 1 << 40]] {
        let tensor = context.fixture().device().empty::<f64>(shape);
        expect_error("shape", tensor, ErrorKind::InvalidArgument, &["shape"])?;
    }
    Ok(())
}

fn an_allocation_failure_is_an_error(context: &Context) -> Verdict {
    for bytes in [1 << 50, usize::MAX >> 2, usize::MAX >> 1] {
        let Err(error) = context.fixture().device().empty::<u8>([bytes]) else {
            return Err(Failure::Failed(format!("{bytes} bytes were allocated")));
        };
        let fits = matches!(error.kind(), ErrorKind::OutOfMemory | ErrorKind::InvalidArgument);
        assert!(fits && error.operation().contains("allocate"), "{error:?}");
    }
    expect_all("afterwards", &context.fixture().full(100, 1.0)?, 1.0)
}

fn the_limit_of_an_allocation_is_kept(context: &Context) -> Verdict {
    let limit = context.info().limits.allocation_bytes;
    // A tensor cannot have more than `isize::MAX` bytes.
    let signed = limit.and_then(|limit| isize::try_from(limit).ok());
    let (Some(limit), Some(beyond)) = (limit, signed.and_then(|limit| limit.checked_add(1))) else {
        return Err(Failure::Unsupported("the device reports no limit that a tensor can exceed".to_owned()));
    };
    let beyond = beyond.unsigned_abs();
    expect_error(
        "beyond",
        context.fixture().uninitialized::<u8>(beyond),
        ErrorKind::InvalidArgument,
        &["allocate", &limit.to_string()],
    )
    .map(drop)
}

fn memory_usage_is_plausible(context: &Context) -> Verdict {
    for space in &context.info().spaces {
        match context.fixture().device().memory_usage(&space.name) {
            Ok(usage) => assert!(usage.free_bytes <= usage.total_bytes && usage.total_bytes > 0, "{usage:?}"),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}"),
        }
    }
    Ok(())
}

fn usage_of_an_unknown_space_is_refused(context: &Context) -> Verdict {
    expect_error(
        "space",
        context.fixture().device().memory_usage("moon"),
        ErrorKind::InvalidArgument,
        &["moon"],
    )
    .map(drop)
}

fn many_small_tensors_are_apart(context: &Context) -> Verdict {
    let fixture = context.fixture();
    let tensors =
        (0..500u16).map(|n| fixture.tensor(&vec![n; usize::from(n % 17)])).collect::<Result<Vec<_>, _>>()?;
    for (n, tensor) in (0..500u16).zip(&tensors) {
        expect_equal("a small tensor", &tensor.to_vec::<u16>()?, &vec![n; usize::from(n % 17)])?;
    }
    Ok(())
}

/// Allocates and frees 2.5 GiB in total; at most half may stay in use, because freed memory is cached for a while.
fn freed_memory_comes_back(context: &Context) -> Verdict {
    const BYTES: usize = 16 << 20;
    const ROUNDS: usize = 160;
    let limit = context.info().limits.allocation_bytes.and_then(|limit| usize::try_from(limit).ok());
    let bytes = limit.map_or(BYTES, |limit| BYTES.min(limit));
    let before = in_use(context)?;
    for round in 0..ROUNDS {
        let tensor = context.fixture().uninitialized::<u8>(bytes)?;
        tensor.slice(0, 0..1)?.write(&[u8::try_from(round % 256).unwrap_or(0)])?;
    }
    for ((what, before), (_, after)) in before.into_iter().zip(in_use(context)?) {
        let kept = after.saturating_sub(before);
        let most = u64::try_from(bytes * ROUNDS / 2).unwrap_or(u64::MAX);
        assert!(
            kept < most,
            "{kept} more bytes of {what} are in use after {ROUNDS} times {bytes} were freed"
        );
    }
    Ok(())
}

/// Bytes in use: of kernel-only memory, if the device reports it; otherwise of this process's address space, which
/// holds the memory of devices without memory of their own.
fn in_use(context: &Context) -> Result<Vec<(String, u64)>, Failure> {
    let mut found = Vec::new();
    for space in context.info().spaces.iter().filter(|space| !space.host_visible) {
        match context.fixture().device().memory_usage(&space.name) {
            Ok(usage) => found.push((space.name.clone(), usage.total_bytes - usage.free_bytes)),
            Err(error) if error.kind() == ErrorKind::Unsupported => {}
            Err(error) => return Err(error.into()),
        }
    }
    // In pages: the first field of `proc_pid_statm(5)`.
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    if let (true, Some(Ok(pages))) = (found.is_empty(), statm.split(' ').next().map(str::parse::<u64>)) {
        found.push(("this process".to_owned(), pages * 4096));
    }
    let none = || Failure::Unsupported("neither the system nor the device reports memory usage".to_owned());
    if found.is_empty() { Err(none()) } else { Ok(found) }
}

fn allocates_from_many_threads(context: &Context) -> Verdict {
    let work = |thread: u8| -> Verdict {
        for round in 0..50u8 {
            let data = vec![thread ^ round; 100 + usize::from(round)];
            expect_equal("a thread's tensor", &context.fixture().tensor(&data)?.to_vec::<u8>()?, &data)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|thread| scope.spawn(move || work(thread))).collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| Err(Failure::Failed("a panic".to_owned())))
        })
    })
}

fn huge_pages_work_or_say_why(context: &Context) -> Verdict {
    let placement = Placement { huge_pages: true, ..Placement::default() };
    match context.fixture().device().allocate(DType::F32, &[1 << 20], &placement) {
        Ok(tensor) => {
            tensor.write(&vec![2.0f32; 1 << 20])?;
            expect_all("huge pages", &tensor, 2.0)
        }
        Err(error) => {
            let kinds = [
                ErrorKind::Unsupported,
                ErrorKind::Unavailable,
                ErrorKind::OutOfMemory,
                ErrorKind::OutOfResources,
            ];
            assert!(kinds.contains(&error.kind()), "{error:?}");
            Ok(())
        }
    }
}

fn alignment_is_kept(context: &Context) -> Verdict {
    let placement = context.fixture().host_visible_placement().unwrap_or_default();
    for alignment in [0, 64, 4096, 1 << 16] {
        let tensor =
            context.fixture().device().allocate(DType::U8, &[100], &placement.clone().aligned(alignment))?;
        let address = tensor.map()?.as_ptr().addr();
        let space = context.info().spaces.iter().find(|space| space.name == tensor.space());
        let own = space.map_or(1, |space| usize::try_from(space.alignment_bytes).unwrap_or(1));
        assert!(address.is_multiple_of(alignment.max(own)), "{address:#x} for alignment {alignment}");
    }
    Ok(())
}

fn a_map_sees_what_was_written(context: &Context) -> Verdict {
    let tensor = context.fixture().host_visible_tensor(1025, 3.0)?;
    let view = tensor.map()?;
    expect_equal("map", view.as_slice::<f32>()?, &[3.0; 1025])?;
    expect_error("dtype", view.as_slice::<f64>(), ErrorKind::InvalidArgument, &["f64", "f32"]).map(drop)
}

fn what_a_map_writes_is_seen(context: &Context) -> Verdict {
    let tensor = context.fixture().host_visible_tensor(1025, 3.0)?;
    tensor.map_mut()?.as_mut_slice::<f32>()?.fill(4.0);
    expect_all("written through a map", &tensor, 4.0)
}

fn a_map_of_a_view_is_its_part(context: &Context) -> Verdict {
    let tensor = context.fixture().host_visible_tensor(100, 1.0)?;
    tensor.slice(0, 10..20)?.map_mut()?.as_mut_slice::<f32>()?.fill(2.0);
    let mut expected = [1.0f32; 100];
    expected[10..20].fill(2.0);
    expect_equal("part", &tensor.to_vec::<f32>()?, &expected)?;
    let gaps = tensor.view(&[10], &[2], 0)?;
    expect_error("gaps", gaps.map(), ErrorKind::InvalidArgument, &["contiguous"]).map(drop)
}

fn maps_exclude_each_other(context: &Context) -> Verdict {
    let tensor = context.fixture().host_visible_tensor(10, 1.0)?;
    let (first, second) = (tensor.map()?, tensor.map()?);
    expect_error("write beside read", tensor.map_mut(), ErrorKind::InvalidArgument, &["view"])?;
    expect_error("host write", tensor.write(&[0.0f32; 10]), ErrorKind::InvalidArgument, &["view"])?;
    drop((first, second));
    let write = tensor.map_mut()?;
    expect_error("read beside write", tensor.map(), ErrorKind::InvalidArgument, &["view"])?;
    expect_error("host read", tensor.to_vec::<f32>(), ErrorKind::InvalidArgument, &["view"])?;
    drop(write);
    expect_all("afterwards", &tensor, 1.0)
}

fn exhausted_memory_is_an_error_and_recovers(context: &Context) -> Verdict {
    let fixture = context.reopen(&Options::new().with("out_of_memory_after_bytes", 10_000))?;
    let kept: Vec<Tensor> = (0..4).map(|_| fixture.uninitialized::<u8>(2000)).collect::<Result<_, _>>()?;
    expect_error(
        "the fifth and sixth",
        fixture.uninitialized::<u8>(4000),
        ErrorKind::OutOfMemory,
        &["4000"],
    )?;
    drop(kept);
    expect_all("after a free", &fixture.full(1000, 1.0)?, 1.0)
}

fn exhaustion_leaves_nothing_behind(context: &Context) -> Verdict {
    let fixture = context.reopen(&Options::new().with("out_of_memory_after_bytes", 10_000))?;
    let (queue, small) = (fixture.queue()?, fixture.full(10, 1.0)?);
    for _ in 0..50 {
        expect_error("allocate", fixture.uninitialized::<u8>(10_000), ErrorKind::OutOfMemory, &["allocate"])?;
        let on_queue = queue.allocate(DType::U8, &[10_000], &Placement::default());
        expect_error("on a queue", on_queue, ErrorKind::OutOfMemory, &["allocate"])?;
        expect_error("with data", fixture.tensor(&[1u8; 10_000]), ErrorKind::OutOfMemory, &["allocate"])?;
        // The failed allocations left nothing allocated.
        fixture.uninitialized::<u8>(9_900)?;
    }
    expect_error("of a second", fixture.uninitialized::<u8>(9_961), ErrorKind::OutOfMemory, &[])?;
    expect_all("untouched", &small, 1.0)
}

fn exhaustion_with_work_in_flight_recovers(context: &Context) -> Verdict {
    let fixture = context.reopen(&Options::new().with("out_of_memory_after_bytes", 10_000))?;
    let (queue, out) = (fixture.queue()?, fixture.full(500, 0.0)?);
    let busy = fixture.full(1500, 2.0)?;
    queue.fill(&busy, &2.0f32.to_le_bytes())?;
    let part = busy.slice(0, 0..500)?;
    drop(queue.copy(&out, &part)?);
    drop((busy, part));
    // The memory is freed when the work has ended, and not before; then a retried allocation succeeds.
    wait::until("memory", || match fixture.uninitialized::<u8>(7000) {
        Err(error) if error.kind() == ErrorKind::OutOfMemory => Ok(false),
        tensor => tensor.map(|_| true),
    })?;
    expect_all("copied before", &out, 2.0)
}

#[allow(unsafe_code, reason = "imports memory of its own")]
fn imported_memory_is_shared(context: &Context) -> Verdict {
    let host = context
        .fixture()
        .device()
        .as_host()
        .ok_or_else(|| Failure::Failed("the device is not a host".to_owned()))?;
    let mut data = vec![1.0f32; 64];
    // SAFETY: `data` outlives the tensor, and the queue is done with it when it is dropped.
    let tensor = unsafe { host.import(data.as_mut_ptr().cast(), f32::DTYPE, &[64]) }?;
    expect_all("imported", &tensor, 1.0)?;
    tensor.fill(&7.0f32.to_le_bytes())?;
    drop(tensor);
    expect_equal("the imported memory", &data, &[7.0; 64])?;
    // SAFETY: a null pointer is rejected.
    let nothing = unsafe { host.import(std::ptr::null_mut(), f32::DTYPE, &[64]) };
    expect_error("null", nothing, ErrorKind::InvalidArgument, &["null"]).map(drop)
}
