//! Safe code cannot corrupt memory through the API: each of these programs could, and compiles only with `unsafe`.
//!
//! Each program is compiled twice. With `UNSAFE` removed, it must be rejected with the given error. With `UNSAFE` replaced by
//! `unsafe`, it must compile, so that the rejection is not caused by, say, a name that has changed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod compiler;
mod dependencies;
mod mistakes;
mod needs_unsafe;

use compiler::Compiler;
use dependencies::{EVENTS, NO_EVENTS, PROGRAM};
use mistakes::{MISTAKEN, MISTAKES};
use needs_unsafe::{NEEDS_UNSAFE, NOT_CONSTRUCTIBLE};

#[test]
fn what_could_corrupt_memory_needs_unsafe() {
    let compiler = Compiler::new();
    for unsafe_program in NEEDS_UNSAFE {
        let with_unsafe = compiler.run(&unsafe_program.program.replace("UNSAFE", "unsafe"), false);
        assert!(
            with_unsafe.is_ok(),
            "{}: it does not compile with `unsafe` either\n{}",
            unsafe_program.name,
            with_unsafe.unwrap_err()
        );
        let refused =
            compiler.run(&unsafe_program.program.replace("UNSAFE", ""), true).expect_err(unsafe_program.name);
        assert!(
            refused.contains(&format!("error[{}]", unsafe_program.code)),
            "{}: {refused}",
            unsafe_program.name
        );
    }
}

#[test]
fn objects_that_only_core_creates_cannot_be_constructed() {
    let compiler = Compiler::new();
    for (name, code, program) in NOT_CONSTRUCTIBLE {
        let refused = compiler.run(program, false).expect_err(name);
        assert!(refused.contains(&format!("error[{code}]")), "{name}: {refused}");
    }
}

#[test]
fn only_events_are_dependencies() {
    let compiler = Compiler::new();
    for deps in EVENTS {
        let compiled = compiler.run(&PROGRAM.replace("DEPS", deps), true);
        assert!(compiled.is_ok(), "{deps}: {}", compiled.unwrap_err());
    }
    for deps in NO_EVENTS {
        let refused = compiler.run(&PROGRAM.replace("DEPS", deps), true).expect_err(deps);
        assert!(refused.contains("error[E0308]: mismatched types"), "{deps}: {refused}");
    }
}

#[test]
fn usual_mistakes_name_the_remedy() {
    let compiler = Compiler::new();
    for (code, remedy) in MISTAKES {
        let refused = compiler.run(&MISTAKEN.replace("CODE", code), false).expect_err(code);
        assert!(refused.contains(remedy), "{code}: {refused}");
    }
}
