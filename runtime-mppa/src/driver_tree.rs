//! The tree of files in which Kalray's driver describes boards: `mppa/version`, `mppa/board<N>/…`, `mppa/board<N>/mppa<M>/freq`.

use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use runtime_core::{Error, Result};

use crate::plain_text::plain;
use crate::unavailable;

/// Limits on what is read, in case the tree is not the driver's.
const MAX_BYTES: usize = 64 << 10;
/// Of a text that is shown.
const MAX_CHARACTERS: usize = 256;
const MAX_ENTRIES: usize = 1024;
/// Of all boards.
const MAX_CHIPS: usize = 512;

/// What the driver reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DriverTree {
    /// Version of the driver.
    pub(crate) version: String,
    /// The boards, by number.
    pub(crate) boards: Vec<Board>,
}

/// A board.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Board {
    /// Its number.
    pub(crate) number: u32,
    /// Version of the architecture, as the driver spells it.
    pub(crate) arch: Option<String>,
    /// Type of the board.
    pub(crate) model: Option<String>,
    /// Revision of the board.
    pub(crate) revision: Option<String>,
    /// Serial number.
    pub(crate) serial: Option<String>,
    /// The chips, by number.
    pub(crate) chips: Vec<Chip>,
    /// Why its folder could not be read.
    pub(crate) problem: Option<String>,
}

/// An MPPA.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chip {
    /// Its number on the board.
    pub(crate) number: u32,
    /// Clock of each cluster in Hz; empty if unknown.
    pub(crate) cluster_hz: Vec<u64>,
    /// Why the clocks are unknown.
    pub(crate) problem: Option<String>,
}

impl DriverTree {
    /// Reads the tree below `root`.
    ///
    /// # Errors
    /// `Unavailable`: the driver is not loaded, its files cannot be read, or they have an unknown form; each with the remedy.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let folder = root.join("mppa");
        let file = folder.join("version");
        let version = match read_text(&file) {
            Ok(text) if text.is_empty() => {
                return Err(unavailable(format!(
                    "{} is empty: Kalray's driver did not start; see the kernel's log (dmesg), and load it again",
                    file.display()
                )));
            }
            Ok(text) => shown(&text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(no_driver(&file)),
            Err(error) => return Err(unreadable(&file, &error)),
        };
        let numbers = numbered(&folder, "board").map_err(|error| unreadable(&folder, &error))?;
        let mut room = MAX_CHIPS;
        let boards = numbers.into_iter().map(|(number, folder)| {
            let board = Board::read(number, &folder, room);
            room -= board.chips.len();
            board
        });
        Ok(Self { version, boards: boards.collect() })
    }

    /// The chips of all boards, each with its board.
    pub(crate) fn chips(&self) -> impl Iterator<Item = (&Board, &Chip)> {
        self.boards.iter().flat_map(|board| board.chips.iter().map(move |chip| (board, chip)))
    }
}

impl Board {
    /// Reads a board with at most `room` chips.
    fn read(number: u32, folder: &Path, room: usize) -> Self {
        let text =
            |name: &str| Some(shown(&read_text(&folder.join(name)).ok()?)).filter(|text| !text.is_empty());
        let (chips, problem) = match numbered(folder, "mppa") {
            Ok(mut chips) => {
                let problem = (chips.len() > room).then(|| too_many(folder));
                chips.truncate(room);
                (chips, problem)
            }
            Err(error) => (Vec::new(), Some(unreadable(folder, &error).message().to_owned())),
        };
        Self {
            number,
            arch: text("archver"),
            model: text("type"),
            revision: text("revision"),
            serial: text("serial"),
            chips: chips.into_iter().map(|(number, folder)| Chip::read(number, &folder)).collect(),
            problem,
        }
    }
}

impl Chip {
    fn read(number: u32, folder: &Path) -> Self {
        let file = folder.join("freq");
        let clocks = match read_text(&file) {
            Ok(text) => clocks(&text).map_err(|problem| format!("{}: {problem}", file.display())),
            Err(error) => Err(unreadable(&file, &error).message().to_owned()),
        };
        match clocks {
            Ok(cluster_hz) => Self { number, cluster_hz, problem: None },
            Err(problem) => Self { number, cluster_hz: Vec::new(), problem: Some(problem) },
        }
    }

