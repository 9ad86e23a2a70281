//! Configurations, and the memory of the configurations seen, with dominance.
//!
//! A configuration of the search at one return event has three parts: the open operations that are linearized already
//! (a bit for each slot), the number of linearized crashed operations of each class (packed counters), and the state.
//! Its size depends on the concurrency, not on the length of the history. The keys are exact: no decision relies on a
//! hash alone.

use super::plan::Layout;

/// A small fixed or dynamic array of words.
pub trait Bits: Clone {
    /// An array of `words` zeros.
    fn zero(words: usize) -> Self;
    /// The words.
    fn words(&self) -> &[u64];
    /// The words.
    fn words_mut(&mut self) -> &mut [u64];
    /// Bytes on the heap.
    fn heap(&self) -> usize;
}

impl<const N: usize> Bits for [u64; N] {
    fn zero(_: usize) -> Self {
        [0; N]
    }
    #[inline]
    fn words(&self) -> &[u64] {
        self
    }
    #[inline]
    fn words_mut(&mut self) -> &mut [u64] {
        self
    }
    fn heap(&self) -> usize {
        0
    }
}

impl Bits for Box<[u64]> {
    fn zero(words: usize) -> Self {
        vec![0; words].into_boxed_slice()
    }
    fn words(&self) -> &[u64] {
        self
    }
    fn words_mut(&mut self) -> &mut [u64] {
        self
    }
    fn heap(&self) -> usize {
        self.len() * 8
    }
}

/// Whether a slot's bit is set.
#[inline]
pub fn has<B: Bits>(bits: &B, slot: u32) -> bool {
    bits.words()[slot as usize / 64] >> (slot % 64) & 1 == 1
}

/// Sets a slot's bit.
#[inline]
pub fn set<B: Bits>(bits: &mut B, slot: u32) {
    bits.words_mut()[slot as usize / 64] |= 1 << (slot % 64);
}

/// Clears a slot's bit.
#[inline]
pub fn clear<B: Bits>(bits: &mut B, slot: u32) {
    bits.words_mut()[slot as usize / 64] &= !(1 << (slot % 64));
}

/// A configuration in memory.
#[derive(Clone)]
pub struct Entry<B> {
    /// Slots and counters.
    pub bits: B,
    /// The state.
    pub state: u32,
    /// The number of the state's equivalence class.
    key: u32,
    /// The return event at which it waits.
    pub at: u32,
    /// The last linearized operation.
    pub last: u32,
    /// A crashed operation was applied, and no operation has observed it yet.
    pub hot: bool,
    /// A dominating configuration was found later.
    pub dead: bool,
    hash: u32,
    next: u32,
}

const NIL: u32 = u32::MAX;

/// Stores configurations and rejects dominated ones.
pub struct Memo<B> {
    heads: Vec<u32>,
    /// All accepted configurations, in order of insertion.
    pub entries: Vec<Entry<B>>,
}

impl<B> Default for Memo<B> {
    /// An empty memory.
    fn default() -> Self {
        Self { heads: vec![NIL; 64], entries: Vec::new() }
    }
}

impl<B: Bits> Memo<B> {
    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let each = size_of::<Entry<B>>() + self.entries.first().map_or(0, |entry| entry.bits.heap());
        self.heads.capacity() * 4 + self.entries.capacity() * each
    }

    /// Forgets everything, in time proportional to the size of the memory.
    pub fn clear(&mut self) {
        if self.entries.len() * 4 > self.heads.len() {
            self.heads.fill(NIL);
        } else {
            let mask = self.heads.len() - 1;
            for entry in &self.entries {
                self.heads[entry.hash as usize & mask] = NIL;
            }
        }
        self.entries.clear();
    }

    /// Stores a configuration unless a dominating one is known, and returns its index. States with the same `key` are
    /// equivalent.
    ///
    /// A configuration dominates another one at the same event and with the same key under three conditions: both
    /// have linearized the same mutators; the first has linearized every observer that the second has; the first has
    /// linearized no more crashed operations of any class. Then the first can take every step that the second can.
    pub fn insert(
        &mut self,
        layout: &Layout,
        observers: &[u64],
        at: u32,
        state: u32,
        key: u32,
        hot: bool,
        bits: &B,
        last: u32,
    ) -> Option<u32> {
        let hash = hash(layout, observers, at, key, hot, bits.words());
        let mut mask = self.heads.len() - 1;
        let mut previous = NIL;
        let mut i = self.heads[hash as usize & mask];
        while i != NIL {
            let entry = &mut self.entries[i as usize];
            let next = entry.next;
            let same = entry.hash == hash && entry.key == key && entry.at == at && entry.hot == hot;
            if same && layout.dominates(observers, entry.bits.words(), bits.words()) {
                return None;
            }
            if same && layout.dominates(observers, bits.words(), entry.bits.words()) {
                entry.dead = true;
                if previous == NIL {
                    self.heads[hash as usize & mask] = next;
                } else {
                    self.entries[previous as usize].next = next;
                }
            } else {
                previous = i;
            }
            i = next;
        }
        if self.entries.len() >= self.heads.len() {
            self.grow();
            mask = self.heads.len() - 1;
        }
        let index = self.entries.len() as u32;
        let head = &mut self.heads[hash as usize & mask];
        self.entries.push(Entry { bits: bits.clone(), state, key, at, last, hot, dead: false, hash, next: *head });
        *head = index;
        Some(index)
    }

    fn grow(&mut self) {
        let size = self.heads.len() * 4;
        self.heads = vec![NIL; size];
        for (i, entry) in self.entries.iter_mut().enumerate() {
            if entry.dead {
                continue;
            }
            let head = &mut self.heads[entry.hash as usize & (size - 1)];
            entry.next = *head;
            *head = i as u32;
        }
    }
}

#[inline]
fn hash(layout: &Layout, observers: &[u64], at: u32, key: u32, hot: bool, words: &[u64]) -> u32 {
    let mut h = (u64::from(at) << 32 | u64::from(key)) ^ (u64::from(hot) << 63);
    h = mix(h);
    for i in 0..layout.mask_words {
        h = mix(h ^ (words[i] & !observers[i]));
    }
    (h ^ h >> 32) as u32
}

#[inline]
fn mix(x: u64) -> u64 {
    let wide = u128::from(x ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93_u128;
    (wide >> 64) as u64 ^ wide as u64
}
