//! Several runtimes, openings and names do not affect each other.

use std::fs;

use runtime_core::backend::LoadOutcome;
use runtime_core::{ErrorKind, Options, Runtime};

use crate::fixture::{Fixture, built, load};

#[test]
fn the_same_library_twice_is_loaded_once() {
    let fixture = Fixture::new();
    let path = fixture.backend("fixture", &[]);
    fs::hard_link(&path, fixture.path("libruntime_link.so")).unwrap();
    // SAFETY: built for this test.
    #[allow(unsafe_code, reason = "loads libraries")]
    let once = unsafe { Runtime::builder().discover(false).library(&path) };
    // SAFETY: as above.
    #[allow(unsafe_code, reason = "loads libraries")]
    let twice = unsafe { once.library(&path) };
    // SAFETY: as above.
    #[allow(unsafe_code, reason = "loads libraries")]
    let runtime = unsafe { twice.directory(fixture.path("")) }.build();
    let outcomes: Vec<_> = runtime.load_report().iter().map(|line| line.outcome).collect();
    assert_eq!(
        outcomes,
        [LoadOutcome::Loaded, LoadOutcome::Skipped, LoadOutcome::Skipped, LoadOutcome::Skipped]
    );
    assert!(runtime.load_report()[3].reason.contains("the same file as"));
    assert_eq!(runtime.targets().len(), 1);
}

#[test]
fn a_linked_in_backend_wins_over_a_library() {
    // SAFETY: the backend of this workspace.
    #[allow(unsafe_code, reason = "loads a library")]
    let builder = unsafe { Runtime::builder().discover(false).library(built("null")) };
    let runtime = builder.register(runtime_null::backend()).build();
    let report = runtime.load_report();
    assert_eq!((report[0].outcome, report[0].target.as_deref()), (LoadOutcome::Loaded, Some("null")));
    assert_eq!(report[1].outcome, LoadOutcome::Skipped);
    assert!(report[1].reason.contains("linked in"), "{}", report[1]);
    assert_eq!(runtime.targets()[0].path, None);
    assert!(runtime.open("null").is_ok());
}

#[test]
fn two_runtimes_coexist() {
    let fixture = Fixture::new();
    let path = fixture.backend("fixture", &[]);
    let (first, second) = (load(&path), load(&path));
    let device = first.open("fixture").unwrap();
    drop(first);
    assert_eq!(second.open("fixture:0").unwrap().device_name(), "Fixture One");
    drop(second);
    assert_eq!(device.sibling_devices().unwrap().len(), 1, "the device keeps its backend");
}

#[test]
fn a_failing_open_does_not_poison_the_next() {
    let fixture = Fixture::new();
    let runtime = load(&fixture.backend("fixture", &[]));
    let bad = Options::new().with("mode", "bad");
    for _ in 0..2 {
        let error = runtime.open_with("fixture", &bad).unwrap_err();
        assert_eq!(error.to_string(), "fixture:0: open: fixtureInit: FIXTURE_ERROR (7): no luck today");
        assert_eq!(error.kind(), ErrorKind::Driver);
        assert!(runtime.open("fixture").is_ok());
    }
}

#[test]
fn options_are_checked_before_the_backend_sees_them() {
    let fixture = Fixture::new();
    let runtime = load(&fixture.backend("fixture", &[]));
    let open =
        |key: &str, value: &str| runtime.open_with("fixture", &Options::new().with(key, value)).unwrap_err();
    assert!(open("mod", "good").to_string().contains("did you mean \"mode\"?"));
    assert!(open("mode", "ugly").to_string().contains("good, bad"));
    assert_eq!(runtime.targets()[0].options[0].key, "mode");
}

#[test]
fn an_unavailable_device_gives_the_reason() {
    let fixture = Fixture::new();
    let runtime = load(&fixture.backend("fixture", &[]));
    assert_eq!(runtime.devices().len(), 2);
    let error = runtime.open("fixture:1").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(error.to_string(), "fixture:1: open: its fan is stuck; clean it");
}

#[test]
fn wrong_device_strings_list_the_right_ones() {
    let fixture = Fixture::new();
    let runtime = load(&fixture.backend("fixture", &[]));
    let open = |device: &str| {
        let error = runtime.open(device).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        error.to_string()
    };
    assert!(open("fixtur:0").contains("did you mean \"fixture\"?"));
    assert!(open("fixture:2").contains("valid: fixture:0 (Fixture One), fixture:1 (Fixture Two)"));
    assert!(runtime.open("fixture:Fixture One").is_ok());
    assert_eq!(runtime.open("").unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn a_target_without_its_backend_names_the_crate() {
    let fixture = Fixture::new();
    let some = load(&fixture.backend("fixture", &[]));
    for runtime in [some, Runtime::builder().discover(false).build()] {
        let error = runtime.open("cuda:0").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        for part in
            ["no target \"cuda\"", "`runtime-gpu`", "RuntimeBuilder::register(runtime_gpu::backend())"]
        {
            assert!(error.message().contains(part), "{error}");
        }
    }
}

#[test]
fn a_target_whose_library_failed_gives_the_reason() {
    let fixture = Fixture::new();
    let runtime = load(&fixture.backend("fixture", &["TABLE_MAJOR=2"]));
    let error = runtime.open("fixture:0").unwrap_err().to_string();
    assert!(
        error.contains("no target \"fixture\"") && error.contains("table: it has ABI major 2"),
        "{error}"
    );
    let missing = load(&fixture.path("libruntime_missing.so")).open("missing").unwrap_err();
    assert!(missing.to_string().contains("No such file"), "{missing}");
    let none = Runtime::builder().discover(false).build().open("host").unwrap_err();
    assert!(none.to_string().contains("runtime doctor"), "{none}");
}
