//! Libraries that load, but contradict their manifest or have an invalid table.

use runtime_core::ErrorKind;
use runtime_core::backend::{LoadOutcome, LoadStage};

use crate::fixture::{Fixture, assert_failed, line, load};

#[test]
fn a_manifest_of_another_major_is_never_loaded() {
    assert_failed(
        &Fixture::new().report(&["MANIFEST_MAJOR=9"]),
        LoadStage::Manifest,
        "built for ABI major 9, this program has 1",
    );
}

#[test]
fn a_name_that_no_device_string_can_hold() {
    assert_failed(&Fixture::new().report(&["NAME=\"a:b\""]), LoadStage::Manifest, "\"a:b\"");
}

#[test]
fn an_undefined_symbol_gives_the_dynamic_loaders_message() {
    let line = Fixture::new().report(&["malloc=no_such_function"]);
    // The macro renames the declaration of `malloc` too, so it compiles and links.
    assert_failed(&line, LoadStage::Open, "undefined symbol: no_such_function");
}

#[test]
fn a_missing_entry_point() {
    assert_failed(
        &Fixture::new().report(&["NO_ENTRY"]),
        LoadStage::Symbol,
        "does not export `runtime_backend_v1`",
    );
}

#[test]
fn an_entry_point_that_fails() {
    let line = Fixture::new().report(&["ENTRY_FAILS"]);
    assert_failed(&line, LoadStage::Table, "fixtureInit: FIXTURE_ERROR (7): no luck today");
}

#[test]
fn an_entry_point_without_a_table() {
    assert_failed(&Fixture::new().report(&["ENTRY_GIVES_NOTHING"]), LoadStage::Table, "no table");
}

#[test]
fn a_table_with_a_wrong_magic() {
    assert_failed(&Fixture::new().report(&["TABLE_MAGIC=7"]), LoadStage::Table, "wrong magic");
}

#[test]
fn a_table_of_another_major() {
    assert_failed(
        &Fixture::new().report(&["TABLE_MAJOR=2"]),
        LoadStage::Table,
        "ABI major 2, this program has 1",
    );
}

#[test]
fn a_table_that_is_too_small_for_a_name() {
    assert_failed(&Fixture::new().report(&["TABLE_SIZE=16"]), LoadStage::Table, "16 bytes");
}

#[test]
fn a_table_with_another_name_than_the_manifest() {
    let line = Fixture::new().report(&["TABLE_NAME=\"other\""]);
    assert_failed(
        &line,
        LoadStage::Table,
        "its table names the backend \"other\" but its manifest \"fixture\"",
    );
}

#[test]
fn an_entry_point_that_is_a_variable_is_not_called() {
    assert_failed(&Fixture::new().report(&["ENTRY_IS_DATA"]), LoadStage::Manifest, "is a variable");
}

#[test]
fn an_instance_that_does_not_open() {
    assert_failed(
        &Fixture::new().report(&["OPEN_FAILS"]),
        LoadStage::Instance,
        "FIXTURE_ERROR (7): no luck today",
    );
    assert_failed(
        &Fixture::new().report(&["OPEN_GIVES_NOTHING"]),
        LoadStage::Instance,
        "null instance handle",
    );
}

#[test]
fn functions_beyond_the_end_of_a_smaller_table_are_unsupported() {
    let no_devices = Fixture::new();
    let path = no_devices.backend("fixture", &["INSTANCE_SIZE=RT_END_OF(rt_InstanceTable,close)"]);
    let runtime = load(&path);
    let error = runtime.targets().remove(0).devices.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("InstanceTable.devices"), "{error}");
    let line = Fixture::new().report(&["TABLE_SIZE=RT_END_OF(rt_BackendTable,version)"]);
    assert_failed(&line, LoadStage::Instance, "InstanceTable.open");
}

#[test]
fn a_larger_table_works() {
    let later = "sizeof(instance_table)";
    let fixture = Fixture::new();
    let path = fixture.backend("fixture", &[&format!("INSTANCE_SIZE={later}"), "TABLE_SIZE=sizeof(table)"]);
    let line = line(&path);
    assert_eq!((line.outcome, line.reason.as_str()), (LoadOutcome::Loaded, "fixture 1.2.3 (ABI 1.0)"));
    let device = load(&path).open("fixture").unwrap();
    assert_eq!(device.device_name(), "Fixture One");
    let error = device.queue().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
}