    /// The highest clock of its clusters.
    pub(crate) fn clock_hz(&self) -> Option<u64> {
        self.cluster_hz.iter().copied().max()
    }
}

/// A line per cluster, whose third word is the clock in Hz.
fn clocks(text: &str) -> std::result::Result<Vec<u64>, String> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let clock = |line: &str| {
        let clock = line.split_whitespace().nth(2).and_then(|word| word.parse().ok()).filter(|hz| *hz > 0);
        clock.ok_or_else(|| {
            let line: String = shown(line).chars().take(80).collect();
            format!("the third word of \"{line}\" is not a clock in Hz; the clock is unknown")
        })
    };
    let clocks = lines.map(clock).collect::<std::result::Result<Vec<_>, _>>()?;
    if clocks.is_empty() { Err("it is empty; the clock is unknown".to_owned()) } else { Ok(clocks) }
}

/// The entries `<prefix><number>` of a folder, by number.
fn numbered(folder: &Path, prefix: &str) -> io::Result<Vec<(u32, PathBuf)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)?.take(MAX_ENTRIES) {
        let entry = entry?;
        let name = entry.file_name();
        let digits = name.to_str().and_then(|name| name.strip_prefix(prefix)).unwrap_or_default();
        // `parse` alone would accept a sign.
        if digits.bytes().all(|byte| byte.is_ascii_digit())
            && let Ok(number) = digits.parse()
        {
            found.push((number, entry.path()));
        }
    }
    found.sort();
    Ok(found)
}

/// The part of a text that is shown.
fn shown(text: &str) -> String {
    plain(&text.chars().take(MAX_CHARACTERS).collect::<String>())
}

fn read_text(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    // A pipe without a writer would be waited for.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    file.take(MAX_BYTES as u64).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
}

fn no_driver(file: &Path) -> Error {
    unavailable(format!(
        "no board: {} does not exist, so Kalray's driver is not loaded; install the board and the driver of AccessCore, or set \
         RUNTIME_MPPA_ROOT to the folder that has mppa/",
        file.display()
    ))
}

fn too_many(folder: &Path) -> String {
    format!(
        "{}: only {MAX_CHIPS} chips of all boards are listed; RUNTIME_MPPA_ROOT may name a folder that is not the driver's",
        folder.display()
    )
}

