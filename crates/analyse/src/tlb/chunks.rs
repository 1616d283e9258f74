//! Memory in chunks of a huge page's size, numbered densely, so that a page's tag fits 32 bits.
//!
//! ```text
//!  tag of a small page's entry   0 s dddd…d pppp   s stage, d dense number, p page in the chunk
//!  tag of a huge page's entry    1 s 000000 dddd
//! ```

use super::engine::{PageSize, Space, SpaceId, Stage};

/// Bit of tags of huge pages.
pub const HUGE: u32 = 1 << 31;
/// Bit of tags of second stages.
pub const SECOND: u32 = 1 << 30;

/// What is known of a chunk.
#[derive(Clone, Copy, Debug)]
pub struct Chunk {
    /// Virtual number in its space.
    pub number: u64,
    /// Guest physical number: the order of first access in its space.
    pub physical: u32,
    /// Its space.
    pub space: SpaceId,
    /// Page size at the first stage.
    pub first: PageSize,
    /// Page size of entries of the second stage; that of the first where there is none.
    pub second: PageSize,
}

impl Chunk {
    /// The smaller of the two sizes: what an entry for both stages covers.
    #[inline]
    pub fn product(&self) -> PageSize {
        match (self.first, self.second) {
            (PageSize::Huge, PageSize::Huge) => PageSize::Huge,
            _ => PageSize::Small,
        }
    }
}

/// All chunks of all spaces: a hash table with linear probing.
#[derive(Clone, Debug)]
pub struct Chunks {
    /// Space and number, plus one; 0 where free.
    keys: Vec<u64>,
    places: Vec<u32>,
    shift: u32,
    chunks: Vec<Chunk>,
    spaces: Vec<(Space, u32)>,
    most: usize,
}

const FIRST_BITS: u32 = 10;

impl Chunks {
    /// For chunks of `2^page_bits` small pages.
    pub fn new(page_bits: u32) -> Self {
        Self {
            keys: vec![0; 1 << FIRST_BITS],
            places: vec![0; 1 << FIRST_BITS],
            shift: 64 - FIRST_BITS,
            chunks: Vec::new(),
            spaces: Vec::new(),
            most: 1 << (30 - page_bits),
        }
    }

    pub fn add(&mut self, space: Space) -> SpaceId {
        self.spaces.push((space, 0));
        (self.spaces.len() - 1) as SpaceId
    }

    pub fn space(&self, id: SpaceId) -> Space {
        self.spaces[id as usize].0
    }

    #[inline]
    pub fn get(&self, dense: u32) -> &Chunk {
        &self.chunks[dense as usize]
    }

    /// Chunks of a space in the order of their first access.
    pub fn of(&self, space: SpaceId) -> impl Iterator<Item = &Chunk> {
        self.chunks.iter().filter(move |chunk| chunk.space == space)
    }

    /// The dense number of a chunk, new where it was not seen; `None` where tags have run out.
    #[inline]
    pub fn dense(&mut self, space: SpaceId, number: u64) -> Option<u32> {
        let key = (number << 16 | u64::from(space)) + 1;
        let mask = self.keys.len() - 1;
        let mut at = (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize;
        loop {
            let found = self.keys[at & mask];
            if found == key {
                return Some(self.places[at & mask]);
            }
            if found == 0 {
                return self.insert(space, number, key);
            }
            at += 1;
        }
    }

    #[cold]
    fn insert(&mut self, space: SpaceId, number: u64, key: u64) -> Option<u32> {
        if self.chunks.len() >= self.most {
            return None;
        }
        if self.chunks.len() * 2 >= self.keys.len() {
            self.grow();
        }
        let dense = self.chunks.len() as u32;
        let (begins, next) = &mut self.spaces[space as usize];
        let second = match begins.second {
            None => begins.first,
            Some(_) => begins.second_entries(),
        };
        self.chunks.push(Chunk {
            number,
            physical: *next,
            space,
            first: begins.first,
            second,
        });
        *next += 1;
        self.place(key, dense);
        Some(dense)
    }

    fn place(&mut self, key: u64, dense: u32) {
        let mask = self.keys.len() - 1;
        let mut at = (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize;
        while self.keys[at & mask] != 0 {
            at += 1;
        }
        self.keys[at & mask] = key;
        self.places[at & mask] = dense;
    }

    fn grow(&mut self) {
        let keys = std::mem::take(&mut self.keys);
        let places = std::mem::take(&mut self.places);
        self.shift -= 1;
        self.keys = vec![0; keys.len() * 2];
        self.places = vec![0; keys.len() * 2];
        for (key, place) in keys.into_iter().zip(places) {
            if key != 0 {
                self.place(key, place);
            }
        }
    }

    /// Sets a page size; whether it changed. A guest's second stage that is not aligned stays small.
    pub fn resize(&mut self, dense: u32, stage: Stage, size: PageSize) -> bool {
        let chunk = &mut self.chunks[dense as usize];
        let space = self.spaces[chunk.space as usize].0;
        let before = (chunk.first, chunk.second);
        match (stage, space.second) {
            (Stage::First, None) => (chunk.first, chunk.second) = (size, size),
            (Stage::First, Some(_)) => chunk.first = size,
            (Stage::Second, Some(_)) if space.is_aligned => chunk.second = size,
            (Stage::Second, _) => {}
        }
        before != (chunk.first, chunk.second)
    }
}
