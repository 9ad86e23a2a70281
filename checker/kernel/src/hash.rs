//! A fast hash for keys that are small integers or lists of them. Tables that use it compare whole keys.

use std::hash::{BuildHasherDefault, Hasher};

/// Builds `Mixer`s.
pub type FastHasher = BuildHasherDefault<Mixer>;

/// Multiply and fold, word by word.
#[derive(Default)]
pub struct Mixer(u64);

impl Mixer {
    #[inline]
    fn add(&mut self, word: u64) {
        let wide = u128::from(self.0 ^ word ^ 0x2545_f491_4f6c_dd1d) * 0x9e37_79b9_7f4a_7c15_u128;
        self.0 = (wide >> 64) as u64 ^ wide as u64;
    }
}

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.add(u64::from_le_bytes(word));
        }
    }
    #[inline]
    fn write_u8(&mut self, word: u8) {
        self.add(u64::from(word));
    }
    #[inline]
    fn write_u32(&mut self, word: u32) {
        self.add(u64::from(word));
    }
    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.add(word);
    }
    #[inline]
    fn write_i64(&mut self, word: i64) {
        self.add(word as u64);
    }
    #[inline]
    fn write_usize(&mut self, word: usize) {
        self.add(word as u64);
    }
}
