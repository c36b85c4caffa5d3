//! The present backends with an older core, which has shorter structures and a host table without a log function.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(unsafe_code, reason = "calls tables of functions as an older core would")]

mod guarded_struct;
mod raw_device;

use std::sync::OnceLock;

use runtime_core::abi::{self, BackendTable, EntryPoint};
use runtime_core::backend::convert;
use runtime_core::end_of;

use self::guarded_struct::{GuardedStruct, check_every_size};
use self::raw_device::RawDevice;

/// The backend in C, built and loaded once for all tests; never unloaded.
fn c_backend() -> &'static BackendTable {
    static TABLE: OnceLock<&'static BackendTable> = OnceLock::new();
    TABLE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = runtime_c_backend_tests::build_as_it_is(folder.path()).unwrap();
        // SAFETY: built just now; loading it runs no code.
        let library = Box::leak(Box::new(unsafe { libloading::Library::new(path) }.unwrap()));
        // SAFETY: the header declares the entry point with this type.
        let entry = unsafe { library.get::<EntryPoint>(abi::ENTRY_SYMBOL) }.unwrap();
        let mut table = std::ptr::null();
        // SAFETY: the output is writable.
        let status = unsafe { entry(&raw mut table) };
        // SAFETY: returned by the entry point, converted once.
        unsafe { convert::from_status(status) }.unwrap();
        // SAFETY: a static table of a library that stays loaded.
        unsafe { &*table }
    })
}

/// Backends of both kinds: shims of Rust traits, and C.
fn backends() -> [&'static BackendTable; 2] {
    [runtime_null::backend().table(), c_backend()]
}

#[test]
fn every_table_states_its_own_size() {
    for table in [runtime_null::backend().table(), runtime_host::backend().table(), c_backend()] {
        // Tables consist of whole words and have no padding at the end.
        assert_eq!(table.header.struct_size as usize, size_of::<BackendTable>());
        assert_eq!((table.header.magic, table.header.major), (abi::MAGIC, abi::MAJOR));
        macro_rules! check {
            ($($field:ident: $ty:ident),*) => {$(
                if !table.$field.is_null() {
                    // SAFETY: a table of the backend, which begins with its size.
                    let size = unsafe { (*table.$field).struct_size };
                    assert_eq!(size as usize, size_of::<abi::$ty>(), stringify!($ty));
                }
            )*};
        }
        check! {
            instance: InstanceTable, device: DeviceTable, memory: MemoryTable, module: ModuleTable, queue: QueueTable,
            graph: GraphTable, embedded: EmbeddedTable, counters: CounterTable, native: NativeTable
        }
    }
}

#[test]
fn a_host_without_a_log_function_is_accepted() {
    for table in backends() {
        drop(RawDevice::with_host_of(table, 0, end_of!(abi::HostTable, header)));
    }
}

#[test]
fn memory_usage_is_written_as_far_as_there_is_room() {
    for table in backends() {
        let opened = RawDevice::new(table, 0);
        check_every_size::<abi::MemoryUsage>(4, |out| opened.memory_usage(out));
    }
}

#[test]
fn telemetry_is_written_as_far_as_there_is_room() {
    let opened = RawDevice::new(runtime_null::backend().table(), 0);
    check_every_size::<abi::Telemetry>(4, |out| opened.telemetry(out));
}

#[test]
fn kernel_information_is_written_as_far_as_there_is_room() {
    for table in backends() {
        let opened = RawDevice::new(table, 0);
        opened.with_kernel("scale_f32", |kernel| {
            check_every_size::<abi::KernelInfo>(4, |out| opened.kernel_info(kernel, out));
        });
    }
}

#[test]
fn an_occupancy_is_written_as_far_as_there_is_room() {
    let opened = RawDevice::new(runtime_null::backend().table(), 0);
    opened.with_kernel("noop", |kernel| {
        check_every_size::<abi::Occupancy>(4, |out| opened.occupancy(kernel, out));
    });
}

