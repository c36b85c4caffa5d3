//! Device lists of fake machines.

use runtime_core::{ErrorKind, Options};

use super::*;
use crate::environment::Environment;
use crate::fixture::FakeRoot;

/// Devices as Kalray's OpenCL would offer them, with five clusters each.
fn offered(count: u32) -> Vec<DeviceInfo> {
    let device = |index, sub| {
        let mut info = DeviceInfo::new(DeviceKind::Accelerator, index, CHIP);
        info.id.sub = sub;
        info
    };
    (0..count).flat_map(|index| (0..6u32).map(move |sub| device(index, sub.checked_sub(1)))).collect()
}

fn list_with(
    environment: &Environment,
    opencl: Option<Vec<DeviceInfo>>,
    pocl: Option<Result<Vec<DeviceInfo>>>,
) -> Result<Vec<ListedDevice>> {
    let config = MppaConfig::resolve(environment, &Options::new())?;
    let tools = Tools::new(config.sdk.as_deref(), environment);
    let opencl = opencl.map_or_else(|| library(&config).map(|_| Vec::new()), Ok);
    Machine { config: &config, environment, tools: &tools, opencl, pocl, log: Log::silent() }.list()
}

fn list(
    root: &FakeRoot,
    more: &[(&str, &str)],
    opencl: Option<Vec<DeviceInfo>>,
) -> Result<Vec<ListedDevice>> {
    list_with(&root.environment(more), opencl, None)
}

fn reason(device: &ListedDevice) -> &str {
    device.info.unavailable_reason.as_deref().unwrap_or_default()
}

fn routes(devices: &[ListedDevice]) -> Vec<Route> {
    devices.iter().map(|device| device.route).collect()
}

