//! Invalid structures: the error names the field, and the caller keeps the structure.

use runtime_core::dlpack::{DLDevice, DLManagedTensorVersioned};
use runtime_core::{DType, ErrorKind, Options, Placement};

use super::producer::{Recipe, device, device_with, give_back};

fn recipe() -> Recipe {
    Recipe { shape: vec![2, 3], strides: Some(vec![3, 1]), ..Recipe::f32(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]) }
}

/// Invalidates a valid tensor, and checks the error.
fn refused(field: &str, kind: ErrorKind, spoil: impl FnOnce(&mut DLManagedTensorVersioned)) {
    let (managed, watch) = recipe().make();
    // SAFETY: our own structure.
    spoil(unsafe { &mut *managed });
    // SAFETY: what is wrong with it is found before it is used.
    let error = unsafe { device().import_dlpack(managed) }.unwrap_err();
    assert!(error.message().contains(field), "{field}: {error}");
    assert_eq!((error.kind(), error.operation()), (kind, "import_dlpack"), "{error}");
    assert_eq!(watch.deletions(), 0, "{field}: the caller keeps it");
    give_back(managed);
    assert_eq!(watch.deletions(), 1);
}

fn invalid(field: &str, spoil: impl FnOnce(&mut DLManagedTensorVersioned)) {
    refused(field, ErrorKind::InvalidArgument, spoil);
}

/// Overwrites one of the two extents or strides.
fn set(numbers: *mut i64, index: usize, value: i64) {
    // SAFETY: there are two.
    unsafe { numbers.wrapping_add(index).write(value) };
}

