//! A directory with kernels that misbehave, and what is left of those that ran.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::super::fixture::{self, Folder};
use super::DEADLINE;

const CODE: &str = r#"
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
void right(float *x) { for (int i = 0; i < 4; i++) x[i] = i; }
void null_dereference(float *x) { *(volatile int *)0 = 1; }
static int deeper(volatile int *depth) { volatile char frame[4096]; frame[0] = 1; ++*depth; return deeper(depth) + frame[0]; }
void stack_overflow(float *x) { volatile int depth = 0; x[0] = deeper(&depth); }
void aborts(float *x) { puts("to standard output"); fflush(stdout); fputs("last words\n", stderr); abort(); }
void frees_twice(float *x) { void *volatile p = malloc(64); free(p); free(p); right(x); }
void exits(float *x) { exit(0); }
void exits_with_a_code(float *x) { _exit(42); }
void stops(float *x) { raise(SIGSTOP); }
void stops_its_group(float *x) { kill(0, SIGSTOP); }
void loops(float *x) { for (;;) __asm__ volatile(""); }
void forks(float *x) { right(x); if (fork() == 0) { sleep(1000); _exit(0); } }
void forks_and_returns(float *x) { right(x); fork(); }
void forks_a_daemon(float *x) {
    right(x);
    if (fork() == 0) { setsid(); if (fork() == 0) { signal(SIGTERM, SIG_IGN); sleep(1000); } _exit(0); }
}
void crashes_with_children(float *x) { forks(x); forks_a_daemon(x); *(volatile int *)0 = 1; }
void floods(float *x) {
    static char text[1 << 20];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\n';
    for (int i = 0; i < 100; i++) { fwrite(text, 1, sizeof text, stdout); fwrite(text, 1, sizeof text, stderr); }
    right(x);
}
void floods_and_aborts(float *x) { floods(x); fflush(stdout); fputs("the end\n", stderr); abort(); }
void corrupts_the_heap(float *x) {
    char *volatile p[64];
    for (int i = 0; i < 64; i++) p[i] = malloc(2000);
    for (int i = 0; i < 64; i++) memset(p[i], 0x41, 2064);
    for (int i = 0; i < 64; i++) free(p[i]);
    for (int i = 0; i < 64; i++) p[i] = malloc(5000);
    right(x);
}
void nothing(float *x) {}
void runs_for_30_s(float *x) {
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do clock_gettime(CLOCK_MONOTONIC, &now); while (now.tv_sec - begin.tv_sec < 30);
    right(x);
}
void wrong_element(float *x) { right(x); x[2] = 7; }
void wrong_nan(float *x) { right(x); x[1] = NAN; }
void unwritten(float *x) { x[0] = 0; x[1] = 1; x[2] = 2; }
void reads_standard_input(float *x) { right(x); if (getchar() != EOF) x[0] = 9; }
void prints_a_protocol_line(float *x) { right(x); puts("{\"ended\": {\"code\": 0}}"); fflush(stdout); }
void leaves_a_file(float *x) {
    char path[4096];
    snprintf(path, sizeof path, "%s/left-behind", getenv("TMPDIR"));
    close(open(path, O_CREAT | O_WRONLY, 0600));
    abort();
}
"#;

pub(super) fn spec(entry: &str) -> String {
    format!(
        "version = 1\nname = \"{entry}\"\n[kernel]\npath = \"bad.c\"\nentry = \"{entry}\"\n[[arg]]\nname = \"x\"\n\
         dtype = \"f32\"\nshape = [4]\nuse = \"write\"\n[reference]\npath = \"bad.c\"\nentry = \"right\"\n\
         [eval]\nrepeat = 2\nnumber = 1\nwarmup = 1\nbudget_s = 2\n"
    )
}

/// A directory with kernels, and processes that carry its mark in their environment.
pub(super) struct Sandbox {
    pub(super) folder: Folder,
    mark: String,
}

impl Sandbox {
    pub(super) fn new() -> Self {
        let folder = Folder::new();
        std::fs::create_dir(folder.path().join("tmp")).unwrap();
        folder.write("bad.c", CODE);
        let mark = format!("RUNTIME_TEST_MARK={}", folder.path().display());
        Self { folder, mark }
    }

    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = fixture::command(arguments);
        let (key, value) = self.mark.split_once('=').unwrap();
        command.current_dir(self.folder.path()).env("TMPDIR", self.folder.path().join("tmp"));
        command.env(key, value);
        command
    }

    /// The processes that were started by commands of this sandbox and still run.
    pub(super) fn processes(&self) -> BTreeSet<u32> {
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        let ours = |entry: std::fs::DirEntry| {
            let id = entry.file_name().to_str()?.parse().ok()?;
            let environment = std::fs::read(entry.path().join("environ")).ok()?;
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            let is_dead = stat.rsplit_once(')')?.1.trim_start().starts_with('Z');
            let is_ours = environment.split(|&byte| byte == 0).any(|line| line == self.mark.as_bytes());
            (is_ours && !is_dead).then_some(id)
        };
        entries.filter_map(ours).collect()
    }

    /// Waits until no process is left but `kept`.
    pub(super) fn wait_for_processes(&self, kept: &BTreeSet<u32>, what: &str) {
        let begin = Instant::now();
        while !self.processes().is_subset(kept) {
            assert!(begin.elapsed() < DEADLINE, "{what}: {:?} are left", self.processes());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(super) fn temporary_files(&self) -> usize {
        std::fs::read_dir(self.folder.path().join("tmp")).unwrap().count()
    }

    /// Evaluates kernels with `--isolate`: their rows.
    pub(super) fn evaluate(&self, entries: &[&str], options: &[&str]) -> Vec<Value> {
        let files: Vec<String> = entries.iter().map(|entry| format!("{entry}.toml")).collect();
        for (entry, file) in entries.iter().zip(&files) {
            self.folder.write(file, &spec(entry));
        }
        let mut arguments = vec!["eval", "--isolate", "--device", "host:0", "--json", "rows.json"];
        arguments.extend(options);
        arguments.extend(files.iter().map(String::as_str));
        let begin = Instant::now();
        let output = self.command(&arguments).output().unwrap();
        assert!(begin.elapsed() < DEADLINE, "{entries:?}");
        assert!(output.status.code().is_some_and(|code| code < 2), "{entries:?}: {output:?}");
        let document: Value = serde_json::from_str(&self.folder.read("rows.json")).unwrap();
        assert_eq!(document["complete"], true);
        self.wait_for_processes(&BTreeSet::new(), "eval");
        assert_eq!(self.temporary_files(), 0);
        document["rows"].as_array().unwrap().clone()
    }
}
