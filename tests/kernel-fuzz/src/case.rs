//! Cases: WGSL text with the launches of its entry points in its first lines.
//!
//! ```text
//! //! launch main groups=2,1,1 lengths=64,3 scalars=5,-1 seed=77
//! @compute @workgroup_size(16) fn main() { … }
//! ```
//!
//! `lengths` gives the element counts of the run-time-sized arrays, by binding; `scalars` the immediates, in order;
//! `constants` (`A=1;B=2`) the overrides. `seed` determines the contents of the tensors; 0 means zeros.

use std::fmt;

use naga::ScalarKind;
use portable::random::Random;
use runtime_kernel::naga;

use crate::interpret::Slot;

const MARK: &str = "//! launch ";

/// WGSL and its launches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Case {
    /// The launches.
    pub launches: Vec<Launch>,
    /// The text without the launch lines.
    pub text: String,
}

/// A launch of an entry point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The entry point.
    pub entry: String,
    /// The number of work-groups.
    pub groups: [u32; 3],
    /// Element counts of the run-time-sized arrays, by tensor.
    pub lengths: Vec<usize>,
    /// Values of the immediates.
    pub scalars: Vec<String>,
    /// Values of the overrides.
    pub constants: Vec<(String, String)>,
    /// The seed of the tensor contents.
    pub seed: u64,
}

impl Case {
    /// Parses a case.
    ///
    /// # Errors
    /// The error in a launch line, or a case without launches.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut case = Self::default();
        for line in text.lines() {
            match line.strip_prefix(MARK) {
                Some(words) => case.launches.push(Launch::parse(words)?),
                None => case.text += &format!("{line}\n"),
            }
        }
        if case.launches.is_empty() { Err(format!("no line begins with `{MARK}`")) } else { Ok(case) }
    }

    /// Joins several cases into one.
    #[must_use]
    pub fn join(cases: &[&Self]) -> Self {
        let enables = |line: &&str| line.starts_with("enable ");
        let lines = || cases.iter().flat_map(|case| case.text.lines());
        let mut first: Vec<_> = lines().filter(enables).collect();
        first.dedup();
        let text = first.into_iter().chain(lines().filter(|line| !enables(line)));
        Self {
            launches: cases.iter().flat_map(|case| case.launches.clone()).collect(),
            text: text.map(|line| format!("{line}\n")).collect(),
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.launches.iter().try_for_each(|launch| writeln!(f, "{launch}"))?;
        f.write_str(&self.text)
    }
}

impl Launch {
    fn parse(words: &str) -> Result<Self, String> {
        let mut words = words.split_whitespace();
        let entry = words.next().ok_or("a launch without an entry point")?.to_owned();
        let mut launch = Self {
            entry,
            groups: [1; 3],
            lengths: Vec::new(),
            scalars: Vec::new(),
            constants: Vec::new(),
            seed: 0,
        };
        for word in words {
            let (key, value) = word.split_once('=').ok_or_else(|| format!("`{word}` is not KEY=VALUE"))?;
            let parts = || value.split(',').filter(|part| !part.is_empty());
            let wrong = |error: std::num::ParseIntError| format!("`{word}`: {error}");
            match key {
                "groups" => {
                    for (at, part) in parts().take(3).enumerate() {
                        launch.groups[at] = part.parse().map_err(wrong)?;
                    }
                }
                "lengths" => {
                    launch.lengths = parts().map(str::parse).collect::<Result<_, _>>().map_err(wrong)?;
                }
                "scalars" => launch.scalars = parts().map(str::to_owned).collect(),
                "seed" => launch.seed = value.parse().map_err(wrong)?,
                "constants" => {
                    let pair = |part: &str| part.split_once('=').map(|(a, b)| (a.to_owned(), b.to_owned()));
                    launch.constants = value.split(';').filter_map(pair).collect();
                }
                _ => return Err(format!("unknown key `{key}` in a launch")),
            }
        }
        Ok(launch)
    }

    /// The initial words of a tensor.
    pub(crate) fn content(&self, tensor: usize, slots: &[Slot]) -> Vec<u64> {
        let mut random = Random::new(self.seed ^ (tensor as u64 + 1).wrapping_mul(0x9e37_79b9));
        slots.iter().map(|slot| if self.seed == 0 { 0 } else { word(&mut random, slot.scalar) }).collect()
    }
}

fn word(random: &mut Random, scalar: naga::Scalar) -> u64 {
    if scalar.kind == ScalarKind::Float {
        let value = random.below(17) as f64 - 8.0;
        return crate::interpret::float_word(scalar, value);
    }
    let value = match random.below(4) {
        0 => u64::from(random.bits() as i32 as u32),
        1 => (random.bits() as i32) as i64 as u64,
        2 if random.once_in(4) => random.word(),
        _ => random.below(12) as u64,
    };
    if scalar.width == 4 { value & 0xffff_ffff } else { value }
}

impl fmt::Display for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |words: &[String]| words.join(",");
        let [x, y, z] = self.groups;
        let lengths: Vec<_> = self.lengths.iter().map(ToString::to_string).collect();
        write!(f, "{MARK}{} groups={x},{y},{z} lengths={}", self.entry, joined(&lengths))?;
        if !self.scalars.is_empty() {
            write!(f, " scalars={}", joined(&self.scalars))?;
        }
        if !self.constants.is_empty() {
            let pairs: Vec<_> =
                self.constants.iter().map(|(name, value)| format!("{name}={value}")).collect();
            write!(f, " constants={}", pairs.join(";"))?;
        }
        write!(f, " seed={}", self.seed)
    }
}
