//! The git commit of the folder of a spec.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use runtime_core::backend::{Output, find_in_path, run_program};
use serde::{Deserialize, Serialize};

/// A large repository on a slow disk costs no more than this, once.
const DEADLINE: Duration = Duration::from_secs(2);
/// What is kept of the output: that there is some is enough.
const BYTES: usize = 1 << 12;
/// What git needs of the environment. Other variables may point it at another repository.
const VARIABLES: [&str; 3] = ["PATH", "HOME", "XDG_CONFIG_HOME"];
/// How many digits identify a commit for people.
const DIGITS: usize = 12;

/// The commit that a folder is checked out at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    /// Its hash.
    pub id: String,
    /// Whether tracked files of the folder differ from it; `None` if that cannot be found out.
    pub changed: Option<bool>,
}

impl fmt::Display for Commit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id.get(..DIGITS).unwrap_or(&self.id))?;
        if self.changed == Some(true) { f.write_str(" (with changes)") } else { Ok(()) }
    }
}

/// How long the commit of a folder is believed, for commands that serve for days.
const LIFETIME: Duration = Duration::from_secs(60);

/// The commits of folders, each found out at most once a minute.
#[derive(Debug, Default)]
pub struct Commits(BTreeMap<PathBuf, (Instant, Option<Commit>)>);

impl Commits {
    /// The commit of the folder of a file; `None` if it is in no repository, or there is no git.
    pub fn of(&mut self, file: &Path) -> Option<Commit> {
        let folder = std::path::absolute(file).ok()?.parent()?.canonicalize().ok()?;
        self.0.retain(|_, (found, _)| found.elapsed() < LIFETIME);
        let found = self.0.entry(folder).or_insert_with_key(|folder| (Instant::now(), commit(folder)));
        found.1.clone()
    }
}

fn commit(folder: &Path) -> Option<Commit> {
    let git = Git { program: find_in_path("git")?, folder };
    let id = git.text(&["rev-parse", "--verify", "HEAD"])?.trim().to_owned();
    // Comparing a file that a filter changes would run a command that the configuration of the repository names.
    let changed = if git.has_filters() { None } else { git.has_changes() };
    Some(Commit { id, changed })
}

/// Git in a folder whose repository may be a stranger's: it executes nothing that the repository names.
struct Git<'f> {
    program: PathBuf,
    folder: &'f Path,
}

