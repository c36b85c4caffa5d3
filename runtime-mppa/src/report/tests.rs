use super::*;
use crate::fixture::FakeRoot;

fn texts(environment: &Environment) -> Vec<String> {
    diagnose(environment).iter().map(|(title, text)| format!("{title}\n{text}\n")).collect()
}

fn text(environment: &Environment) -> String {
    texts(environment).concat()
}

/// A machine with a driver, a board, an SDK and its tool.
fn machine() -> (FakeRoot, Environment) {
    let root = FakeRoot::new();
    root.driver().board(0, 1);
    root.tool("sdk/bin/kvx-board-diag", "echo 'board 0: K300'");
    root.write("sdk/version", "AccessCore 9.9\n").write("sdk/lib/libOpenCL.so", "12345");
    let sdk = root.path().join("sdk");
    let environment = root.environment(&[("KALRAY_TOOLCHAIN_DIR", sdk.to_str().unwrap())]);
    (root, environment)
}

#[test]
fn every_section_reports_what_is_there() {
    let (_root, environment) = machine();
    let texts = texts(&environment);
    for (section, words) in texts.iter().zip([
        ["environment\n", "RUNTIME_MPPA_ROOT ", "MPPA_ENVP                          not set"],
        ["configuration\n", "platform: Hardware", "ocl_fw_l1.elf"],
        ["driver\n", "board0/serial: 3 bytes\n    | S0", "| cluster4 : 1000000000"],
        ["tools and libraries\n", "libOpenCL.so: 5 bytes", "qemu-system-kvx: not found"],
        ["sdk\n", "bin/kvx-board-diag: ", "| AccessCore 9.9"],
        ["kvx-board-diag --list-board\n", "exit status: 0", "board 0: K300"],
        ["compiler of the offload library's shim\n", "no header: ", "mppa_offload_host.h"],
    ]) {
        assert!(words.iter().all(|word| section.contains(word)), "{words:?}: {section}");
    }
}

#[test]
fn a_machine_without_anything_says_so() {
    let root = FakeRoot::new();
    let text = text(&root.environment(&[]));
    for words in ["mppa: No such file", "no SDK: KALRAY_TOOLCHAIN_DIR", "kvx-board-diag was not found"] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn a_wrong_configuration_is_a_line_and_the_rest_is_there() {
    let (root, _) = machine();
    let text = text(&root.environment(&[("PLATFORM", "linux")]));
    assert!(text.contains("PLATFORM cannot be \"linux\"") && text.contains("| K300"), "{text}");
}

#[test]
fn an_sdk_that_is_no_folder_says_so() {
    let (root, _) = machine();
    let file = root.path().join("mppa/version");
    let text = text(&root.environment(&[("KALRAY_TOOLCHAIN_DIR", file.to_str().unwrap())]));
    assert!(text.contains("the folder: cannot be read: Not a directory"), "{text}");
}

#[test]
fn only_known_variables_are_shown_and_path_is_not() {
    let root = FakeRoot::new();
    let more = [("MPPA_TOKEN", "secret"), ("PATH", "/secret/bin"), ("MPPA_ENVP", "shown")];
    let section = texts(&root.environment(&more)).remove(0);
    assert!(section.contains("shown") && !section.contains("secret"), "{section}");
}

#[test]
fn what_cannot_be_read_is_a_line() {
    let (root, environment) = machine();
    let folder = root.path().join("mppa");
    std::os::unix::fs::symlink("/etc/passwd", folder.join("link")).unwrap();
    std::os::unix::net::UnixListener::bind(folder.join("socket")).unwrap();
    std::os::unix::fs::symlink(".", folder.join("board1")).unwrap();
    let text = text(&environment);
    for words in ["link -> /etc/passwd\n", "socket: neither a file", "board1 -> ."] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(!text.contains("| root:"), "the target of the link is not read: {text}");
}

#[test]
fn large_folders_and_files_are_cut_and_the_report_says_so() {
    let (root, environment) = machine();
    root.write("mppa/large", &"x".repeat(100_000));
    (0..80).for_each(|file| {
        root.write(&format!("mppa/board0/file{file}"), &"y\n".repeat(2000));
    });
    root.write("mppa/board0/a/b/c/d/e", "too deep");
    let driver = texts(&environment).remove(2);
    for words in ["4096 bytes is left out", "or more entries are left out", "too much was shown already"] {
        assert!(driver.contains(words), "{words}: {driver}");
    }
    assert!(!driver.contains("too deep") && driver.len() < 800_000, "{}", driver.len());
}

#[test]
fn a_driver_that_never_answers_costs_only_its_lines() {
    let lines = folder::lines_within(std::time::Duration::from_millis(20), |lines| {
        lines("first".to_owned());
        std::thread::park();
    });
    assert!(lines[0] == "first" && lines[1].contains("the rest is missing"), "{lines:?}");
}

#[test]
fn a_text_that_is_too_long_for_the_abi_is_cut_at_a_character() {
    assert_eq!(["aß", "a", "", "aßc"].map(|text| bounded(text.to_owned(), 2)), ["a", "a", "", "a"]);
    assert_eq!(bounded("aß".to_owned(), 3), "aß");
}
