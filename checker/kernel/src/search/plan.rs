//! The plan of a history for the search: events in order, slots by interval colouring, classes, packed counters.

use std::collections::HashMap;

use super::memo::{clear, set, Bits};
use crate::hash::FastHasher;
use crate::ops::{Ops, INF, NONE};

/// The positions of a configuration's parts in its words.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The number of words of the slot mask. The counters follow.
    pub mask_words: usize,
    /// The number of all words.
    pub words: usize,
    /// The top bit of each counter, which is always clear in a configuration.
    guard: Vec<u64>,
}

impl Layout {
    /// Whether `x` dominates `y` at the same event and state.
    #[inline]
    pub fn dominates(&self, observers: &[u64], x: &[u64], y: &[u64]) -> bool {
        for i in 0..self.mask_words {
            let d = x[i] ^ y[i];
            if d & !(observers[i] & x[i]) != 0 {
                return false;
            }
        }
        for i in self.mask_words..self.words {
            let guard = self.guard[i - self.mask_words];
            if ((y[i] | guard) - x[i]) & guard != guard {
                return false;
            }
        }
        true
    }
}

/// Equal crashed operations as one counter.
#[derive(Clone, Debug)]
pub struct InfoClass {
    /// Their class.
    pub class: u32,
    word: usize,
    shift: u32,
    width: u32,
}

impl InfoClass {
    /// How many of them a configuration has used.
    #[inline]
    pub fn used<B: Bits>(&self, bits: &B) -> u32 {
        (bits.words()[self.word] >> self.shift & ((1 << self.width) - 1)) as u32
    }

    /// Uses one more.
    #[inline]
    pub fn take<B: Bits>(&self, bits: &mut B) {
        bits.words_mut()[self.word] += 1 << self.shift;
    }
}

/// The plan of a history.
pub struct Plan {
    /// By operation: its class.
    pub class: Vec<u32>,
    /// The number of classes.
    pub classes: usize,
    /// By class: an example.
    pub representative: Vec<u32>,
    /// The operations that must happen, in order of their ends.
    pub returns: Vec<u32>,
    /// By operation: its place in `returns`, or `NONE`.
    pub return_of: Vec<u32>,
    /// By operation: its slot.
    pub slot: Vec<u32>,
    /// By operation that may happen: its place in `infos`.
    pub info_of: Vec<u32>,
    /// The classes of operations that may happen.
    pub infos: Vec<InfoClass>,
    /// All operations in order of their starts.
    calls: Vec<u32>,
    /// By return: the number of calls before it.
    calls_before: Vec<u32>,
    /// The positions of a configuration's parts.
    pub layout: Layout,
}

impl Plan {
    /// Lays out the operations of `keep`, pairs (index, end). An end may be earlier than in the columns.
    pub fn new(ops: &Ops, keep: &[(u32, i64)]) -> Self {
        let n = ops.len();
        let mut plan = Self {
            class: vec![NONE; n],
            classes: 0,
            representative: Vec::new(),
            returns: Vec::new(),
            return_of: vec![NONE; n],
            slot: vec![NONE; n],
            info_of: vec![NONE; n],
            infos: Vec::new(),
            calls: keep.iter().map(|&(i, _)| i).collect(),
            calls_before: Vec::new(),
            layout: Layout { mask_words: 1, words: 1, guard: Vec::new() },
        };
        plan.classify(ops, keep);
        let mut ends: Vec<(i64, u32)> = keep.iter().filter(|k| k.1 != INF).map(|&(i, e)| (e, i)).collect();
        // A crashed operation that must have happened because it was observed comes after its observer.
        ends.sort_unstable_by_key(|&(end, i)| (end, ops.e[i as usize] == INF, i));
        plan.calls.sort_unstable_by_key(|&i| (ops.s[i as usize], i));
        let mut counts: Vec<u32> = Vec::new();
        let mut by_class: HashMap<u32, u32, FastHasher> = HashMap::default();
        for &(i, end) in keep {
            if end == INF {
                let class = plan.class[i as usize];
                let next = counts.len() as u32;
                let k = *by_class.entry(class).or_insert(next);
                if k == next {
                    counts.push(0);
                    plan.infos.push(InfoClass { class, word: 0, shift: 0, width: 0 });
                }
                counts[k as usize] += 1;
                plan.info_of[i as usize] = k;
            }
        }
        for (r, &(_, i)) in ends.iter().enumerate() {
            plan.return_of[i as usize] = r as u32;
        }
        let slots = plan.colour(ops, &ends);
        plan.returns = ends.into_iter().map(|(_, i)| i).collect();
        plan.pack(slots, &counts);
        plan
    }

