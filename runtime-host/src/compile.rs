//! Compiles C into a shared object with the system's compiler.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use runtime_core::backend::{Log, Source};
use runtime_core::{Error, OptionValue, Options, Result};

use crate::architecture::Architecture;
use crate::debug;
use crate::toolchain::{self, Build, Built, Origin, existing, joined};

/// More preprocessed text than this is not looked at.
const MAX_TEXT_BYTES: usize = 64 << 20;

/// Compiles `source`.
///
/// # Errors
/// `CompileFailed` with the compiler's output and the command; `Unavailable` without a compiler; `Timeout`;
/// `InvalidArgument` and `Io` for missing files.
pub(crate) fn compile(source: &Source<'_>, architecture: Architecture, log: Log) -> Result<Built> {
    let build = Build::new(source, architecture, log)?;
    let unit = Unit::new(source, &build)?;
    let arguments = unit.arguments(source.options, architecture, &build.library())?;
    build.run(&arguments)
}

/// What a preprocessor makes of a source, and what it tells of its work.
#[derive(Debug)]
pub(crate) struct Preprocessed {
    /// The text.
    pub(crate) text: Vec<u8>,
    /// The output of `-v` and warnings.
    pub(crate) messages: String,
    /// The rule of `-MD`: all files that were read; empty if there are several sources.
    pub(crate) dependencies: String,
    /// The file of the source, if it is compiled in place.
    pub(crate) main: Option<PathBuf>,
    /// The folder of the source, in which the compiler runs; `None` if it is a private one.
    pub(crate) folder: Option<PathBuf>,
}

/// The text of `source` and of its further files after preprocessing, as the compiler sees it on this machine.
///
/// # Errors
/// `Unsupported` if that fails, as compiling will; otherwise as [`compile`].
pub(crate) fn preprocess(source: &Source<'_>) -> Result<Preprocessed> {
    let build = Build::new(source, Architecture::Native, Log::silent())?;
    let unit = Unit::new(source, &build)?;
    let mut arguments = unit.flags(source.options, Architecture::Native)?;
    arguments.push("-E".into());
    let (files, rule) = (unit.files(source.options)?, build.folder().join("kernel.d"));
    if files.len() == 1 {
        arguments.extend(["-v", "-Wdate-time", "-MD", "-MF"].map(OsString::from));
        arguments.push(rule.clone().into_os_string());
    }
    arguments.extend(files);
    let (_, output) = build.output(&arguments, MAX_TEXT_BYTES)?;
    if !output.status.success() || !output.is_whole {
        return Err(Error::unsupported("code that cannot be preprocessed is not kept"));
    }
    Ok(Preprocessed {
        // The folder has another name each time.
        text: without(&output.stdout, build.folder().as_os_str().as_encoded_bytes()),
        messages: String::from_utf8_lossy(&output.stderr).into_owned(),
        dependencies: std::fs::read_to_string(rule).unwrap_or_default(),
        main: source.code.is_none().then(|| unit.file.clone()),
        folder: build.origin.has_path.then(|| build.origin.folder.clone()),
    })
}

/// The files of the option `source`.
///
/// # Errors
/// As [`Origin::relative`].
pub(crate) fn further_files(source: &Source<'_>) -> Result<Vec<PathBuf>> {
    Origin::new(source, Path::new("/")).further_files(source.options)
}

fn without(text: &[u8], word: &[u8]) -> Vec<u8> {
    let mut rest = text;
    let mut kept = Vec::with_capacity(text.len());
    while let Some(at) = rest.windows(word.len().max(1)).position(|window| window == word) {
        kept.extend_from_slice(&rest[..at]);
        rest = &rest[at + word.len()..];
    }
    kept.extend_from_slice(rest);
    kept
}

impl Origin {
    fn further_files(&self, options: &Options) -> Result<Vec<PathBuf>> {
        let given = options.texts("source").filter(|other| !other.is_empty());
        given.map(|other| self.relative(other, "source")).collect()
    }
}

/// A C file to compile.
#[derive(Debug)]
struct Unit<'a> {
    file: PathBuf,
    /// The base of relative paths in the options, flags and code.
    origin: &'a Origin,
}

