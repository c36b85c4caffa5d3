//! `tune --launch --workers`: several workers share the candidates of a device.

use std::collections::BTreeSet;

use super::fixture::{Folder, SCALE};

/// A kernel that notes in which process it runs.
const NOTING: &str = r#"
#include <stdio.h>
#include <unistd.h>
void scale(const float *x, float *y, float factor, long n) {
    FILE *log = fopen("processes", "a");
    fprintf(log, "%d\n", getpid());
    fclose(log);
    usleep(20000);
    for (long i = 0; i < n; i++) y[i] = factor * x[i];
}
"#;

#[test]
fn workers_share_the_candidates_of_a_device() {
    let folder = Folder::new();
    folder.write("noting.c", NOTING);
    let spec = SCALE.split("[reference]").next().unwrap().replacen("scale.c", "noting.c", 1);
    let tuned = "[specialise]\nconstants = { N = 0 }\n[tune]\nN = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]\n";
    folder.write("tuned.toml", &format!("{spec}{tuned}"));
    let options = ["--device", "host:0", "--repeat", "3", "--number", "1", "--warmup", "1"];
    for (workers, launch) in [(1, &[][..]), (3, &["--launch", "{worker}", "--workers", "3"])] {
        let run = folder.runtime(&[&["tune", "tuned.toml", "--trust"], &options[..], launch].concat());
        assert_eq!(run.code, 0, "{run:?}");
        let processes = folder.read("processes");
        let processes: BTreeSet<&str> = processes.lines().collect();
        // A worker may start so late that the others have evaluated everything.
        assert!((workers.min(2)..=workers).contains(&processes.len()), "{processes:?} {run:?}");
        std::fs::remove_file(folder.path().join("processes")).unwrap();
    }
}