    fn classify(&mut self, ops: &Ops, keep: &[(u32, i64)]) {
        let mut numbers: HashMap<(u8, i64, i64, &[i64]), u32, FastHasher> = HashMap::default();
        for &(i, _) in keep {
            let at = i as usize;
            let next = numbers.len() as u32;
            let class = *numbers.entry((ops.f[at], ops.a[at], ops.b[at], ops.list(at))).or_insert(next);
            if class == next {
                self.representative.push(i);
            }
            self.class[at] = class;
        }
        self.classes = numbers.len();
    }

    fn colour(&mut self, ops: &Ops, ends: &[(i64, u32)]) -> usize {
        let mut free: Vec<u32> = Vec::new();
        let mut slots = 0;
        let mut next = 0;
        for &(end, i) in ends {
            while next < self.calls.len() && ops.s[self.calls[next] as usize] <= end {
                let call = self.calls[next] as usize;
                if self.return_of[call] != NONE {
                    self.slot[call] = free.pop().unwrap_or_else(|| {
                        slots += 1;
                        slots - 1
                    });
                }
                next += 1;
            }
            self.calls_before.push(next as u32);
            free.push(self.slot[i as usize]);
        }
        slots as usize
    }

    fn pack(&mut self, slots: usize, counts: &[u32]) {
        let mask_words = slots.div_ceil(64).max(1);
        let mut guard: Vec<u64> = Vec::new();
        let mut shift = 64;
        for (info, &count) in self.infos.iter_mut().zip(counts) {
            let width = 32 - count.leading_zeros();
            if shift + width + 1 > 64 {
                guard.push(0);
                shift = 0;
            }
            info.word = mask_words + guard.len() - 1;
            info.shift = shift;
            info.width = width;
            *guard.last_mut().expect("pushed above") |= 1 << (shift + width);
            shift += width + 1;
        }
        self.layout = Layout { mask_words, words: mask_words + guard.len(), guard };
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.class.len() * 20 + self.returns.len() * 8 + self.calls.len() * 4
    }
}

/// The open operations at one return event. It moves forwards and backwards.
pub struct Window<'p> {
    plan: &'p Plan,
    /// The return event.
    pub at: usize,
    /// The open operations that must happen, as places in `returns`, in order of their ends. The first returns here.
    pub open: Vec<u32>,
    /// By class of crashed operations: the number called.
    pub called: Vec<u32>,
    /// The slots that observers occupy.
    pub observers: Box<[u64]>,
    observes: &'p [bool],
}

impl<'p> Window<'p> {
    /// A window at the first return. `observes` marks the classes of observers.
    pub fn new(plan: &'p Plan, observes: &'p [bool]) -> Self {
        let mut window = Self {
            plan,
            at: 0,
            open: Vec::new(),
            called: vec![0; plan.infos.len()],
            observers: vec![0; plan.layout.mask_words].into_boxed_slice(),
            observes,
        };
        if !plan.returns.is_empty() {
            window.enter(0, plan.calls_before[0] as usize);
        }
        window
    }

    fn enter(&mut self, from: usize, to: usize) {
        for &i in &self.plan.calls[from..to] {
            let r = self.plan.return_of[i as usize];
            if r == NONE {
                self.called[self.plan.info_of[i as usize] as usize] += 1;
                continue;
            }
            self.mark(i, true);
            let place = self.open.iter().rposition(|&x| x < r).map_or(0, |p| p + 1);
            self.open.insert(place, r);
        }
    }

    fn mark(&mut self, i: u32, on: bool) {
        if self.observes[self.plan.class[i as usize] as usize] {
            let slot = self.plan.slot[i as usize];
            if on {
                set(&mut self.observers, slot);
            } else {
                clear(&mut self.observers, slot);
            }
        }
    }

