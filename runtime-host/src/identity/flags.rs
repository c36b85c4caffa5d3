//! Compiler flags after which the compiled code depends on known files only.

use runtime_core::{Error, Options, Result};

use crate::compiler;

/// Flags that read no file, or only those that a preprocessor reads, too; each with whatever follows in the word.
const HARMLESS: [&str; 15] = [
    "--param=",
    "-D",
    "-I",
    "-O",
    "-U",
    "-W",
    "-ansi",
    "-f",
    "-g",
    "-idirafter",
    "-iquote",
    "-isystem",
    "-m",
    "-pedantic",
    "-std=",
];
/// Flags that are harmless as they stand.
const WHOLE: [&str; 6] = ["-pipe", "-pthread", "-s", "-shared", "-w", "-xc++"];
/// Flags whose value may be the next word.
const WITH_VALUE: [&str; 6] = ["-D", "-I", "-U", "-idirafter", "-iquote", "-isystem"];
/// Beginnings of flags for other programs, which have flags that read files, and of those that take a word.
const EXCLUDED: [&str; 5] = ["-Wa,", "-Wl,", "-Wp,", "-mllvm", "-gcc"];
/// In a flag of code generation, what tells that it reads or names a file.
const READS: [&str; 11] =
    ["/", "dump", "embed", "file", "list", "modul", "offload", "plugin", "prof", "use-ld", "index"];

/// Checks the flags of the options `compiler` and `flags`.
///
/// # Errors
/// `Unsupported` for the first flag that may read a file.
pub(super) fn check(options: &Options) -> Result<()> {
    let flags = compiler::flags_of(options);
    let given = options.texts("flags").flat_map(str::split_whitespace).map(str::to_owned);
    let mut flags = flags.into_iter().chain(given);
    while let Some(flag) = flags.next() {
        if !is_harmless(&flag) {
            let message = format!("flag \"{flag}\" may read files, so the compiled code is not kept");
            return Err(Error::unsupported(message));
        }
        if WITH_VALUE.contains(&flag.as_str()) {
            flags.next();
        }
    }
    Ok(())
}

fn is_harmless(flag: &str) -> bool {
    let begins_with = |starts: &[&str]| starts.iter().any(|start| flag.starts_with(start));
    let reads = matches!(flag.get(..2), Some("-f" | "-m" | "-g" | "-s" | "-O"))
        && READS.iter().any(|word| flag.contains(word));
    (WHOLE.contains(&flag) || begins_with(&HARMLESS)) && !begins_with(&EXCLUDED) && !reads
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(flags: &str) -> bool {
        check(&Options::new().with("flags", flags)).is_err()
    }

    #[test]
    fn flags_that_read_no_unknown_file_are_accepted() {
        for flags in [
            "",
            "-O2 -g -fopenmp -fno-math-errno -march=x86-64-v3 -mprefer-vector-width=512 -Wall -std=gnu11 -pthread -w",
            "-D N=4 -DM -U N -I include -iquote include -isystem /usr/local/include -I/opt/include",
            "-ffast-math -flto -ffp-contract=off --param=max-unroll-times=4 -xc++ -pedantic-errors",
        ] {
            assert!(!refused(flags), "{flags}: {:?}", check(&Options::new().with("flags", flags)));
        }
    }

    #[test]
    fn flags_that_may_read_a_file_are_refused() {
        for flag in [
            "-include a.h",
            "-imacros a.h",
            "-include-pch a.pch",
            "@arguments",
            "-specs=a.specs",
            "-fplugin=a.so",
            "-fpass-plugin=a.so",
            "-fprofile-use",
            "-fprofile-use=a.gcda",
            "-fauto-profile=a",
            "-fsanitize-ignorelist=a",
            "-fmodules",
            "-fuse-ld=mold",
            "-fdebug-prefix-map=/a=b",
            "-Wl,-T,a.ld",
            "-Wa,-Ia",
            "-Wp,-include,a.h",
            "-mllvm -x",
            "-L.",
            "-lz",
            "-Bfolder",
            "--sysroot=/a",
            "-isysroot /a",
            "-T a.ld",
            "a.o",
            "-x c++",
            "-nostdinc",
        ] {
            assert!(refused(flag), "{flag}");
            let compiler = Options::new().with("compiler", format!("cc {flag}"));
            assert!(check(&compiler).is_err(), "cc {flag}");
        }
        // A value is no flag.
        assert!(!refused("-D @a") && refused("-DX @a") && refused("-D -D @a"));
        let error = check(&Options::new().with("flags", "-O2 @a")).unwrap_err();
        assert!(error.message().contains("\"@a\""), "{error}");
    }
}
