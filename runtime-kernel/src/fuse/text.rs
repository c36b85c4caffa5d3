//! From a merged module to text that the front end accepts.

use naga::back::wgsl::{WriterFlags, write_string};
use runtime_core::Result as CoreResult;
use runtime_core::lowering::{FusedArg, FusionRequest};

use super::merge::Merged;
use crate::interface::Interface;
use crate::parse::limits::Depth;
use crate::parse::{panic_guard, validate_again};
use crate::program::Program;

/// Fails on what a device does not support.
pub(crate) type Check<'a> = &'a dyn Fn(&Program) -> CoreResult<()>;

/// Fused WGSL that the front end accepts, with the name of its entry point and its arguments.
pub(super) struct Text {
    pub(super) text: String,
    pub(super) entry: String,
    pub(super) args: Vec<FusedArg>,
}

/// Prints a merged module, and parses the text again.
///
/// # Errors
/// Why the text is not accepted.
pub(super) fn text(
    request: &FusionRequest<'_>,
    (merged, depth): (&Merged, Depth),
    check: Check<'_>,
) -> Result<Text, String> {
    let printed = panic_guard::run("printing a fused kernel", depth, || {
        let info = validate_again(&merged.module)?;
        write_string(&merged.module, &info, WriterFlags::empty())
            .map_err(|error| runtime_core::Error::unsupported(error.to_string()))
    });
    let text = printed.map_err(|error| error.message().to_owned())?;
    let program = Program::parse(&text, "", &crate::Specialisation::default())
        .map_err(|error| format!("the fused text is rejected: {}", first_line(error.message())))?;
    check(&program).map_err(|error| error.message().to_owned())?;
    let [interface] = program.interfaces() else {
        return Err("the fused kernel has more than one entry point".to_owned());
    };
    let mut args = merged.args.clone();
    if interface.scalars.is_empty() {
        // It uses none of the lengths: no index is out of range, and the other scalars are constants.
        args.truncate(interface.tensors.len());
    }
    match is_expected(request, &args, interface) {
        true => Ok(Text { entry: interface.name.clone(), text, args }),
        false => Err("the fused kernel has other arguments than expected".to_owned()),
    }
}

/// Whether an entry point takes the arguments of the plan.
fn is_expected(request: &FusionRequest<'_>, args: &[FusedArg], interface: &Interface) -> bool {
    let tensors = interface.tensors.len();
    let is_tensor = |arg: &FusedArg| match *arg {
        FusedArg::Of { launch, arg } => {
            matches!(request.launches[launch].args[arg], runtime_core::lowering::FusionArg::Tensor(_))
        }
        _ => false,
    };
    args.len() == tensors + interface.scalars.len()
        && args.iter().enumerate().all(|(place, arg)| is_tensor(arg) == (place < tensors))
}

fn first_line(message: &str) -> &str {
    message.lines().next().unwrap_or_default()
}
