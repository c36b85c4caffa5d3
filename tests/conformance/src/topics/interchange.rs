//! DLPack: tensors exported to other libraries, and imported from them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use runtime_core::dlpack::{DLManagedTensorVersioned, DLTensor, FLAG_READ_ONLY};
use runtime_core::{Arg, DType, ErrorKind, Placement, Tensor};

use crate::case::{Failure, Requirement, Verdict, cases};
use crate::context::Context;
use crate::expect::{expect_all, expect_equal, expect_error};
use crate::test_data::Random;
use crate::wait;

cases! {
    [Requirement::Queues] => an_export_says_what_it_is;
    [Requirement::HostVisible] => a_mapped_tensor_cannot_be_exported;
    [Requirement::ForeignMemory] => every_dtype_comes_back, views_come_back_as_they_are, zero_sizes_come_back,
        an_exported_tensor_outlives_the_original, a_deleter_runs_once, a_deleter_runs_once_on_another_thread,
        read_only_memory_is_frozen, an_unversioned_tensor_comes_in,
        a_structure_that_is_refused_stays_the_callers;
    [Requirement::ForeignMemory, Requirement::Kernel("spin")] => a_deleter_waits_for_the_last_work, an_export_waits_for_the_writer,
        foreign_memory_is_computed_on;
}

/// A tensor of another library on the memory of one of ours, with a deleter that counts.
#[repr(C)]
struct ForeignTensor {
    managed: DLManagedTensorVersioned,
    _ours: DlpackHandle,
    deletions: Arc<AtomicUsize>,
}

unsafe extern "C" fn delete(managed: *mut DLManagedTensorVersioned) {
    // SAFETY: the first field of a `ForeignTensor`; the deleter is called once.
    let foreign_tensor = unsafe { Box::from_raw(managed.cast::<ForeignTensor>()) };
    let deletions = foreign_tensor.deletions.clone();
    drop(foreign_tensor);
    deletions.fetch_add(1, Ordering::SeqCst);
}

/// An exported DLPack structure; dropped unless it is imported.
struct DlpackHandle(*mut DLManagedTensorVersioned);

impl DlpackHandle {
    fn structure(&self) -> &DLManagedTensorVersioned {
        // SAFETY: made by core or `foreign`, and not deleted yet.
        unsafe { &*self.0 }
    }

    /// Imports it: the new tensor takes ownership.
    fn import(self, context: &Context) -> Result<Tensor, Failure> {
        // SAFETY: memory of this device, with no other user.
        let tensor = unsafe { context.fixture().device().import_dlpack(self.0) }?;
        std::mem::forget(self);
        Ok(tensor)
    }
}

impl Drop for DlpackHandle {
    fn drop(&mut self) {
        if let Some(delete) = self.structure().deleter {
            // SAFETY: called once.
            unsafe { delete(self.0) };
        }
    }
}

/// Exports a tensor through core.
fn exported(tensor: &Tensor) -> Result<DlpackHandle, Failure> {
    match tensor.to_dlpack() {
        Ok(lent) => Ok(DlpackHandle(lent.into_raw())),
        Err(error) if error.kind() == ErrorKind::Unsupported => Err(Failure::Unsupported(error.to_string())),
        Err(error) => Err(error.into()),
    }
}

/// Exports a tensor as another library would, with a counter of deleter calls.
fn foreign(tensor: &Tensor, flags: u64) -> Result<(DlpackHandle, Arc<AtomicUsize>), Failure> {
    let ours = exported(tensor)?;
    let DLManagedTensorVersioned { version, dl_tensor, .. } = *ours.structure();
    let managed = DLManagedTensorVersioned {
        version,
        manager_ctx: std::ptr::null_mut(),
        deleter: Some(delete),
        flags,
        dl_tensor,
    };
    let deletions = Arc::<AtomicUsize>::default();
    let foreign_tensor = ForeignTensor { managed, _ours: ours, deletions: deletions.clone() };
    Ok((DlpackHandle(Box::into_raw(Box::new(foreign_tensor)).cast()), deletions))
}

