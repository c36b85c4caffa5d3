//! What is written is read again.

#![allow(unsafe_code, reason = "loads code of the null backend")]

use runtime_core::{ErrorKind, OptionValue, Options};
use runtime_package::{KernelFile, Package, PackageBuilder};

use crate::fixture::{Files, builder, runtime};

#[test]
fn a_package_has_all_that_was_put_into_it() {
    let builder = builder();
    let files = Files::new();
    let path = files.path("k.rtpkg");
    builder.write(&path).unwrap();
    for package in
        [Package::open(&path).unwrap(), Package::from_bytes(std::fs::read(&path).unwrap()).unwrap()]
    {
        assert_eq!(package.manifest(), builder.manifest());
        assert_eq!((package.manifest().program.as_str(), package.verify().unwrap()), ("tests 1.0", 4));
        let [scale, sums] = package.kernels() else { panic!("{package:?}") };
        assert_eq!(
            (scale.name.as_str(), scale.entries.as_slice()),
            ("scale", ["scale".to_owned()].as_slice())
        );
        assert_eq!(sums.entries, ["add_f32", "noop"]);

        let code = &scale.codes[0];
        assert_eq!((code.target.as_str(), code.file.format.as_str()), ("null:null", "null-binary"));
        assert_eq!(package.read_file(&code.file).unwrap(), b"null binary 1\np_scale_f32=scale_f32\n");
        let lowered = &code.lowered.as_ref().unwrap()[0];
        assert_eq!(
            (lowered.name.as_str(), lowered.symbol.as_str(), lowered.params.len()),
            ("scale", "p_scale_f32", 2)
        );
        assert_eq!((code.log.as_str(), code.compile_ms.is_some()), ("1 entry points", true));

        let fallback = &scale.fallback.as_ref().unwrap().file;
        assert_eq!(fallback.options, Options::new().with("constant", "PREFIX=p_"));
        assert_eq!(package.read_file(fallback).unwrap(), b"scale scale_f32");

        let (name, info) = &sums.codes[0].resources[0];
        assert_eq!((name.as_str(), info.registers, info.spilled_bytes), ("add_f32", Some(16), Some(0)));
        assert_eq!(info.params.as_ref().map(Vec::len), Some(3), "{info:?}");
        assert_eq!(sums.codes[0].lowered, None);
    }
}

#[test]
fn the_same_kernels_make_the_same_archive_but_for_times() {
    let bytes = || {
        let files = Files::new();
        let mut builder = PackageBuilder::new("tests 1.0");
        builder.add(files.kernel("sums.null", "add_f32")).unwrap();
        builder.to_bytes().unwrap()
    };
    assert_eq!(bytes(), bytes());
}

#[test]
fn names_and_targets_are_unique() {
    let files = Files::new();
    let mut builder = builder();
    let error = builder.add(files.kernel("sums.null", "noop")).unwrap_err();
    assert!(error.message().contains("two kernel files are named \"sums\""), "{error}");
    let error = builder.compile(&runtime(), "sums", "null:null").unwrap_err();
    assert!(error.message().contains("code of \"sums\" for null:null already"), "{error}");
    assert_eq!(builder.compile(&runtime(), "sum", "null:null").unwrap_err().kind(), ErrorKind::NotFound);

    // Names that would be one file are told apart.
    for name in ["a b.null", "a-b.null", "A-B.null"] {
        builder.add(files.kernel(name, "noop")).unwrap();
    }
    let package = Package::from_bytes(builder.to_bytes().unwrap()).unwrap();
    let names: Vec<_> =
        package.kernels()[2..].iter().map(|kernel| &*kernel.fallback.as_ref().unwrap().file.name).collect();
    assert_eq!(names, ["a-b/source.null", "a-b/source-2.null", "A-B/source-3.null"]);
}

#[test]
fn failures_of_a_target_leave_the_package_as_it_was() {
    let files = Files::new();
    let mut builder = builder();
    builder.add(files.kernel("bad.wgsl", "nonsense")).unwrap();
    let before = builder.manifest().clone();
    let mut kind =
        |kernel: &str, target: &str| builder.compile(&runtime(), kernel, target).unwrap_err().kind();
    assert_eq!(kind("bad", "null:null"), ErrorKind::CompileFailed);
    assert_eq!(kind("scale", "null:other"), ErrorKind::NotFound);
    assert_eq!(kind("scale", "cuda:sm_90"), ErrorKind::NotFound);
    assert_eq!(builder.manifest(), &before);
}

