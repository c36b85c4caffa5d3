//! Compares the layout of every ABI structure with `golden_v1.txt`: within a major version, fields are only appended.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use runtime_core::abi::*;

/// The offset and size of a field.
type Field = (usize, usize);

/// One structure of the golden file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Layout {
    /// Whether it begins with its size, so that fields may be appended.
    grows: bool,
    bytes: usize,
    align: usize,
    fields: BTreeMap<String, Field>,
}

fn layout<T>(fields: &[(&str, usize, usize)]) -> Layout {
    let grows = fields.iter().any(|(name, ..)| matches!(*name, "struct_size" | "header"));
    let fields = fields.iter().map(|&(name, offset, bytes)| (name.to_owned(), (offset, bytes))).collect();
    // `Header` holds the size of the enclosing structure, and is itself frozen.
    Layout {
        grows: grows && size_of::<T>() != size_of::<Header>(),
        bytes: size_of::<T>(),
        align: align_of::<T>(),
        fields,
    }
}

fn field_bytes<S, F>(_: fn(&S) -> &F) -> usize {
    size_of::<F>()
}

macro_rules! layouts {
    ($($ty:ident { $($field:ident),* $(,)? })* ; unions $($union:ident { $($member:ident),* $(,)? })*) => {{
        // A field missing from the list is a compile error here.
        $(let _ = |value: &$ty| { let $ty { $($field: _),* } = value; };)*
        BTreeMap::from([
            $((stringify!($ty).to_owned(), layout::<$ty>(&[
                $((stringify!($field), std::mem::offset_of!($ty, $field), field_bytes(|s: &$ty| &s.$field)),)*
            ])),)*
            $((stringify!($union).to_owned(), layout::<$union>(&[
                $((stringify!($member), std::mem::offset_of!($union, $member), 0),)*
            ])),)*
        ])
    }};
}

#[expect(clippy::too_many_lines, reason = "a line per structure")]
fn current() -> BTreeMap<String, Layout> {
    layouts! {
        Header { magic, struct_size, major, minor }
        Str { ptr, len }
        Error { struct_size, kind, code, operation, message, symbol, release }
        Manifest { magic, struct_size, major, minor, name, target }
        Property { key, kind, reserved, value }
        OptionSpec { key, kind, scope, choices, default, doc }
        DType { code, bits, lanes }
        MemorySpace { name, total_bytes, alignment_bytes, flags }
        DeviceInfo {
            struct_size, kind, index, sub, name, arch, vendor, driver_version, unavailable_reason, uuid, pci_address, dlpack_type,
            compute_units, clock_hz, capabilities, max_groups, max_group_size, max_group_items, max_shared_bytes,
            max_allocation_bytes, spaces, space_count, formats, format_count, properties, property_count,
        }
        AllocateRequest { struct_size, space, bytes, alignment_bytes, flags, queue, ticket }
        Allocation { struct_size, reserved, buffer, kernel_address, host_pointer }
        MemoryUsage { struct_size, reserved, free_bytes, total_bytes }
        Telemetry {
            struct_size, valid, clock_hz, memory_clock_hz, temperature_millicelsius, power_milliwatts, energy_microjoules,
        }
        ModuleSource { struct_size, reserved, format, path, code, code_bytes, options, option_count }
        KernelInfo {
            struct_size, registers, spilled_bytes, shared_bytes, max_group_items, group_size, params, param_count,
            binary_version, virtual_version, preferred_multiple, private_bytes,
        }
        Occupancy { struct_size, groups, sub_groups, max_sub_groups }
        Param { kind, access, reserved, dtype }
        Arg { kind, access, dtype_code, dtype_bits, bytes, value }
        TensorArg { struct_size, ndim, buffer, address, byte_offset, span_bytes, dtype, shape, strides }
        RecordArg { struct_size, field_count, fields, data, data_bytes }
        Launch { struct_size, flags, groups, group_size, cluster, grain, range, args, arg_count }
        QueueOptions { struct_size, priority, flags }
        Progress { completed, first_failed }
        SubmitInfo { ticket, after }
        Copy2D {
            struct_size, reserved, destination, destination_offset, destination_pitch, source, source_offset, source_pitch,
            row_bytes, rows,
        }
        GraphNode {
            struct_size, kind, kernel, launch, destination, destination_offset, source, source_offset, bytes, pattern,
            pattern_bytes, dependency_count, dependencies,
        }
        TensorDescription { struct_size, ndim, dtype, access, shape, data, data_bytes, seed }
        RunReport {
            struct_size, exit_code, cycles, elapsed_ns, overhead, stack_bytes, code_bytes, constant_bytes, data_bytes,
            zeroed_bytes,
        }
        Counter { name, description, unit, unavailable_reason }
        CompiledCode { struct_size, reserved, format, code, code_bytes, log, options, option_count, kernels, kernel_count }
        CompiledKernel { name, info }
        CounterSetInfo { struct_size, passes, unavailable_reasons, reason_count }
        CounterReading { value, counted, flags, reserved }
        HostTable { header, log }
        BackendTable { header, name, version, instance, device, memory, module, queue, graph, embedded, counters, native }
        InstanceTable { struct_size, reserved, options, open, close, devices, open_device, architecture, compile_for, diagnose, process_variables }
        DeviceTable { struct_size, reserved, close, memory_usage, peer_access, telemetry, throttle_reasons, processes }
        MemoryTable { struct_size, reserved, allocate, free, import_host, import_device_memory }
        ModuleTable { struct_size, reserved, load, unload, symbols, kernel, release_kernel, kernel_info, occupancy, compiler_identity, compile, compiled_code, release_compiled, fits }
        QueueTable {
            struct_size, reserved, open, close, launch, try_begin_inline, run_inline, write, read, copy, fill, noop, timestamp,
            read_timestamp, signal, flush, poll, wait, wait_for, failure, copy_2d, wait_blocking,
            hold, resume,
        }
        GraphTable { struct_size, reserved, instantiate, update, replay, close }
        EmbeddedTable { struct_size, reserved, flash, run, read, inspect }
        CounterTable { struct_size, reserved, list, open, info, begin, end, read, close }
        NativeHandle { name, value }
        NativeTable { struct_size, reserved, device, buffer, submit, open_queue }
        ; unions
        Value { integer, number, text }
        ArgValue { tensor, scalar, data, local_bytes, record }
    }
}

