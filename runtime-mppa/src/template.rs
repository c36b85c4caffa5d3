//! Commands that run a program, with placeholders, split at spaces and run without a shell.

use runtime_core::backend::counted;
use runtime_core::{Error, Result};
use runtime_opencl::fill_placeholders;

use crate::config::{Arch, Platform};
use crate::tools::Tools;

/// The word that becomes the program's arguments, none or several.
const ARGS: &str = "{args}";
/// Placeholders within words.
const PLACEHOLDERS: [&str; 4] = ["{program}", "{arch}", "{work_dir}", "{timeout_s}"];

/// A command with placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template(Vec<String>);

/// What replaces the placeholders.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Values<'a> {
    pub(crate) program: &'a str,
    pub(crate) arch: Arch,
    pub(crate) work_dir: &'a str,
    pub(crate) timeout_s: u64,
    pub(crate) args: &'a [String],
}

impl Template {
    /// Splits a command at spaces, and checks its placeholders.
    ///
    /// # Errors
    /// `InvalidArgument`, which names the placeholder.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        if !text.contains(PLACEHOLDERS[0]) {
            return Err(Error::invalid(format!(
                "option \"command\" needs {} in \"{text}\"",
                PLACEHOLDERS[0]
            )));
        }
        let words: Vec<_> = text.split_whitespace().map(str::to_owned).collect();
        for word in words.iter().filter(|word| *word != ARGS) {
            let rest =
                PLACEHOLDERS.iter().fold(word.clone(), |rest, placeholder| rest.replace(placeholder, ""));
            if rest.contains('{') {
                return Err(Error::invalid(format!(
                    "option \"command\" has an unknown placeholder in \"{word}\"; there are {}, and the word {ARGS}",
                    PLACEHOLDERS.join(", ")
                )));
            }
        }
        Ok(Self(words))
    }

    /// The usual command of a platform, from the tools that are installed.
    pub(crate) fn of_platform(platform: Platform, arch: Arch, tools: &Tools) -> Option<Self> {
        let machine = match arch {
            Arch::Kv31 => "mppa-coolidge",
            Arch::Kv32 => "mppa-coolidge-v2",
        };
        let qemu = ["-nographic", "-semihosting", "-m", "2G", "-M", machine, "-kernel", "{program}"];
        let commands: &[(&str, &[&str])] = match platform {
            Platform::Hardware => {
                &[("kvx-jtag-runner", &["--exec-file=Cluster0:{program}", "--timeout={timeout_s}"])]
            }
            Platform::Iss => &[
                ("kvx-mppa", &["--march={arch}", "--", "{program}", ARGS]),
                ("kvx-cluster", &["--", "{program}", ARGS]),
            ],
            Platform::Qemu => &[("qemu-system-kvx", &qemu)],
        };
        commands.iter().find_map(|(tool, arguments)| {
            let program = tools.find(tool)?.display().to_string();
            Some(Self(
                std::iter::once(program).chain(arguments.iter().map(|word| (*word).to_owned())).collect(),
            ))
        })
    }

    /// The programs that [`Template::of_platform`] looks for.
    pub(crate) const fn tools(platform: Platform) -> &'static str {
        match platform {
            Platform::Hardware => "kvx-jtag-runner",
            Platform::Iss => "kvx-mppa or kvx-cluster",
            Platform::Qemu => "qemu-system-kvx",
        }
    }

    /// The words of the command.
    ///
    /// # Errors
    /// `InvalidArgument` for arguments of a program whose command has no place for them.
    pub(crate) fn fill(&self, values: Values<'_>) -> Result<Vec<String>> {
        if !values.args.is_empty() && !self.0.iter().any(|word| word == ARGS) {
            return Err(Error::invalid(format!(
                "the command \"{}\" has no place for the program's {}; put {ARGS} into option \"command\"",
                self.0.join(" "),
                counted(values.args.len(), "argument")
            )));
        }
        let timeout = values.timeout_s.to_string();
        let by = [values.program, values.arch.name(), values.work_dir, &timeout];
        let words = self.0.iter().flat_map(|word| match word.as_str() {
            ARGS => values.args.to_vec(),
            word => vec![fill_placeholders(word, &PLACEHOLDERS, &by)],
        });
        Ok(words.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::FakeRoot;

    const VALUES: Values<'_> =
        Values { program: "/p {arch}", arch: Arch::Kv31, work_dir: "/w", timeout_s: 9, args: &[] };

    #[test]
    fn placeholders_are_replaced_once() {
        let template = Template::parse("run -a{arch} {program} -t={timeout_s} {work_dir}/x {args}").unwrap();
        let words = ["run", "-akv3-1", "/p {arch}", "-t=9", "/w/x"].map(str::to_owned);
        assert_eq!(template.fill(VALUES).unwrap(), words);
        let args = ["a b".to_owned(), "{program}".to_owned()];
        assert_eq!(template.fill(Values { args: &args, ..VALUES }).unwrap()[5..], args);
    }

    #[test]
    fn a_wrong_command_is_refused() {
        for (text, word) in
            [("run", "{program}"), ("run {program} {arg}", "{arg}"), ("run {program} x{args}", "x{args}")]
        {
            let error = Template::parse(text).unwrap_err();
            assert!(error.message().contains(word), "{error}");
        }
        let error =
            Template::parse("run {program}").unwrap().fill(Values { args: &["1".to_owned()], ..VALUES });
        assert!(error.unwrap_err().message().contains("{args}"));
    }

    #[test]
    fn the_usual_commands_are_those_of_the_installed_tools() {
        let root = FakeRoot::new();
        let tools = |root: &FakeRoot| Tools::new(None, &root.environment(&[]));
        let line = |platform, arch| {
            let template = Template::of_platform(platform, arch, &tools(&root))?;
            let words = template.fill(Values { program: "p", arch, ..VALUES }).unwrap().join(" ");
            Some(words.replace(root.path().to_str().unwrap(), ""))
        };
        for (_, platform) in Platform::NAMES {
            assert_eq!(line(platform, Arch::Kv32), None);
        }
        for tool in ["kvx-jtag-runner", "kvx-cluster", "qemu-system-kvx"] {
            root.tool(&format!("bin/{tool}"), "");
        }
        let is = |platform, arch, expected: &str| assert_eq!(line(platform, arch).as_deref(), Some(expected));
        is(Platform::Hardware, Arch::Kv32, "/bin/kvx-jtag-runner --exec-file=Cluster0:p --timeout=9");
        is(Platform::Iss, Arch::Kv32, "/bin/kvx-cluster -- p");
        let qemu = "/bin/qemu-system-kvx -nographic -semihosting -m 2G -M mppa-coolidge";
        is(Platform::Qemu, Arch::Kv31, &format!("{qemu} -kernel p"));
        is(Platform::Qemu, Arch::Kv32, &format!("{qemu}-v2 -kernel p"));
        root.tool("bin/kvx-mppa", "");
        is(Platform::Iss, Arch::Kv31, "/bin/kvx-mppa --march=kv3-1 -- p");
    }
}
