//! `.safetensors` files: round trips, loading in chunks, and errors of invalid files.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::PathBuf;
use std::sync::Arc;

use runtime_core::tensor::StoredTensor;
use runtime_core::{CommonRuntime, DType, ErrorKind, HostArray, Placement, Runtime, Safetensors};
use tempfile::TempDir;

fn device() -> Arc<dyn CommonRuntime> {
    Runtime::builder().discover(false).register(runtime_null::backend()).build().open("null:0").unwrap()
}

/// A file with the given header and data.
fn file(header: &str, data: &[u8]) -> (TempDir, PathBuf) {
    raw(&[&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat())
}

fn raw(bytes: &[u8]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}

const GOOD: &str = r#"{"__metadata__":{"made":"by hand"},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]},"a":{"dtype":"U8","shape":[2,2],"data_offsets":[0,4]}}"#;
const GOOD_DATA: [u8; 12] = [1, 2, 3, 4, 0, 0, 128, 63, 0, 0, 0, 64];

#[test]
fn a_file_lists_and_loads_its_tensors() {
    let (_folder, path) = file(GOOD, &GOOD_DATA);
    let file = Safetensors::open(&path).unwrap();
    assert_eq!(file.names(), ["a", "b"]);
    assert_eq!(file.notes().into_iter().collect::<Vec<_>>(), [("made".to_owned(), "by hand".to_owned())]);
    assert_eq!(file.info("b").unwrap(), StoredTensor { dtype: DType::F32, shape: vec![2], bytes: 8 });
    let device = device();
    // Memory that the program cannot reach, and memory that it can.
    for space in ["device", "pinned"] {
        let loaded = device.load_tensors(&file, &Placement::space(space)).unwrap();
        assert_eq!(loaded.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(loaded[0].1.to_vec::<u8>().unwrap(), [1, 2, 3, 4]);
        assert_eq!(loaded[1].1.to_vec::<f32>().unwrap(), [1.0, 2.0]);
        assert_eq!((loaded[1].1.space(), loaded[1].1.is_frozen()), (space, false));
    }
    let error = device.load_tensor(&file, "c", &Placement::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(
        error.to_string().contains("model.safetensors: c: ") && error.to_string().contains("a, b"),
        "{error}"
    );
    let error = device.load_tensor(&file, "a", &Placement::space("attic")).unwrap_err();
    assert!(error.to_string().contains("memory space \"attic\""), "{error}");
}

#[test]
fn every_element_type_round_trips() {
    let device = device();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("all.safetensors");
    let stored = DType::all().filter(|dtype| !matches!(*dtype, DType::COMPLEX128 | DType::FP8_E4M3));
    let tensors: Vec<_> = stored
        .map(|dtype| {
            let bytes: Vec<_> = (0..6 * dtype.bytes()).map(|i| u8::try_from(i % 2).unwrap()).collect();
            let array = HostArray::from_bytes(dtype, &[2, 3], &bytes).unwrap();
            (dtype.to_string(), device.tensor_from_array(&array, &Placement::default()).unwrap())
        })
        .collect();
    let named: Vec<_> = tensors.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    Safetensors::save(&path, &named).unwrap();
    let file = Safetensors::open(&path).unwrap();
    assert_eq!(file.names().len(), 16);
    for (name, tensor) in &tensors {
        let again = device.load_tensor(&file, name, &Placement::default()).unwrap();
        assert_eq!(again.to_array().unwrap(), tensor.to_array().unwrap(), "{name}");
    }
    let complex = device.allocate(DType::COMPLEX128, &[1], &Placement::default()).unwrap();
    let error = Safetensors::save(&path, &[("z", &complex)]).unwrap_err();
    assert!(error.kind() == ErrorKind::Unsupported && error.to_string().contains("complex128"), "{error}");
}

#[test]
fn views_scalars_and_empty_tensors_are_saved() {
    let device = device();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("views.safetensors");
    let matrix = device.tensor([2, 3], &[0i32, 1, 2, 3, 4, 5]).unwrap();
    let transposed = matrix.permute(&[1, 0]).unwrap();
    let row = matrix.slice(0, 1..2).unwrap();
    let scalar = device.tensor([], &[7i64]).unwrap();
    let nothing = device.empty::<f32>([3, 0]).unwrap();
    Safetensors::save(&path, &[("t", &transposed), ("r", &row), ("s", &scalar), ("n", &nothing)]).unwrap();
    let file = Safetensors::open(&path).unwrap();
    let load = |name| device.load_tensor(&file, name, &Placement::default()).unwrap();
    assert_eq!(load("t").to_vec::<i32>().unwrap(), [0, 3, 1, 4, 2, 5]);
    assert_eq!(load("r").to_vec::<i32>().unwrap(), [3, 4, 5]);
    assert_eq!((load("s").shape(), load("s").to_vec::<i64>().unwrap()), (&[][..], vec![7]));
    assert_eq!(load("n").shape(), [3, 0]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "a temporary file is left");
    for names in [["x", "x"], ["__metadata__", "y"]] {
        let pair = [(names[0], &scalar), (names[1], &scalar)];
        assert_eq!(Safetensors::save(&path, &pair).unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
    assert!(Safetensors::open(&path).is_ok(), "a failed save changed the file");
}

#[test]
fn a_tensor_of_several_chunks_is_loaded() {
    let device = device();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.safetensors");
    // More than two chunks; an odd number of elements that is no multiple of a page.
    let data: Vec<u64> = (0..(2 << 20) + 12_345).map(|i| i * 0x9e37_79b9).collect();
    let tensor = device.tensor([data.len()], &data).unwrap();
    let small = device.tensor([3], &[1u8, 2, 3]).unwrap();
    Safetensors::save(&path, &[("small", &small), ("large", &tensor)]).unwrap();
    let file = Safetensors::open(&path).unwrap();
    let loaded = device.load_tensors(&file, &Placement::default()).unwrap();
    assert_eq!(loaded[0].0, "large");
    assert!(loaded[0].1.to_vec::<u64>().unwrap() == data);
    assert_eq!(loaded[1].1.to_vec::<u8>().unwrap(), [1, 2, 3]);
}

#[test]
fn broken_files_are_errors_of_the_right_kind() {
    let entry = |entry: &str| format!("{{\"a\":{entry}}}");
    let tensor = |dtype: &str, shape: &str, offsets: &str| {
        entry(&format!("{{\"dtype\":{dtype},\"shape\":{shape},\"data_offsets\":{offsets}}}"))
    };
    let f32 = |shape: &str, offsets: &str| tensor("\"F32\"", shape, offsets);
    let two = |first: &str, second: &str| {
        format!(
            "{{\"a\":{{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":{first}}},\"b\":{{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":{second}}}}}"
        )
    };
    let deep = "[".repeat(100_000);
    for (header, data) in [
        (String::new(), 0),
        ("nonsense".to_owned(), 0),
        ("[1, 2]".to_owned(), 0),
        ("{\"a\": 1}".to_owned(), 0),
        ("{\"__metadata__\": 1}".to_owned(), 0),
        ("{\"__metadata__\": {\"a\": 1}}".to_owned(), 0),
        (entry("{\"dtype\":\"F32\",\"shape\":[1]}"), 4),
        (deep, 0),
        (f32("[1", "[0, 4]"), 4),
        (tensor("\"F33\"", "[1]", "[0, 4]"), 4),
        (tensor("7", "[1]", "[0, 4]"), 4),
        (f32("[-1]", "[0, 4]"), 4),
        (f32("[1.5]", "[0, 4]"), 4),
        (f32("[2]", "[0, 4]"), 4),
        (f32("[1]", "[4, 0]"), 4),
        (f32("[1]", "[4, 8]"), 8),
        (f32("[1]", "[0, 4, 8]"), 4),
        (f32("[1]", "[0, 99999999999999999999]"), 4),
        (f32("[4611686018427387904, 4]", "[0, 0]"), 0),
        (f32("[18446744073709551615]", "[0, 4]"), 4),
        (f32("[1]", "[0, 4]"), 5),
        (two("[0,4]", "[2,6]"), 6),
        (two("[0,4]", "[5,9]"), 9),
        (two("[0,4]", "[0,4]"), 4),
    ] {
        let (_folder, path) = file(&header, &vec![0; data]);
        let error = Safetensors::open(&path).unwrap_err();
        let start: String = header.chars().take(120).collect();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{start}: {error}");
        assert!(error.operation().starts_with("open: "), "{error}");
        assert!(error.to_string().contains("model.safetensors: "), "{error}");
    }
}

