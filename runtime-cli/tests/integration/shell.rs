//! `runtime completions`.

use super::fixture::runtime;

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
