//! Entries: their bytes, damage of every kind, and keys.

use std::fs;

use super::super::entry;
use super::super::eviction::Limits;
use super::super::store::{Lookup, Store};
use super::*;

fn bytes_of(key: &Key, code: &CachedCode) -> Vec<u8> {
    [entry::encode_head(key, code), code.code.clone()].concat()
}

#[test]
fn an_entry_is_read_back_as_it_was_written() {
    let fixture = Fixture::new();
    assert_eq!(fixture.get(&fixture.cache(), 1), CacheOutcome::Miss);
    assert_eq!(fixture.get(&fixture.cache(), 1), CacheOutcome::Hit);
    let empty = CachedCode {
        code: Vec::new(),
        log: String::new(),
        options: Options::new(),
        lowered: None,
        resources: Vec::new(),
        ..code(0)
    };
    let get = || fixture.cache().get(&key(2), || Ok(empty.clone())).unwrap();
    assert_eq!((get().1, get().1), (CacheOutcome::Miss, CacheOutcome::Hit));
    assert_eq!(*get().0, empty);
    assert_eq!(fixture.compiled(), 1);
}

#[test]
fn files_are_private_and_nothing_but_entries_remains() {
    use std::os::unix::fs::PermissionsExt;
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("new/cache");
    let cache = CodeCache::with_options(CacheOptions { folder: Some(folder.clone()), ..Default::default() });
    cache.get(&key(1), || Ok(code(1))).unwrap();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&parent.path().join("new"))), (0o700, 0o700));
    let files = files_below(&folder);
    assert_eq!(files.len(), 3, "lock, usage and the entry: {files:?}");
    assert!(files.iter().all(|file| mode(file) == 0o600), "{files:?}");
    assert_eq!(mode(path_of(&folder, &key(1).name()).parent().unwrap()), 0o700);
}

#[test]
fn every_flipped_bit_is_found() {
    let (key, code) = (key(1), CachedCode { code: b"code".to_vec(), ..code(1) });
    let good = bytes_of(&key, &code);
    assert_eq!(entry::read(&mut good.as_slice(), good.len() as u64, &key).unwrap(), code);
    for at in 0..good.len() * 8 {
        let mut bad = good.clone();
        bad[at / 8] ^= 1 << (at % 8);
        let read = entry::read(&mut bad.as_slice(), bad.len() as u64, &key);
        assert!(read.is_err(), "bit {at}");
    }
}

#[test]
fn every_wrong_length_is_found() {
    let (key, code) = (key(1), code(1));
    let good = bytes_of(&key, &code);
    for length in 0..good.len() {
        let cut = &good[..length];
        assert!(entry::read(&mut &cut[..], length as u64, &key).is_err(), "{length}");
        assert!(
            entry::read(&mut &cut[..], good.len() as u64, &key).is_err(),
            "cut while it is read: {length}"
        );
    }
    let longer = [&good[..], &[0]].concat();
    assert!(entry::read(&mut longer.as_slice(), longer.len() as u64, &key).is_err());
}

#[test]
fn a_damaged_file_is_a_repaired_miss() {
    let fixture = Fixture::new();
    let file = fixture.file(&key(1));
    fixture.get(&fixture.cache(), 1);
    let good = fs::read(&file).unwrap();
    for at in (0..good.len()).step_by(7) {
        let mut bad = good.clone();
        bad[at] ^= 0x40;
        fs::write(&file, bad).unwrap();
        assert_eq!(fixture.get(&fixture.cache(), 1), CacheOutcome::Miss, "byte {at}");
        assert_eq!(fs::read(&file).unwrap(), good);
    }
    for length in (0..good.len()).step_by(101) {
        fs::write(&file, &good[..length]).unwrap();
        assert_eq!(fixture.get(&fixture.cache(), 1), CacheOutcome::Miss, "length {length}");
        assert_eq!(fixture.get(&fixture.cache(), 1), CacheOutcome::Hit, "length {length}");
    }
}

