//! `kvx-board-diag --list-board`: what Kalray's own tool says about boards, to explain why the driver shows none.

use std::process::ExitStatus;
use std::time::Duration;

use runtime_core::Result;

use crate::plain_text::{last_words, plain};
use crate::process;
use crate::tools::Tools;

/// The tool's name.
const TOOL: &str = "kvx-board-diag";
/// What it prints without a board.
const NONE: &str = "No Available board";
const DEADLINE: Duration = Duration::from_secs(10);
/// The part of what it printed, or of an error, that a reason has.
const MAX_CHARACTERS: usize = 512;

/// What the tool says, as the end of a sentence; `None` if it is not installed.
pub(crate) fn explain(tools: &Tools) -> Option<String> {
    let said = |output: &str| last_words(output, MAX_CHARACTERS);
    Some(match list_boards(tools)? {
        Err(error) => match error.message().split_once('\n') {
            Some((problem, output)) => format!("{} {}", plain(problem), said(output)),
            None => said(error.message()),
        },
        Ok((_, output)) if output.contains(NONE) => {
            format!(
                "{TOOL} finds no board either: check that the board is seated and powered (lspci shows it)"
            )
        }
        Ok((status, output)) if status.success() => {
            format!("{TOOL} finds a board, so load Kalray's driver; it says: {}", said(&output))
        }
        Ok((status, output)) => format!("{TOOL} failed ({status}): {}", said(&output)),
    })
}

/// Runs the tool: its exit status, and what it printed. `None` if it is not installed.
pub(crate) fn list_boards(tools: &Tools) -> Option<Result<(ExitStatus, String)>> {
    let program = tools.find(TOOL)?;
    let words = [program.display().to_string(), "--list-board".to_owned()];
    let run = || {
        let folder = process::folder("runtime-mppa-diag-")?;
        let mut process = process::start(&words, folder.path(), &[])?;
        let status = process.wait(DEADLINE)?;
        Ok((status, process.output()))
    };
    Some(run())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::FakeRoot;

    fn said(script: &str) -> String {
        let root = FakeRoot::new();
        root.tool("bin/kvx-board-diag", script);
        explain(&Tools::new(None, &root.environment(&[]))).unwrap()
    }

    #[test]
    fn each_answer_has_its_own_advice() {
        assert!(said("[ \"$1\" = --list-board ] && echo 'No Available board'").contains("lspci"));
        assert!(said("echo 'board 0: K300'").contains("load Kalray's driver; it says: board 0: K300"));
        assert!(said("echo broken; exit 2").contains("failed (exit status: 2): broken"));
        assert_eq!(explain(&Tools::default()), None);
    }

    /// A reason is printed as one line of the list of devices.
    #[test]
    fn an_answer_of_any_kind_is_a_short_line_without_control_characters() {
        let script = "head -c 100000 /dev/zero | tr '\\0' x; printf '\\033[2Jbroken\\nboard\\377'";
        for end in ["", "; exit 1"] {
            let said = said(&format!("{script}{end}"));
            assert!(said.ends_with("xx\u{fffd}[2Jbroken; board\u{fffd}"), "{said}");
            assert!(said.chars().count() < 2 * MAX_CHARACTERS, "{said}");
        }
    }
}
