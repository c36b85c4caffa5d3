//! Images and programs that are refused before anything runs.

use runtime_core::{Arg, DType, Error, ErrorKind, ModuleSource};

use crate::{BOARDS, Board, Case, DEADLINE, Link, c};

pub(crate) const CASES: &[Case] = &[
    ("images_that_do_not_fit_are_refused", images_that_do_not_fit_are_refused),
    ("images_that_reach_the_breakpoint_are_refused", images_that_reach_the_breakpoint_are_refused),
    ("tensors_that_do_not_fit_are_refused", tensors_that_do_not_fit_are_refused),
    ("code_must_have_one_entry", code_must_have_one_entry),
    ("arguments_must_fit_the_prototype", arguments_must_fit_the_prototype),
    ("foreign_images_are_refused", foreign_images_are_refused),
    ("a_prebuilt_image_is_flashed", a_prebuilt_image_is_flashed),
    ("a_section_table_that_lies_is_harmless", a_section_table_that_lies_is_harmless),
];

fn expect(error: &Error, kind: ErrorKind, words: &[&str]) {
    let message = error.to_string();
    assert!(
        error.kind() == kind && words.iter().all(|word| message.contains(word)),
        "{kind:?} {words:?}: {:?} {message}",
        error.kind()
    );
}

fn images_that_do_not_fit_are_refused(board: &Board) {
    let constants = "const char table[5 << 20] = {1};\nint f(int i) { return table[i]; }";
    let error = board.flash(constants, &[Arg::scalar(1i32)]).unwrap_err();
    expect(&error, ErrorKind::OutOfResources, &[board.name, "FLASH", "4194304 bytes of flash"]);
    let variables = "char table[5 << 20];\nint f(int i) { return table[i]++; }";
    let error = board.flash(variables, &[Arg::scalar(1i32)]).unwrap_err();
    expect(&error, ErrorKind::OutOfResources, &["RAM"]);
}

/// It is in the last page of the flash of an emulator, where the image would still have room.
fn images_that_reach_the_breakpoint_are_refused(board: &Board) {
    let code =
        |bytes: u64| format!("const char table[{bytes}] = {{1}};\nint f(int i) {{ return table[i] - 1; }}");
    let flash = |bytes| board.flash(&code(bytes), &[Arg::scalar(0i32)]);
    flash(1).unwrap();
    let sizes = board.embedded().run(DEADLINE).unwrap().image.unwrap();
    let room = (4 << 20) - sizes.code_bytes - sizes.constant_bytes - sizes.data_bytes;
    flash(room - (5 << 10)).unwrap();
    let error = flash(room - (3 << 10)).unwrap_err();
    expect(&error, ErrorKind::OutOfResources, &[board.name, ".park", "4194304 bytes of flash"]);
}

fn tensors_that_do_not_fit_are_refused(board: &Board) {
    let x = board.embedded().tensor_from_seed(DType::F64, &[1 << 20], 1).unwrap();
    let error = board.flash("void f(double *x) {}", &[Arg::read(&x)]).unwrap_err();
    expect(&error, ErrorKind::OutOfMemory, &["8388", "bytes of RAM"]);
}

fn code_must_have_one_entry(board: &Board) {
    let two = "void f(void) {}\nint g(void) { return 9; }";
    expect(&board.flash(two, &[]).unwrap_err(), ErrorKind::InvalidArgument, &["f, g", "entry"]);
    board.embedded().flash(&c(two).option("entry", "f"), &[]).unwrap();
    board.embedded().run(DEADLINE).unwrap();
    let error = board.embedded().flash(&c(two).option("entry", "f(); g"), &[]).unwrap_err();
    expect(&error, ErrorKind::InvalidArgument, &["entry"]);
    expect(&board.flash("int x;", &[]).unwrap_err(), ErrorKind::InvalidArgument, &["no function"]);
}

fn arguments_must_fit_the_prototype(board: &Board) {
    let error = board.flash("void f(int a, int b) {}", &[Arg::scalar(1i32)]).unwrap_err();
    expect(&error, ErrorKind::CompileFailed, &["too few arguments"]);
    let error = board.flash("this is not C", &[]).unwrap_err();
    expect(&error, ErrorKind::CompileFailed, &["kernel.c:1", "error"]);
}

