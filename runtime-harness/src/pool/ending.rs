//! What the end of a worker says about the candidate that it was evaluating.

use crate::crash_context;
use crate::row::Outcome;
use crate::worker::protocol::Ended;

/// The outcome of a candidate whose worker has ended, from the end of its output and the last operation that it reported.
pub(super) fn outcome(ended: &Ended, mut output: String, operation: Option<String>) -> Outcome {
    let reported = crash_context::take_report(&mut output);
    let operation = reported.or(operation);
    let output = last_lines(&output);
    match ended.signal {
        Some(libc::SIGABRT) if ran_out_of_memory(&output) => Outcome::OutOfMemory,
        Some(signal) => Outcome::Crashed { signal, operation, output },
        None => Outcome::Exited { code: ended.code.unwrap_or(-1), operation, output },
    }
}

/// Whether Rust's allocator has given up.
fn ran_out_of_memory(output: &str) -> bool {
    output.lines().any(|line| line.contains("memory allocation of ") && line.contains(" bytes failed"))
}

/// The last lines, as many as a reader wants to see.
fn last_lines(output: &str) -> String {
    const LINES: usize = 20;
    const CHARACTERS: usize = 2000;
    let lines: Vec<&str> = output.trim_end().lines().collect();
    let text = lines[lines.len().saturating_sub(LINES)..].join("\n");
    let surplus = text.chars().count().saturating_sub(CHARACTERS);
    text.chars().skip(surplus).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crash_keeps_the_operation_that_the_process_reported() {
        let ended = Ended { signal: Some(libc::SIGSEGV), ..Ended::default() };
        let output = "word\nerror: SIGSEGV while the reference of \"k\" ran\n".to_owned();
        let expected = Outcome::Crashed {
            signal: libc::SIGSEGV,
            operation: Some("while the reference of \"k\" ran".to_owned()),
            output: "word".to_owned(),
        };
        assert_eq!(outcome(&ended, output, Some("while \"k\" ran".to_owned())), expected);
    }

    #[test]
    fn an_allocation_that_fails_is_a_lack_of_memory() {
        let ended = Ended { signal: Some(libc::SIGABRT), ..Ended::default() };
        let output = "memory allocation of 99 bytes failed\nerror: SIGABRT while \"k\" ran\n".to_owned();
        assert_eq!(outcome(&ended, output, None), Outcome::OutOfMemory);
        assert!(matches!(
            outcome(&ended, String::new(), None),
            Outcome::Crashed { signal: libc::SIGABRT, .. }
        ));
    }

    #[test]
    fn long_output_is_cut_at_its_beginning() {
        let lines: String = (0..1000).map(|line| format!("{line}\n")).collect();
        assert_eq!(last_lines(&lines).lines().count(), 20);
        assert!(last_lines(&lines).ends_with("999"));
        assert_eq!(last_lines(&"ä".repeat(9000)).chars().count(), 2000);
    }
}
