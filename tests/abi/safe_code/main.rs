//! What safe code cannot do: each program corrupts memory, or could, and compiles only where it says `unsafe`.
//!
//! A program is compiled twice. As it stands it forbids unsafe code, and the compiler refuses it for the reason given. With
//! `UNSAFE` read as `unsafe` it compiles: so what is refused is that word, and not a name that has changed since.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod compiler;
mod needs_unsafe;

use compiler::Compiler;
use needs_unsafe::{NEEDS_UNSAFE, NOT_CONSTRUCTIBLE};

#[test]
fn what_could_corrupt_memory_needs_the_word() {
    let compiler = Compiler::new();
    for unsafe_program in NEEDS_UNSAFE {
        let vouched = compiler.run(&unsafe_program.program.replace("UNSAFE", "unsafe"), false);
        assert!(
            vouched.is_ok(),
            "{}: it does not compile with `unsafe` either\n{}",
            unsafe_program.name,
            vouched.unwrap_err()
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
fn what_core_alone_makes_cannot_be_made() {
    let compiler = Compiler::new();
    for (name, code, program) in NOT_CONSTRUCTIBLE {
        let refused = compiler.run(program, false).expect_err(name);
        assert!(refused.contains(&format!("error[{code}]")), "{name}: {refused}");
    }
}
