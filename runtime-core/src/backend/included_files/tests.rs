use std::fs;

use super::*;

fn names_in(text: &str) -> Option<Vec<String>> {
    Some(names(text.as_bytes())?.into_iter().map(|name| name.display().to_string()).collect())
}

#[test]
fn directives_are_found_however_they_are_written() {
    for text in [
        "#include \"a.h\"",
        "x\n  #\tinclude<a.h> // why",
        "%: include \"a.h\"",
        "#inc\\\nlude \"a.h\"",
        "# \\  \r\ninclude \"a.\\\nh\"",
        "#import <a.h>",
        "// #include \"a.h\"",
        "#if __has_include ( <a.h> )",
        "#if defined(__has_include) && __has_include(\"a.h\")",
    ] {
        assert_eq!(names_in(text), Some(vec!["a.h".to_owned()]), "{text}");
    }
    for text in [
        "",
        "int included; // this does not include it, nor import it",
        "#define include_it 1\n#ifdef __has_include\n#endif",
        "char *s = \"\\\\ include\"; a.embed = 1;",
        "\\",
    ] {
        assert_eq!(names_in(text), Some(vec![]), "{text}");
    }
}

#[test]
fn files_that_cannot_be_known_are_refused() {
    for text in [
        "#define F <a.h>\n#include F",
        "#include /* which */ \"a.h\"",
        "# /* what */ include \"a.h\"",
        "#include \"a.h",
        "#include <a\n.h>",
        "#include",
        "#include_next <a.h>",
        "??=include \"a.h\"",
        "#inc??/\nlude \"a.h\"",
        "#embed \"a.bin\"",
        "#if __has_embed(\"a.bin\")",
        "#define HAS __has_include\n#if HAS(<a.h>)",
        "#if __has_include(F)",
        "import a;",
        "int x;\n export import a;",
        "#pragma include_alias(\"a.h\", \"b.h\")",
        "asm(\".incbin \\\"a.bin\\\"\");",
    ] {
        assert_eq!(names_in(text), None, "{text}");
    }
    assert_eq!(included_files("#include F", None, &[]), None);
}

#[test]
fn every_file_and_every_place_before_it_changes_the_description() {
    let root = tempfile::tempdir().unwrap();
    let (own, first, second) =
        (root.path().join("own"), root.path().join("first"), root.path().join("second"));
    for folder in [&own, &first, &second] {
        fs::create_dir(folder).unwrap();
    }
    let folders = [first.clone(), second.clone()];
    let describe = || included_files("#include \"a.h\"\n", Some(&own), &folders).unwrap();
    let mut seen = vec![describe()];
    let mut changes = |path: PathBuf, text: &str| {
        fs::write(&path, text).unwrap();
        let now = describe();
        assert_eq!(now, describe(), "{}", path.display());
        assert!(!seen.contains(&now), "{} with {text:?}: {now}", path.display());
        seen.push(now);
    };
    changes(second.join("a.h"), "#include <b.h>\n");
    changes(second.join("b.h"), "int b;");
    changes(second.join("b.h"), "int c;");
    // The file that includes it is in `second`, so this one is before it.
    changes(first.join("b.h"), "int b;");
    changes(first.join("a.h"), "int b;");
    changes(own.join("a.h"), "int b;");
    fs::write(second.join("b.h"), "#include F").unwrap();
    assert_eq!(included_files("#include \"a.h\"\n", Some(&own), &folders), None);
}

#[test]
fn files_that_include_each_other_are_read_once() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("sub")).unwrap();
    fs::write(root.path().join("a.h"), "#include \"sub/b.h\"\n#include \"sub/../a.h\"").unwrap();
    fs::write(root.path().join("sub/b.h"), "#include \"../a.h\"\n#include \"../sub/b.h\"").unwrap();
    let described = included_files("#include \"a.h\"", Some(root.path()), &[]).unwrap();
    assert_eq!(described.lines().filter(|line| !line.ends_with("absent")).count(), 2, "{described}");
    assert!(described.lines().count() < 10, "{described}");
}

#[test]
fn a_folder_or_a_pipe_is_not_read() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("a.h")).unwrap();
    let described = included_files("#include \"a.h\"", Some(root.path()), &[]).unwrap();
    assert!(described.ends_with("not a file\n"), "{described}");
}
