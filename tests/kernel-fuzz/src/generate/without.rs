//! What kernels must not use.

/// Features that kernels must not use, while they are known to fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Without {
    /// Zero-initialised work-group memory: each work-item clears its element first.
    pub zeros: bool,
    /// Pointers to elements as arguments.
    pub element_pointers: bool,
}

impl Without {
    /// Parses names separated by commas.
    ///
    /// # Errors
    /// An unknown name.
    pub fn parse(names: &str) -> Result<Self, String> {
        let mut without = Self::default();
        for name in names.split(',') {
            match name {
                "zeros" => without.zeros = true,
                "element-pointers" => without.element_pointers = true,
                _ => return Err(format!("unknown feature `{name}`; valid: zeros, element-pointers")),
            }
        }
        Ok(without)
    }
}
