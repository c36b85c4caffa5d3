//! Overloads: what distinguishes them, what is kept, and what hooks and lists report.

use std::sync::{Arc, Mutex};

use runtime_core::code::CodeOrigin;
use runtime_core::dispatch::{ArgType, Dispatcher, Overload};
use runtime_core::{DType, ErrorKind, ModuleSource};

use super::{dispatcher, open, open_with, refused, runtime, source};

#[test]
fn a_second_call_finds_the_overload_of_the_first() {
    let device = open();
    let scale = dispatcher("scale_f32");
    let (x, matrix) = (device.zeros::<f32>([4]).unwrap(), device.zeros::<f32>([2, 2]).unwrap());
    for _ in 0..5 {
        scale.call(1, (&x, 2.0f32)).unwrap();
        // Another queue, another shape and another value make no overload.
        scale.on(&device.queue().unwrap()).call(1, (&device.zeros::<f32>([9]).unwrap(), 3.0f32)).unwrap();
    }
    assert_eq!((scale.overloads().len(), scale.misses()), (1, 1));
    scale.call(1, (&matrix, 2.0f32)).unwrap();
    scale.clone().call(1, (&runtime().open("null:1").unwrap().zeros::<f32>([4]).unwrap(), 2.0f32)).unwrap();
    let mut names: Vec<_> = scale.overloads().iter().map(ToString::to_string).collect();
    names.sort();
    assert_eq!(
        names,
        [
            "scale_f32(f32[1] in device, f32) on null:0",
            "scale_f32(f32[1] in device, f32) on null:1",
            "scale_f32(f32[2] in device, f32) on null:0"
        ]
    );
    assert_eq!(scale.misses(), 3);
    scale.clear();
    assert_eq!(scale.overloads().len(), 0);
    scale.call(1, (&x, 2.0f32)).unwrap();
    assert_eq!(scale.misses(), 4);
}

#[test]
fn failures_are_kept_and_returned_without_compiling_again() {
    let device = open();
    let x = device.zeros::<f32>([1]).unwrap();
    let missing = Dispatcher::new(source("scale_f32"), "scale_f33");
    for _ in 0..3 {
        let message = refused(missing.call(1, (&x,)), ErrorKind::NotFound);
        assert!(message.contains("did you mean \"scale_f32\"?"), "{message}");
    }
    assert_eq!(missing.misses(), 1);
    let [overload] = &missing.overloads()[..] else { panic!("{:?}", missing.overloads()) };
    assert_eq!(overload.error.as_ref().map(runtime_core::Error::kind), Some(ErrorKind::NotFound));
    assert!(overload.load.is_none());

    let wrong = Dispatcher::new(source("no such builtin"), "f");
    for _ in 0..3 {
        refused(wrong.call(1, (&x,)), ErrorKind::CompileFailed);
    }
    assert_eq!(wrong.misses(), 1);
}

#[test]
fn a_failure_that_may_pass_is_not_kept() {
    let device = open_with("fail_call", "load:1:out_of_memory");
    let x = device.zeros::<f32>([1]).unwrap();
    let scale = dispatcher("scale_f32");
    refused(scale.call(1, (&x, 2.0f32)), ErrorKind::OutOfMemory);
    assert_eq!(scale.overloads().len(), 0);
    scale.call(1, (&x, 2.0f32)).unwrap();
    assert_eq!((scale.overloads().len(), scale.misses()), (1, 2));
}

#[test]
fn a_hook_sees_each_compilation_and_may_use_the_dispatcher() {
    let seen: Arc<Mutex<Vec<Overload>>> = Arc::default();
    let inner: Arc<Mutex<Option<Dispatcher>>> = Arc::default();
    let (log, slot) = (seen.clone(), inner.clone());
    let scale = Dispatcher::builder("scale_f32")
        .source(source("scale_f32"))
        .on_compile(move |overload| {
            log.lock().unwrap().push(overload.clone());
            // With no lock held, the dispatcher can be asked about itself, and called.
            let dispatcher = slot.lock().unwrap().clone().unwrap();
            assert!(!dispatcher.overloads().is_empty());
            let x = open().zeros::<f32>([1]).unwrap();
            if log.lock().unwrap().len() < 2 {
                dispatcher.call(1, (&x, 1.0f32)).unwrap();
            }
        })
        .build()
        .unwrap();
    *inner.lock().unwrap() = Some(scale.clone());
    let device = open();
    scale.call(1, (&device.zeros::<f32>([1]).unwrap(), 2.0f32)).unwrap();
    scale.call(1, (&device.zeros::<f32>([1]).unwrap(), 2.0f32)).unwrap();
    refused(scale.call(1, (&device.zeros::<f32>([1]).unwrap(), 2i32, 3i32)), ErrorKind::InvalidArgument);
    *inner.lock().unwrap() = None;
    let seen = seen.lock().unwrap();
    // The device of the inner call is another instance.
    let loads: Vec<_> = seen.iter().map(|overload| overload.load.as_ref().map(|load| load.origin)).collect();
    assert_eq!(loads, [Some(CodeOrigin::Direct), Some(CodeOrigin::Direct), Some(CodeOrigin::Loaded)]);
    assert!(seen.iter().all(|overload| overload.device == "null:0"));
}