/// One line for a structure and one for each field, in memory order.
fn print(layouts: &BTreeMap<String, Layout>) -> String {
    let mut text = String::new();
    for (name, layout) in layouts {
        let growth = if layout.grows { "grows" } else { "frozen" };
        writeln!(text, "{name} {growth} {} {}", layout.bytes, layout.align).unwrap();
        let mut fields: Vec<_> = layout.fields.iter().collect();
        fields.sort_by_key(|(_, place)| **place);
        for (field, (offset, bytes)) in fields {
            writeln!(text, "  {field} {offset} {bytes}").unwrap();
        }
    }
    text
}

fn parse(text: &str) -> BTreeMap<String, Layout> {
    let mut layouts = BTreeMap::new();
    let mut name = String::new();
    for line in text.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        let number = |i: usize| words[i].parse::<usize>().unwrap();
        if line.starts_with(' ') {
            let layout: &mut Layout = layouts.get_mut(&name).unwrap();
            layout.fields.insert(words[0].to_owned(), (number(1), number(2)));
        } else {
            name = words[0].to_owned();
            let layout = Layout {
                grows: words[1] == "grows",
                bytes: number(2),
                align: number(3),
                fields: BTreeMap::new(),
            };
            layouts.insert(name.clone(), layout);
        }
    }
    layouts
}

/// The changes that break compatibility with an older or newer other side.
fn breaks(golden: &BTreeMap<String, Layout>, current: &BTreeMap<String, Layout>) -> Vec<String> {
    let mut breaks = Vec::new();
    for (name, old) in golden {
        let Some(new) = current.get(name) else {
            breaks.push(format!("{name} is gone"));
            continue;
        };
        let may_grow = old.grows && new.bytes >= old.bytes;
        if new.align != old.align || new.grows != old.grows || (new.bytes != old.bytes && !may_grow) {
            breaks.push(format!("{name} changed its size, alignment or growth"));
        }
        let end = old.fields.values().map(|(offset, bytes)| offset + bytes).max().unwrap_or(0);
        for (field, place) in &new.fields {
            match old.fields.get(field) {
                Some(golden) if golden != place => {
                    breaks.push(format!("{name}.{field} moved from {golden:?} to {place:?}"));
                }
                None if !old.grows => breaks.push(format!("{name}.{field} is new in a frozen structure")),
                None if place.0 < end => breaks.push(format!("{name}.{field} is new and not at the end")),
                _ => {}
            }
        }
        let gone = old.fields.keys().filter(|field| !new.fields.contains_key(*field));
        breaks.extend(gone.map(|field| format!("{name}.{field} is gone")));
    }
    breaks
}

#[test]
fn fields_are_only_appended() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden_v1.txt");
    let current = current();
    let text = print(&current);
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    let breaks = breaks(&parse(&golden), &current);
    assert!(
        breaks.is_empty(),
        "this breaks every backend that is built already:\n  {}\nAppend fields instead, or raise `abi::MAJOR`. \
         (Before the first release: delete tests/abi/golden_v1.txt and run with RUNTIME_UPDATE_GOLDEN=1.)",
        breaks.join("\n  ")
    );
    if std::env::var_os("RUNTIME_UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).unwrap();
    } else {
        assert_eq!(
            golden, text,
            "fields were appended: raise `abi::MINOR`, then run with RUNTIME_UPDATE_GOLDEN=1 to record them"
        );
    }
}

#[test]
fn breaking_changes_are_distinguished_from_appended_fields() {
    let golden = parse("A grows 16 8\n  struct_size 0 4\n  a 8 8\nF frozen 8 8\n  f 0 8\n");
    assert_eq!(print(&golden), "A grows 16 8\n  struct_size 0 4\n  a 8 8\nF frozen 8 8\n  f 0 8\n");
    let check = |text: &str| breaks(&golden, &parse(text));
    let rest = "F frozen 8 8\n  f 0 8\n";
    let grown = format!(
        "A grows 24 8\n  struct_size 0 4\n  a 8 8\n  b 16 8\n{rest}New grows 8 8\n  struct_size 0 4\n"
    );
    assert_eq!(check(&grown), [""; 0]);
    for (text, reason) in [
        (format!("A grows 24 8\n  struct_size 0 4\n  b 8 8\n  a 16 8\n{rest}"), "A.a moved"),
        (
            format!("A grows 16 8\n  struct_size 0 4\n  b 4 4\n  a 8 8\n{rest}"),
            "A.b is new and not at the end",
        ),
        (format!("A grows 16 8\n  struct_size 0 4\n{rest}"), "A.a is gone"),
        (format!("A grows 16 4\n  struct_size 0 4\n  a 8 8\n{rest}"), "A changed"),
        (rest.to_owned(), "A is gone"),
        (
            "A grows 16 8\n  struct_size 0 4\n  a 8 8\nF frozen 16 8\n  f 0 8\n  g 8 8\n".to_owned(),
            "F.g is new in a frozen",
        ),
    ] {
        assert!(check(&text).iter().any(|line| line.contains(reason)), "{reason}: {:?}", check(&text));
    }
}