#[test]
fn a_target_has_load_options_of_its_own() {
    let files = Files::new();
    let mut kernel = files.kernel("sums.null", "add_f32");
    // The backend declares text.
    kernel.options.push("prefix", 7i64);
    let mut builder = PackageBuilder::new("tests 1.0");
    builder.add(kernel).unwrap();
    builder.compile(&runtime(), "sums", "null:null,prefix=own_").unwrap();
    let package = Package::from_bytes(builder.to_bytes().unwrap()).unwrap();
    assert_eq!(package.manifest(), builder.manifest());
    let code = &package.kernels()[0].codes[0];
    assert_eq!(
        (code.target.as_str(), &code.compiled_with),
        ("null:null", &Options::new().with("prefix", "own_"))
    );
    assert_eq!(package.kernels()[0].entries, ["own_add_f32"]);
    let fallback = &package.kernels()[0].fallback.as_ref().unwrap().file;
    assert_eq!(fallback.options, Options::new().with("prefix", 7i64), "only those of the file");
    let device = runtime().open("null").unwrap();
    // SAFETY: the null backend's code stays in its arguments.
    let (module, _) = unsafe { package.load(&*device, "sums") }.unwrap();
    assert_eq!(module.symbols().unwrap(), ["own_add_f32"]);

    let twice = builder.compile(&runtime(), "sums", "null:null,prefix=other_").unwrap_err();
    assert!(twice.message().contains("for null:null already"), "{twice}");
    for (target, words) in
        [("null:null,prefix", "KEY=VALUE"), ("null:null,prefx=a", "did you mean \"prefix\"?")]
    {
        let mut builder = PackageBuilder::new("tests 1.0");
        builder.add(files.kernel("others.null", "add_f32")).unwrap();
        let error = builder.compile(&runtime(), "others", target).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.message().contains(words), "{error}");
    }
}

#[test]
fn options_of_all_types_are_kept() {
    let files = Files::new();
    let mut kernel = files.kernel("sums.null", "noop");
    let values = [OptionValue::from("text"), true.into(), (-5i64).into(), 0.5.into()];
    values.iter().for_each(|value| kernel.options.push("key", value.clone()));
    let options = kernel.options.clone();
    let mut builder = PackageBuilder::new("tests 1.0");
    builder.add(kernel).unwrap();
    let package = Package::from_bytes(builder.to_bytes().unwrap()).unwrap();
    assert_eq!(package.kernels()[0].fallback.as_ref().unwrap().file.options, options);
}

#[test]
fn a_package_is_extracted_to_a_new_folder_only() {
    let files = Files::new();
    let package = Package::from_bytes(builder().to_bytes().unwrap()).unwrap();
    let folder = files.path("new/folder");
    let written = package.extract(&folder).unwrap();
    assert_eq!(written.len(), 5);
    assert_eq!(std::fs::read(folder.join("scale/source.wgsl")).unwrap(), b"scale scale_f32");
    assert_eq!(
        std::fs::read(folder.join("sums/null-null.null-binary")).unwrap().get(..4),
        Some(&b"null"[..])
    );
    let manifest: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.join("manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest["kernels"][0]["codes"][0]["target"], "null:null");
    let error = package.extract(&folder).unwrap_err();
    assert!(error.message().contains("is not empty; give a new folder"), "{error}");
}

#[test]
fn what_cannot_be_read_is_named() {
    let files = Files::new();
    let error = Package::open(files.path("none.rtpkg")).unwrap_err();
    assert!(error.kind() == ErrorKind::Io && error.message().contains("none.rtpkg"), "{error}");
    let error = Package::open(files.path(".")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    let mut builder = PackageBuilder::new("tests 1.0");
    let kernel = files.kernel("gone.null", "noop");
    std::fs::remove_file(files.path("gone.null")).unwrap();
    let error = builder.add(kernel).unwrap_err();
    assert!(error.kind() == ErrorKind::Io && error.message().contains("gone.null"), "{error}");
    assert_eq!(KernelFile::new("no_extension").unwrap_err().kind(), ErrorKind::InvalidArgument);
    let error = builder.write(&files.path("no/folder/k.rtpkg")).unwrap_err();
    assert!(error.kind() == ErrorKind::Io && error.message().contains("k.rtpkg"), "{error}");
}

#[test]
fn what_cannot_be_read_again_is_not_written() {
    type Change = fn(&mut KernelFile);
    let files = Files::new();
    let write = |change: Change| {
        let mut kernel = files.kernel("sums.null", "noop");
        change(&mut kernel);
        let mut builder = PackageBuilder::new("tests 1.0");
        builder.add(kernel).unwrap();
        builder.to_bytes()
    };
    Package::from_bytes(write(|_| {}).unwrap()).unwrap();
    let changes: [(Change, &str); 5] = [
        (|kernel| kernel.name = String::new(), "the kernel"),
        (|kernel| kernel.name = "a\nb".to_owned(), "the kernel"),
        (|kernel| kernel.format = "".into(), "the format"),
        (|kernel| kernel.options.push("key", f64::NAN), "option \"key\" is not finite"),
        (|kernel| kernel.options.push("key", "x".repeat(17 << 20)), "manifest.json has"),
    ];
    for (change, words) in changes {
        let error = write(change).unwrap_err();
        assert!(error.kind() == ErrorKind::InvalidArgument && error.message().contains(words), "{error}");
    }
}
