//! Folders and files that are not trusted, and disks that cannot be written.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;
use crate::platform::trust::{Owner, check_folder};

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn cache_in(folder: &Path) -> CodeCache {
    CodeCache::with_options(CacheOptions { folder: Some(folder.to_owned()), ..CacheOptions::default() })
}

#[test]
fn a_folder_that_others_may_write_is_not_used() {
    for mode in [0o770, 0o707, 0o722, 0o1777] {
        let fixture = Fixture::new();
        fixture.get(&fixture.cache(), 1);
        set_mode(fixture.path(), mode);
        assert_eq!(fixture.get(&fixture.cache(), 1), CacheOutcome::Uncached, "{mode:o}");
        let error = fixture.cache().list().unwrap_err();
        assert!(error.kind() == ErrorKind::Unavailable && error.message().contains("chmod go-w"), "{error}");
        set_mode(fixture.path(), 0o755);
        assert_eq!(fixture.get(&fixture.cache(), 1), CacheOutcome::Hit, "others may read");
    }
}

#[test]
fn a_folder_below_one_that_others_may_write_is_not_used() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("a/b");
    let fixture = Fixture::new();
    assert_eq!(fixture.get(&cache_in(&folder), 1), CacheOutcome::Miss);
    set_mode(parent.path(), 0o777);
    assert_eq!(fixture.get(&cache_in(&folder), 1), CacheOutcome::Uncached);
    // As /tmp is.
    set_mode(parent.path(), 0o1777);
    assert_eq!(fixture.get(&cache_in(&folder), 1), CacheOutcome::Hit);
}

#[test]
fn a_link_to_a_folder_is_judged_by_its_target() {
    let parent = tempfile::tempdir().unwrap();
    let (link, target) = (parent.path().join("link"), parent.path().join("target"));
    fs::create_dir(&target).unwrap();
    symlink(&target, &link).unwrap();
    let fixture = Fixture::new();
    assert_eq!(fixture.get(&cache_in(&link), 1), CacheOutcome::Miss);
    assert_eq!(fixture.get(&cache_in(&target), 1), CacheOutcome::Hit);
    set_mode(&target, 0o777);
    assert_eq!(fixture.get(&cache_in(&link), 1), CacheOutcome::Uncached);
}

#[test]
fn links_pipes_folders_and_writable_files_are_no_entries() {
    let fixture = Fixture::new();
    let (cache, file) = (fixture.cache(), fixture.file(&key(1)));
    fixture.get(&cache, 1);
    let elsewhere = tempfile::tempdir().unwrap();
    let copy = elsewhere.path().join("copy");
    fs::rename(&file, &copy).unwrap();
    symlink(&copy, &file).unwrap();
    assert_eq!(fixture.get(&cache, 1), CacheOutcome::Miss, "a link");
    assert!(copy.exists() && !file.is_symlink());
    set_mode(&file, 0o666);
    assert_eq!(fixture.get(&cache, 1), CacheOutcome::Miss, "a file that others may write");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    fs::remove_file(&file).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&file).status();
    assert!(made.is_ok_and(|status| status.success()), "mkfifo is part of coreutils");
    assert_eq!(fixture.get(&cache, 1), CacheOutcome::Miss, "a pipe");
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert_eq!(fixture.get(&cache, 1), CacheOutcome::Uncached, "a folder in its place");
    fs::remove_dir(&file).unwrap();
    assert_eq!([1, 1].map(|number| fixture.get(&cache, number)), [CacheOutcome::Miss, CacheOutcome::Hit]);
}

#[test]
fn links_in_place_of_the_own_files_are_not_followed() {
    let fixture = Fixture::new();
    let victim = fixture.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    symlink(&victim, fixture.path().join("usage")).unwrap();
    symlink(&victim, fixture.path().join("lock")).unwrap();
    let cache = fixture.cache();
    assert_eq!(
        [1, 2, 1].map(|number| fixture.get(&cache, number)),
        [CacheOutcome::Miss, CacheOutcome::Miss, CacheOutcome::Hit]
    );
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
}

#[test]
fn another_users_files_are_not_used() {
    // Only root can make one; as another user, root's folders are the example.
    let folder = tempfile::tempdir().unwrap();
    let foreign = match std::os::unix::fs::chown(folder.path(), Some(12345), None) {
        Ok(()) => folder.path(),
        Err(_) => Path::new("/usr"),
    };
    let error = check_folder(foreign, Owner::User).unwrap_err();
    assert!(error.message().contains("belongs to user"), "{error}");
    assert_eq!(check_folder(Path::new("/usr"), Owner::UserOrRoot).unwrap(), Path::new("/usr"));
}

#[test]
fn a_folder_that_cannot_be_made_is_no_error() {
    let fixture = Fixture::new();
    fs::write(fixture.path().join("file"), "").unwrap();
    for folder in ["file", "file/cache"] {
        let cache = cache_in(&fixture.path().join(folder));
        assert_eq!(fixture.get(&cache, 1), CacheOutcome::Uncached, "{folder}");
        assert!(cache.list().is_err() && cache.clear().is_err());
    }
}

#[test]
fn a_folder_that_is_removed_while_it_is_used_is_made_again() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("cache");
    let (fixture, cache) = (Fixture::new(), cache_in(&folder));
    fixture.get(&cache, 1);
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!([1, 1].map(|number| fixture.get(&cache, number)), [CacheOutcome::Miss, CacheOutcome::Hit]);
    assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700);
}