/// Builds an image with the firmware and a kernel, as `docs/embedded.md` describes.
pub(crate) fn prebuilt(board: &str, entry: &str, link: Link) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let firmware = concat!(env!("CARGO_MANIFEST_DIR"), "/firmware");
    std::fs::write(folder.path().join("entry.c"), entry).unwrap();
    let (prefix, flags, sources, uart, origins): (_, &[&str], &[&str], &[&str], _) = match board {
        "riscv64-virt" => (
            "riscv64-unknown-elf-",
            &["-march=rv64imafdc", "-mabi=lp64d", "-mcmodel=medany"],
            &["riscv.c", "riscv.S"],
            &["uart_ns16550.c", "-DRUNTIME_UART_BASE=0x10000000u"],
            (0x8000_0000u64, 0x8040_0000u64),
        ),
        "riscv32-virt" => (
            "riscv64-unknown-elf-",
            &["-march=rv32imafdc", "-mabi=ilp32d", "-mcmodel=medany"],
            &["riscv.c", "riscv.S"],
            &["uart_ns16550.c", "-DRUNTIME_UART_BASE=0x10000000u"],
            (0x8000_0000, 0x8040_0000),
        ),
        _ => (
            "arm-none-eabi-",
            &["-mcpu=cortex-m3", "-mthumb", "-DRUNTIME_TIMER_BASE=0x40000000u"],
            &["cortex_m.c"],
            &["uart_cmsdk.c", "-DRUNTIME_UART_BASE=0x40004000u"],
            (0, 0x2000_0000),
        ),
    };
    let memory = format!(
        "MEMORY {{ FLASH : ORIGIN = {}, LENGTH = 4M\n RAM : ORIGIN = {}, LENGTH = 4M }}\nSTACK_BYTES = 8192;",
        origins.0, origins.1
    );
    std::fs::write(folder.path().join("memory.ld"), memory).unwrap();
    let mut command = std::process::Command::new(format!("{prefix}gcc"));
    command.current_dir(folder.path()).args(flags).args(["--specs=picolibc.specs", "-Os", "-nostartfiles"]);
    command.args(["-I", firmware, "-L", ".", "-T"]).arg(format!("{firmware}/link.ld"));
    command.args(["entry.c", "-Wl,--gc-sections", "-Wl,--no-warn-rwx-segments", "-o", "image.elf"]);
    command.args(["main.c", "data.c"].iter().chain(sources).map(|name| format!("{firmware}/{name}")));
    if link == Link::Uart {
        command.args(["frame.c", "serve.c", uart[0]].map(|name| format!("{firmware}/{name}")));
        command.args(["-DRUNTIME_UART", uart[1]]);
    }
    test_process::finish(&mut command, DEADLINE).unwrap().success().unwrap();
    let size = std::process::Command::new(format!("{prefix}size"))
        .arg(folder.path().join("image.elf"))
        .output()
        .unwrap();
    let size = String::from_utf8(size.stdout).unwrap();
    let code: u64 = size.lines().nth(1).unwrap().split_whitespace().next().unwrap().parse().unwrap();
    assert!(code < 8 << 10, "the firmware has {code} bytes of code");
    std::fs::read(folder.path().join("image.elf")).unwrap()
}

pub(crate) fn elf(image: Vec<u8>) -> ModuleSource {
    // SAFETY: the image runs on the target.
    unsafe { ModuleSource::native("elf", image) }
}

pub(crate) const ENTRY: &str = "#include \"protocol.h\"
    int runtime_entry(const volatile uint64_t *args) { *(int *)(uintptr_t)args[0] += (int)args[1]; return 0; }";

pub(crate) fn a_prebuilt_image_is_flashed(board: &Board) {
    let device = board.embedded();
    let array = runtime_core::HostArray::from_slice(&[1], &[40i32]).unwrap();
    let x = device.tensor_from_array(array).unwrap();
    let image = elf(prebuilt(board.name, ENTRY, board.link));
    device.flash(&image, &[Arg::read_write(&x), Arg::scalar(2i32)]).unwrap();
    device.run(DEADLINE).unwrap();
    assert_eq!(device.read(0).unwrap().as_slice::<i32>().unwrap(), [42]);
}

/// Only segments are loaded. Of the class with sizes of 64 bits, whose sums overflow.
fn a_section_table_that_lies_is_harmless(board: &Board) {
    if board.name != "riscv64-virt" {
        return;
    }
    let mut image = prebuilt(board.name, ENTRY, board.link);
    let number = |image: &[u8], at: usize, bytes: usize| {
        image[at..at + bytes].iter().rev().fold(0usize, |sum, byte| sum << 8 | usize::from(*byte))
    };
    let (table, sections) = (number(&image, 40, 8), number(&image, 60, 2));
    for section in (0..sections).map(|index| table + 64 * index) {
        let is_loaded = number(&image, section + 8, 8) & 2 != 0;
        if is_loaded {
            image[section + 32..section + 40].fill(0xff);
        }
    }
    let x = board.embedded().tensor_from_seed(DType::I32, &[1], 1).unwrap();
    board.embedded().flash(&elf(image), &[Arg::read_write(&x), Arg::scalar(2i32)]).unwrap();
    assert_eq!(board.embedded().run(DEADLINE).unwrap().image.unwrap().code_bytes, u64::MAX);
}

/// An ELF image whose first segment with contents replaces the next one.
fn with_a_segment_twice(mut image: Vec<u8>) -> Vec<u8> {
    let is_64 = image[4] == 2;
    let (table, bytes, file_bytes) = if is_64 { (32, 56, 32) } else { (28, 32, 16) };
    let half = |image: &[u8], at: usize| u32::from_le_bytes(image[at..at + 4].try_into().unwrap()) as usize;
    let first = half(&image, table);
    let is_loaded = |at: &usize| half(&image, *at) == 1 && half(&image, at + file_bytes) > 0;
    let from = (first..).step_by(bytes).find(is_loaded).unwrap();
    image.copy_within(from..from + bytes, from + bytes);
    image
}

fn foreign_images_are_refused(board: &Board) {
    let refused = |image: Vec<u8>, words: &[&str]| {
        let error = board.embedded().flash(&elf(image), &[]).unwrap_err();
        expect(&error, ErrorKind::InvalidArgument, words);
    };
    refused(b"no ELF file".to_vec(), &[board.name]);
    let other = BOARDS.into_iter().find(|other| other.split('-').next() != board.name.split('-').next());
    refused(prebuilt(other.unwrap(), ENTRY, board.link), &["ELF machine"]);
    let mut image = prebuilt(board.name, ENTRY, board.link);
    let cut = image[..image.len() / 3].to_vec();
    refused(cut, &[]);
    // The entry point of either class, 32 or 64 bits.
    let mut lost = image.clone();
    lost[24..28].copy_from_slice(&0x7000_0000u32.to_le_bytes());
    refused(lost, &["0x70000000", "neither in flash nor in RAM"]);
    refused(with_a_segment_twice(image.clone()), &["segments", "overlap"]);
    let name = image.windows(12).position(|bytes| bytes == b"runtime_park").unwrap();
    image[name] = b'R';
    refused(image, &["runtime_park", "docs/embedded.md"]);
}
