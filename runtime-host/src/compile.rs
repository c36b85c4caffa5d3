//! Compiles C into a shared object with whatever compiler is there, without a shell.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use runtime_core::backend::{Level, Log, Source};
use runtime_core::{Error, ErrorKind, OptionSpec, Options, Result, Value};
use tempfile::TempDir;

use crate::module::{cannot_write, private_folder};

const DEFAULT_FLAGS: [&str; 3] = ["-O3", "-march=native", "-std=gnu11"];
const COMPILERS: [&str; 3] = ["cc", "clang", "gcc"];

/// The load options of format `c`.
pub(crate) fn options() -> Vec<OptionSpec> {
    vec![
        OptionSpec::module(
            "compiler",
            "",
            "C compiler, with arguments if need be; default: $CC, else cc, clang or gcc.",
        ),
        OptionSpec::module("default_flags", true, "Begin with -O3 -march=native -std=gnu11."),
        OptionSpec::module(
            "flags",
            "",
            "Compiler flags, separated by blanks, after the default ones; a list.",
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

/// A compiled library in a folder that goes with it.
#[derive(Debug)]
pub(crate) struct Built {
    pub(crate) library: PathBuf,
    _folder: TempDir,
}

/// Compiles `source`.
///
/// # Errors
/// `CompileFailed` with the compiler's whole message and the command; `Unavailable` without a compiler;
/// `InvalidArgument` and `Io` for files that are not there.
pub(crate) fn compile(source: &Source<'_>, log: Log) -> Result<Built> {
    let folder = private_folder()?;
    let unit = Unit::new(source, folder.path())?;
    let library = folder.path().join("module.so");
    let arguments = unit.arguments(source.options, &library)?;
    let (compiler, output) = run(source.options, &arguments, &unit.folder, folder.path())?;
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
    let text = text.trim();
    let command = command_line(&compiler, &arguments);
    if !output.status.success() || !library.is_file() {
        let error = Error::new(ErrorKind::CompileFailed, format!("{text}\n{}: {command}", output.status));
        let full = text.contains("No space left on device");
        return Err(if full { error.with_note("set TMPDIR to a folder with more space") } else { error });
    }
    if !text.is_empty() {
        log.write(Level::Warning, "host::compile", &format!("{command}\n{text}"));
    }
    Ok(Built { library, _folder: folder })
}

/// What is compiled.
#[derive(Debug)]
struct Unit {
    file: PathBuf,
    /// What relative paths of the options, of the flags and of the code mean.
    folder: PathBuf,
    has_path: bool,
}

impl Unit {
    fn new(source: &Source<'_>, private: &Path) -> Result<Self> {
        let Some(code) = source.code else {
            let file = existing(Path::new(source.path), "path")?;
            let folder = file.parent().unwrap_or(Path::new("/")).to_owned();
            return Ok(Self { file, folder, has_path: true });
        };
        let file = private.join("kernel.c");
        let named = Path::new(source.path);
        let mut text = Vec::with_capacity(code.len() + 64);
        if !source.path.is_empty() {
            // Messages name the file that the user knows.
            text.extend_from_slice(format!("#line 1 \"{}\"\n", source.path.escape_default()).as_bytes());
        }
        text.extend_from_slice(code);
        std::fs::write(&file, text).map_err(|error| cannot_write(&file, &error))?;
        let folder = std::path::absolute(named).ok().and_then(|path| path.parent().map(Path::to_owned));
        match folder.filter(|folder| folder.is_dir()) {
            Some(folder) => Ok(Self { file, folder, has_path: true }),
            None => Ok(Self { file: PathBuf::from("kernel.c"), folder: private.to_owned(), has_path: false }),
        }
    }

    fn arguments(&self, options: &Options, library: &Path) -> Result<Vec<OsString>> {
        let mut arguments: Vec<OsString> = Vec::new();
        if options.value("default_flags") != Some(&Value::Flag(false)) {
            arguments.extend(DEFAULT_FLAGS.map(OsString::from));
        }
        arguments.extend(["-fPIC", "-shared"].map(OsString::from));
        arguments.extend(options.texts("flags").flat_map(str::split_whitespace).map(OsString::from));
        for define in options.texts("define").filter(|define| !define.is_empty()) {
            if define.starts_with(['=', '-']) {
                return Err(Error::invalid(format!(
                    "option \"define\" is \"{define}\"; give NAME or NAME=VALUE"
                )));
            }
            arguments.push(format!("-D{define}").into());
        }
        if self.has_path {
            arguments.push(joined("-iquote", &self.folder));
        }
        for include in options.texts("include").filter(|include| !include.is_empty()) {
            arguments.push(joined("-I", &self.relative(include, "include")?));
        }
        arguments.push("-o".into());
        arguments.push(library.into());
        arguments.push(self.file.clone().into());
        for other in options.texts("source").filter(|other| !other.is_empty()) {
            arguments.push(self.relative(other, "source")?.into());
        }
        arguments.push("-lm".into());
        Ok(arguments)
    }

    fn relative(&self, path: &str, option: &str) -> Result<PathBuf> {
        if !self.has_path && Path::new(path).is_relative() {
            return Err(Error::invalid(format!(
                "option \"{option}\" is \"{path}\", but the code came without a file to which that is relative; give an absolute path"
            )));
        }
        existing(&self.folder.join(path), &format!("option \"{option}\""))
    }
}

fn existing(path: &Path, what: &str) -> Result<PathBuf> {
    let found = std::path::absolute(path).and_then(|path| path.metadata().map(|_| path));
    found.map_err(|error| {
        Error::new(ErrorKind::Io, format!("{what}: \"{}\": {error}", path.display())).with_source(error)
    })
}

fn joined(flag: &str, path: &Path) -> OsString {
    let mut text = OsString::from(flag);
    text.push(path);
    text
}

/// Runs the first compiler that is there.
fn run(
    options: &Options,
    arguments: &[OsString],
    folder: &Path,
    private: &Path,
) -> Result<(Vec<String>, Output)> {
    let from_environment = std::env::var("CC").unwrap_or_default();
    let (wanted, from) = match options.text("compiler") {
        Some(compiler) if !compiler.trim().is_empty() => (compiler, "option \"compiler\""),
        _ => (from_environment.as_str(), "CC"),
    };
    let candidates: Vec<Vec<String>> = match words(wanted) {
        wanted if wanted.is_empty() => COMPILERS.iter().map(|name| words(name)).collect(),
        wanted => vec![wanted],
    };
    for compiler in candidates {
        let mut command = Command::new(&compiler[0]);
        command.args(&compiler[1..]).args(arguments).current_dir(folder).stdin(Stdio::null());
        // Plain English messages, and the compiler's own temporary files where ours are.
        command.env("LC_ALL", "C").env("TMPDIR", private);
        match command.output() {
            Ok(output) => return Ok((compiler, output)),
            Err(error) if error.kind() == io::ErrorKind::NotFound && wanted.trim().is_empty() => {}
            Err(error) => {
                let message = format!(
                    "{from}: cannot run \"{}\": {error}; name a C compiler that is installed",
                    compiler[0]
                );
                return Err(Error::new(ErrorKind::Unavailable, message).with_source(error));
            }
        }
    }
    let message = format!("no C compiler ({}): install gcc, or set CC", COMPILERS.join(", "));
    Err(Error::new(ErrorKind::Unavailable, message))
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn command_line(compiler: &[String], arguments: &[OsString]) -> String {
    let arguments = arguments.iter().map(|argument| argument.to_string_lossy().into_owned());
    compiler.iter().cloned().chain(arguments).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(has_path: bool) -> Unit {
        Unit { file: "/src/kernel.c".into(), folder: std::env::temp_dir(), has_path }
    }

    fn arguments(unit: &Unit, options: &Options) -> Result<String> {
        Ok(command_line(&["cc".to_owned()], &unit.arguments(options, Path::new("/out.so"))?))
    }

    #[test]
    fn flags_come_in_order() {
        let options =
            Options::new().with("flags", "-O1  -g").with("flags", "-fopenmp").with("define", "N=a b");
        assert_eq!(
            arguments(&unit(false), &options).unwrap(),
            "cc -O3 -march=native -std=gnu11 -fPIC -shared -O1 -g -fopenmp -DN=a b -o /out.so /src/kernel.c -lm"
        );
        let options = Options::new().with("default_flags", false).with("flags", "-O1");
        assert_eq!(
            arguments(&unit(false), &options).unwrap(),
            "cc -fPIC -shared -O1 -o /out.so /src/kernel.c -lm"
        );
    }

    #[test]
    fn what_is_not_there_is_named_with_its_option() {
        let error = arguments(&unit(false), &Options::new().with("include", "include")).unwrap_err();
        assert!(error.message().contains("absolute path"), "{error}");
        let error = arguments(&unit(true), &Options::new().with("source", "no such file.c")).unwrap_err();
        assert!(
            error.message().contains("option \"source\"") && error.message().contains("no such file.c"),
            "{error}"
        );
        let error = arguments(&unit(true), &Options::new().with("define", "=1")).unwrap_err();
        assert!(error.message().contains("NAME=VALUE"), "{error}");
    }

    #[test]
    fn a_compiler_that_is_not_there_is_an_error_with_the_remedy() {
        let options = Options::new().with("compiler", "no-such-compiler -m64");
        let source = Source { format: "c", path: "", code: Some(b"void f(void) {}"), options: &options };
        let error = compile(&source, Log::silent()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.message().contains("no-such-compiler"), "{error}");
    }
}
