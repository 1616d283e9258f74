//! Declared roles: a small table of spans, read on every fault and written by hints.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::page::{Page, Role, Span};

/// Most spans with a declared role; later declarations replace the oldest.
const PLACES: usize = 64;

#[derive(Debug, Default)]
struct Place {
    /// First page in the upper half, page count in the lower half: one word, so that a reader never
    /// sees half of a span.
    span: AtomicU64,
    role: AtomicU32,
}

/// Spans with roles. The newest declaration wins.
#[derive(Debug)]
pub struct Roles {
    places: Box<[Place]>,
    declared: AtomicU32,
}

impl Default for Roles {
    fn default() -> Self {
        let places = (0..PLACES).map(|_| Place::default()).collect();
        Roles {
            places,
            declared: AtomicU32::new(0),
        }
    }
}

impl Roles {
    /// Declares the role of `pages`.
    pub fn declare(&self, pages: Span, role: Role) {
        let number = self.declared.fetch_add(1, Ordering::AcqRel) as usize;
        let place = &self.places[number % PLACES];
        place.span.store(0, Ordering::Release);
        place.role.store(role.code(), Ordering::Release);
        place.span.store(
            u64::from(pages.first) << 32 | u64::from(pages.count),
            Ordering::Release,
        );
    }

    /// The role of `page`.
    #[must_use]
    pub fn role(&self, page: Page) -> Role {
        let declared = self.declared.load(Ordering::Acquire) as usize;
        let newest_first = (declared.saturating_sub(PLACES)..declared).rev();
        newest_first
            .map(|number| &self.places[number % PLACES])
            .find(|place| unpack(place.span.load(Ordering::Acquire)).contains(page))
            .and_then(|place| Role::from_code(place.role.load(Ordering::Acquire)))
            .unwrap_or_default()
    }
}

fn unpack(span: u64) -> Span {
    let [a, b, c, d, e, f, g, h] = span.to_be_bytes();
    Span {
        first: u32::from_be_bytes([a, b, c, d]),
        count: u32::from_be_bytes([e, f, g, h]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_declaration_wins() {
        let roles = Roles::default();
        assert_eq!(roles.role(5), Role::Normal);
        roles.declare(
            Span {
                first: 0,
                count: 100,
            },
            Role::Hot,
        );
        roles.declare(
            Span {
                first: 10,
                count: 10,
            },
            Role::Random,
        );
        assert_eq!(
            [5, 15, 99, 100].map(|page| roles.role(page)),
            [Role::Hot, Role::Random, Role::Hot, Role::Normal]
        );
    }

    #[test]
    fn old_declarations_make_room() {
        let roles = Roles::default();
        for number in 0..100 {
            roles.declare(
                Span {
                    first: number * 10,
                    count: 10,
                },
                Role::Stream,
            );
        }
        assert_eq!(roles.role(5), Role::Normal);
        assert_eq!(roles.role(999), Role::Stream);
    }
}
