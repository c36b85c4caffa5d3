//! Runs the system's compiler and linker, without a shell.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use runtime_core::backend::{Level, Log, OUTPUT_BYTES, Output, Source, TemporaryFolder};
use runtime_core::{Error, ErrorKind, Options, Result};

use crate::architecture::Architecture;
use crate::build_folder::{cannot_write, library_in, private_folder};
use crate::{compiler, sandbox};

/// A linked library.
#[derive(Debug)]
pub(crate) struct Built {
    pub(crate) library: PathBuf,
    /// The compiler's messages.
    pub(crate) log: String,
    /// The folder of the library, removed on drop.
    pub(crate) folder: TemporaryFolder,
}

/// The base of relative paths in the options of a module.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) folder: PathBuf,
    /// Whether the code was loaded from a file; otherwise the folder is a private one.
    pub(crate) has_path: bool,
}

impl Origin {
    /// The folder of the source's file, else `private`.
    pub(crate) fn new(source: &Source<'_>, private: &Path) -> Self {
        let file = if source.path.is_empty() { None } else { std::path::absolute(source.path).ok() };
        let folder = file.and_then(|path| path.parent().map(Path::to_owned)).filter(|folder| folder.is_dir());
        match folder {
            Some(folder) => Self { folder, has_path: true },
            None => Self { folder: private.to_owned(), has_path: false },
        }
    }

    /// Resolves `path`, a value of `option`.
    ///
    /// # Errors
    /// `InvalidArgument` for a relative path if the code was not loaded from a file; `Io` if it does not exist.
    pub(crate) fn relative(&self, path: &str, option: &str) -> Result<PathBuf> {
        if !self.has_path && Path::new(path).is_relative() {
            return Err(Error::invalid(format!(
                "option \"{option}\" is the relative path \"{path}\", but the code was not loaded from a file; give an absolute path"
            )));
        }
        existing(&self.folder.join(path), &format!("option \"{option}\""))
    }

    /// The linker's arguments for the option `libraries`, with a run path for libraries given by path.
    ///
    /// # Errors
    /// As [`Origin::relative`].
    pub(crate) fn link_arguments(&self, options: &Options) -> Result<Vec<OsString>> {
        let mut arguments = Vec::new();
        for library in libraries(options) {
            if is_path(library) {
                let path = self.relative(library, "libraries")?;
                arguments.extend(path.parent().map(|folder| joined("-Wl,-rpath,", folder)));
                arguments.push(path.into());
            } else if library.contains(".so") {
                arguments.push(format!("-l:{library}").into());
            } else {
                arguments.push(format!("-l{library}").into());
            }
        }
        Ok(arguments)
    }

    /// The file names of the option `libraries`, for `dlopen`.
    ///
    /// # Errors
    /// As [`Origin::relative`].
    pub(crate) fn library_files(&self, options: &Options) -> Result<Vec<PathBuf>> {
        let file = |library| {
            if is_path(library) {
                self.relative(library, "libraries")
            } else if library.contains(std::env::consts::DLL_SUFFIX) {
                Ok(PathBuf::from(library))
            } else {
                Ok(PathBuf::from(format!("lib{library}{}", std::env::consts::DLL_SUFFIX)))
            }
        };
        libraries(options).map(file).collect()
    }
}

/// The files that linking `source` reads for its option `libraries`. Libraries by name are only those of this machine's
/// compiler.
///
/// # Errors
/// As [`Origin::relative`]; `Unsupported` for a name of which the compiler does not tell the file.
pub(crate) fn linked_libraries(source: &Source<'_>) -> Result<Vec<PathBuf>> {
    let origin = Origin::new(source, Path::new("/"));
    let file = |library: &str| match is_path(library) {
        true => origin.relative(library, "libraries"),
        false if library.contains(".so") => compiler::file(source.options, library),
        false => compiler::file(source.options, &format!("lib{library}.so"))
            .or_else(|_| compiler::file(source.options, &format!("lib{library}.a"))),
    };
    libraries(source.options).map(file).collect()
}

fn libraries(options: &Options) -> impl Iterator<Item = &str> {
    options.texts("libraries").filter(|library| !library.is_empty())
}

fn is_path(library: &str) -> bool {
    library.contains('/')
}

/// The absolute path of an existing file or folder; `what` names it in the message.
///
/// # Errors
/// `Io`, with the system's message.
pub(crate) fn existing(path: &Path, what: &str) -> Result<PathBuf> {
    if path.metadata().is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir()) {
        return Err(Error::new(
            ErrorKind::Io,
            format!("{what}: \"{}\" is not a regular file", path.display()),
        ));
    }
    let found = std::path::absolute(path).and_then(|path| path.metadata().map(|_| path));
    found.map_err(|error| {
        Error::new(ErrorKind::Io, format!("{what}: \"{}\": {error}", path.display())).with_source(error)
    })
}

