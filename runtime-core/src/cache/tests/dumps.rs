//! The override folder, and dumps of code.

use std::fs;

use super::*;

#[test]
fn the_users_own_code_replaces_that_of_an_entry() {
    let (fixture, own) = (Fixture::new(), tempfile::tempdir().unwrap());
    let cache = CodeCache::with_options(CacheOptions {
        override_folder: Some(own.path().to_owned()),
        ..fixture.options()
    });
    assert_eq!(fixture.get(&cache, 1), CacheOutcome::Miss);
    for file in [format!("{}.cubin", key(1).name()), key(1).name()] {
        fs::write(own.path().join(file), "my own").unwrap();
        let (found, outcome) = cache.get(&key(1), || Ok(code(1))).unwrap();
        assert_eq!(outcome, CacheOutcome::Override);
        let expected =
            CachedCode { code: b"my own".to_vec(), log: String::new(), resources: Vec::new(), ..code(1) };
        assert_eq!(*found, expected, "the figures of the entry are not those of the user's code");
    }
    assert_eq!(fixture.get(&cache, 2), CacheOutcome::Miss, "another entry");
    assert_eq!(fixture.get(&fixture.cache(), 1), CacheOutcome::Hit, "the entry did not change");
    let off = CacheOptions {
        access: CacheAccess::Off,
        override_folder: Some(own.path().to_owned()),
        ..fixture.options()
    };
    let outcome = CodeCache::with_options(off).get(&key(1), || Ok(code(1))).unwrap().1;
    assert_eq!(outcome, CacheOutcome::Override, "it needs no store");
}

#[test]
fn an_override_that_others_may_write_is_not_used() {
    use std::os::unix::fs::PermissionsExt;
    let (fixture, own) = (Fixture::new(), tempfile::tempdir().unwrap());
    let file = own.path().join(key(1).name());
    fs::write(&file, "anyone's").unwrap();
    let cache = CodeCache::with_options(CacheOptions {
        override_folder: Some(own.path().to_owned()),
        ..fixture.options()
    });
    for (path, mode) in [(file.as_path(), 0o666), (own.path(), 0o777)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        assert_ne!(fixture.get(&cache, 1), CacheOutcome::Override);
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).unwrap();
    }
}

/// The files that a load of `code` leaves in a dump folder.
fn dumped(stages: &[DumpStage], code: &CachedCode) -> Vec<(String, Vec<u8>)> {
    let (fixture, parent) = (Fixture::new(), tempfile::tempdir().unwrap());
    let dump = DumpOptions { stages: stages.to_vec(), folder: parent.path().join("new") };
    let cache = CodeCache::with_options(CacheOptions { dump: Some(dump.clone()), ..fixture.options() });
    for _ in 0..2 {
        cache.dump(&key(1), DumpStage::Lowered, "ptx", b"lowered");
        cache.get(&key(1), || Ok(code.clone())).unwrap();
    }
    let Ok(entries) = fs::read_dir(&dump.folder) else { return Vec::new() };
    let mut files: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (
                name.strip_prefix(&key(1).name()).expect("named by its key").to_owned(),
                fs::read(&path).unwrap(),
            )
        })
        .collect();
    files.sort_unstable();
    files
}

#[test]
fn the_stages_that_were_asked_for_are_written() {
    let ptx = CachedCode { format: CodeFormat::PTX, code: b".version 8.0".to_vec(), ..code(1) };
    let file = |name: &str, bytes: &[u8]| (name.to_owned(), bytes.to_vec());
    let (asm, lowered, binary) =
        (file(".asm", &ptx.code), file(".lowered.ptx", b"lowered"), file(".ptx", &ptx.code));
    assert_eq!(dumped(&[], &ptx), []);
    assert_eq!(dumped(&[DumpStage::Lowered], &ptx), std::slice::from_ref(&lowered));
    assert_eq!(
        dumped(&[DumpStage::Asm, DumpStage::Binary, DumpStage::Lowered], &ptx),
        [asm, lowered, binary]
    );
}

#[test]
fn native_code_is_disassembled_or_a_note_says_why_not() {
    // Any of these tools may be missing; none of them accepts this code.
    for format in [CodeFormat::CUBIN, CodeFormat::FATBIN, CodeFormat::OBJECT, CodeFormat::SPIRV_SHADER] {
        let files = dumped(&[DumpStage::Asm], &CachedCode { format: format.clone(), ..code(1) });
        assert_eq!(files.len(), 1, "{format}: {files:?}");
        assert_eq!(files[0].0, ".asm.note", "{format}");
        let note = String::from_utf8_lossy(&files[0].1).into_owned();
        assert!(note.contains("not in PATH") || note.contains("failed on this code"), "{format}: {note}");
    }
    // The test itself is a file that `objdump` can read, and large: its output does not fit a pipe.
    let has_objdump = std::process::Command::new("objdump").arg("--version").output().is_ok();
    let library = ["/lib/x86_64-linux-gnu/libm.so.6", "/lib/aarch64-linux-gnu/libm.so.6"]
        .into_iter()
        .find_map(|path| fs::read(path).ok());
    if let (true, Some(library)) = (has_objdump, library) {
        let files = dumped(
            &[DumpStage::Asm],
            &CachedCode { format: CodeFormat::SHARED_OBJECT, code: library, ..code(1) },
        );
        assert!(files[0].0 == ".asm" && files[0].1.len() > 100_000, "{}", files[0].0);
    }
}
