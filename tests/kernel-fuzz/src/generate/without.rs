//! What kernels must not use.

/// Features that kernels must not use, while they are known to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Without {
    /// Zero-initialised work-group memory: each work-item clears its element first.
    pub zeros: bool,
    /// Pointers to elements as arguments.
    pub element_pointers: bool,
    /// Constants made by built-in functions, which have the value of the same expression at run time.
    pub constant_functions: bool,
}

impl Default for Without {
    /// Without what the lowering does not do yet.
    fn default() -> Self {
        Self {
            zeros: false,
            element_pointers: false,
            constant_functions: true,
        }
    }
}

impl Without {
    /// Leaves features out, or takes them in; their names are separated by commas.
    ///
    /// # Errors
    /// An unknown name.
    pub fn set(&mut self, names: &str, is_without: bool) -> Result<(), String> {
        let mut features = [
            ("zeros", &mut self.zeros),
            ("element-pointers", &mut self.element_pointers),
            ("constant-functions", &mut self.constant_functions),
        ];
        for name in names.split(',') {
            match features.iter_mut().find(|(known, _)| *known == name) {
                Some((_, feature)) => **feature = is_without,
                None => {
                    let known = features.map(|(known, _)| known).join(", ");
                    return Err(format!("unknown feature `{name}`; valid: {known}"));
                }
            }
        }
        Ok(())
    }
}
