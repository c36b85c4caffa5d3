//! A bounded list that evicts what was used least recently.

/// At most `limit` items, which are found by searching.
#[derive(Debug)]
pub(super) struct RecentlyUsed<T> {
    items: Vec<(u64, T)>,
    limit: usize,
    uses: u64,
}

impl<T> RecentlyUsed<T> {
    pub(super) const fn new(limit: usize) -> Self {
        Self { items: Vec::new(), limit, uses: 0 }
    }

    pub(super) fn has(&self, fits: impl Fn(&T) -> bool) -> bool {
        self.items.iter().any(|(_, item)| fits(item))
    }

    /// The first item that fits, which counts as a use of it.
    pub(super) fn find(&mut self, fits: impl Fn(&T) -> bool) -> Option<&mut T> {
        let (last_used, item) = self.items.iter_mut().find(|(_, item)| fits(item))?;
        self.uses += 1;
        *last_used = self.uses;
        Some(item)
    }

    /// Adds an item, in place of the first one that is the same or, if the list is full, of the least recently used one. Returns
    /// what it replaces.
    pub(super) fn insert(&mut self, item: T, is_same: impl Fn(&T) -> bool) -> Option<T> {
        self.uses += 1;
        let item = (self.uses, item);
        let is_full = self.items.len() >= self.limit;
        let oldest = || self.items.iter().enumerate().min_by_key(|(_, (last_used, _))| *last_used);
        let same = self.items.iter().position(|(_, item)| is_same(item));
        match same.or_else(|| oldest().filter(|_| is_full).map(|(at, _)| at)) {
            Some(at) => Some(std::mem::replace(&mut self.items[at], item).1),
            None => {
                self.items.push(item);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_is_replaced_if_none_is_the_same() {
        let mut kept = RecentlyUsed::new(2);
        let insert = |kept: &mut RecentlyUsed<_>, item| kept.insert(item, |other| *other == item);
        assert_eq!([insert(&mut kept, 1), insert(&mut kept, 2), insert(&mut kept, 2)], [None, None, Some(2)]);
        assert_eq!(kept.find(|item| *item == 1), Some(&mut 1));
        assert_eq!(insert(&mut kept, 3), Some(2), "1 was used later");
        assert_eq!(kept.find(|item| *item == 2), None);
        assert!(!kept.has(|item| *item == 2) && kept.has(|item| *item == 1));
        assert_eq!(insert(&mut kept, 4), Some(1), "a look is no use");
    }
}
