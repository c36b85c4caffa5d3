//! The present core with backends of other minor versions: an older one lacks functions, a newer one has more.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(unsafe_code, reason = "builds function tables, and loads code of the tests")]

mod slot_uses;
mod tables;

use std::collections::BTreeSet;

use runtime_core::abi::{BackendTable, MAJOR};
use runtime_core::backend::LinkedBackend;
use runtime_core::{ErrorKind, Result, Runtime};

use self::slot_uses::{IfMissing, SLOT_USES, SlotUse};
use self::tables::{LATER_MINOR, SLOTS, extended, truncated, with_null_slot};

/// A runtime with the backends of this workspace, each table modified by `change`.
fn runtime(change: impl Fn(&'static BackendTable) -> &'static BackendTable) -> Runtime {
    let changed = |backend: LinkedBackend| {
        // SAFETY: the functions of a backend of this workspace, some of them removed.
        unsafe { LinkedBackend::from_table(change(backend.table())) }
    };
    let builder = Runtime::builder().discover(false);
    builder.register(changed(runtime_null::backend())).register(changed(runtime_host::backend())).build()
}

/// Checks the result of a use whose function is missing.
fn check(used: &SlotUse, how: &str, result: Result<()>) {
    match (used.if_missing, result) {
        (IfMissing::Emulated, Ok(())) => {}
        (IfMissing::Unsupported, Err(error)) => {
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{how} {}: {error}", used.slot);
            assert!(error.to_string().contains(used.slot), "{how} {}: {error}", used.slot);
        }
        (missing, result) => panic!("{how} {}: {missing:?} was due, {result:?} came", used.slot),
    }
}

#[test]
fn every_function_has_a_use() {
    let golden = include_str!("../../../golden_v1.txt");
    let mut table = "";
    let mut expected = BTreeSet::new();
    for line in golden.lines() {
        let word = line.split_whitespace().next().unwrap();
        match line.starts_with(' ') {
            false => table = word,
            true if table.ends_with("Table") && !matches!(table, "HostTable" | "BackendTable") => {
                if !matches!(word, "struct_size" | "reserved") {
                    expected.insert(format!("{table}.{word}"));
                }
            }
            true => {}
        }
    }
    let names = |names: &mut dyn Iterator<Item = &str>| names.map(str::to_owned).collect::<BTreeSet<_>>();
    assert!(expected.len() > 40, "the golden file has too few tables");
    assert_eq!(names(&mut SLOTS.iter().map(|(name, _)| *name)), expected);
    assert_eq!(names(&mut SLOT_USES.iter().map(|used| used.slot)), expected);
}

#[test]
fn everything_works_with_present_backends() {
    for used in SLOT_USES {
        (used.run)(&runtime(|table| table)).unwrap_or_else(|error| panic!("{}: {error}", used.slot));
    }
}

#[test]
fn functions_beyond_the_end_of_an_older_table_are_unsupported() {
    for used in SLOT_USES.iter().filter(|used| used.can_be_truncated) {
        check(used, "cut before", (used.run)(&runtime(|table| truncated(table, used.slot))));
    }
}

#[test]
fn a_null_slot_is_treated_as_a_missing_one() {
    for used in SLOT_USES {
        check(used, "without", (used.run)(&runtime(|table| with_null_slot(table, used.slot))));
    }
}

#[test]
fn a_newer_backend_works() {
    let grown = runtime(extended);
    assert!(
        grown.load_report()[0].reason.contains(&format!("(ABI {MAJOR}.{LATER_MINOR})")),
        "{}",
        grown.load_report()[0]
    );
    for used in SLOT_USES {
        (used.run)(&grown).unwrap_or_else(|error| panic!("{}: {error}", used.slot));
    }
}
