//! Access, errors, overrides, dumps, and the environment.

use std::ffi::OsString;
use std::fs;

use super::super::environment::Settings;
use super::*;

#[test]
fn without_a_cache_everything_is_compiled() {
    let fixture = Fixture::new();
    let off = CodeCache::off();
    assert_eq!([1, 1].map(|number| fixture.get(&off, number)), [CacheOutcome::Uncached; 2]);
    assert_eq!(off.list().unwrap_err().kind(), ErrorKind::Unavailable);
}

#[test]
fn an_error_is_returned_and_not_stored() {
    let fixture = Fixture::new();
    let failed = fixture.cache().get(&key(1), || Err(Error::new(ErrorKind::CompileFailed, "line 7")));
    assert_eq!(failed.unwrap_err().message(), "line 7");
    assert_eq!(fixture.get(&fixture.cache(), 1), CacheOutcome::Miss);
}

#[test]
fn a_refused_entry_is_removed() {
    let fixture = Fixture::new();
    let cache = fixture.cache();
    fixture.get(&cache, 1);
    cache.remove(&key(1));
    cache.remove(&key(2));
    assert_eq!(cache.usage().unwrap(), CacheUsage::default());
    assert_eq!(fixture.get(&cache, 1), CacheOutcome::Miss);
}

#[test]
fn a_read_only_cache_changes_nothing() {
    let fixture = Fixture::new();
    fixture.get(&fixture.cache(), 1);
    fs::write(fixture.file(&key(2)).with_file_name("x"), "").ok();
    let before = files_below(fixture.path());
    let cache = CodeCache::with_options(CacheOptions { access: CacheAccess::ReadOnly, ..fixture.options() });
    assert_eq!([1, 2].map(|number| fixture.get(&cache, number)), [CacheOutcome::Hit, CacheOutcome::Uncached]);
    fs::write(fixture.file(&key(1)), "damaged").unwrap();
    assert_eq!(fixture.get(&cache, 1), CacheOutcome::Uncached);
    assert_eq!(cache.verify().unwrap().damaged.len(), 1);
    assert!(cache.clear().is_err() && cache.prune(&PruneOptions::default()).is_err());
    assert_eq!(files_below(fixture.path()), before);
    let missing = CacheOptions { folder: Some(fixture.path().join("missing")), ..fixture.options() };
    let cache = CodeCache::with_options(CacheOptions { access: CacheAccess::ReadOnly, ..missing });
    assert_eq!(fixture.get(&cache, 1), CacheOutcome::Uncached);
    assert!(cache.list().unwrap().is_empty() && !fixture.path().join("missing").exists());
}

#[test]
fn recompiling_replaces_entries() {
    let fixture = Fixture::new();
    let old = fixture.cache().get(&key(1), || Ok(code(2))).unwrap();
    assert_eq!(*old.0, code(2));
    let cache = CodeCache::with_options(CacheOptions { recompile: true, ..fixture.options() });
    assert_eq!([1, 1].map(|number| fixture.get(&cache, number)), [CacheOutcome::Miss; 2]);
    assert_eq!(fixture.get(&fixture.cache(), 1), CacheOutcome::Hit);
}

fn settings(variables: &[(&str, &str)]) -> Settings {
    Settings::read(&|name| {
        variables.iter().find(|(other, _)| *other == name).map(|(_, value)| OsString::from(value))
    })
}

#[test]
fn variables_set_the_options() {
    let all = settings(&[
        ("RUNTIME_CACHE", "/a/b"),
        ("RUNTIME_CACHE_MAX_BYTES", "2MiB"),
        ("RUNTIME_CACHE_MAX_ENTRIES", "7"),
        ("RUNTIME_CACHE_RECOMPILE", "1"),
        ("RUNTIME_CACHE_SHARED", "/shared"),
        ("RUNTIME_CACHE_OVERRIDE", "/own"),
        ("RUNTIME_DUMP", "lowered,binary /a folder"),
    ]);
    assert!(all.warnings.is_empty(), "{:?}", all.warnings);
    let options = all.options;
    assert_eq!(options.folder.as_deref(), Some(Path::new("/a/b")));
    assert_eq!(
        (options.access, options.max_bytes, options.max_entries),
        (CacheAccess::ReadWrite, 2 << 20, 7)
    );
    assert!(options.recompile && options.override_folder.as_deref() == Some(Path::new("/own")));
    assert_eq!(options.shared.unwrap().location(), "/shared");
    let stages = vec![DumpStage::Lowered, DumpStage::Binary];
    assert_eq!(options.dump, Some(DumpOptions { stages, folder: "/a folder".into() }));
    assert_eq!(settings(&[("RUNTIME_CACHE", "off")]).options.access, CacheAccess::Off);
    assert_eq!(settings(&[("RUNTIME_CACHE", "read-only")]).options.access, CacheAccess::ReadOnly);
    assert_eq!(settings(&[("RUNTIME_CACHE_RECOMPILE", "0")]).warnings.len(), 0);
}

#[test]
fn an_invalid_variable_is_one_warning_with_the_remedy() {
    for (name, value, remedy) in [
        ("RUNTIME_CACHE", "ON", "off, to read-only, or to the absolute path"),
        ("RUNTIME_CACHE", "cache", "off, to read-only, or to the absolute path"),
        ("RUNTIME_CACHE_MAX_BYTES", "4GB", "4GiB"),
        ("RUNTIME_CACHE_MAX_BYTES", "99999999TiB", "4GiB"),
        ("RUNTIME_CACHE_MAX_ENTRIES", "-1", "number of entries"),
        ("RUNTIME_CACHE_RECOMPILE", "yes", "set it to 1"),
        ("RUNTIME_CACHE_SHARED", "https://host", "absolute path of a folder, or to an address"),
        ("RUNTIME_CACHE_OVERRIDE", "own", "absolute path"),
        ("RUNTIME_DUMP", "/folder", "stages"),
        ("RUNTIME_DUMP", "ptx /folder", "stages"),
        ("RUNTIME_DUMP", "asm folder", "stages"),
    ] {
        let Settings { options, warnings } = settings(&[(name, value)]);
        assert_eq!(warnings.len(), 1, "{name}={value}");
        assert!(warnings[0].starts_with(name) && warnings[0].contains(remedy), "{}", warnings[0]);
        assert_eq!(options.access == CacheAccess::Off, name == "RUNTIME_CACHE", "{name}={value}");
        assert_eq!((options.max_bytes, options.max_entries), (4 << 30, 100_000));
    }
}