/// Makes the device collect what it can free.
fn collect_garbage(context: &Context) -> Verdict {
    context.fixture().uninitialized::<u8>(1)?;
    Ok(())
}

/// Makes the device collect until a deleter has run, and expects exactly one call. It polls, because other cases use
/// the device too, and of two threads that collect at once one skips the work.
fn expect_one_deletion(context: &Context, deletions: &AtomicUsize) -> Verdict {
    wait::until("the deleter", || {
        context.fixture().uninitialized::<u8>(1)?;
        Ok(deletions.load(Ordering::SeqCst) > 0)
    })?;
    collect_garbage(context)?;
    assert_eq!(deletions.load(Ordering::SeqCst), 1, "once");
    Ok(())
}

fn an_export_says_what_it_is(context: &Context) -> Verdict {
    let fixture = context.fixture();
    let whole = fixture.device().tensor([3, 4], &Random::new(41).floats(12))?;
    let views = [whole.clone(), whole.permute(&[1, 0])?, whole.slice(1, 1..3)?, whole.view(&[4], &[-3], 11)?];
    let base = exported(&whole)?;
    let first = |tensor: &DLTensor| tensor.data.addr() + usize::try_from(tensor.byte_offset).unwrap_or(0);
    let start = first(&base.structure().dl_tensor);
    for view in views {
        let offered = exported(&view)?;
        let tensor = offered.structure().dl_tensor;
        let ndim = usize::try_from(tensor.ndim).unwrap_or(0);
        // SAFETY: DLPack guarantees `ndim` extents.
        let shape = unsafe { std::slice::from_raw_parts(tensor.shape, ndim) };
        // SAFETY: core always exports strides.
        let strides = unsafe { std::slice::from_raw_parts(tensor.strides, ndim) };
        let expected: Vec<_> = view.shape().iter().map(|&n| i64::try_from(n).unwrap_or(-1)).collect();
        expect_equal("shape", shape, &expected)?;
        expect_equal("strides", strides, view.strides())?;
        let (code, bits, lanes) = DType::F32.dlpack();
        assert_eq!((tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes), (code, bits, lanes));
        assert_eq!(first(&tensor) - start, view.byte_offset(), "the first element");
    }
    Ok(())
}

fn a_mapped_tensor_cannot_be_exported(context: &Context) -> Verdict {
    let tensor = context.fixture().host_visible_tensor(10, 1.0)?;
    drop(exported(&tensor)?);
    let view = tensor.map_mut()?;
    expect_error("mapped", tensor.to_dlpack(), ErrorKind::InvalidArgument, &["to_dlpack", "view"])?;
    drop(view);
    exported(&tensor).map(drop)
}

fn every_dtype_comes_back(context: &Context) -> Verdict {
    let mut random = Random::new(42);
    for dtype in DType::all() {
        let tensor = context.fixture().device().allocate(dtype, &[3, 7], &Placement::default())?;
        let data = random.bytes(21 * dtype.bytes());
        tensor.write_bytes(&data)?;
        let back = foreign(&tensor, 0)?.0.import(context)?;
        assert_eq!((back.dtype(), back.shape()), (dtype, &[3, 7][..]));
        let mut bytes = vec![0; data.len()];
        back.read_bytes(&mut bytes)?;
        expect_equal(&dtype.to_string(), &bytes, &data)?;
    }
    Ok(())
}

