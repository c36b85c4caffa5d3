//! `runtime-core/include/runtime.h` is up to date with `runtime-core/src/abi`, and has the same layouts and constants in C.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::Command;

use cbindgen::{Builder, Config, DocumentationStyle, ExportConfig, Language};
use runtime_core::{ErrorKind, abi};

const TRAILER: &str = "\
#ifdef __cplusplus
extern \"C\"
#endif
// The one function that a backend library exports.
__attribute__((visibility(\"default\"))) rt_Status runtime_backend_v1(const rt_BackendTable **out);

// Writes the manifest of a backend, e.g. RT_DEFINE_MANIFEST(\"mine\", \"x86_64-unknown-linux-gnu\");
#define RT_DEFINE_MANIFEST(backend_name, target_triple)                                            \\
    __attribute__((section(RT_MANIFEST_SECTION), used)) static const rt_Manifest rt_manifest = {   \\
        RT_MAGIC, sizeof(rt_Manifest), RT_MAJOR, RT_MINOR, backend_name, target_triple}

// The end of `field`: what belongs into `struct_size` when it is the last one.
#define RT_END_OF(type, field) ((uint32_t)(offsetof(type, field) + sizeof(((type *)0)->field)))";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn source(name: &str) -> String {
    std::fs::read_to_string(root().join("runtime-core/src/abi").join(name)).unwrap()
}

/// Expands the macro `tables!` to plain structures, because cbindgen expands no macros.
fn expand_tables(source: &str) -> String {
    let (before, tables) =
        source.split_once("\ntables! {\n").expect("table.rs holds the macro call `tables! {`");
    let tables = tables.trim_end().strip_suffix('}').expect("`tables! { … }` is the last item of table.rs");
    let line = |line: &str| match (line.split_once(" => "), line.split_once(": fn(")) {
        (Some((name, _)), _) if line.ends_with('{') => format!(
            "#[repr(C)]\npub struct {name} {{\n/// End of the last field.\npub struct_size: u32,\n/// Zero.\npub reserved: u32,"
        ),
        (_, Some((name, signature))) if line.ends_with(';') => {
            format!(
                "pub {}: Option<unsafe extern \"C\" fn({}>,",
                name.trim(),
                signature.trim_end_matches(';')
            )
        }
        _ => line.to_owned(),
    };
    let tables: Vec<_> = tables.lines().map(line).collect();
    format!("{before}\n{}\n", tables.join("\n"))
}

/// Names that follow `keyword` at the beginning of a line.
fn names<'a>(source: &'a str, keyword: &'a str) -> impl Iterator<Item = String> + 'a {
    let rest = source.lines().filter_map(move |line| line.strip_prefix(keyword));
    rest.map(|rest| rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect())
}

/// The text before the generated part: the rules of the ABI, and constants that cbindgen cannot see.
fn preamble() -> String {
    let rules = source("mod.rs");
    let rules: Vec<_> = rules.lines().map_while(|line| line.strip_prefix("//!")).collect();
    let mut text = format!(
        "//{}\n//\n// Generated from runtime-core/src/abi: do not edit. After a change there:\n\
         // RUNTIME_UPDATE_GOLDEN=1 cargo test -p runtime-abi-tests\n//\n// SPDX-License-Identifier: MIT OR Apache-2.0\n",
        rules.join("\n//")
    );
    text += "\n#ifndef RUNTIME_H\n#define RUNTIME_H\n\n#include <stddef.h>\n#include <stdint.h>\n\n";
    text += &format!(
        "// Name of the only symbol that a backend library exports.\n#define RT_ENTRY_SYMBOL \"{}\"\n",
        abi::ENTRY_SYMBOL
    );
    text += &format!(
        "// Name of the section that holds the manifest (ELF).\n#define RT_MANIFEST_SECTION \"{}\"\n",
        abi::MANIFEST_SECTION
    );
    text += "\n// `Error::kind`, and what a program decides on.\n";
    for kind in
        (1..).map(ErrorKind::from_code).enumerate().take_while(|(i, kind)| kind.code() as usize == i + 1)
    {
        text += &format!("#define RT_ERROR_{} {}\n", screaming(&kind.1.to_string()), kind.1.code());
    }
    text
}

/// `OutOfMemory` as `OUT_OF_MEMORY`.
fn screaming(name: &str) -> String {
    let word = |(i, c): (usize, char)| {
        if i > 0 && c.is_uppercase() { format!("_{c}") } else { c.to_ascii_uppercase().to_string() }
    };
    name.char_indices().map(word).collect()
}

fn generate() -> String {
    let folder = tempfile::tempdir().unwrap();
    let sources = [
        ("mod.rs", source("mod.rs")),
        ("compiled.rs", source("compiled.rs")),
        ("counters.rs", source("counters.rs")),
        ("data.rs", source("data.rs")),
        ("embedded.rs", source("embedded.rs")),
        ("kernel.rs", source("kernel.rs")),
        ("limits.rs", source("limits.rs")),
        ("native.rs", source("native.rs")),
        ("table.rs", expand_tables(&source("table.rs"))),
    ];
    let mut export =
        ExportConfig { prefix: Some("rt_".into()), renaming_overrides_prefixing: true, ..Default::default() };
    let mut builder = Builder::new();
    for (name, text) in &sources {
        for keyword in ["pub struct ", "pub union ", "pub type "] {
            export.include.extend(names(text, keyword));
        }
        for constant in names(text, "pub const ") {
            export.rename.insert(constant.clone(), format!("RT_{constant}"));
        }
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        builder = builder.with_src(path);
    }
    let config = Config {
        language: Language::C,
        export,
        header: Some(preamble()),
        trailer: Some(format!("{TRAILER}\n\n#endif")),
        no_includes: true,
        documentation_style: DocumentationStyle::C99,
        usize_is_size_t: true,
        cpp_compat: true,
        tab_width: 4,
        line_length: 110,
        ..Default::default()
    };
    let mut text = Vec::new();
    builder.with_config(config).generate().expect("cbindgen reads the sources").write(&mut text);
    // Rust's doc links have no meaning in C.
    String::from_utf8(text)
        .unwrap()
        .replace("[`", "`")
        .replace("`]", "`")
        .replace("`super::", "`")
        .replace("`crate::", "`")
}

/// Compiles a C program that includes the header.
fn compile(program: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("program.c");
    std::fs::write(&path, program).unwrap();
    std::fs::write(folder.path().join("runtime.h"), generate()).unwrap();
    let output = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only"])
        .arg(path)
        .output()
        .expect("a C compiler is installed as `cc`");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_header_is_up_to_date() {
    let path = root().join("runtime-core/include/runtime.h");
    let fresh = generate();
    if std::env::var_os("RUNTIME_UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, fresh).unwrap();
    } else {
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            committed == fresh,
            "runtime.h is stale: run `RUNTIME_UPDATE_GOLDEN=1 cargo test -p runtime-abi-tests` and commit it"
        );
    }
}

#[test]
fn the_header_is_c11_with_the_same_layout_as_rust() {
    let golden = std::fs::read_to_string(root().join("tests/abi/golden_v1.txt"))
        .expect("golden_v1.txt is written by the test `layout`");
    let mut program = "#include \"runtime.h\"\n".to_owned();
    let mut name = "";
    for line in golden.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        if line.starts_with(' ') {
            // cbindgen appends an underscore to keywords of C.
            let field = if words[0] == "default" { "default_" } else { words[0] };
            program += &format!("_Static_assert(offsetof(rt_{name}, {field}) == {}, \"\");\n", words[1]);
        } else {
            name = words[0];
            program += &format!("_Static_assert(sizeof(rt_{name}) == {}, \"\");\n", words[2]);
            program += &format!("_Static_assert(_Alignof(rt_{name}) == {}, \"\");\n", words[3]);
        }
    }
    assert!(program.lines().count() > 200, "the golden file has too few lines");
    compile(&program);
}

#[test]
fn the_constants_are_in_the_header() {
    let program = format!(
        "#include \"runtime.h\"\n\
         _Static_assert(RT_MAGIC == {}u, \"\");\n\
         _Static_assert(RT_MAJOR == {} && RT_MINOR == {}, \"\");\n\
         _Static_assert(sizeof(RT_ENTRY_SYMBOL) == {}, \"\");\n\
         _Static_assert(RT_WHOLE_DEVICE == {}u && RT_CAP_F64 == {} && RT_ERROR_OUT_OF_MEMORY == 6, \"\");\n\
         RT_DEFINE_MANIFEST(\"x\", \"y\");\n",
        abi::MAGIC,
        abi::MAJOR,
        abi::MINOR,
        abi::ENTRY_SYMBOL.len() + 1,
        abi::WHOLE_DEVICE,
        abi::CAP_F64,
    );
    compile(&program);
}