#[test]
fn a_null_or_misaligned_structure_is_rejected() {
    let misaligned = std::ptr::without_provenance_mut(12345);
    for managed in [std::ptr::null_mut(), misaligned] {
        // SAFETY: it is not looked at.
        let error = unsafe { device().import_dlpack(managed) }.unwrap_err();
        assert!(error.to_string().contains("managed is null or misaligned"), "{error}");
        // SAFETY: as above.
        let error = unsafe { device().import_dlpack_unversioned(managed.cast()) }.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
}

#[test]
fn another_major_version_is_not_read() {
    refused("version.major is 2", ErrorKind::Unsupported, |managed| {
        managed.version.major = 2;
        managed.dl_tensor.ndim = -1;
    });
    let (managed, _watch) = recipe().make();
    // SAFETY: our own structure.
    unsafe { (*managed).version.minor = 99 };
    // SAFETY: a valid tensor; a later minor version is read like this one.
    assert!(unsafe { device().import_dlpack(managed) }.is_ok());
}

#[test]
fn dimensions_and_extents_are_checked() {
    for ndim in [-1, i32::MIN, 65, i32::MAX] {
        invalid("ndim is", |managed| managed.dl_tensor.ndim = ndim);
    }
    invalid("shape is null", |managed| managed.dl_tensor.shape = std::ptr::null_mut());
    invalid("shape is misaligned", |managed| {
        managed.dl_tensor.shape = managed.dl_tensor.shape.wrapping_byte_add(1);
    });
    for extent in [-1, i64::MIN] {
        invalid(&format!("shape[1] is {extent}"), |managed| set(managed.dl_tensor.shape, 1, extent));
    }
    for extent in [i64::MAX, 1 << 61] {
        invalid("shape [", |managed| set(managed.dl_tensor.shape, 0, extent));
    }
}

#[test]
fn strides_and_offsets_beyond_the_address_space_are_rejected() {
    invalid("strides is misaligned", |managed| {
        managed.dl_tensor.strides = managed.dl_tensor.strides.wrapping_byte_add(4);
    });
    for stride in [i64::MAX, i64::MIN, i64::MAX / 2] {
        invalid("strides", |managed| set(managed.dl_tensor.strides, 1, stride));
    }
    for stride in [-(1i64 << 60), 1 << 61, -(1 << 46)] {
        invalid("strides", |managed| set(managed.dl_tensor.strides, 0, stride));
    }
    for offset in [u64::MAX - 3, 1 << 63, (1 << 63) - 4] {
        invalid("byte_offset", |managed| managed.dl_tensor.byte_offset = offset);
    }
    invalid("data is null", |managed| managed.dl_tensor.data = std::ptr::null_mut());
    for offset in [1, 2, 7] {
        invalid("not aligned to 4 bytes", |managed| managed.dl_tensor.byte_offset = offset);
    }
}

#[test]
fn element_types_are_checked() {
    invalid("dtype.lanes is 4", |managed| managed.dl_tensor.dtype.lanes = 4);
    invalid("dtype.lanes is 0", |managed| managed.dl_tensor.dtype.lanes = 0);
    for code in [3, 18, 200, 255] {
        invalid(&format!("dtype.code is {code}"), |managed| managed.dl_tensor.dtype.code = code);
    }
    for bits in [0, 1, 12, 24, 80, 255] {
        invalid(&format!("dtype.bits is {bits}"), |managed| managed.dl_tensor.dtype.bits = bits);
    }
    refused("dtype.code 17 of 4 bits", ErrorKind::Unsupported, |managed| {
        managed.dl_tensor.dtype.code = 17;
        managed.dl_tensor.dtype.bits = 4;
    });
}

#[test]
fn every_element_type_of_whole_bytes_is_accepted() {
    let codes = [
        (0, 8),
        (0, 64),
        (1, 8),
        (1, 64),
        (2, 16),
        (2, 32),
        (2, 64),
        (4, 16),
        (5, 32),
        (5, 64),
        (5, 128),
        (6, 8),
    ];
    let fp8 = (7..=14).map(|code| (code, 8));
    let device = device();
    for dtype in DType::all().map(|dtype| (dtype.dlpack().0, dtype.dlpack().1)).chain(codes).chain(fp8) {
        let (managed, watch) = recipe().make();
        // SAFETY: our own structure.
        let tensor = unsafe { &mut (*managed).dl_tensor };
        (tensor.dtype.code, tensor.dtype.bits, tensor.strides) = (dtype.0, dtype.1, std::ptr::null_mut());
        tensor.ndim = 0;
        // SAFETY: the memory holds at least one element of any type.
        let tensor = unsafe { device.import_dlpack(managed) }.unwrap();
        assert_eq!(tensor.dtype().dlpack(), (dtype.0, dtype.1, 1));
        drop(tensor);
        assert_eq!(watch.deletions(), 1);
    }
}

#[test]
fn memory_of_another_device_is_rejected() {
    for (device_type, device_id) in
        [(DLDevice::CPU, 0), (DLDevice::EXT_DEV, 1), (DLDevice::EXT_DEV, -1), (-7, 0)]
    {
        invalid(
            &format!("device is (type, id) ({device_type}, {device_id}); null:0 is (12, 0)"),
            |managed| {
                managed.dl_tensor.device = DLDevice { device_type, device_id };
            },
        );
    }
    let (managed, _watch) = recipe().make();
    let embedded = super::producer::runtime().open("null:2").unwrap();
    // SAFETY: a valid tensor.
    let error = unsafe { embedded.import_dlpack(managed) }.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    give_back(managed);
}

#[test]
fn a_failed_import_leaves_the_tensor_to_the_caller() {
    let device = device_with(&Options::new().with("fail_call", "import_device_memory:1:out_of_resources"));
    let (managed, watch) = recipe().make();
    // SAFETY: a valid tensor.
    let error = unsafe { device.import_dlpack(managed) }.unwrap_err();
    assert_eq!((error.kind(), watch.deletions()), (ErrorKind::OutOfResources, 0));
    // SAFETY: still ours, and still valid.
    let tensor = unsafe { device.import_dlpack(managed) }.unwrap();
    assert_eq!(tensor.to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    drop(tensor);
    assert_eq!(watch.deletions(), 1);
}

#[test]
fn read_only_memory_is_frozen() {
    let device = device();
    let read_only = Recipe { flags: runtime_core::dlpack::FLAG_READ_ONLY, ..recipe() };
    let (managed, _watch) = read_only.make();
    // SAFETY: a valid tensor.
    let tensor = unsafe { device.import_dlpack(managed) }.unwrap();
    assert!(tensor.is_frozen() && tensor.slice(0, 1..2).unwrap().is_frozen());
    assert!(tensor.write(&[0f32; 6]).unwrap_err().message().contains("frozen"));
    let writable = tensor.to_device(&*device, &Placement::default()).unwrap();
    writable.write(&[0f32; 6]).unwrap();
    assert_eq!(tensor.to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
}