fn views_come_back_as_they_are(context: &Context) -> Verdict {
    let fixture = context.fixture();
    let whole = fixture.device().tensor([4, 5], &(0..20).collect::<Vec<i32>>())?;
    let views = [
        whole.permute(&[1, 0])?,
        whole.slice(0, 1..3)?.slice(1, 2..4)?,
        whole.view(&[5], &[-2], 19)?,
        whole.view(&[2, 3], &[0, 1], 4)?,
    ];
    for view in views {
        let back = foreign(&view, 0)?.0.import(context)?;
        assert_eq!((back.shape(), back.strides()), (view.shape(), view.strides()));
        expect_equal("elements", &back.to_vec::<i32>()?, &view.to_vec::<i32>()?)?;
    }
    let (reversed, _) = foreign(&whole.view(&[20], &[-1], 19)?, 0)?;
    reversed.import(context)?.write(&(0..20).collect::<Vec<i32>>())?;
    expect_equal("written backwards", &whole.to_vec::<i32>()?, &(0..20).rev().collect::<Vec<_>>())
}

fn zero_sizes_come_back(context: &Context) -> Verdict {
    for shape in [&[0][..], &[3, 0, 7]] {
        let tensor = context.fixture().device().empty::<f64>(shape)?;
        let (managed, deletions) = foreign(&tensor, 0)?;
        let back = managed.import(context)?;
        assert_eq!((back.shape(), back.to_vec::<f64>()?.len()), (shape, 0));
        drop((tensor, back));
        expect_one_deletion(context, &deletions)?;
    }
    let scalar = context.fixture().device().allocate(DType::F64, &[], &Placement::default())?;
    scalar.write(&[2.5f64])?;
    expect_equal("a scalar", &foreign(&scalar, 0)?.0.import(context)?.to_vec::<f64>()?, &[2.5])
}

fn an_exported_tensor_outlives_the_original(context: &Context) -> Verdict {
    let fixture = context.fixture();
    let tensor = fixture.full(4096, 3.0)?;
    let (managed, _) = foreign(&tensor, 0)?;
    drop(tensor);
    let others = (0..8).map(|_| fixture.full(4096, -1.0)).collect::<Result<Vec<_>, _>>()?;
    let back = managed.import(context)?;
    expect_all("still there", &back, 3.0)?;
    others.iter().try_for_each(|other| expect_all("another", other, -1.0))
}

fn a_deleter_runs_once(context: &Context) -> Verdict {
    let tensor = context.fixture().full(100, 1.0)?;
    let (managed, deletions) = foreign(&tensor, 0)?;
    let back = managed.import(context)?;
    let (clone, view) = (back.clone(), back.slice(0, 10..20)?);
    drop((back, clone));
    collect_garbage(context)?;
    assert_eq!(deletions.load(Ordering::SeqCst), 0, "a view still exists");
    expect_all("a view", &view, 1.0)?;
    drop(view);
    expect_one_deletion(context, &deletions)?;
    expect_all("ours", &tensor, 1.0)
}

fn a_deleter_runs_once_on_another_thread(context: &Context) -> Verdict {
    let tensor = context.fixture().full(100, 1.0)?;
    let (managed, deletions) = foreign(&tensor, 0)?;
    let back = managed.import(context)?;
    std::thread::scope(|scope| {
        for _ in 0..8 {
            let clone = back.clone();
            scope.spawn(move || drop(clone));
        }
        drop(back);
    });
    expect_one_deletion(context, &deletions)
}

fn read_only_memory_is_frozen(context: &Context) -> Verdict {
    let tensor = context.fixture().full(100, 1.0)?;
    let back = foreign(&tensor, FLAG_READ_ONLY)?.0.import(context)?;
    assert!(back.is_frozen());
    expect_error("written", back.write(&[0.0f32; 100]), ErrorKind::InvalidArgument, &["frozen"])?;
    expect_all("read", &back, 1.0)?;
    tensor.freeze()?;
    assert_eq!(
        exported(&tensor)?.structure().flags & FLAG_READ_ONLY,
        FLAG_READ_ONLY,
        "a frozen tensor is exported as read-only"
    );
    Ok(())
}