#[test]
fn truncated_files_are_io_errors() {
    let whole = [&(GOOD.len() as u64).to_le_bytes(), GOOD.as_bytes(), &GOOD_DATA].concat();
    for bytes in 0..whole.len() {
        let (_folder, path) = raw(&whole[..bytes]);
        let error = Safetensors::open(&path).unwrap_err();
        assert!(error.kind() == ErrorKind::Io && error.message().contains("truncated"), "{bytes}: {error}");
    }
    for length in [100_000_001u64, u64::MAX, u64::MAX - 7, 1 << 63] {
        let (_folder, path) = raw(&length.to_le_bytes());
        let error = Safetensors::open(&path).unwrap_err();
        assert!(error.message().contains("exceeds the limit of 100000000"), "{error}");
    }
    assert_eq!(Safetensors::open("/no/such/file").unwrap_err().kind(), ErrorKind::Io);
}

#[test]
fn a_file_that_shrinks_is_an_error() {
    let (_folder, path) = file(GOOD, &GOOD_DATA);
    let file = Safetensors::open(&path).unwrap();
    let bytes = std::fs::metadata(&path).unwrap().len();
    std::fs::File::options().write(true).open(&path).unwrap().set_len(bytes - 1).unwrap();
    let device = device();
    for space in ["device", "pinned"] {
        let error = device.load_tensor(&file, "b", &Placement::space(space)).unwrap_err();
        assert!(error.kind() == ErrorKind::Io && error.message().contains("truncated"), "{error}");
        assert!(error.operation().starts_with("load_tensor: "), "{error}");
        assert!(device.load_tensor(&file, "a", &Placement::space(space)).is_ok());
    }
}

