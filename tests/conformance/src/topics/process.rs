//! The end of the process with work in flight: no crash, no hang, and signal handlers stay in place.

use std::os::unix::process::ExitStatusExt;

use crate::case::{Failure, Requirement, Verdict, cases};
use crate::child_process::{EXIT_DONE, Role, run_child};
use crate::context::Context;

cases! {
    [Requirement::Kernel("spin")] => a_program_may_exit, a_program_may_return_from_main,
        exit_handlers_may_drop_everything, an_abort_is_an_abort, a_handler_of_aborts_is_called,
        a_program_may_become_another, a_forked_child_is_refused_and_its_parent_goes_on;
}

fn ends(context: &Context, role: Role) -> Verdict {
    let (status, words) = run_child(context, role)?;
    if status.code() == Some(i32::from(EXIT_DONE)) {
        return Ok(());
    }
    Err(Failure::Failed(format!("{role:?} with work in flight: {status}: {words}")))
}

fn a_program_may_exit(context: &Context) -> Verdict {
    ends(context, Role::Exit)
}

fn a_program_may_return_from_main(context: &Context) -> Verdict {
    ends(context, Role::Return)
}

fn exit_handlers_may_drop_everything(context: &Context) -> Verdict {
    ends(context, Role::AtExit)
}

fn an_abort_is_an_abort(context: &Context) -> Verdict {
    let (status, words) = run_child(context, Role::Abort)?;
    assert_eq!(status.signal(), Some(libc::SIGABRT), "{status}: {words}");
    Ok(())
}

fn a_handler_of_aborts_is_called(context: &Context) -> Verdict {
    ends(context, Role::AbortHandler)
}

fn a_program_may_become_another(context: &Context) -> Verdict {
    ends(context, Role::Exec)
}

fn a_forked_child_is_refused_and_its_parent_goes_on(context: &Context) -> Verdict {
    ends(context, Role::Fork)
}
