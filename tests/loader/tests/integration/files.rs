//! Files that are rejected before they are loaded.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use runtime_core::backend::LoadStage;

use crate::fixture::{Fixture, assert_failed, line};

#[test]
fn a_missing_file() {
    let fixture = Fixture::new();
    assert_failed(&line(&fixture.path("libruntime_x.so")), LoadStage::Search, "No such file");
    symlink("nowhere", fixture.path("libruntime_x.so")).unwrap();
    assert_failed(&line(&fixture.path("libruntime_x.so")), LoadStage::Search, "No such file");
}

#[test]
fn a_directory_in_place_of_a_file() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.path("libruntime_x.so")).unwrap();
    assert_failed(&line(&fixture.path("libruntime_x.so")), LoadStage::Search, "not a file");
}

#[test]
fn a_file_that_cannot_be_read() {
    let fixture = Fixture::new();
    let path = fixture.path("libruntime_x.so");
    // Its first byte cannot be read by any user, root included.
    symlink("/proc/self/mem", &path).unwrap();
    assert_failed(&line(&path), LoadStage::Manifest, "Input/output error");
}

#[test]
fn a_file_of_another_kind() {
    let fixture = Fixture::new();
    let path = fixture.path("libruntime_x.so");
    for text in ["", "\x7fELF", "INPUT ( libreal.so )\n# a linker script, which dlopen refuses too\n"] {
        fs::write(&path, text).unwrap();
        assert_failed(&line(&path), LoadStage::Manifest, "not an ELF file");
    }
}

#[test]
fn a_library_that_is_not_a_backend() {
    let line = Fixture::new().report(&["NO_MANIFEST"]);
    assert_failed(&line, LoadStage::Manifest, "not a backend of this project");
    assert_eq!(line.target.as_deref(), Some("fixture"));
}

#[test]
fn a_library_for_another_machine() {
    let fixture = Fixture::new();
    let path = fixture.backend("fixture", &[]);
    let mut bytes = fs::read(&path).unwrap();
    let foreign: u16 = if cfg!(target_arch = "aarch64") { 62 } else { 183 };
    bytes[18..20].copy_from_slice(&foreign.to_le_bytes());
    fs::write(&path, &bytes).unwrap();
    assert_failed(&line(&path), LoadStage::Manifest, "this program runs on");
}

#[test]
fn a_library_truncated_anywhere() {
    let fixture = Fixture::new();
    let path = fixture.backend("fixture", &[]);
    let bytes = fs::read(&path).unwrap();
    for end in [4, 19, 63, 64, 200, 4096, bytes.len() / 2, bytes.len() - 1] {
        fs::write(&path, &bytes[..end]).unwrap();
        let line = line(&path);
        let reason = if end < 20 { "not an ELF file" } else { "truncated" };
        assert_failed(&line, LoadStage::Manifest, reason);
    }
}

#[test]
fn a_world_writable_file_or_directory() {
    let fixture = Fixture::new();
    let path = fixture.backend("fixture", &[]);
    let chmod =
        |name: &str, mode| fs::set_permissions(fixture.path(name), fs::Permissions::from_mode(mode)).unwrap();
    chmod("libruntime_fixture.so", 0o757);
    assert_failed(&line(&path), LoadStage::Search, "chmod o-w");
    chmod("libruntime_fixture.so", 0o755);
    chmod("", 0o1777);
    assert_failed(&line(&path), LoadStage::Search, "world-writable");
    chmod("", 0o755);
    assert_eq!(line(&path).stage, LoadStage::Instance);
}

#[test]
fn a_link_into_a_world_writable_directory() {
    let (open, closed) = (Fixture::new(), Fixture::new());
    let library = open.backend("fixture", &[]);
    fs::set_permissions(open.path(""), fs::Permissions::from_mode(0o777)).unwrap();
    symlink(library, closed.path("libruntime_fixture.so")).unwrap();
    assert_failed(&line(&closed.path("libruntime_fixture.so")), LoadStage::Search, "world-writable");
}