#[test]
fn a_file_beyond_the_bound_is_not_read() {
    const BYTES: u64 = 8 << 20;
    let fixture = Fixture::new();
    fixture.get(&fixture.cache(), 1);
    // A sparse file whose head is right.
    let mut head = entry::encode_head(&key(1), &code(1));
    let code_bytes = BYTES - head.len() as u64;
    head[60..68].copy_from_slice(&code_bytes.to_le_bytes());
    let hash = *blake3::hash(&head[44..]).as_bytes();
    head[12..44].copy_from_slice(&hash);
    fs::write(fixture.file(&key(1)), &head).unwrap();
    fs::File::options().write(true).open(fixture.file(&key(1))).unwrap().set_len(BYTES).unwrap();
    let read = |max_bytes| {
        let store = Store::open(fixture.path(), true, Limits { bytes: max_bytes, entries: 10 }).unwrap();
        match store.read(&key(1)) {
            Lookup::Damaged(damage) => damage.to_string(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(read(BYTES), "its content does not match its hash");
    assert_eq!(read(BYTES - 1), "it has a wrong length");
    let bounded = CodeCache::with_options(CacheOptions { max_bytes: BYTES - 1, ..fixture.options() });
    let damaged = bounded.verify().unwrap().damaged;
    assert_eq!(damaged[0].reason, "it is larger than the bound of the cache");
}

#[test]
fn right_hashes_do_not_help_wrong_metadata() {
    // Everything after the header is rehashed, so only the decoder can object; it must not panic, or allocate what
    // a length claims.
    let (key, code) = (key(1), CachedCode { code: Vec::new(), ..code(1) });
    let good = bytes_of(&key, &code);
    let metadata = 100 + key.bytes().len();
    for at in metadata..good.len() {
        for value in [0, 1, 2, 0x7f, 0xff] {
            let mut bad = good.clone();
            bad[at] = value;
            let hash = *blake3::hash(&bad[44..]).as_bytes();
            bad[12..44].copy_from_slice(&hash);
            if let Ok(read) = entry::read(&mut bad.as_slice(), bad.len() as u64, &key) {
                assert_eq!(bytes_of(&key, &read), bad, "what is accepted is encoded in the same way: {at}");
            }
        }
    }
}

#[test]
fn a_hash_collision_is_a_miss() {
    let fixture = Fixture::new();
    fixture.get(&fixture.cache(), 1);
    let other = key(1).colliding_with(b"other code");
    let get = || fixture.cache().get(&other, || Ok(code(2))).unwrap();
    assert_eq!((get().1, *get().0 == code(2)), (CacheOutcome::Miss, true));
    assert_eq!(fixture.get(&fixture.cache(), 1), CacheOutcome::Miss, "they take turns in one file");
}

#[test]
fn every_part_of_a_key_counts() {
    let fixture = Fixture::new();
    let parts: [(&str, &[u8]); 4] =
        [("source", b"text"), ("arch", b"sm_90"), ("option", b"O2"), ("driver", b"570.1")];
    let build = |parts: &[(&str, &[u8])]| {
        let mut builder = KeyBuilder::new();
        parts.iter().for_each(|(name, value)| {
            builder.part(name, value);
        });
        builder.finish()
    };
    let outcome = |key: &Key| fixture.cache().get(key, || Ok(code(1))).unwrap().1;
    assert_eq!(outcome(&build(&parts)), CacheOutcome::Miss);
    for at in 0..parts.len() {
        let (mut value, mut name) = (parts, parts);
        value[at].1 = b"changed";
        name[at].0 = "changed";
        let fewer: Vec<_> =
            parts.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, p)| *p).collect();
        for key in [build(&value), build(&name), build(&fewer)] {
            assert_eq!(outcome(&key), CacheOutcome::Miss, "part {at}");
        }
    }
    let mut swapped = parts;
    swapped.swap(0, 1);
    assert_eq!(outcome(&build(&swapped)), CacheOutcome::Miss);
    assert_eq!(outcome(&build(&parts)), CacheOutcome::Hit);
}
