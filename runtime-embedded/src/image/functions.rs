//! The functions of an image, by address.

use std::collections::BTreeMap;
use std::fs;

use object::{Object as _, ObjectSymbol as _, SymbolKind};
use runtime_core::{Error, Result};

use super::compiler::io;
use super::elf::Image;
use crate::boards::Processor;

/// Code that belongs to no function of the symbol table.
const UNKNOWN: &str = "unknown code";

/// The functions of an image.
#[derive(Debug)]
pub(crate) struct Functions {
    /// End and name by first address.
    by_address: BTreeMap<u64, (u64, String)>,
}

impl Functions {
    /// Reads the symbol table of an image.
    ///
    /// # Errors
    /// `Io` if its file cannot be read.
    pub(crate) fn of(image: &Image, processor: Processor) -> Result<Self> {
        let elf = fs::read(image.file()).map_err(|error| io("image", &error))?;
        let object = object::File::parse(&*elf).map_err(|error| Error::invalid(error.to_string()))?;
        // Bit 0 marks Thumb code and is not part of the address.
        let mask = if processor == Processor::CortexM { !1 } else { !0 };
        let functions = object.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text);
        let by_address = functions.filter_map(|symbol| {
            let address = symbol.address() & mask;
            Some((address, (address + symbol.size(), symbol.name().ok()?.to_owned())))
        });
        Ok(Self { by_address: by_address.collect() })
    }

    /// The address of a function.
    ///
    /// # Errors
    /// `Unsupported` if the image has none of that name.
    pub(crate) fn address(&self, name: &str) -> Result<u64> {
        let found = self.by_address.iter().find(|(_, (_, known))| known == name);
        found.map(|(address, _)| *address).ok_or_else(|| {
            Error::unsupported(format!(
                "the image has no function {name}, so its functions cannot be counted"
            ))
        })
    }

    /// Adds up counts of addresses by function, the largest first.
    pub(crate) fn sum(&self, counts: impl IntoIterator<Item = (u64, u64)>) -> Vec<(String, u64)> {
        let mut sums = BTreeMap::new();
        for (address, count) in counts {
            *sums.entry(self.name(address)).or_default() += count;
        }
        let mut sums: Vec<(String, u64)> =
            sums.into_iter().map(|(name, sum)| (name.to_owned(), sum)).collect();
        sums.sort_by(|(_, one), (_, other)| other.cmp(one));
        sums
    }

    fn name(&self, address: u64) -> &str {
        match self.by_address.range(..=address).next_back() {
            Some((_, (end, name))) if address < *end => name,
            _ => UNKNOWN,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_go_to_the_function_around_the_address() {
        let entry = |begin: u64, end: u64, name: &str| (begin, (end, name.to_owned()));
        let functions =
            Functions { by_address: [entry(0x10, 0x20, "f"), entry(0x20, 0x28, "g")].into_iter().collect() };
        let sums = functions.sum([(0x10, 1), (0x1e, 2), (0x20, 9), (0x28, 4), (0x4, 1)]);
        let expected = [("g", 9), (UNKNOWN, 5), ("f", 3)].map(|(name, sum)| (name.to_owned(), sum));
        assert_eq!(sums, expected);
        assert_eq!(functions.address("g").unwrap(), 0x20);
        assert!(functions.address("h").unwrap_err().message().contains("no function h"));
    }
}
