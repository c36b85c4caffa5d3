//! Compiles C into a shared object with the system's compiler.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use runtime_core::backend::{Log, Source};
use runtime_core::{Error, OptionSpec, OptionValue, Options, Result};

use crate::cache::Entry;
use crate::module::{cannot_write, private_folder};
use crate::toolchain::{self, Built, Origin, existing, joined};

const DEFAULT_FLAGS: [&str; 3] = ["-O3", "-march=native", "-std=gnu11"];

/// The load options that only format `c` has.
pub(crate) fn options() -> Vec<OptionSpec> {
    vec![
        OptionSpec::module(
            "default_flags",
            true,
            "Start with -O3 -march=native -std=gnu11. Format c only, like the next four options.",
        ),
        OptionSpec::module(
            "cache",
            false,
            "Cache the compiled code in the user's cache folder. Only for code that includes no headers but the system's.",
        ),
        OptionSpec::module("define", "", "Macro to define, NAME or NAME=VALUE; a list."),
        OptionSpec::module("include", "", "Folder of header files, relative to the source file's; a list."),
        OptionSpec::module(
            "source",
            "",
            "Further C file to compile in, relative to the source file's folder; a list.",
        ),
    ]
}

/// Compiles `source`.
///
/// # Errors
/// `CompileFailed` with the compiler's whole output and the command; `Unavailable` without a compiler;
/// `InvalidArgument` and `Io` for missing files.
pub(crate) fn compile(source: &Source<'_>, log: Log) -> Result<Built> {
    let wanted = source.options.value("cache") == Some(&OptionValue::Flag(true));
    let entry = if wanted { Entry::of(source, log) } else { None };
    if let Some(library) = entry.as_ref().and_then(Entry::find) {
        return Ok(Built { library, folder: None });
    }
    let private = private_folder()?;
    let unit = Unit::new(source, private.path())?;
    let arguments = unit.arguments(source.options, &toolchain::library_in(private.path()))?;
    let built = toolchain::build(source.options, &arguments, &unit.origin, private, log)?;
    if let Some(entry) = entry {
        entry.store(&built.library);
    }
    Ok(built)
}

/// A C file to compile.
#[derive(Debug)]
struct Unit {
    file: PathBuf,
    /// The base of relative paths in the options, flags and code.
    origin: Origin,
}

impl Unit {
    fn new(source: &Source<'_>, private: &Path) -> Result<Self> {
        let origin = Origin::new(source, private);
        let Some(code) = source.code else {
            return Ok(Self { file: existing(Path::new(source.path), "path")?, origin });
        };
        let file = private.join("kernel.c");
        let mut text = Vec::with_capacity(code.len() + 64);
        if !source.path.is_empty() {
            // The compiler's messages then name the user's file.
            text.extend_from_slice(format!("#line 1 \"{}\"\n", source.path.escape_default()).as_bytes());
        }
        // A byte-order mark is valid only at the beginning of a file.
        text.extend_from_slice(code.strip_prefix(b"\xef\xbb\xbf").unwrap_or(code));
        std::fs::write(&file, text).map_err(|error| cannot_write(&file, &error))?;
        Ok(Self { file: if origin.has_path { file } else { PathBuf::from("kernel.c") }, origin })
    }

    fn arguments(&self, options: &Options, library: &Path) -> Result<Vec<OsString>> {
        let mut arguments: Vec<OsString> = Vec::new();
        if options.value("default_flags") != Some(&OptionValue::Flag(false)) {
            arguments.extend(DEFAULT_FLAGS.map(OsString::from));
        }
        arguments.extend(["-fPIC", "-shared"].map(OsString::from));
        arguments.extend(toolchain::flags(options));
        for define in options.texts("define").filter(|define| !define.is_empty()) {
            if define.starts_with(['=', '-']) {
                return Err(Error::invalid(format!(
                    "option \"define\" is \"{define}\"; give NAME or NAME=VALUE"
                )));
            }
            arguments.push(format!("-D{define}").into());
        }
        if self.origin.has_path {
            arguments.push(joined("-iquote", &self.origin.folder));
        }
        for include in options.texts("include").filter(|include| !include.is_empty()) {
            arguments.push(joined("-I", &self.origin.relative(include, "include")?));
        }
        arguments.push("-o".into());
        arguments.push(library.into());
        arguments.push(self.file.clone().into());
        for other in options.texts("source").filter(|other| !other.is_empty()) {
            arguments.push(self.origin.relative(other, "source")?.into());
        }
        arguments.extend(self.origin.link_arguments(options)?);
        arguments.push("-lm".into());
        Ok(arguments)
    }
}

#[cfg(test)]
mod tests {
    use runtime_core::ErrorKind;

    use super::*;

    fn unit(has_path: bool) -> Unit {
        Unit { file: "/src/kernel.c".into(), origin: Origin { folder: std::env::temp_dir(), has_path } }
    }

    fn arguments(unit: &Unit, options: &Options) -> Result<String> {
        Ok(toolchain::command_line(&["cc".to_owned()], &unit.arguments(options, Path::new("/out.so"))?))
    }

    #[test]
    fn flags_come_in_order() {
        let options =
            Options::new().with("flags", "-O1  -g").with("flags", "-fopenmp").with("define", "N=a b");
        assert_eq!(
            arguments(&unit(false), &options).unwrap(),
            "cc -O3 -march=native -std=gnu11 -fPIC -shared -O1 -g -fopenmp -DN=a b -o /out.so /src/kernel.c -lm"
        );
        let options = Options::new().with("default_flags", false).with("flags", "-O1").with("libraries", "z");
        assert_eq!(
            arguments(&unit(false), &options).unwrap(),
            "cc -fPIC -shared -O1 -o /out.so /src/kernel.c -lz -lm"
        );
    }

    #[test]
    fn a_missing_file_is_named_with_its_option() {
        let error = arguments(&unit(false), &Options::new().with("include", "include")).unwrap_err();
        assert!(error.message().contains("absolute path"), "{error}");
        let error = arguments(&unit(true), &Options::new().with("source", "no such file.c")).unwrap_err();
        assert!(
            error.message().contains("option \"source\"") && error.message().contains("no such file.c"),
            "{error}"
        );
        let error = arguments(&unit(false), &Options::new().with("libraries", "sub/libx.so")).unwrap_err();
        assert!(error.message().contains("absolute path"), "{error}");
        let error = arguments(&unit(true), &Options::new().with("define", "=1")).unwrap_err();
        assert!(error.message().contains("NAME=VALUE"), "{error}");
    }

    #[test]
    fn a_missing_compiler_is_an_error_with_the_remedy() {
        let options = Options::new().with("compiler", "no-such-compiler -m64");
        let source = Source { format: "c", path: "", code: Some(b"void f(void) {}"), options: &options };
        let error = compile(&source, Log::silent()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.message().contains("no-such-compiler"), "{error}");
    }
}