    /// The operation that returns here.
    pub fn forced(&self) -> u32 {
        self.plan.returns[self.at]
    }

    /// Moves to the next return, or past the last.
    pub fn forward(&mut self) {
        let done = self.open.remove(0);
        self.mark(self.plan.returns[done as usize], false);
        let from = self.plan.calls_before[self.at] as usize;
        self.at += 1;
        if self.at < self.plan.returns.len() {
            self.enter(from, self.plan.calls_before[self.at] as usize);
        }
    }

    /// Moves to the previous return.
    pub fn backward(&mut self) {
        let from = self.plan.calls_before[self.at - 1] as usize;
        if self.at < self.plan.returns.len() {
            for &i in &self.plan.calls[from..self.plan.calls_before[self.at] as usize] {
                let r = self.plan.return_of[i as usize];
                if r == NONE {
                    self.called[self.plan.info_of[i as usize] as usize] -= 1;
                    continue;
                }
                self.mark(i, false);
                let place = self.open.binary_search(&r).expect("it was entered");
                self.open.remove(place);
            }
        }
        self.at -= 1;
        self.open.insert(0, self.at as u32);
        self.mark(self.plan.returns[self.at], true);
    }

    /// Moves to a return.
    pub fn seek(&mut self, at: usize) {
        while self.at < at {
            self.forward();
        }
        while self.at > at {
            self.backward();
        }
    }
}

impl Plan {
    /// By return: the number of operations of the marked classes that were called before it.
    pub fn calls_of(&self, marked: &[bool]) -> Vec<u32> {
        let mut counts = Vec::with_capacity(self.returns.len());
        let mut count = 0;
        let mut from = 0;
        for &to in &self.calls_before {
            for &i in &self.calls[from..to as usize] {
                count += u32::from(marked[self.class[i as usize] as usize]);
            }
            from = to as usize;
            counts.push(count);
        }
        counts
    }

    /// By class: the first return after the call of the class's last operation that returns before `limit`; 0 if
    /// there is none.
    pub fn last_called(&self, limit: usize) -> Vec<u32> {
        let mut called = vec![0; self.classes];
        let mut from = 0;
        for (at, &to) in self.calls_before.iter().enumerate() {
            for &i in &self.calls[from..to as usize] {
                if (self.return_of[i as usize] as usize) < limit {
                    called[self.class[i as usize] as usize] = at as u32;
                }
            }
            from = to as usize;
        }
        called
    }

    /// For each segment of `span` returns: the classes of the operations that can be linearized between its first
    /// return and the return `reach` later, in order.
    pub fn classes_by_segment(&self, span: usize, reach: usize) -> Vec<Vec<u32>> {
        let count = self.returns.len() / span + 1;
        let mut segments = vec![Vec::new(); count];
        let mut crashed = vec![false; self.infos.len()];
        let mut from = 0;
        for (at, &to) in self.calls_before.iter().enumerate() {
            let first = if at < reach { 0 } else { (at - reach) / span + 1 };
            for &i in &self.calls[from..to as usize] {
                let place = self.return_of[i as usize];
                if place == NONE && std::mem::replace(&mut crashed[self.info_of[i as usize] as usize], true) {
                    continue;
                }
                let last = if place == NONE { count - 1 } else { place as usize / span };
                for segment in segments.iter_mut().take(last + 1).skip(first) {
                    segment.push(self.class[i as usize]);
                }
            }
            from = to as usize;
        }
        for classes in &mut segments {
            classes.sort_unstable();
            classes.dedup();
        }
        segments
    }

    /// The average number of open operations that return.
    pub fn concurrency(&self) -> usize {
        let places = self.calls_before.iter().enumerate();
        let open = places.map(|(at, &called)| (called as usize).saturating_sub(at)).sum::<usize>();
        open / self.returns.len().max(1)
    }

    /// The crashed operations of each class, in order of their starts.
    pub fn info_members(&self) -> Vec<Vec<u32>> {
        let mut members = vec![Vec::new(); self.infos.len()];
        for &i in &self.calls {
            let k = self.info_of[i as usize];
            if k != NONE {
                members[k as usize].push(i);
            }
        }
        members
    }
}