fn an_unversioned_tensor_comes_in(context: &Context) -> Verdict {
    let tensor = context.fixture().full(100, 5.0)?;
    let managed = match tensor.to_dlpack() {
        Err(error) if error.kind() == ErrorKind::Unsupported => {
            return Err(Failure::Unsupported(error.to_string()));
        }
        lent => lent?.into_raw_unversioned()?,
    };
    // SAFETY: core made it from memory of this device, with no other user.
    let back = unsafe { context.fixture().device().import_dlpack_unversioned(managed) };
    let back = match back {
        Ok(back) => back,
        Err(error) => {
            // SAFETY: a rejected structure stays valid.
            if let Some(delete) = unsafe { (*managed).deleter } {
                // SAFETY: called once.
                unsafe { delete(managed) };
            }
            return Err(error.into());
        }
    };
    drop(tensor);
    expect_all("unversioned", &back, 5.0)
}

type Change = fn(&mut DLManagedTensorVersioned);

fn a_structure_that_is_refused_stays_the_callers(context: &Context) -> Verdict {
    let tensor = context.fixture().full(100, 5.0)?;
    let changes: [(&str, Change); 5] = [
        ("ndim", |managed| managed.dl_tensor.ndim = -1),
        ("dtype", |managed| managed.dl_tensor.dtype.bits = 7),
        ("device", |managed| managed.dl_tensor.device.device_type = 99),
        ("version", |managed| managed.version.major = 99),
        ("data", |managed| managed.dl_tensor.data = std::ptr::null_mut()),
    ];
    for (what, change) in changes {
        let (offered, deletions) = foreign(&tensor, 0)?;
        // SAFETY: created above, and not shared.
        change(unsafe { &mut *offered.0 });
        // SAFETY: the structure is validated before it is used.
        let taken = unsafe { context.fixture().device().import_dlpack(offered.0) };
        let Err(error) = taken else { return Err(Failure::Failed(format!("a wrong {what} was accepted"))) };
        assert!(error.to_string().contains(what), "{error}");
        collect_garbage(context)?;
        assert_eq!(deletions.load(Ordering::SeqCst), 0, "{what}: the caller keeps ownership");
    }
    expect_all("ours", &tensor, 5.0)
}

fn a_deleter_waits_for_the_last_work(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let (tensor, out) = (fixture.full(100, 2.0)?, fixture.full(100, 0.0)?);
    let (managed, deletions) = foreign(&tensor, 0)?;
    let back = managed.import(context)?;
    fixture.launch(&queue, "spin", &[Arg::scalar(30_000i64)], 1)?;
    let copied = fixture.copy(&queue, &back, &out)?;
    drop(back);
    collect_garbage(context)?;
    let early = deletions.load(Ordering::SeqCst);
    let ended = copied.is_done()?;
    assert!(early == 0 || ended, "deleted while in use");
    wait::event(&copied)?;
    expect_one_deletion(context, &deletions)?;
    expect_all("copied", &out, 2.0)
}

fn an_export_waits_for_the_writer(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let tensor = fixture.full(100, 0.0)?;
    fixture.delay(&queue)?;
    let filled = fixture.fill(&queue, &tensor, 4.0)?;
    let managed = exported(&tensor)?;
    let ended = filled.is_done();
    let back = managed.import(context)?;
    assert!(ended?, "an exported tensor has been written");
    expect_all("exported", &back, 4.0)
}

fn foreign_memory_is_computed_on(context: &Context) -> Verdict {
    let (fixture, [first, second]) = (context.fixture(), context.fixture().queues()?);
    let tensor = fixture.full(1000, 1.0)?;
    let back = foreign(&tensor, 0)?.0.import(context)?;
    fixture.delay(&first)?;
    drop(fixture.scale(&first, &back, 2.0)?);
    // Ordered with the first queue, like native memory.
    drop(fixture.scale(&second, &back, 3.0)?);
    expect_all("through the import", &back, 6.0)?;
    drop(back);
    expect_all("the same memory", &tensor, 6.0)
}