#[test]
fn an_allocation_is_written_as_far_as_there_is_room() {
    for table in backends() {
        let opened = RawDevice::new(table, 0);
        let buffer_end = end_of!(abi::Allocation, buffer) as usize;
        for bytes in buffer_end..=size_of::<abi::Allocation>() {
            let mut given = GuardedStruct::<abi::Allocation>::new(bytes);
            opened.allocate(&request(), given.as_mut_ptr()).unwrap();
            given.check_guards();
            opened.free(given.handle(std::mem::offset_of!(abi::Allocation, buffer)));
        }
    }
}

#[test]
fn a_counter_set_is_described_as_far_as_there_is_room() {
    let opened = RawDevice::new(runtime_null::backend().table(), 0);
    opened.with_counter_set("launches", |set| {
        check_every_size::<abi::CounterSetInfo>(4, |out| opened.counter_info(set, out));
    });
}

#[test]
fn a_run_is_reported_as_far_as_there_is_room() {
    let opened = RawDevice::new(runtime_null::backend().table(), 2);
    opened.flash("noop");
    for bytes in 4..=size_of::<abi::RunReport>() {
        let mut given = GuardedStruct::<abi::RunReport>::new(bytes);
        opened.run(given.as_mut_ptr()).unwrap();
        given.check_guards();
    }
}

fn request() -> abi::AllocateRequest {
    abi::AllocateRequest {
        struct_size: end_of!(abi::AllocateRequest, ticket),
        space: 0,
        bytes: 64,
        alignment_bytes: 0,
        flags: 0,
        queue: std::ptr::null_mut(),
        ticket: 0,
    }
}

#[test]
fn fields_that_an_older_core_lacks_are_zero() {
    for table in backends() {
        let opened = RawDevice::new(table, 0);
        // Beyond the stated end are values that must be ignored: an odd alignment, unknown flags, an invalid queue.
        let older = abi::AllocateRequest {
            struct_size: end_of!(abi::AllocateRequest, bytes),
            alignment_bytes: 768,
            flags: u64::MAX,
            queue: std::ptr::dangling_mut::<u64>().cast(),
            ticket: 9,
            ..request()
        };
        let mut given = GuardedStruct::<abi::Allocation>::new(size_of::<abi::Allocation>());
        opened.allocate(&older, given.as_mut_ptr()).unwrap();
        opened.free(given.handle(std::mem::offset_of!(abi::Allocation, buffer)));
        let refused = opened
            .allocate(&abi::AllocateRequest { alignment_bytes: 768, ..request() }, given.as_mut_ptr())
            .unwrap_err();
        assert!(
            refused.to_string().contains("power of two"),
            "the same fields are read when they are within the stated size"
        );
    }
}

#[test]
fn fills_are_checked_before_the_backend_sees_them() {
    let opened = RawDevice::new(runtime_null::backend().table(), 0);
    let mut given = GuardedStruct::<abi::Allocation>::new(size_of::<abi::Allocation>());
    opened.allocate(&request(), given.as_mut_ptr()).unwrap();
    let buffer = given.handle(std::mem::offset_of!(abi::Allocation, buffer));
    for (bytes, unit) in [(64, 0), (63, 3), (6, 4), (64, 17)] {
        for refused in opened.fill(buffer, bytes, &vec![1; unit]) {
            assert!(refused.unwrap_err().to_string().contains("pattern"), "{bytes} {unit}");
        }
    }
    let [filled, recorded] = opened.fill(buffer, 64, &[1; 16]);
    filled.unwrap();
    assert!(!recorded.is_err_and(|error| error.to_string().contains("pattern")));
    opened.free(buffer);
}

#[test]
fn shorter_queue_options_and_sources_are_accepted() {
    for table in backends() {
        let opened = RawDevice::new(table, 0);
        opened.with_kernel("noop", |kernel| opened.launch(kernel));
    }
}