#[test]
fn an_empty_machine_gives_every_reason_and_remedy() {
    let error = list(&FakeRoot::new(), &[], None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    for words in ["no board", "no SDK: KALRAY_TOOLCHAIN_DIR is not set", "no simulator", "qemu-system-kvx"] {
        assert!(error.message().contains(words), "{error}");
    }
}

#[test]
fn the_board_tool_is_asked_when_the_driver_shows_none() {
    let root = FakeRoot::new();
    root.driver().tool("bin/kvx-board-diag", "echo No Available board");
    let error = list(&root, &[], None).unwrap_err();
    assert!(error.message().contains("driver 5.0.0 is loaded, but lists none"), "{error}");
    assert!(error.message().contains("kvx-board-diag finds no board either"), "{error}");
}

#[test]
fn one_board_has_its_facts_and_five_clusters() {
    let root = FakeRoot::new();
    root.driver().board(0, 1);
    let devices = list(&root, &[], Some(offered(1))).unwrap();
    assert_eq!(routes(&devices), [Route::OpenCl(0)]);
    let infos: Vec<_> = devices[0].infos(7).collect();
    assert_eq!(infos.len(), 6);
    for (position, info) in (0u32..).zip(&infos) {
        assert_eq!((info.id.index, info.id.sub), (7, position.checked_sub(1)));
        assert_eq!((info.clock_hz, info.arch.as_deref()), (Some(1_000_000_000), Some("kv3-2")));
        assert_eq!(info.properties.text("board_serial"), Some("S0"));
        assert_eq!(info.properties.integer("chip"), Some(0));
        assert_eq!(info.unavailable_reason, None);
    }
}

#[test]
fn two_boards_of_four_chips_are_eight_devices_in_order() {
    let root = FakeRoot::new();
    root.driver().board(0, 4).board(1, 4);
    let devices = list(&root, &[], Some(offered(8))).unwrap();
    assert_eq!(routes(&devices), (0..8).map(Route::OpenCl).collect::<Vec<_>>());
    let places = devices.iter().map(|device| {
        let number = |key| device.info.properties.integer(key).unwrap();
        number("board") * 4 + number("chip")
    });
    assert!(places.eq(0..8));
}

#[test]
fn each_obstacle_has_its_own_reason() {
    let root = FakeRoot::new();
    root.driver().board(0, 2);
    let no_sdk = list(&root, &[], None).unwrap();
    assert!(
        no_sdk.iter().all(|device| reason(device).starts_with("no SDK") && device.route == Route::Nowhere)
    );
    let sdk = root.path().join("sdk");
    let sdk = [("KALRAY_TOOLCHAIN_DIR", sdk.to_str().unwrap())];
    assert!(reason(&list(&root, &sdk, None).unwrap()[0]).contains("sdk/lib/libOpenCL.so does not exist"));
    let no_firmware = list(&root, &sdk, Some(offered(1))).unwrap();
    assert_eq!(reason(&no_firmware[0]), "", "what the library offers can be opened");
    let words = reason(&no_firmware[1]);
    assert!(words.starts_with("no firmware") && words.contains("opencl/kv3-2/ocl_fw_l1.elf"), "{words}");
    root.write("lib/firmware/kalray/opencl/kv3-2/ocl_fw_l1.elf", "");
    let in_use = list(&root, &sdk, Some(offered(1))).unwrap();
    assert!(reason(&in_use[1]).contains("offers 1 devices"), "{}", reason(&in_use[1]));
    let wrong = list(&root, &[("RUNTIME_MPPA_ARCH", "kv3-1")], Some(offered(2))).unwrap();
    let words = reason(&wrong[0]);
    assert!(words.starts_with("wrong architecture") && words.contains("RUNTIME_MPPA_ARCH=kv3-2"), "{words}");
    assert_eq!(wrong[0].route, Route::Nowhere);
}

#[test]
fn unreadable_and_foreign_boards_are_listed_with_the_reason() {
    let root = FakeRoot::new();
    root.driver().write("mppa/board3", "no folder").write("mppa/board4/archver", "kv4-1").board(5, 1);
    root.write("mppa/board5/archver", "kv4-1");
    let devices = list(&root, &[], Some(offered(1))).unwrap();
    let reasons: Vec<_> = devices.iter().map(reason).collect();
    assert!(reasons[0].contains("board 5 is kv4-1"), "{reasons:?}");
    assert!(reasons[1].contains("cannot be read"), "{reasons:?}");
    assert!(reasons[2].contains("board 4 has no MPPA"), "{reasons:?}");
}

#[test]
fn a_library_without_a_tree_still_offers_its_devices() {
    let devices = list(&FakeRoot::new(), &[], Some(offered(1))).unwrap();
    assert_eq!(routes(&devices), [Route::OpenCl(0)]);
}

#[test]
fn simulators_are_listed_when_their_tools_are_found_and_the_platform_comes_first() {
    let root = FakeRoot::new();
    root.tool("bin/kvx-cluster", "");
    root.tool("bin/kvx-jtag-runner", "");
    let names = |devices: &[ListedDevice]| -> Vec<String> {
        devices.iter().map(|device| device.info.name.clone()).collect()
    };
    assert_eq!(names(&list(&root, &[], None).unwrap()), ["ISS"], "without a board there is no JTAG");
    root.tool("bin/qemu-system-kvx", "");
    root.driver().board(0, 1);
    assert_eq!(names(&list(&root, &[], None).unwrap()), [CHIP, "JTAG", "ISS", "QEMU"]);
    let qemu = list(&root, &[("PLATFORM", "qemu")], None).unwrap();
    assert_eq!(names(&qemu), ["QEMU", CHIP, "JTAG", "ISS"]);
    let traced = list(&root, &[("BENCHMARK", "1")], None).unwrap();
    assert!(reason(&traced[2]).contains("no traces") && reason(&traced[1]).is_empty());
}

#[test]
fn simulators_behind_the_offload_library_are_listed_with_the_variables_that_they_need() {
    let root = FakeRoot::new();
    root.driver().board(0, 1).write("lib/firmware/kalray/opencl/kv3-2/ocl_fw_l1.elf", "");
    root.write("sdk/include/mppa_offload_host.h", "").tool("sdk/bin/kvx-qemu-offload-bridge", "");
    let sdk = root.path().join("sdk");
    let sdk = ("KALRAY_TOOLCHAIN_DIR", sdk.to_str().unwrap());
    let offload = |variables: &[(&str, &str)]| -> Vec<(String, String)> {
        let listed = list(&root, variables, None).unwrap();
        let named = listed.iter().filter(|device| device.info.name.starts_with("Offload"));
        named.map(|device| (device.info.name.clone(), reason(device).to_owned())).collect()
    };
    let boards = offload(&[sdk]);
    assert_eq!((boards[0].0.as_str(), boards[0].1.as_str(), boards.len()), ("Offload", "", 2));
    assert!(boards[1].0 == "Offload-QEMU" && boards[1].1.contains("MPPA_RPROC_SIM_PATH="), "{boards:?}");
    let simulated = offload(&[
        sdk,
        ("MPPA_RPROC_PLATFORM_MODE", "sim"),
        ("MPPA_RPROC_SIM_PATH", "/s"),
        ("PLATFORM", "qemu"),
    ]);
    assert_eq!(simulated[0], ("Offload-QEMU".to_owned(), String::new()));
    assert!(simulated[1].0 == "Offload" && simulated[1].1.contains("unset it"), "{simulated:?}");
}

#[test]
fn the_stand_in_is_named_so_and_comes_last() {
    let root = FakeRoot::new();
    root.tool("bin/kvx-cluster", "");
    let mut pocl = offered(1);
    pocl.iter_mut().for_each(|info| info.name = "pthread-AMD".to_owned());
    let devices = list_with(&root.environment(&[]), None, Some(Ok(pocl))).unwrap();
    assert_eq!(routes(&devices), [Route::Program(Platform::Iss), Route::StandIn(0)]);
    let infos: Vec<_> = devices[1].infos(1).collect();
    assert_eq!(infos.len(), 6);
    assert!(infos.iter().all(|info| info.name == STAND_IN && info.properties.flag("stand_in")));
    let missing = Err(Error::new(ErrorKind::Unavailable, "no PoCL"));
    let devices = list_with(&root.environment(&[]), None, Some(missing)).unwrap();
    assert!(devices[1].info.name == STAND_IN && reason(&devices[1]).contains("pocl-opencl-icd"));
}

#[test]
fn the_offload_library_lists_each_chip_with_its_clusters_and_their_memory() {
    let root = FakeRoot::new();
    root.driver().board(0, 2);
    let sdk = root.path().join("sdk");
    let variables = [("KALRAY_TOOLCHAIN_DIR", sdk.to_str().unwrap())];
    let offload = |devices: &[ListedDevice]| -> Vec<ListedDevice> {
        devices.iter().filter(|device| device.info.name == "Offload").cloned().collect()
    };
    assert!(offload(&list(&root, &variables, None).unwrap()).is_empty(), "the SDK has no offload library");
    root.write("sdk/include/mppa_offload_host.h", "");
    let listed = offload(&list(&root, &variables, None).unwrap());
    assert_eq!(routes(&listed), [Route::Offload(0), Route::Offload(1)]);
    assert!(reason(&listed[0]).contains("ocl_fw_l1.elf does not exist"), "{}", reason(&listed[0]));
    root.write("lib/firmware/kalray/opencl/kv3-2/ocl_fw_l1.elf", "");
    let listed = offload(&list(&root, &variables, None).unwrap());
    assert!(reason(&listed[0]).is_empty());
    let locks = |devices: &[ListedDevice]| -> Vec<String> {
        devices.iter().map(|device| device.info.properties.text("lock").unwrap().to_owned()).collect()
    };
    // A chip has one lock, however it is reached.
    let chips: Vec<_> = list(&root, &variables, None).unwrap().into_iter().take(2).collect();
    assert_eq!((locks(&listed), locks(&listed)[0] == locks(&listed)[1]), (locks(&chips), false));
    let spaces =
        |info: &DeviceInfo| -> Vec<String> { info.spaces.iter().map(|space| space.name.clone()).collect() };
    assert_eq!(spaces(&listed[0].info).len(), 6);
    assert_eq!(spaces(&listed[0].clusters[3]), ["device", "cluster3"]);
    assert_eq!(listed[0].info.spaces[1].total_bytes, Some(8 << 20));
}

/// The default architecture was used, whatever the board.
#[test]
fn whole_programs_on_a_board_are_for_its_architecture() {
    let root = FakeRoot::new();
    root.tool("bin/kvx-jtag-runner", "");
    root.driver().board(0, 1).write("mppa/board0/archver", "kv3-1");
    let devices = list(&root, &[], None).unwrap();
    let jtag = devices.iter().find(|device| device.info.name == "JTAG").unwrap();
    assert_eq!(jtag.info.arch.as_deref(), Some("kv3-1"));
}
