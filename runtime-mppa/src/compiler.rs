//! Kernels compiled without a board, by the SDK's `kvx-poclcc`.

use runtime_core::backend::{Backend, Log, Source};
use runtime_core::code::CompiledCode;
use runtime_core::{CodeFormat, DeviceInfo, Error, ErrorKind, Options, Result};

use crate::config::{Arch, MppaConfig};
use crate::environment::Environment;
use crate::opencl;
use crate::tools::Tools;
use crate::unavailable;

const COMPILER: &str = "kvx-poclcc";
/// The option of the OpenCL backend that names an offline compiler.
const OPTION: &str = "offline_compiler";

/// Describes the devices of an architecture; without a name, of the configured one.
///
/// # Errors
/// `NotFound` for an unknown architecture.
pub(crate) fn architecture(name: &str, config: &MppaConfig, log: Log) -> Result<DeviceInfo> {
    let arch = find_arch(name, config)?;
    let mut info = opencl::stand_in(log).architecture(arch.name())?;
    info.name = format!("Kalray MPPA ({})", arch.name());
    // The compiler takes OpenCL C only.
    info.formats = vec![CodeFormat::OPENCL_C];
    (info.limits.group_size, info.limits.group_items) = ([opencl::GROUP_ITEMS; 3], opencl::GROUP_ITEMS);
    Ok(info)
}

/// Compiles OpenCL C for an architecture with `kvx-poclcc`, or with the command in the option `offline_compiler`.
///
/// # Errors
/// `NotFound` for an unknown architecture; `Unavailable` without the compiler; otherwise those of the OpenCL backend.
pub(crate) fn compile_for(
    name: &str,
    source: &Source<'_>,
    (config, environment, log): (&MppaConfig, &Environment, Log),
) -> Result<CompiledCode> {
    let arch = find_arch(name, config)?;
    let given = source.options.text(OPTION).filter(|command| !command.trim().is_empty());
    let command = match given {
        Some(command) => command.to_owned(),
        None => usual_command(&Tools::new(config.sdk.as_deref(), environment))?,
    };
    let mut options = Options::new().with(OPTION, command);
    let others = source.options.iter().filter(|(key, _)| *key != OPTION);
    others.for_each(|(key, value)| options.push(key, value.clone()));
    opencl::stand_in(log).compile_for(arch.name(), &Source { options: &options, ..*source })
}

/// The command that Kalray's makefiles run: the compiler reads its settings from the environment.
fn usual_command(tools: &Tools) -> Result<String> {
    let program = tools.find(COMPILER).ok_or_else(|| {
        unavailable(format!(
            "{COMPILER} is in neither $KALRAY_TOOLCHAIN_DIR/bin nor PATH; source the SDK's environment"
        ))
    })?;
    let program = program.display().to_string();
    if program.contains(char::is_whitespace) {
        return Err(unavailable(format!(
            "\"{program}\" has spaces in its path; make a link to it and name that in option \"{OPTION}\""
        )));
    }
    Ok(format!(
        "env POCL_MPPA_EXTRA_BUILD_ARCH={{device}} POCL_EXTRA_BUILD_FLAGS={{options}} POCL_CACHE_DIR=cache {program} -o {{output}} \
         {{input}}"
    ))
}

fn find_arch(name: &str, config: &MppaConfig) -> Result<Arch> {
    let known = Arch::NAMES.iter().find(|(known, _)| *known == name).map(|(_, arch)| *arch);
    match known {
        Some(arch) => Ok(arch),
        None if name.is_empty() => Ok(config.arch.unwrap_or_default()),
        None => {
            let valid: Vec<_> = Arch::NAMES.iter().map(|(known, _)| *known).collect();
            let message = format!("unknown architecture \"{name}\"; valid: {}", valid.join(", "));
            Err(Error::new(ErrorKind::NotFound, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::FakeRoot;

    fn compile(root: &FakeRoot, arch: &str, options: &Options) -> Result<CompiledCode> {
        let environment = root.environment(&[]);
        let config = MppaConfig::resolve(&environment, &Options::new()).unwrap();
        let source = Source { format: "opencl-c", path: "", code: Some(b"kernel void k() {}"), options };
        compile_for(arch, &source, (&config, &environment, Log::silent()))
    }

    #[test]
    fn the_compiler_of_the_sdk_gets_the_architecture_and_the_options() {
        let root = FakeRoot::new();
        let options = Options::new().with("build_options", "-DN=4 -DM");
        let error = compile(&root, "kv3-1", &options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.message().contains("kvx-poclcc is in neither"), "{error}");
        root.tool(
            "bin/kvx-poclcc",
            "[ $# = 3 ] && [ \"$1\" = -o ] || exit 4\n\
             echo \"$POCL_MPPA_EXTRA_BUILD_ARCH [$POCL_EXTRA_BUILD_FLAGS]\" > \"$2\"; cat \"$3\" >> \"$2\"; echo said",
        );
        let compiled = compile(&root, "kv3-1", &options).unwrap();
        assert_eq!(compiled.format, CodeFormat::OPENCL_BINARY);
        assert_eq!(String::from_utf8(compiled.code).unwrap(), "kv3-1 [-DN=4 -DM]\nkernel void k() {}");
        assert_eq!(compiled.log, "said");
        let code = compile(&root, "", &Options::new()).unwrap().code;
        assert!(code.starts_with(b"kv3-2 []\n"), "the configured architecture");
        let own = Options::new().with(OPTION, "cp {input} {output}");
        assert_eq!(compile(&root, "kv3-2", &own).unwrap().code, b"kernel void k() {}");
    }

    #[test]
    fn a_compiler_that_fails_is_an_error_with_its_messages() {
        let root = FakeRoot::new();
        root.tool("bin/kvx-poclcc", "echo 'input.cl:1: wrong' >&2; exit 1");
        let error = compile(&root, "kv3-2", &Options::new()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CompileFailed);
        assert!(error.message().starts_with("input.cl:1: wrong"), "{error}");
    }

    #[test]
    fn an_architecture_has_groups_of_sixteen_and_an_unknown_one_is_not_found() {
        let config = MppaConfig::resolve(&Environment::default(), &Options::new()).unwrap();
        let info = architecture("kv3-1", &config, Log::silent()).unwrap();
        assert_eq!((info.arch.as_deref(), info.limits.group_items), (Some("kv3-1"), 16));
        let error = architecture("kv4", &config, Log::silent()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.message().contains("\"kv4\"; valid: kv3-1, kv3-2"), "{error}");
    }
}
