//! Kernels that are evaluated by launched workers, and what is left of these.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use super::daemon::wait_for;

const CODE: &str = r#"
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
void right(float *x) { for (int i = 0; i < 4; i++) x[i] = i; }
void crashes(float *x) { *(volatile int *)0 = 1; }
void loops(float *x) { for (;;) __asm__ volatile(""); }
void loops_once(float *x) {
    if (open(MARK "/begun", O_CREAT | O_EXCL, 0600) >= 0) loops(x);
    right(x);
}
"#;

/// A directory with kernels. Its workers have its path in their environment.
pub(crate) struct Jobs(tempfile::TempDir);

impl Jobs {
    pub(crate) fn new() -> Self {
        let jobs = Self(tempfile::tempdir().unwrap());
        std::fs::create_dir(jobs.path().join("tmp")).unwrap();
        let mark = format!("#define MARK \"{}\"\n", jobs.path().display());
        std::fs::write(jobs.path().join("k.c"), mark + CODE).unwrap();
        for entry in ["right", "crashes", "loops", "loops_once"] {
            let spec = format!(
                "version = 1\nname = \"{entry}\"\n[kernel]\npath = \"k.c\"\nentry = \"{entry}\"\n[[arg]]\nname = \"x\"\n\
                 dtype = \"f32\"\nshape = [4]\nuse = \"write\"\n[reference]\npath = \"k.c\"\nentry = \"right\"\n\
                 [eval]\nrepeat = 2\nnumber = 1\nwarmup = 1\nbudget_s = 1\n"
            );
            std::fs::write(jobs.path().join(entry).with_extension("toml"), spec).unwrap();
        }
        jobs
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// What a worker must have in its environment, in the words of `env`.
    pub(crate) fn environment(&self) -> String {
        format!("{} TMPDIR={}/tmp RUNTIME_SHARE=1", self.mark(), self.path().display())
    }

    fn mark(&self) -> String {
        format!("RUNTIME_TEST_MARK={}", self.path().display())
    }

    fn command(&self, template: &str, environment: &[(&str, &Path)]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_runtime"));
        command.current_dir(self.path()).args(["eval", "--isolate", "--device", "host:0", "--json", "-"]);
        command.args(["--launch", template]).envs(environment.iter().copied());
        for word in self.environment().split(' ') {
            let (key, value) = word.split_once('=').unwrap();
            command.env(key, value);
        }
        command.env_remove("RUNTIME_BACKENDS").env_remove("RUNTIME_BACKEND_PATH");
        command
    }

    fn rows(output: &Output) -> Vec<Value> {
        let document: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
        assert_eq!(document["complete"], true, "{output:?}");
        document["rows"].as_array().unwrap().clone()
    }

    /// Evaluates good and bad kernels with two workers: each has its outcome, and nothing is left.
    pub(crate) fn check(&self, template: &str, environment: &[(&str, &Path)]) {
        let entries = ["right", "crashes", "right", "loops", "right", "right"];
        let files = entries.map(|entry| format!("{entry}.toml"));
        for workers in ["1", "2"] {
            let mut command = self.command(template, environment);
            let output =
                command.args(["--timeout", "5", "--workers", workers]).args(&files).output().unwrap();
            let rows = Self::rows(&output);
            let mut kinds: Vec<(&str, &str)> = rows
                .iter()
                .map(|row| {
                    let of = |value: &'_ Value| -> &'static str {
                        ["right", "crashes", "loops", "ok", "crashed", "timeout"]
                            .into_iter()
                            .find(|known| value == known)
                            .unwrap_or_else(|| panic!("{row:#}"))
                    };
                    (of(&row["kernel"]["name"]), of(&row["outcome"]["kind"]))
                })
                .collect();
            if workers == "1" {
                assert_eq!(rows[0]["spec"], "right.toml", "the path is as given");
                assert_eq!(rows[0]["kernel"]["path"], "k.c");
                assert_eq!((kinds[1], kinds[3]), (("crashes", "crashed"), ("loops", "timeout")));
            }
            kinds.sort_unstable();
            let right = ("right", "ok");
            assert_eq!(kinds, [("crashes", "crashed"), ("loops", "timeout"), right, right, right, right]);
            self.wait_until_nothing_is_left();
        }
    }

    /// Ends a worker from outside while its kernel runs: the kernel gets a second try.
    pub(crate) fn check_second_try(
        &self,
        template: &str,
        environment: &[(&str, &Path)],
        end: impl FnOnce(&Self),
    ) {
        let mut command = self.command(template, environment);
        // It writes a file, which no runner may.
        command.args(["--trust", "--timeout", "1000", "loops_once.toml"]).stdout(Stdio::piped());
        let child = command.spawn().unwrap();
        wait_for("the kernel runs", || self.path().join("begun").exists());
        end(self);
        let output = child.wait_with_output().unwrap();
        let rows = Self::rows(&output);
        assert_eq!((rows.len(), &rows[0]["status"]), (1, &Value::from("right")), "{rows:#?}");
        self.wait_until_nothing_is_left();
    }

    /// A signal to the command ends its workers by the end of their input, so that the launcher sees them end.
    pub(crate) fn check_interrupt(&self) {
        let ended = self.path().join("ended");
        let template = format!("sh -c '{{worker}}; echo > {}'", ended.display());
        let mut command = self.command(&template, &[]);
        command
            .args(["--trust", "--timeout", "1000", "right.toml", "loops_once.toml"])
            .stdout(Stdio::piped());
        let child = command.spawn().unwrap();
        wait_for("the kernel runs", || self.path().join("begun").exists());
        assert!(!ended.exists());
        Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(ended.exists(), "the launcher was not killed");
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(
            (document["rows"].as_array().unwrap().len(), &document["complete"]),
            (1, &Value::from(false))
        );
        self.wait_until_nothing_is_left();
        std::fs::remove_file(self.path().join("begun")).unwrap();
    }

    /// Kills every process that has the mark of this directory, but not the command that has started them.
    pub(crate) fn kill_workers(&self) {
        for (process, words) in self.processes() {
            if words.get(1).is_some_and(|word| word == "worker") {
                Command::new("kill").args(["-KILL", &process]).status().unwrap();
            }
        }
    }

    fn wait_until_nothing_is_left(&self) {
        wait_for("processes are left", || self.processes().is_empty());
        let left = || std::fs::read_dir(self.path().join("tmp")).unwrap().count();
        // Files of a worker that was killed are removed by the next one.
        wait_for("temporary files are left", || left() <= 1);
    }

    /// The processes that have the mark of this directory in their environment, with their words.
    fn processes(&self) -> Vec<(String, Vec<String>)> {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        let ours = |entry: std::fs::DirEntry| {
            let environment = text(std::fs::read(entry.path().join("environ")).ok()?);
            let words = text(std::fs::read(entry.path().join("cmdline")).ok()?);
            let is_ours = environment.split('\0').any(|line| line == self.mark()) && !words.is_empty();
            let words = words.split('\0').map(str::to_owned).collect();
            is_ours.then(|| (entry.file_name().to_string_lossy().into_owned(), words))
        };
        entries.filter_map(ours).collect()
    }
}
