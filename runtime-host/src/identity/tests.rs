use std::ffi::OsString;
use std::fs;

use runtime_core::{ErrorKind, Options};

use super::*;

/// A folder with a source file in it.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// The identity of code that comes from a file in the folder.
    fn identity(&self, code: &str, options: &Options) -> Result<String> {
        let path = self.0.path().join("kernel.c");
        of(&Source { format: "c", path: path.to_str().unwrap(), code: Some(code.as_bytes()), options })
    }
}

#[test]
fn every_included_file_changes_the_identity() {
    let folder = Folder::new();
    folder.write("later/a.h", "#include <b.h>\n");
    folder.write("later/b.h", "int b;");
    folder.write("earlier/c.h", "");
    let options = Options::new().with("include", "earlier").with("include", "later");
    let identity = |text: &str| folder.identity(text, &options).unwrap();
    for code in [
        "#include \"a.h\"\n",
        "%:include \"a.h\"\n",
        "#inc\\\nlude \"a.h\"\n",
        "#define F <a.h>\n#include F\n",
    ] {
        folder.write("later/b.h", "int b;");
        let first = identity(code);
        assert_eq!(first, identity(code), "{code}");
        folder.write("later/b.h", "int c;");
        let second = identity(code);
        assert_ne!(first, second, "{code}");
        // Another file of that name is found first.
        folder.write("earlier/b.h", "int d;");
        assert_ne!(second, identity(code), "{code}");
        fs::remove_file(folder.0.path().join("earlier/b.h")).unwrap();
    }
    let plain = identity("int a;");
    folder.write("later/b.h", "int e;");
    assert_eq!(plain, identity("int b;"), "nothing is included, and the text itself is not part of it");
}

#[test]
fn further_files_and_libraries_change_the_identity() {
    let folder = Folder::new();
    folder.write("other.c", "int other;");
    let archive = folder.write("liba.a", "one");
    let options = Options::new().with("source", "other.c").with("libraries", archive.as_str());
    let mut seen = vec![folder.identity("int a;", &options).unwrap()];
    for (file, text) in
        [("other.c", "int another;"), ("liba.a", "another"), ("other.c", "#include \"a.h\"\n")]
    {
        folder.write(file, text);
        folder.write("a.h", "int a;");
        seen.push(folder.identity("int a;", &options).unwrap());
    }
    folder.write("a.h", "int b;");
    seen.push(folder.identity("int a;", &options).unwrap());
    let count = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), count, "{seen:#?}");
}

#[test]
fn code_that_reads_unknown_files_is_not_kept() {
    let folder = Folder::new();
    folder.write("data.inc", "int data;");
    let refused = |code: &str, options: &Options| {
        folder.identity(code, options).is_err_and(|error| error.kind() == ErrorKind::Unsupported)
    };
    let plain = Options::new();
    for code in [
        "__asm__(\".incbin \\\"data.inc\\\"\");",
        "#define WORD \".incbin\"\n__asm__(WORD);",
        "const char *when = __TIME__;",
        "#include \"no such file\"\n",
    ] {
        assert!(refused(code, &plain), "{code}");
    }
    assert!(!refused("#include \"data.inc\"\n", &plain));
    for (key, value) in [
        ("flags", "-include data.inc"),
        ("compiler", "no-such-compiler"),
        ("compiler", "cc @data.inc"),
        ("libraries", "no_such_library"),
    ] {
        assert!(refused("int a;", &Options::new().with(key, value)), "{key} {value}");
    }
    let shared = Source { format: "shared-object", path: "", code: Some(b"\x7fELF"), options: &plain };
    assert_eq!(of(&shared).unwrap_err().kind(), ErrorKind::Unsupported);
    let unknown = folder.identity("int a;", &Options::new().with("flag", "-O1")).unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn the_compiler_and_its_environment_change_the_identity() {
    let folder = Folder::new();
    let script = |text: &str| {
        let file = folder.write("compiler", text);
        fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        folder.identity("int a;", &Options::new().with("compiler", file)).unwrap()
    };
    assert_ne!(script("#!/bin/sh\nexec cc \"$@\"\n"), script("#!/bin/sh\nexec gcc \"$@\"\n"));
    let of = |set: Option<&'static str>| {
        environment::of(|name| (set == Some(name)).then(|| OsString::from("value")))
    };
    let mut all: Vec<_> = environment::VARIABLES.iter().map(|name| of(Some(name))).collect();
    all.push(of(None));
    all.sort();
    all.dedup();
    assert_eq!(all.len(), environment::VARIABLES.len() + 1);
    assert!(of(Some("CPATH")).contains("value"));
}

/// Portable code is lowered after this; all of it includes the same header.
#[test]
fn code_that_is_not_lowered_yet_has_an_identity() {
    let options = Options::new().with("convention", "groups").with("flags", "-fno-math-errno");
    let source = Source { format: "c", path: "k.wgsl", code: Some(b""), options: &options };
    assert_eq!(of(&source).unwrap(), of(&source).unwrap());
    for part in [platform::processor(), &platform::c_library()] {
        assert!(of(&source).unwrap().contains(part) && !part.is_empty());
    }
}
