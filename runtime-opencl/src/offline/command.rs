//! The command of an offline compiler: a template, and a run of it with a deadline.

use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use runtime_core::backend::{OUTPUT_BYTES, Sandbox, SandboxPolicy};
use runtime_core::{Error, ErrorKind, Result};

use crate::build_failure;
use crate::placeholders::fill_placeholders;

/// The compiled code, in the private folder.
const OUTPUT: &str = "output.bin";
const PLACEHOLDERS: [&str; 4] = ["{input}", "{output}", "{device}", "{options}"];

/// A command with placeholders.
#[derive(Debug)]
pub(super) struct Template(Vec<String>);

/// A command with arguments.
#[derive(Debug)]
pub(super) struct Filled {
    words: Vec<String>,
    /// The file with the code.
    input: String,
}

/// What a command made.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) code: Vec<u8>,
    pub(super) log: String,
}

impl Template {
    /// Splits a template at spaces, and checks its placeholders.
    ///
    /// # Errors
    /// `InvalidArgument`, which names the placeholder.
    pub(super) fn parse(text: &str) -> Result<Self> {
        for placeholder in &PLACEHOLDERS[..2] {
            if !text.contains(placeholder) {
                let message = format!("option \"offline_compiler\" needs {placeholder} in \"{text}\"");
                return Err(Error::invalid(message));
            }
        }
        let mut rest = text.to_owned();
        PLACEHOLDERS.iter().for_each(|placeholder| rest = rest.replace(placeholder, ""));
        if let Some(unknown) = rest.find('{') {
            let message = format!(
                "option \"offline_compiler\" has an unknown placeholder at \"{}\"; there are {}",
                &rest[unknown..],
                PLACEHOLDERS.join(", ")
            );
            return Err(Error::invalid(message));
        }
        Ok(Self(text.split_whitespace().map(str::to_owned).collect()))
    }

    /// The command for a file in the folder in which it runs.
    pub(super) fn fill(&self, input: &str, device: &str, options: &str) -> Filled {
        let values = [input, OUTPUT, device, options];
        Filled {
            words: self.0.iter().map(|word| fill_placeholders(word, &PLACEHOLDERS, &values)).collect(),
            input: input.to_owned(),
        }
    }
}

impl Filled {
    /// Runs the command in `folder`, with `code` as its input.
    ///
    /// # Errors
    /// `CompileFailed` or `OutOfResources` with the messages, the exit code or signal and the command; `Timeout`; `Unavailable` if the compiler is not
    /// there; `Io`.
    pub(super) fn run(&self, folder: &Path, code: &[u8], deadline: Duration) -> Result<Made> {
        let io_error = |error: std::io::Error| {
            let message =
                format!("\"{}\": {error}; set TMPDIR to a folder with more space", folder.display());
            Error::new(ErrorKind::Io, message).with_source(error)
        };
        std::fs::write(folder.join(&self.input), code).map_err(io_error)?;
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]).current_dir(folder).env("TMPDIR", folder);
        let flags = self.words[1..].iter().map(String::as_str);
        let sandbox =
            Sandbox::new().compiler(self.words.iter().map(String::as_str)).flags(flags, folder).write(folder);
        let output = sandbox
            .run(SandboxPolicy::of_process()?, &mut command, (deadline, OUTPUT_BYTES))
            .map_err(|error| match error.kind() {
                ErrorKind::Unavailable => error.with_note("from the option \"offline_compiler\""),
                _ => error,
            })?;
        let log = output.text();
        match std::fs::read(folder.join(OUTPUT)) {
            Ok(code) if output.status.success() && !code.is_empty() => Ok(Made { code, log }),
            _ => Err(self.failure(output.status, &log)),
        }
    }

    fn failure(&self, status: ExitStatus, log: &str) -> Error {
        let (kind, what) = match status.success() {
            true => (ErrorKind::CompileFailed, "it succeeded, but wrote no output file".to_owned()),
            false => (build_failure::kind_by_log(ErrorKind::CompileFailed, log), status.to_string()),
        };
        let said = if log.is_empty() { String::new() } else { format!("{log}\n") };
        Error::new(kind, format!("{said}{what}: {}", self.command_line()))
    }

    /// The command for a shell, in a folder with the code.
    fn command_line(&self) -> String {
        let quoted = |word: &String| {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:,+@%".contains(&byte);
            match !word.is_empty() && word.bytes().all(is_plain) {
                true => word.clone(),
                false => format!("'{}'", word.replace('\'', "'\\''")),
            }
        };
        self.words.iter().map(quoted).collect::<Vec<_>>().join(" ")
    }
}
