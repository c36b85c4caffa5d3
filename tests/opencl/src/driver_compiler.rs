//! Compiles code through the driver directly, without the backend.

#![allow(unsafe_code, reason = "calls the driver")]

use std::ptr;

use cl3::context::{create_context, release_context};
use cl3::device::{CL_DEVICE_NAME, CL_DEVICE_TYPE_ALL, get_device_ids, get_device_info};
use cl3::platform::get_platform_ids;
use cl3::program::{
    CL_PROGRAM_BINARIES, build_program, create_program_with_source, get_program_info, release_program,
};
use cl3::types::cl_device_id;

/// Compiles `code` for every device of this process; the names and the binaries.
#[must_use]
pub fn compile_on_all_devices(code: &str) -> Vec<(String, Vec<u8>)> {
    let platforms = get_platform_ids().expect("a driver");
    let devices = platforms
        .into_iter()
        .flat_map(|platform| get_device_ids(platform, CL_DEVICE_TYPE_ALL).expect("devices"));
    devices.map(|device| (name(device), compile(device, code))).collect()
}

fn name(device: cl_device_id) -> String {
    get_device_info(device, CL_DEVICE_NAME).expect("a device name").into()
}

fn compile(device: cl_device_id, code: &str) -> Vec<u8> {
    let context = create_context(&[device], ptr::null(), None, ptr::null_mut()).expect("a context");
    let program = create_program_with_source(context, &[code]).expect("a program");
    build_program(program, &[device], c"", None, ptr::null_mut()).expect("a build");
    let binaries = get_program_info(program, CL_PROGRAM_BINARIES).expect("the binary");
    let mut binaries = binaries.to_vec_vec_uchar();
    // SAFETY: created above, and no longer used.
    unsafe { release_program(program) }.expect("release");
    // SAFETY: as above.
    unsafe { release_context(context) }.expect("release");
    binaries.remove(0)
}