#[test]
fn elements_of_less_than_a_byte_are_listed_but_not_loaded() {
    let header = r#"{"a":{"dtype":"F4","shape":[4],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}"#;
    let (_folder, path) = file(header, &[0, 0, 9]);
    let (file, device) = (Safetensors::open(&path).unwrap(), device());
    assert_eq!(file.names(), ["a", "b"]);
    assert_eq!(file.info("a").unwrap_err().kind(), ErrorKind::Unsupported);
    assert!(device.load_tensors(&file, &Placement::default()).is_err());
    assert_eq!(device.load_tensor(&file, "b", &Placement::default()).unwrap().to_vec::<u8>().unwrap(), [9]);
}

#[test]
fn changing_any_byte_is_harmless() {
    let whole = [&(GOOD.len() as u64).to_le_bytes(), GOOD.as_bytes(), &GOOD_DATA].concat();
    let device = device();
    let mut state = 7u32;
    let rounds = if cfg!(miri) { 0 } else { 1000 };
    for _ in 0..rounds {
        let mut bytes = whole.clone();
        for _ in 0..3 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let at = (state >> 8) as usize % bytes.len();
            bytes[at] = state.to_le_bytes()[3];
        }
        let (_folder, path) = raw(&bytes);
        // The result is an error, or tensors of the sizes in the header.
        if let Ok(file) = Safetensors::open(&path) {
            for name in file.names() {
                if let Ok(tensor) = device.load_tensor(&file, &name, &Placement::default()) {
                    assert_eq!(tensor.size_bytes(), file.info(&name).unwrap().bytes);
                }
            }
        }
    }
}
