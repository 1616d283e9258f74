//! The table of strings that pprof and OpenTelemetry's profiles share: each text once, the empty
//! one first.

use rustc_hash::FxHashMap;
use std::rc::Rc;

pub struct Strings {
    numbers: FxHashMap<Rc<str>, u64>,
    all: Vec<Rc<str>>,
}

impl Default for Strings {
    fn default() -> Self {
        let mut new = Self {
            numbers: FxHashMap::default(),
            all: Vec::new(),
        };
        new.number("");
        new
    }
}

impl Strings {
    /// The number of a text, which is added if it is new.
    pub fn number(&mut self, text: &str) -> u64 {
        if let Some(&known) = self.numbers.get(text) {
            return known;
        }
        let number = self.all.len() as u64;
        let text: Rc<str> = text.into();
        self.numbers.insert(Rc::clone(&text), number);
        self.all.push(text);
        number
    }

    /// All texts, by number.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|text| &**text)
    }
}
