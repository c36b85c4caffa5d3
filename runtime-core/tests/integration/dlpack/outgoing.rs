//! Exported tensors, as another library sees them.

use runtime_core::dlpack::{DLDataType, DLDevice, DLManagedTensorVersioned, FLAG_READ_ONLY};
use runtime_core::{Arg, DType, ErrorKind, Geometry, ModuleSource, Placement};

use super::producer::{device, give_back};

fn used_bytes(device: &dyn runtime_core::CommonRuntime) -> u64 {
    let usage = device.memory_usage("device").unwrap();
    usage.total_bytes - usage.free_bytes
}

#[test]
fn the_structure_describes_the_tensor() {
    let device = device();
    let tensor = device.tensor([2, 3], &[0u16, 1, 2, 3, 4, 5]).unwrap();
    let lent = tensor.permute(&[1, 0]).unwrap().slice(0, 1..3).unwrap().to_dlpack().unwrap();
    assert_eq!(lent.device(), DLDevice { device_type: DLDevice::EXT_DEV, device_id: 0 });
    let managed = lent.into_raw();
    let whole = tensor.to_dlpack().unwrap().into_raw();
    // SAFETY: just made.
    let view = unsafe { &*managed };
    // SAFETY: as above.
    let base = unsafe { (*whole).dl_tensor.data };
    assert_eq!((view.version.major, view.flags), (1, 0));
    let raw = &view.dl_tensor;
    assert_eq!((raw.ndim, raw.dtype), (2, DLDataType { code: 1, bits: 16, lanes: 1 }));
    // SAFETY: two extents.
    let shape = unsafe { std::slice::from_raw_parts(raw.shape, 2) };
    // SAFETY: two strides.
    let strides = unsafe { std::slice::from_raw_parts(raw.strides, 2) };
    assert_eq!((shape, strides), (&[2, 2][..], &[1, 3][..]));
    let first = raw.data.addr() - base.addr();
    assert_eq!((first, raw.byte_offset), (2, 0), "the first element is where `data` points to");
    give_back(managed);
    give_back(whole);
}

#[test]
fn the_memory_lives_until_the_deleter_is_called() {
    let device = device();
    let before = used_bytes(&*device);
    let tensor = device.tensor([100], &[7u8; 100]).unwrap();
    drop(tensor.to_dlpack().unwrap());
    let managed = tensor.to_dlpack().unwrap().into_raw().expose_provenance();
    drop(tensor);
    assert_eq!(used_bytes(&*device), before + 100);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let managed: *mut DLManagedTensorVersioned = std::ptr::with_exposed_provenance_mut(managed);
            // SAFETY: alive; one hundred bytes.
            let data = unsafe { (*managed).dl_tensor.data }.cast::<u8>();
            // SAFETY: as above.
            assert_eq!(unsafe { data.wrapping_add(99).read() }, 7);
            give_back(managed);
        });
    });
    assert_eq!(used_bytes(&*device), before);
}

#[test]
fn a_frozen_tensor_is_exported_read_only() {
    let device = device();
    let tensor = device.tensor([1], &[1f32]).unwrap();
    tensor.freeze().unwrap();
    let error = tensor.to_dlpack().unwrap().into_raw_unversioned().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    let managed = tensor.to_dlpack().unwrap().into_raw();
    // SAFETY: just made.
    assert_eq!(unsafe { (*managed).flags }, FLAG_READ_ONLY);
    // SAFETY: our own structure.
    let again = unsafe { device.import_dlpack(managed) }.unwrap();
    assert!(again.is_frozen());
}

#[test]
fn an_export_waits_for_work_in_flight() {
    let device = device();
    // SAFETY: the null device's builtins check their arguments.
    let module = device.load(&unsafe { ModuleSource::native("null", "spin\nfill_f32\nfail") }).unwrap();
    let kernel = |name| module.kernel(name).unwrap();
    let queue = device.queue().unwrap();
    let tensor = device.empty::<f32>([2]).unwrap();
    let plain = Geometry::single();
    queue.launch(&kernel("spin"), plain, &[Arg::scalar(10_000i64)]).unwrap();
    queue.launch(&kernel("fill_f32"), plain, &[Arg::write(&tensor), Arg::scalar(4f32)]).unwrap();
    let managed = tensor.to_dlpack().unwrap().into_raw_unversioned().unwrap();
    // SAFETY: two floats.
    let data = unsafe { (*managed).dl_tensor.data }.cast::<f32>();
    // SAFETY: as above.
    assert_eq!(unsafe { data.read() }.to_bits(), 4f32.to_bits());
    // SAFETY: just made.
    let deleter = unsafe { (*managed).deleter }.unwrap();
    // SAFETY: called once.
    unsafe { deleter(managed) };
    queue.launch(&kernel("fail"), plain, &[Arg::write(&tensor)]).unwrap();
    assert_eq!(tensor.to_dlpack().unwrap_err().kind(), ErrorKind::Failed);
}

#[test]
fn a_mapped_tensor_is_not_exported() {
    let device = device();
    let tensor = device.allocate(DType::F32, &[2], &Placement::space("pinned")).unwrap();
    let view = tensor.map().unwrap();
    assert!(tensor.to_dlpack().unwrap_err().to_string().starts_with("to_dlpack: the tensor is mapped"));
    drop(view);
    assert!(tensor.to_dlpack().is_ok());
}

#[test]
fn a_described_tensor_is_not_exported() {
    let embedded = super::producer::runtime().open("null:2").unwrap();
    let tensor = embedded.allocate(DType::F32, &[2], &Placement::default()).unwrap();
    assert_eq!(tensor.to_dlpack().unwrap_err().kind(), ErrorKind::Unsupported);
}