impl Git<'_> {
    fn run(&self, arguments: &[&str]) -> Option<Output> {
        let mut command = Command::new(&self.program);
        command.env_clear();
        command.envs(VARIABLES.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        // Objects that a partial clone lacks would be fetched by a command that the configuration names.
        command.envs([("GIT_NO_LAZY_FETCH", "1"), ("GIT_ALLOW_PROTOCOL", "none")]);
        command.arg("-C").arg(self.folder).args(["--no-optional-locks", "--no-pager"]);
        command.args(["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"]).args(arguments);
        run_program(&mut command, DEADLINE, BYTES).ok()
    }

    fn text(&self, arguments: &[&str]) -> Option<String> {
        let output = self.run(arguments).filter(|output| output.status.success())?;
        String::from_utf8(output.stdout).ok()
    }

    /// Whether the repository itself, not its user, names filters; also `true` if that cannot be found out.
    fn has_filters(&self) -> bool {
        const NONE: i32 = 1;
        let Some(output) =
            self.run(&["config", "--show-scope", "--name-only", "--get-regexp", "^(filter|lfs)\\."])
        else {
            return true;
        };
        match output.status.code() {
            Some(NONE) => false,
            Some(0) if output.is_whole => {
                let text = String::from_utf8_lossy(&output.stdout);
                let is_users =
                    |line: &str| ["global\t", "system\t"].iter().any(|scope| line.starts_with(scope));
                !text.lines().all(is_users)
            }
            _ => true,
        }
    }

    fn has_changes(&self) -> Option<bool> {
        // Untracked files are no changes: a report in the folder would be one.
        let status = ["status", "--porcelain", "--untracked-files=no", "--ignore-submodules=all", "--", "."];
        Some(!self.text(&status)?.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// A repository with a committed file `k.toml` in the folder `specs`.
    struct Repository(tempfile::TempDir);

    impl Repository {
        fn new() -> Self {
            let repository = Self(tempfile::tempdir().unwrap());
            repository.git(&["init", "--quiet"]);
            fs::create_dir(repository.0.path().join("specs")).unwrap();
            fs::write(repository.spec(), "one\n").unwrap();
            repository.git(&["add", "."]);
            repository.git(&["commit", "--quiet", "--message", "first"]);
            repository
        }

        fn spec(&self) -> PathBuf {
            self.0.path().join("specs/k.toml")
        }

        /// Runs git as a user would.
        fn git(&self, arguments: &[&str]) -> String {
            let mut command = Command::new("git");
            command.current_dir(self.0.path()).args(["-c", "user.name=n", "-c", "user.email=e@example.org"]);
            let output = command.args(arguments).output().unwrap();
            assert!(output.status.success(), "{arguments:?}: {output:?}");
            String::from_utf8(output.stdout).unwrap()
        }

        fn commit(&self) -> Commit {
            Commits::default().of(&self.spec()).unwrap()
        }
    }

    #[test]
    fn a_commit_and_changes_of_its_folder_are_found() {
        let repository = Repository::new();
        let id = repository.git(&["rev-parse", "HEAD"]).trim().to_owned();
        let mut commits = Commits::default();
        let clean = Commit { id: id.clone(), changed: Some(false) };
        assert_eq!(commits.of(&repository.spec()), Some(clean.clone()));
        fs::write(repository.0.path().join("specs/report.json"), "{}").unwrap();
        fs::write(repository.0.path().join("elsewhere"), "x").unwrap();
        repository.git(&["add", "elsewhere"]);
        assert_eq!(repository.commit(), clean, "neither untracked files nor other folders count");
        fs::write(repository.spec(), "two\n").unwrap();
        let changed = repository.commit();
        assert_eq!(changed, Commit { changed: Some(true), ..clean.clone() });
        assert_eq!(changed.to_string(), format!("{} (with changes)", &id[..12]));
        assert_eq!(commits.of(&repository.spec()), Some(clean), "found out once");
    }

    #[test]
    fn a_folder_without_a_commit_has_none() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Commits::default().of(&folder.path().join("k.toml")), None);
        assert_eq!(Commits::default().of(Path::new("/no such folder/k.toml")), None);
    }

    #[test]
    fn nothing_that_a_repository_names_is_executed() {
        type Arm = fn(&Repository, &str);
        let arms: [(&str, Arm, Option<bool>); 3] = [
            ("fsmonitor", |it, script| drop(it.git(&["config", "core.fsmonitor", script])), Some(false)),
            (
                "filter",
                |it, script| {
                    it.git(&["config", "filter.evil.clean", script]);
                    fs::write(it.0.path().join(".git/info/attributes"), "* filter=evil\n").unwrap();
                },
                None,
            ),
            (
                "hook",
                |it, script| {
                    let hooks = it.0.path().join(".git/hooks");
                    fs::create_dir_all(&hooks).unwrap();
                    fs::copy(script, hooks.join("post-index-change")).unwrap();
                },
                Some(false),
            ),
        ];
        for (name, arm, changed) in arms {
            let repository = Repository::new();
            let (script, mark) = (repository.0.path().join("script"), repository.0.path().join("mark"));
            fs::write(&script, format!("#!/bin/sh\ntouch '{}'\n", mark.display())).unwrap();
            fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
            // The content must be compared.
            fs::write(repository.spec(), "one\n").unwrap();
            arm(&repository, script.to_str().unwrap());
            assert_eq!(repository.commit().changed, changed, "{name}");
            assert!(!mark.exists(), "{name}");
            repository.git(&["status"]);
            assert!(mark.exists(), "{name}: git as a user runs it does execute it");
        }
    }
}
