//! `runtime completions` and `runtime man`.

use super::fixture::{Folder, runtime};

#[test]
fn completions_of_every_shell_know_the_commands() {
    for (shell, own) in [
        ("bash", "complete -F"),
        ("elvish", "edit:completion"),
        ("fish", "complete -c runtime"),
        ("powershell", "Register-ArgumentCompleter"),
        ("zsh", "#compdef runtime"),
    ] {
        let run = runtime(&["completions", shell]);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{shell}");
        for word in [own, "compare", "completions", "min-repeat-ms"] {
            assert!(run.stdout.contains(word), "{shell}: {word}");
        }
    }
    assert_eq!(runtime(&["completions", "sh"]).code, 2);
}

#[test]
fn manual_pages_are_printed_or_written() {
    let run = runtime(&["man"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert!(run.stdout.contains(".TH runtime 1") && run.stdout.contains("runtime\\-compare(1)"), "{run:?}");
    let folder = Folder::new();
    std::fs::create_dir(folder.path().join("man1")).unwrap();
    let run = folder.runtime(&["man", "man1"]);
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (0, "", ""));
    let page = folder.read("man1/runtime-eval.1");
    assert!(page.contains("min\\-repeat\\-ms") && page.contains("Examples:"), "{page}");
    assert!(!folder.path().join("man1/runtime-worker.1").exists(), "it is not for users");
    let run = folder.runtime(&["man", "missing"]);
    assert!(run.code == 2 && run.stderr.contains("cannot write manual pages to missing"), "{run:?}");
}