impl<'a> Unit<'a> {
    fn new(source: &Source<'_>, build: &'a Build<'_>) -> Result<Self> {
        let origin = &build.origin;
        let Some(code) = source.code else {
            return Ok(Self { file: existing(Path::new(source.path), "path")?, origin });
        };
        let mut text = Vec::with_capacity(code.len() + 64);
        if !source.path.is_empty() {
            // The compiler's messages then name the user's file.
            text.extend_from_slice(format!("#line 1 \"{}\"\n", source.path.escape_default()).as_bytes());
        }
        // A byte-order mark is valid only at the beginning of a file.
        text.extend_from_slice(code.strip_prefix(b"\xef\xbb\xbf").unwrap_or(code));
        let file = build.write("kernel.c", &text)?;
        Ok(Self { file: if origin.has_path { file } else { PathBuf::from("kernel.c") }, origin })
    }

    fn arguments(
        &self,
        options: &Options,
        architecture: Architecture,
        library: &Path,
    ) -> Result<Vec<OsString>> {
        let mut arguments = self.flags(options, architecture)?;
        arguments.push("-o".into());
        arguments.push(library.into());
        arguments.extend(self.files(options)?);
        arguments.extend(self.origin.link_arguments(options)?);
        arguments.push("-lm".into());
        Ok(arguments)
    }

    /// What the preprocessor and the compiler need.
    fn flags(&self, options: &Options, architecture: Architecture) -> Result<Vec<OsString>> {
        let mut arguments: Vec<OsString> = Vec::new();
        let by_default = options.value("default_flags") != Some(&OptionValue::Flag(false));
        if debug::is_on(options) {
            arguments.extend(debug::FLAGS.map(OsString::from));
        } else if by_default {
            arguments.push("-O3".into());
        }
        if by_default || architecture != Architecture::Native {
            arguments.push(architecture.flag().into());
        }
        if by_default {
            arguments.push("-std=gnu11".into());
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
        Ok(arguments)
    }

    fn files(&self, options: &Options) -> Result<Vec<OsString>> {
        let others = self.origin.further_files(options)?;
        Ok(std::iter::once(self.file.clone()).chain(others).map(PathBuf::into_os_string).collect())
    }
}

#[cfg(test)]
mod tests {
    use runtime_core::ErrorKind;

    use super::*;

    fn arguments(has_path: bool, options: &Options) -> Result<String> {
        arguments_for(Architecture::Native, has_path, options)
    }

    fn arguments_for(architecture: Architecture, has_path: bool, options: &Options) -> Result<String> {
        let origin = Origin { folder: std::env::temp_dir(), has_path };
        let unit = Unit { file: "/src/kernel.c".into(), origin: &origin };
        let arguments = unit.arguments(options, architecture, Path::new("/out.so"))?;
        Ok(toolchain::command_line(&["cc".to_owned()], &arguments))
    }

    #[test]
    fn flags_come_in_order() {
        let options =
            Options::new().with("flags", "-O1  -g").with("flags", "-fopenmp").with("define", "N=a b");
        assert_eq!(
            arguments(false, &options).unwrap(),
            "cc -O3 -march=native -std=gnu11 -fPIC -shared -O1 -g -fopenmp -DN=a b -o /out.so /src/kernel.c -lm"
        );
        let options = Options::new().with("default_flags", false).with("flags", "-O1").with("libraries", "z");
        assert_eq!(
            arguments(false, &options).unwrap(),
            "cc -fPIC -shared -O1 -o /out.so /src/kernel.c -lz -lm"
        );
        assert_eq!(
            arguments_for(Architecture::Level(2), false, &options).unwrap(),
            "cc -march=x86-64-v3 -fPIC -shared -O1 -o /out.so /src/kernel.c -lz -lm"
        );
    }

    #[test]
    fn a_missing_file_is_named_with_its_option() {
        let error = arguments(false, &Options::new().with("include", "include")).unwrap_err();
        assert!(error.message().contains("absolute path"), "{error}");
        let error = arguments(true, &Options::new().with("source", "no such file.c")).unwrap_err();
        assert!(
            error.message().contains("option \"source\"") && error.message().contains("no such file.c"),
            "{error}"
        );
        let error = arguments(false, &Options::new().with("libraries", "sub/libx.so")).unwrap_err();
        assert!(error.message().contains("absolute path"), "{error}");
        let error = arguments(true, &Options::new().with("define", "=1")).unwrap_err();
        assert!(error.message().contains("NAME=VALUE"), "{error}");
    }

    #[test]
    fn a_missing_compiler_is_an_error_with_the_remedy() {
        let options = Options::new().with("compiler", "no-such-compiler -m64");
        let source = Source { format: "c", path: "", code: Some(b"void f(void) {}"), options: &options };
        let error = compile(&source, Architecture::Native, Log::silent()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.message().contains("no-such-compiler"), "{error}");
    }
}
