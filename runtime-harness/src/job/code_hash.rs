//! A hash of the code of a job.

use runtime_core::CommonRuntime;
use runtime_core::backend::read_file;
use sha2::{Digest, Sha256};

use super::packaged;
use crate::spec::{KernelSource, Spec, Specialise};

/// The SHA-256 of what a device loads, in hexadecimal: of the file, as `sha256sum` prints it; of its bytes followed by the constants and
/// the element type, if the spec gives any; of what a device takes of a package. `None` if that cannot be read.
pub(crate) fn code_sha256(spec: &Spec, device: &dyn CommonRuntime) -> Option<String> {
    match spec.kernel.is_package() {
        true => packaged::chosen_sha256(device, &spec.kernel, &spec.specialise),
        false => file_sha256(&spec.kernel, &spec.specialise),
    }
}

fn file_sha256(code: &KernelSource, specialise: &Specialise) -> Option<String> {
    let mut hasher = match &code.text {
        Some(text) => Sha256::new_with_prefix(text.as_bytes()),
        None => Sha256::new_with_prefix(read_file(&code.path).ok()?),
    };
    for (name, value) in &specialise.constants {
        hasher.update(format!("\0{name}={value}"));
    }
    if let Some(element) = specialise.element {
        hasher.update(format!("\0element={element}"));
    }
    Some(hexadecimal(hasher))
}

/// The hash of several kernels that run as one.
pub(crate) fn of_all(mut hashes: impl Iterator<Item = Option<String>>) -> Option<String> {
    let all: String = hashes.by_ref().collect::<Option<Vec<_>>>()?.join("\n");
    Some(hexadecimal(Sha256::new_with_prefix(all)))
}

fn hexadecimal(hasher: Sha256) -> String {
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use runtime_core::{CodeFormat, DType, Options};

    use super::*;

    #[test]
    fn the_hash_is_that_of_the_file_and_of_what_it_is_specialised_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("k.c");
        std::fs::write(&path, "abc").unwrap();
        let (entry, format) = ("k".to_owned(), CodeFormat::C);
        let code = KernelSource { path, entry, format, file: None, text: None, options: Options::new() };
        let plain = Specialise { constants: Vec::new(), element: None };
        let with = |n: i64| Specialise { constants: vec![("N".to_owned(), n.into())], element: None };
        let typed = Specialise { element: Some(DType::F16), ..plain.clone() };
        // FIPS 180-2, appendix B.1.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(file_sha256(&code, &plain).as_deref(), Some(abc));
        let inline = KernelSource { path: "none".into(), text: Some("abc".into()), ..code.clone() };
        assert_eq!(file_sha256(&inline, &plain).as_deref(), Some(abc));
        let mut all: Vec<_> =
            [plain, with(1), with(2), typed].iter().map(|it| file_sha256(&code, it)).collect();
        all.push(of_all([all[0].clone(), all[1].clone()].into_iter()));
        all.push(of_all([all[1].clone(), all[0].clone()].into_iter()));
        all.sort_unstable();
        all.dedup();
        assert!(all.len() == 6 && all.iter().all(Option::is_some), "{all:?}");
        let absent = KernelSource { path: folder.path().join("absent"), ..code };
        assert_eq!(file_sha256(&absent, &with(1)), None);
        assert_eq!(of_all([Some(String::new()), None].into_iter()), None);
    }
}
