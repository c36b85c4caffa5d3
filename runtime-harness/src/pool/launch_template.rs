//! The command that starts a worker somewhere else.

use std::ffi::{OsStr, OsString};
use std::str::FromStr;

use runtime_core::{Error, Result};

/// Stands for the worker's command: its program and its arguments.
const WORKER: &str = "{worker}";
/// Stands for the worker's arguments alone.
const ARGUMENTS: &str = "{arguments}";

/// A command that starts a worker, such as `srun --gres=gpu:1 {worker}` or `ssh host /opt/bin/runtime {arguments}`.
///
/// It is split into words as by a shell, but no shell runs it. The worker talks over the standard input and output of the
/// command, and ends when its input is closed. `{worker}` stands for the worker's program and arguments, `{arguments}` for
/// the arguments alone, after a program that is elsewhere on the other machine. As a word of its own it becomes several
/// words; within a word (`sh -c 'cd /scratch && {worker}'`) it is quoted for a shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchTemplate(Vec<String>);

impl FromStr for LaunchTemplate {
    type Err = Error;

    /// Splits a template into words.
    ///
    /// # Errors
    /// `InvalidArgument` for a quote without an end, and if there is nothing that stands for the worker.
    fn from_str(text: &str) -> Result<Self> {
        let words = shlex::split(text).ok_or_else(|| {
            Error::invalid("a quote or a backslash has no end; write \\\\ or '\\' for a backslash")
        })?;
        if !words.iter().any(|word| word.contains(WORKER) || word.contains(ARGUMENTS)) {
            return Err(Error::invalid(
                "it does not say where the worker's command goes; add {worker}, as in 'srun --gres=gpu:1 {worker}'",
            ));
        }
        Ok(Self(words))
    }
}

impl LaunchTemplate {
    /// The template, as a shell takes it; `None` if it has a zero byte.
    pub(super) fn text(&self) -> Option<String> {
        shlex::try_join(self.0.iter().map(String::as_str)).ok()
    }

    /// The command for a worker with this program and these arguments: at least one word.
    ///
    /// # Errors
    /// `InvalidArgument` if it must be quoted, and is not UTF-8.
    pub(super) fn command(&self, program: &OsStr, arguments: &[OsString]) -> Result<Vec<OsString>> {
        let mut words = Vec::new();
        for word in &self.0 {
            match word.as_str() {
                WORKER => words.extend(std::iter::once(program.to_owned()).chain(arguments.iter().cloned())),
                ARGUMENTS => words.extend(arguments.iter().cloned()),
                _ => words.push(quoted_within(word, program, arguments)?.into()),
            }
        }
        Ok(words)
    }
}

/// A word of the template, with the worker's command quoted for a shell in its place.
fn quoted_within(word: &str, program: &OsStr, arguments: &[OsString]) -> Result<String> {
    let invalid = |what: &str| Error::invalid(format!("the worker's command {what}"));
    let quote = |words: &mut dyn Iterator<Item = &OsStr>| {
        let words: Option<Vec<&str>> = words.map(OsStr::to_str).collect();
        let words = words.ok_or_else(|| invalid("is not UTF-8"))?;
        shlex::try_join(words).map_err(|_| invalid("contains a zero byte"))
    };
    let mut text = String::new();
    let mut rest = word;
    while let Some(at) = [WORKER, ARGUMENTS].iter().filter_map(|name| rest.find(name)).min() {
        text.push_str(&rest[..at]);
        let has_program = rest[at..].starts_with(WORKER);
        let name = if has_program { WORKER } else { ARGUMENTS };
        let program = has_program.then_some(program);
        text.push_str(&quote(&mut program.into_iter().chain(arguments.iter().map(OsString::as_os_str)))?);
        rest = &rest[at + name.len()..];
    }
    text.push_str(rest);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    fn command(template: &str, program: &str) -> Vec<String> {
        let template: LaunchTemplate = template.parse().unwrap();
        let words = template.command(program.as_ref(), &["worker".into(), "--a b".into()]).unwrap();
        words.into_iter().map(|word| word.into_string().unwrap()).collect()
    }

    #[test]
    fn a_word_of_its_own_becomes_several_and_a_part_is_quoted() {
        for (template, words) in [
            ("srun -n1 {worker}", &["srun", "-n1", "/a b/runtime", "worker", "--a b"][..]),
            ("{worker}", &["/a b/runtime", "worker", "--a b"]),
            ("ssh host '/opt/x y' {arguments}", &["ssh", "host", "/opt/x y", "worker", "--a b"]),
            ("ssh host 'exec {worker}'", &["ssh", "host", "exec '/a b/runtime' worker '--a b'"]),
            (
                "x \"{arguments};{worker}\" {} {y}",
                &["x", "worker '--a b';'/a b/runtime' worker '--a b'", "{}", "{y}"],
            ),
        ] {
            assert_eq!(command(template, "/a b/runtime"), words, "{template}");
        }
    }

    #[test]
    fn a_program_cannot_stand_for_another_worker() {
        assert_eq!(
            command("sh -c '{worker}!'", "{worker}{arguments}"),
            ["sh", "-c", "'{worker}{arguments}' worker '--a b'!"]
        );
    }

    #[test]
    fn a_template_without_a_worker_or_an_end_is_refused_with_the_remedy() {
        for (template, words) in [
            ("", "add {worker}"),
            ("srun", "add {worker}"),
            ("# {worker}", "add {worker}"),
            ("srun {Worker}", "add {worker}"),
            ("srun '{worker}", "a quote"),
            ("srun {worker} \\", "a backslash"),
        ] {
            let error = template.parse::<LaunchTemplate>().unwrap_err().to_string();
            assert!(error.contains(words), "{template}: {error}");
        }
        let template: LaunchTemplate = "sh -c 'x {worker}'".parse().unwrap();
        let program = OsString::from_vec(vec![b'/', 0xff]);
        assert!(template.command(&program, &[]).unwrap_err().to_string().contains("UTF-8"));
        let template: LaunchTemplate = "x {worker}".parse().unwrap();
        assert_eq!(template.command(&program, &[]).unwrap()[1], program, "a word needs no quotes");
    }
}
