//! What safe code cannot do: each program corrupts memory, or could, and compiles only where it says `unsafe`.
//!
//! A program is compiled twice. As it stands it forbids unsafe code, and the compiler refuses it for the reason given. With
//! `UNSAFE` read as `unsafe` it compiles: so what is refused is that word, and not a name that has changed since.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod compiler;
mod programs;

use compiler::Compiler;
use programs::{CLOSED, HOLES};

#[test]
fn what_could_corrupt_memory_needs_the_word() {
    let compiler = Compiler::new();
    for hole in HOLES {
        let vouched = compiler.run(&hole.program.replace("UNSAFE", "unsafe"), false);
        assert!(
            vouched.is_ok(),
            "{}: it does not compile with `unsafe` either\n{}",
            hole.name,
            vouched.unwrap_err()
        );
        let refused = compiler.run(&hole.program.replace("UNSAFE", ""), true).expect_err(hole.name);
        assert!(refused.contains(&format!("error[{}]", hole.code)), "{}: {refused}", hole.name);
    }
}

#[test]
fn what_core_alone_makes_cannot_be_made() {
    let compiler = Compiler::new();
    for (name, code, program) in CLOSED {
        let refused = compiler.run(program, false).expect_err(name);
        assert!(refused.contains(&format!("error[{code}]")), "{name}: {refused}");
    }
}
