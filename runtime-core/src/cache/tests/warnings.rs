//! Warnings: each cause is reported once, with the remedy, and only when code is loaded.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use test_process::Messages;

use super::super::environment::Settings;
use super::super::shared::SharedFolder;
use super::*;

/// What is logged while code is loaded several times.
fn messages(options: CacheOptions) -> Vec<String> {
    let messages = Messages::default();
    tracing::subscriber::with_default(messages.clone(), || {
        let (fixture, cache) = (Fixture::new(), CodeCache::with_options(options));
        drop((cache.list(), cache.usage(), cache.verify()));
        assert!(messages.list().is_empty(), "listing returns an error instead");
        (0..3).for_each(|_| fixture.fill(&cache, 0..2));
    });
    messages.list()
}

fn assert_one(messages: &[String], parts: &[&str]) {
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(parts.iter().all(|part| messages[0].contains(part)), "{messages:?}");
}

#[test]
fn a_cache_that_works_or_is_off_logs_nothing() {
    let fixture = Fixture::new();
    assert_eq!(messages(fixture.options()), [""; 0]);
    assert_eq!(messages(CacheOptions { access: CacheAccess::Off, ..fixture.options() }), [""; 0]);
    let missing = CacheOptions { folder: Some(fixture.path().join("missing")), ..fixture.options() };
    assert_eq!(messages(CacheOptions { access: CacheAccess::ReadOnly, ..missing }), [""; 0]);
}

#[test]
fn a_store_that_cannot_be_used_is_reported_once() {
    let fixture = Fixture::new();
    fs::set_permissions(fixture.path(), fs::Permissions::from_mode(0o777)).unwrap();
    assert_one(&messages(fixture.options()), &["WARN", "code is not cached", "chmod go-w"]);
    let read_only = CacheOptions { access: CacheAccess::ReadOnly, ..fixture.options() };
    assert_one(&messages(read_only), &["chmod go-w"]);
}

#[test]
fn an_entry_that_cannot_be_written_is_reported_once() {
    let fixture = Fixture::new();
    for number in 0..2 {
        fs::create_dir_all(fixture.file(&key(number))).unwrap();
    }
    let all = messages(fixture.options());
    // A folder in the place of an entry can neither be removed nor replaced.
    assert_eq!(all.len(), 2, "{all:?}");
    assert!(all[0].contains("cannot remove an entry") && all[1].contains("cannot store code"), "{all:?}");
}

#[test]
fn a_shared_store_that_fails_is_reported_once() {
    let fixture = Fixture::new();
    let store: Arc<dyn SharedStore> = Arc::new(SharedFolder::new(&fixture.path().join("missing"), 1 << 20));
    let shared = CacheOptions { shared: Some(store), ..fixture.options() };
    assert_one(&messages(shared), &["the shared code cache", "missing", "is not used"]);
}

#[test]
fn an_override_or_dump_that_fails_is_reported_once() {
    let fixture = Fixture::new();
    fs::write(fixture.path().join("file"), "").unwrap();
    let folder = fixture.path().join("file/folder");
    let own = CacheOptions { override_folder: Some(folder.clone()), ..fixture.options() };
    assert_one(&messages(own), &["RUNTIME_CACHE_OVERRIDE"]);
    let dump = DumpOptions { stages: vec![DumpStage::Binary], folder };
    assert_one(&messages(CacheOptions { dump: Some(dump), ..fixture.options() }), &["RUNTIME_DUMP"]);
}

#[test]
fn invalid_variables_are_reported_once() {
    let messages = Messages::default();
    tracing::subscriber::with_default(messages.clone(), || {
        let settings = Settings::read(&|name| (name == "RUNTIME_CACHE").then(|| "no".into()));
        let layers = Layers::open(settings);
        for _ in 0..2 {
            layers.get(&key(1), || Ok(code(1))).unwrap();
        }
    });
    assert_one(&messages.list(), &["RUNTIME_CACHE is \"no\"", "off, to read-only"]);
}