#[test]
fn a_precompiled_overload_is_the_one_that_is_called() {
    let device = open();
    let scale = dispatcher("scale_f32");
    let types = [ArgType::tensor(DType::F32, 1), ArgType::Scalar(DType::F32)];
    scale.precompile(&*device, &types).unwrap();
    scale.precompile(&*device, &types).unwrap();
    scale.call(1, (&device.zeros::<f32>([1]).unwrap(), 2.0f32)).unwrap();
    assert_eq!(scale.misses(), 1);
    let wrong = ArgType::Tensor { dtype: DType::F32, rank: 1, contiguous: true, space: "devise".to_owned() };
    let message = refused(scale.precompile(&*device, &[wrong]), ErrorKind::InvalidArgument);
    assert!(message.contains("no memory space \"devise\"; did you mean \"device\"?"), "{message}");
}

#[test]
fn overloads_beyond_the_bound_are_dropped_the_least_recently_used_first() {
    let device = open();
    let scale =
        Dispatcher::builder("scale_f32").source(source("scale_f32")).max_overloads(3).build().unwrap();
    let of_rank = |rank: usize| device.zeros::<f32>(vec![1; rank]).unwrap();
    for rank in [1, 2, 3, 1, 4] {
        scale.call(1, (&of_rank(rank), 1.0f32)).unwrap();
    }
    let mut ranks: Vec<_> = scale.overloads().iter().map(|overload| rank(&overload.types[0])).collect();
    ranks.sort_unstable();
    assert_eq!(ranks, [1, 3, 4], "the overload of rank 2 was not used for the longest time");
    scale.call(1, (&of_rank(1), 1.0f32)).unwrap();
    assert_eq!(scale.misses(), 4);
}

fn rank(given: &ArgType) -> usize {
    match given {
        ArgType::Tensor { rank, .. } => *rank,
        other => panic!("{other}"),
    }
}

#[test]
fn constants_make_variants_with_overloads_of_their_own() {
    let scale = dispatcher("scale_f32");
    let device = open();
    let x = device.zeros::<f32>([1]).unwrap();
    // A null device has no constants, and says so.
    let eight = scale.constant("N", 8);
    refused(eight.call(1, (&x, 1.0f32)), ErrorKind::InvalidArgument);
    refused(scale.constant("N", 7).constant("N", 8).call(1, (&x, 1.0f32)), ErrorKind::InvalidArgument);
    scale.call(1, (&x, 1.0f32)).unwrap();
    assert_eq!(scale.misses(), 2, "equal constants are one variant");
    let overloads = scale.overloads();
    let failed = overloads.iter().find(|overload| overload.error.is_some()).unwrap();
    assert_eq!(failed.constants, [("N".to_owned(), "8".to_owned())]);
}

#[test]
fn a_dispatcher_needs_one_source_for_each_format() {
    refused(Dispatcher::builder("f").build(), ErrorKind::InvalidArgument);
    let twice = Dispatcher::builder("f").source(source("f")).source(source("g")).build();
    assert!(refused(twice, ErrorKind::InvalidArgument).contains("two sources in the format null"));
    let malformed = Dispatcher::builder("f").source(source("f")).signature("reed f32").build();
    assert!(refused(malformed, ErrorKind::InvalidArgument).contains("\"reed f32\""));
    let device = open();
    let x = device.zeros::<f32>([1]).unwrap();
    let other = Dispatcher::new(ModuleSource::wgsl(""), "f");
    assert!(refused(other.call(1, (&x,)), ErrorKind::Unsupported).contains("has code in the formats wgsl"));
}