/// `flag` and `path` as one argument.
pub(crate) fn joined(flag: &str, path: &Path) -> OsString {
    let mut text = OsString::from(flag);
    text.push(path);
    text
}

/// The flags of the option `flags`.
pub(crate) fn flags(options: &Options) -> impl Iterator<Item = OsString> {
    options.texts("flags").flat_map(str::split_whitespace).map(OsString::from)
}

/// What a compiler makes of one source, in a private folder.
#[derive(Debug)]
pub(crate) struct Build<'a> {
    options: &'a Options,
    architecture: Architecture,
    /// The base of relative paths, in which the compiler runs.
    pub(crate) origin: Origin,
    private: TemporaryFolder,
    log: Log,
    /// How long the compiler may take.
    pub(crate) deadline: Duration,
}

impl<'a> Build<'a> {
    /// Makes the private folder.
    ///
    /// # Errors
    /// `Io` and `OutOfResources`, with the remedy.
    pub(crate) fn new(source: &Source<'a>, architecture: Architecture, log: Log) -> Result<Self> {
        let private = private_folder()?;
        let origin = Origin::new(source, private.path());
        Ok(Self { options: source.options, architecture, origin, private, log, deadline: compiler::DEADLINE })
    }

    /// The private folder.
    pub(crate) fn folder(&self) -> &Path {
        self.private.path()
    }

    /// Where the library is to be.
    pub(crate) fn library(&self) -> PathBuf {
        library_in(self.folder())
    }

    /// Writes a file into the private folder.
    ///
    /// # Errors
    /// `Io`, with the remedy.
    pub(crate) fn write(&self, name: &str, content: &[u8]) -> Result<PathBuf> {
        let file = self.folder().join(name);
        std::fs::write(&file, content).map_err(|error| cannot_write(&file, &error))?;
        Ok(file)
    }

    /// Runs the compiler, which makes the library.
    ///
    /// # Errors
    /// `CompileFailed`, with the compiler's output and the command; `Unavailable` without a compiler; `Timeout`.
    pub(crate) fn run(self, arguments: &[OsString]) -> Result<Built> {
        let library = self.library();
        let (mut command, mut output) = self.output(arguments, OUTPUT_BYTES)?;
        if has_impossible_move(&output) {
            let arguments = [arguments, &["-mno-avx512fp16".into()]].concat();
            (command, output) = self.output(&arguments, OUTPUT_BYTES)?;
        }
        let text = output.text();
        if !output.status.success() || !library.is_file() {
            let error = Error::new(ErrorKind::CompileFailed, failure(&text, &output, &command));
            let full = text.contains("No space left on device");
            return Err(if full { error.with_note("set TMPDIR to a folder with more space") } else { error });
        }
        if !text.is_empty() {
            self.log.write(Level::Warning, "host::compile", &format!("{command}\n{text}"));
        }
        Ok(Built { library, log: text, folder: self.private })
    }

    /// Runs the compiler, and returns the command and what it printed, at most `bytes` of each output.
    ///
    /// # Errors
    /// `Unavailable` without a compiler; `Timeout`.
    pub(crate) fn output(&self, arguments: &[OsString], bytes: usize) -> Result<(String, Output)> {
        let limits = (self.deadline, bytes);
        let sandbox = sandbox::for_code(&self.origin.folder, self.folder(), self.options);
        let (compiler, output) =
            compiler::run(self.options, self.architecture, limits, sandbox, |command| {
                command.args(arguments).current_dir(&self.origin.folder);
                command.env("TMPDIR", self.folder());
            })?;
        Ok((command_line(&compiler, arguments), output))
    }
}

/// Whether the assembler rejected the masked moves of halves that GCC 12 and 13 write for processors with AVX512-FP16.
pub(crate) fn has_impossible_move(output: &Output) -> bool {
    !output.status.success()
        && String::from_utf8_lossy(&output.stderr).contains("unsupported masking for `vmovsh'")
}

/// The message for a compiler that produced no library.
fn failure(text: &str, output: &Output, command: &str) -> String {
    match (text.is_empty(), output.status.success()) {
        (false, _) => format!("{text}\n{}: {command}", output.status),
        (true, true) => {
            format!("the compiler printed nothing and produced no library; is it a C compiler? {command}")
        }
        (true, false) => {
            format!("the compiler printed nothing; is it a C compiler? {}: {command}", output.status)
        }
    }
}

/// The command as one line, for messages.
pub(crate) fn command_line(compiler: &[String], arguments: &[OsString]) -> String {
    let arguments = arguments.iter().map(|argument| argument.to_string_lossy().into_owned());
    compiler.iter().cloned().chain(arguments).collect::<Vec<_>>().join(" ")
}
