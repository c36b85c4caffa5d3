//! Exchange on the host without Python: memory of the program, and mapped files.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(unsafe_code, reason = "plays the other library, and maps files")]

use std::sync::Arc;

use runtime_core::dlpack::DLDevice;
use runtime_core::{CommonRuntime, ErrorKind, Placement, Runtime, Safetensors};

fn open(name: &str) -> Arc<dyn CommonRuntime> {
    let runtime = Runtime::builder().discover(false).register(runtime_host::backend());
    runtime.register(runtime_null::backend()).build().open(name).unwrap()
}

#[test]
fn memory_of_the_program_is_exported_and_imported() {
    let host = open("host");
    let tensor = host.tensor([2, 3], &[0i32, 1, 2, 3, 4, 5]).unwrap();
    let lent = tensor.view(&[3, 2], &[-1, 3], 2).unwrap().to_dlpack().unwrap();
    assert_eq!(lent.device(), DLDevice { device_type: DLDevice::CPU, device_id: 0 });
    let managed = lent.into_raw();
    // SAFETY: it is rejected, since its memory is the host's.
    let error = unsafe { open("null").import_dlpack(managed) }.unwrap_err();
    assert!(error.message().contains("device is (type, id) (1, 0); null:0 is (12, 0)"), "{error}");
    // SAFETY: our own structure, not consumed elsewhere.
    let again = unsafe { host.import_dlpack(managed) }.unwrap();
    assert_eq!(again.to_vec::<i32>().unwrap(), [2, 5, 1, 4, 0, 3]);
    again.write(&[20i32, 50, 10, 40, 0, 30]).unwrap();
    assert_eq!(tensor.to_vec::<i32>().unwrap(), [0, 10, 20, 30, 40, 50], "the memory is shared");
}

#[test]
fn a_mapped_tensor_is_frozen_and_outlives_its_file() {
    let host = open("host");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let data: Vec<f32> = (0u16..5000).map(f32::from).collect();
    let weights = host.tensor([50, 100], &data).unwrap();
    let nothing = host.tensor::<f32>([0], &[]).unwrap();
    Safetensors::save(&path, &[("weights", &weights), ("nothing", &nothing)]).unwrap();
    let file = Safetensors::open(&path).unwrap();
    // SAFETY: nobody writes the file.
    let map = |name| unsafe { host.as_host().unwrap().map(&file, name) };
    let (mapped, nothing) = (map("weights").unwrap(), map("nothing").unwrap());
    assert_eq!(map("bias").unwrap_err().kind(), ErrorKind::NotFound);
    std::fs::remove_file(&path).unwrap();
    drop(file);
    assert!(mapped.is_frozen() && nothing.is_frozen() && nothing.is_empty());
    assert_eq!(mapped.to_vec::<f32>().unwrap(), data);
    assert_eq!(mapped.slice(0, 49..50).unwrap().map().unwrap().as_slice::<f32>().unwrap()[99], 4999.0);
    assert!(mapped.write(&data).unwrap_err().message().contains("frozen"));
    assert!(mapped.map_mut().is_err());
}

#[test]
fn a_misaligned_tensor_is_loaded_but_not_mapped() {
    let host = open("host");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("odd.safetensors");
    let header = r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}}   "#;
    let whole = [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &[9, 0, 0, 128, 63]].concat();
    std::fs::write(&path, whole).unwrap();
    let file = Safetensors::open(&path).unwrap();
    // SAFETY: nobody writes the file.
    let map = |name| unsafe { host.as_host().unwrap().map(&file, name) };
    let error = map("b").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(
        error.to_string().contains("odd.safetensors: b: ") && error.message().contains("load_tensor"),
        "{error}"
    );
    assert_eq!(map("a").unwrap().to_vec::<u8>().unwrap(), [9]);
    assert_eq!(host.load_tensor(&file, "b", &Placement::default()).unwrap().to_vec::<f32>().unwrap(), [1.0]);
}