fn unreadable(path: &Path, error: &io::Error) -> Error {
    unavailable(format!(
        "{} cannot be read: {error}; give this user access to the driver's files (see the udev rules of AccessCore)",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;

    use runtime_core::ErrorKind;

    use super::*;
    use crate::fixture::FakeRoot;

    #[test]
    fn a_board_is_read_with_all_its_facts() {
        let root = FakeRoot::new();
        root.driver().board(0, 1);
        let tree = DriverTree::read(root.path()).unwrap();
        assert_eq!(tree.version, "5.0.0");
        let [board] = &tree.boards[..] else { panic!("{tree:?}") };
        let text = |text: &Option<String>| text.clone().unwrap();
        assert_eq!(text(&board.arch), "kv3-2");
        assert_eq!(text(&board.model), "K300");
        assert_eq!(text(&board.revision), "B1");
        assert_eq!(text(&board.serial), "S0");
        assert_eq!(board.chips[0].cluster_hz, [1_000_000_000; 5]);
        assert_eq!(board.chips[0].clock_hz(), Some(1_000_000_000));
    }

    #[test]
    fn boards_and_chips_are_listed_by_number() {
        let root = FakeRoot::new();
        root.driver();
        // In so many folders, the system's order is hardly ever that of the numbers.
        let boards = [10, 2, 31, 0, 7, 100, 4, 23, 1, 19, 12, 5];
        boards.iter().for_each(|board| {
            root.board(*board, 4);
        });
        root.write("mppa/board+3/archver", "x").write("mppa/board/archver", "x").write("mppa/boardx", "x");
        let tree = DriverTree::read(root.path()).unwrap();
        let numbers: Vec<_> = tree.boards.iter().map(|board| (board.number, board.chips.len())).collect();
        let mut expected = boards.map(|board| (board, 4));
        expected.sort_unstable();
        assert_eq!(numbers, expected);
        let chips: Vec<_> = tree.boards[0].chips.iter().map(|chip| chip.number).collect();
        assert_eq!(chips, [0, 1, 2, 3]);
    }

    #[test]
    fn each_kind_of_absence_has_its_own_reason() {
        let none = FakeRoot::new();
        let unreadable = FakeRoot::new();
        unreadable.write("mppa/version/folder", "");
        let empty = FakeRoot::new();
        empty.write("mppa/version", " \n");
        for (root, words) in [
            (&none, ["no board", "RUNTIME_MPPA_ROOT"]),
            (&unreadable, ["cannot be read", "access"]),
            (&empty, ["is empty", "dmesg"]),
        ] {
            let error = DriverTree::read(root.path()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unavailable);
            assert!(words.iter().all(|word| error.message().contains(word)), "{error}");
        }
    }

    #[test]
    fn a_malformed_clock_is_unknown_and_the_chip_stays() {
        let malformed = ["cluster 0", "a b fast", "a b -3", "a b 0", "", "a b 99999999999999999999999"];
        for text in malformed {
            let root = FakeRoot::new();
            root.driver().board(0, 1).write("mppa/board0/mppa0/freq", text);
            let chip = DriverTree::read(root.path()).unwrap().boards[0].chips[0].clone();
            assert_eq!(chip.clock_hz(), None, "{text}");
            assert!(chip.problem.is_some_and(|problem| problem.contains("freq")), "{text}");
        }
    }

    #[test]
    fn a_board_that_is_no_folder_says_so() {
        let root = FakeRoot::new();
        root.driver().write("mppa/board0", "not a folder");
        let board = DriverTree::read(root.path()).unwrap().boards[0].clone();
        assert!(board.problem.is_some_and(|problem| problem.contains("cannot be read")));
    }

    /// Links make a folder of a thousand chips a million.
    #[test]
    fn a_tree_of_more_chips_than_a_machine_has_is_cut() {
        let root = FakeRoot::new();
        root.driver().board(0, 1);
        let boards = root.path().join("mppa");
        let link = std::os::unix::fs::symlink::<&str, PathBuf>;
        (1..MAX_ENTRIES).for_each(|chip| link("mppa0", boards.join(format!("board0/mppa{chip}"))).unwrap());
        (1..MAX_ENTRIES).for_each(|board| link("board0", boards.join(format!("board{board}"))).unwrap());
        let tree = DriverTree::read(root.path()).unwrap();
        // The version may be one of the entries.
        assert!(tree.chips().count() == MAX_CHIPS && tree.boards.len() >= MAX_ENTRIES - 1);
        let is_cut = |board: &Board| board.problem.as_deref().is_some_and(|text| text.contains("only 512"));
        assert!(tree.boards.iter().all(is_cut), "{:?}", tree.boards.last());
    }

    /// A root may have anything: pipes, links to themselves, names and texts of any kind.
    #[test]
    fn a_hostile_tree_is_read_without_waiting_and_shown_without_control_characters() {
        let root = FakeRoot::new();
        root.driver().board(0, 1);
        let board = root.path().join("mppa/board0");
        std::fs::remove_file(board.join("serial")).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(board.join("serial")).status().unwrap().success());
        std::fs::write(board.join("type"), "K300\x1b[2J\u{2066}").unwrap();
        std::fs::write(board.join("revision"), [&b"r\xff"[..], &vec![b'1'; 70_000]].concat()).unwrap();
        std::os::unix::fs::symlink("..", board.join("mppa1")).unwrap();
        std::os::unix::fs::symlink("mppa2", board.join("mppa2")).unwrap();
        let odd = std::ffi::OsStr::from_bytes(b"mppa3\xff");
        std::fs::create_dir(board.join(odd)).unwrap();
        std::os::unix::fs::symlink("board1", root.path().join("mppa/board1")).unwrap();
        let tree = DriverTree::read(root.path()).unwrap();
        let [first, second] = &tree.boards[..] else { panic!("{tree:?}") };
        assert_eq!(
            (first.serial.as_deref(), first.model.as_deref()),
            (None, Some("K300\u{fffd}[2J\u{fffd}"))
        );
        assert_eq!(first.revision.as_deref().unwrap().chars().count(), MAX_CHARACTERS);
        let clocks: Vec<_> =
            first.chips.iter().map(|chip| (chip.number, chip.clock_hz().is_some())).collect();
        assert_eq!(clocks, [(0, true), (1, false), (2, false)]);
        assert!(second.chips.is_empty() && second.problem.is_some(), "{second:?}");
    }
}
