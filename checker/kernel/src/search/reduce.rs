//! Reductions for any model that is finite on the history at hand, found from its table of steps.
//!
//! A configuration is *good* if the operations that it has not linearized can be appended to it in some legal order that
//! respects real time. Each reduction replaces "is this configuration good?" by a question with the same answer, so any of
//! them may be combined, and the search stays exact. `A` is an automaton of `automaton`, restricted to the classes of a segment
//! of the history. There are two ways to make segments:
//!
//! - *Whole*: `A` has every state that the history can reach. A segment has the classes of what is linearized at its first
//!   return or later, so that the classes shrink from one segment to the next. Its horizon is the end of the history.
//! - *Local*, where the states are too many: `A` has the states that can be reached from those that the search meets in the
//!   segment, by what is open there or called before its horizon, some returns behind its end.
//!
//! What follows from `A` holds for operations that return before the horizon: until then nothing happens but steps of `A`.
//!
//! 1. **Equivalent states.** States that no sequence of classes still to come tells apart accept the same orders. The memory
//!    of configurations takes them for one. All that follows is about the quotient of `A`, which has more to reduce. Local
//!    segments do without it: what comes behind the horizon could tell the states apart.
//! 2. **Idle operations.** A class is idle in a state if it maps that state to itself, and each state that can be reached from
//!    it to itself or nowhere. An open operation of an idle class that returns before the horizon is linearized at once. In a legal order that has it later,
//!    it changes no state there; so the order without it is legal, and it is legal in front. It is open, so no real-time order
//!    forbids the front. Observers that match are a case of this, and the only one that needs no table.
//! 3. **Commuting operations.** Two classes commute if in every state both orders end in the same state, or neither is legal.
//!    At the return of an operation `f` that is not linearized, let `D` be the least set of classes that holds the class of
//!    `f`, and each class of an open or crashed operation that does not commute with a member. Only moves of `D` are tried: a
//!    persistent set (Godefroid, *Partial-order methods for the verification of concurrent systems*, 1996). In a legal order,
//!    all that comes before `f` is open or crashed, because nothing else was called before `f` returned. What of it is not in
//!    `D` commutes with all of it that is, so it can be moved behind `f`, one step after the other. It is still
//!    linearized before everything that came after `f`, so its own return is respected; and it was called before `f`
//!    returned, so its call is.
//! 4. **Dead ends.** A configuration is not good if an operation that returns before the horizon is to come, and its class is
//!    possible neither in the state nor in any that can be reached from it.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use super::automaton::{Automaton, Rows};
use super::machine::{Machine, ILLEGAL};
use super::memo::{has, Bits};
use super::plan::{Plan, Window};
use crate::hash::FastHasher;
use crate::ops::NONE;

/// Which reductions may be used; tests switch them off one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // each is a switch by itself
pub struct Allowed {
    /// Equivalent states are one.
    pub equal: bool,
    /// Idle operations are linearized at once.
    pub idle: bool,
    /// Of operations that commute one order is tried.
    pub commuting: bool,
    /// What cannot be linearized any more ends a branch.
    pub dead_ends: bool,
    /// When the search looks at the model.
    pub start: Start,
    /// Steps of the first turn, in which every search has its share. None: as many as serve; tests take few.
    pub first_turn: Option<u64>,
}

/// When the search looks at the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// When a first attempt did not decide, for a share of the time that the search takes.
    Later,
    /// Before anything is searched, at the whole model if it is small; for tests.
    Whole,
    /// Before anything is searched, at local segments, whatever they cost; for tests.
    Local,
}

impl Allowed {
    /// All reductions.
    pub const ALL: Self =
        Self { equal: true, idle: true, commuting: true, dead_ends: true, start: Start::Later, first_turn: None };
    /// The plain search.
    pub const NONE: Self = Self { equal: false, idle: false, commuting: false, dead_ends: false, ..Self::ALL };

    /// Whether any reduction is allowed.
    pub fn any(self) -> bool {
        self.equal || self.idle || self.commuting || self.dead_ends
    }
}

/// How often the reductions applied, and how large the automaton is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// States of the automaton, or of the largest local one.
    pub states: u64,
    /// Blocks of equivalent states, for the classes of the whole history; 0 where the segments are local.
    pub blocks: u64,
    /// Local segments.
    pub segments: u64,
    /// Operations that were linearized at once and are no observers.
    pub idle: u64,
    /// Moves that were not tried because they commute with all that matters.
    pub commuting: u64,
    /// Configurations that were dropped.
    pub dead_ends: u64,
}

/// What is known of a history and its model.
pub struct Reduced {
    kind: Kind,
    allowed: Allowed,
    counts: Cell<Counts>,
}

enum Kind {
    Whole(Vec<Rc<Segment>>),
    Local(RefCell<Local>),
}

/// A part of the history, and what its automaton tells.
pub struct Segment {
    /// Its first return.
    from: u32,
    /// What returns here or later is beyond the automaton.
    horizon: u32,
    /// The classes of the automaton, by number.
    classes: Vec<u32>,
    /// By class its number; None if each has its own.
    numbers: Option<HashMap<u32, u32, FastHasher>>,
    /// By state of the machine: its block; None if `rows` has them.
    block: Vec<u32>,
    /// By state of the machine: its row.
    rows: HashMap<u32, u32, FastHasher>,
    /// By block: the classes that are idle there.
    idle: Rows,
    /// By block: the classes that are possible there or later.
    possible: Rows,
    /// By class: the classes that it does not commute with.
    dependent: Rows,
    /// By block: at returns before this one, something is still to be called that is not possible any more.
    hopeless: RefCell<Vec<u32>>,
}

/// What a segment says of one configuration.
pub struct View {
    segment: Rc<Segment>,
    row: u32,
}

/// Segments that are made when the search comes to them.
struct Local {
    /// Returns in a segment.
    span: usize,
    /// By segment: its classes.
    classes: Vec<Vec<u32>>,
    parts: Vec<Part>,
    /// Steps that may be spent on segments.
    allowance: u64,
}

#[derive(Clone)]
enum Part {
    Unseen,
    /// With the states that it was made from.
    Made(Rc<Segment>, Vec<u32>),
    /// It has too many states.
    TooLarge,
}

/// Look-ups for refinement and for pairs of classes, for each entry of the table; at least `LEAST_WORK` for a whole automaton.
const WORK: u64 = 64;
const LEAST_WORK: u64 = 1 << 20;
/// The same for a local segment.
const LOCAL_WORK: u64 = 16;
/// How many look-ups take as long as a step of the search, about.
const LOOK_UPS: u64 = 16;
/// Returns in a local segment, at least.
const LEAST_SPAN: usize = 16;
/// From the first return of a local segment to its horizon, in spans.
const REACH: usize = 3;
/// What a local segment may have, at most: states, and entries in its table.
const MOST_STATES: usize = 1 << 10;
const MOST_ENTRIES: usize = 1 << 14;
/// How often a local segment is made again because the search met another state in it.
const MOST_SEEDS: usize = 8;

impl Reduced {
    /// What a complete automaton tells. The classes of `plan` are those of the automaton.
    pub fn whole(plan: &Plan, automaton: &Automaton, allowed: Allowed) -> Self {
        let mut last = vec![0; plan.classes];
        for (place, &i) in plan.returns.iter().enumerate() {
            last[plan.class[i as usize] as usize] = place as u32 + 1;
        }
        for info in &plan.infos {
            last[info.class as usize] = NONE;
        }
        let mut work = (WORK * (automaton.states() * automaton.classes) as u64).max(LEAST_WORK);
        let mut segments = Vec::new();
        for from in starts(&last) {
            let classes: Vec<u32> = (0..plan.classes as u32).filter(|&class| last[class as usize] > from).collect();
            let block = allowed.equal.then(|| automaton.blocks(&classes, &mut work)).flatten();
            let block = block.unwrap_or_else(|| (0..automaton.states() as u32).collect());
            let quotient = automaton.quotient(&block, &classes);
            let segment = Segment { from, block, ..Segment::new(&quotient, &classes, allowed, &mut work) };
            segments.push(Rc::new(segment));
        }
        let blocks = segments[0].hopeless.borrow().len() as u64;
        let counts = Counts { states: automaton.states() as u64, blocks, ..Counts::default() };
        let reduced = Self { kind: Kind::Whole(segments), allowed, counts: Cell::new(counts) };
        reduced.set_limit(plan, plan.returns.len());
        reduced
    }

    /// Local segments, to be made when the search comes to them; `allowance` is how many steps that may take at first.
    pub fn local(plan: &Plan, allowed: Allowed, allowance: u64) -> Self {
        let span = LEAST_SPAN.max(plan.concurrency());
        let classes = plan.classes_by_segment(span, REACH * span);
        let local = Local { span, parts: vec![Part::Unseen; classes.len()], classes, allowance };
        Self { kind: Kind::Local(RefCell::new(local)), allowed, counts: Cell::default() }
    }

    /// Takes what returns at or behind `limit` as something that need not happen.
    pub fn set_limit(&self, plan: &Plan, limit: usize) {
        let Kind::Whole(segments) = &self.kind else {
            return;
        };
        let called = plan.last_called(limit);
        for segment in segments {
            for (block, hopeless) in segment.hopeless.borrow_mut().iter_mut().enumerate() {
                let lost = segment.classes.iter().filter(|&&class| !segment.possible.has(block as u32, class));
                *hopeless = lost.map(|&class| called[class as usize]).max().unwrap_or(0);
            }
        }
    }

    /// Whether a branch can end before the first return at which nothing is left.
    pub fn looks_ahead(&self) -> bool {
        self.allowed.dead_ends
    }

    /// Changes the counts.
    pub fn count(&self, change: impl FnOnce(&mut Counts)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }

    /// The number of the states that are as good as this one at a return.
    #[inline]
    pub fn key(&self, at: usize, state: u32) -> u32 {
        match &self.kind {
            Kind::Whole(segments) => whole_at(segments, at).block[state as usize],
            Kind::Local(_) => state,
        }
    }

    /// What is known of a state at a return; None if that is nothing.
    pub fn view<M: Machine>(&self, plan: &Plan, machine: &mut M, at: usize, state: u32) -> Option<View> {
        match &self.kind {
            Kind::Whole(segments) => {
                let segment = Rc::clone(whole_at(segments, at));
                let row = segment.block[state as usize];
                Some(View { segment, row })
            }
            Kind::Local(local) => {
                let segment = local.borrow_mut().segment(plan, machine, at, state, self.allowed)?;
                let row = *segment.rows.get(&state)?;
                self.count(|counts| {
                    counts.states = counts.states.max(segment.rows.len() as u64);
                });
                Some(View { segment, row })
            }
        }
    }

    /// Lets more steps be spent on local segments.
    pub fn earn(&self, steps: u64) {
        if let Kind::Local(local) = &self.kind {
            let mut local = local.borrow_mut();
            local.allowance = local.allowance.saturating_add(steps);
        }
    }

    /// How often what applied, and how many local segments were made.
    pub fn counts(&self) -> Counts {
        let mut counts = self.counts.get();
        if let Kind::Local(local) = &self.kind {
            counts.segments =
                local.borrow().parts.iter().filter(|part| matches!(part, Part::Made(..))).count() as u64;
        }
        counts
    }
}

fn whole_at(segments: &[Rc<Segment>], at: usize) -> &Rc<Segment> {
    let place = segments.iter().rposition(|segment| segment.from as usize <= at);
    &segments[place.unwrap_or(0)]
}

impl Local {
    fn segment<M: Machine>(
        &mut self,
        plan: &Plan,
        machine: &mut M,
        at: usize,
        state: u32,
        allowed: Allowed,
    ) -> Option<Rc<Segment>> {
        let place = at / self.span;
        let mut seeds = match &self.parts[place] {
            Part::TooLarge => return None,
            Part::Made(segment, seeds) if segment.rows.contains_key(&state) || seeds.len() == MOST_SEEDS => {
                return Some(Rc::clone(segment));
            }
            Part::Made(_, seeds) => seeds.clone(),
            Part::Unseen => Vec::new(),
        };
        if self.allowance == 0 {
            return None;
        }
        seeds.push(state);
        let from = place * self.span;
        let horizon = (from + REACH * self.span).min(plan.returns.len());
        let classes = self.classes[place].clone();
        let before = machine.asked();
        let last = before.saturating_add(self.allowance / machine.cost());
        let reached = reach(machine, &classes, &seeds, last);
        let entries = reached.as_ref().map_or(MOST_ENTRIES, |(rows, _)| rows.len() * classes.len());
        let cost = (machine.asked() - before) * machine.cost() + entries as u64;
        if allowed.start != Start::Local {
            self.allowance = self.allowance.saturating_sub(cost);
        }
        let Some((rows, automaton)) = reached else {
            // What stopped only because it cost too much goes on later: the machine remembers its answers.
            if machine.asked() <= last {
                self.parts[place] = Part::TooLarge;
            }
            return None;
        };
        let granted = LOCAL_WORK * entries as u64;
        let mut work = granted;
        let numbers = classes.iter().enumerate().map(|(number, &class)| (class, number as u32)).collect();
        let columns: Vec<u32> = (0..classes.len() as u32).collect();
        let segment = Rc::new(Segment {
            from: from as u32,
            horizon: horizon as u32,
            numbers: Some(numbers),
            rows,
            ..Segment::new(&automaton, &columns, allowed, &mut work)
        });
        if allowed.start != Start::Local {
            self.allowance = self.allowance.saturating_sub((granted - work) / LOOK_UPS);
        }
        self.parts[place] = Part::Made(Rc::clone(&segment), seeds);
        Some(segment)
    }
}

/// The states that some classes reach from the seeds, by the number of their row, and their automaton; None if they are many, or
/// if the machine has asked its model more than `last` times.
fn reach<M: Machine>(
    machine: &mut M,
    classes: &[u32],
    seeds: &[u32],
    last: u64,
) -> Option<(HashMap<u32, u32, FastHasher>, Automaton)> {
    let mut rows: HashMap<u32, u32, FastHasher> = HashMap::default();
    let mut states: Vec<u32> = Vec::new();
    for &seed in seeds {
        let fresh = states.len() as u32;
        if *rows.entry(seed).or_insert(fresh) == fresh {
            states.push(seed);
        }
    }
    let mut next = Vec::new();
    let mut place = 0;
    while place < states.len() {
        let many = states.len() > MOST_STATES || states.len() * classes.len() > MOST_ENTRIES;
        if many || machine.asked() > last || machine.failed() {
            return None;
        }
        for &class in classes {
            let after = machine.step(states[place], class);
            next.push(if after == ILLEGAL {
                ILLEGAL
            } else {
                let fresh = states.len() as u32;
                let row = *rows.entry(after).or_insert(fresh);
                if row == fresh {
                    states.push(after);
                }
                row
            });
        }
        place += 1;
    }
    Some((rows, Automaton::new(classes.len(), next)))
}

impl Segment {
    /// What an automaton tells, for those of its classes. It has no horizon.
    fn new(automaton: &Automaton, classes: &[u32], allowed: Allowed, work: &mut u64) -> Self {
        let count = automaton.states();
        let step = |state, class| automaton.step(state, class);
        let mut idle = Rows::new(count, automaton.classes);
        if allowed.idle {
            let moves = |state, class| step(state, class) != ILLEGAL && step(state, class) != state;
            let moving = automaton.reached_from(classes, moves);
            for state in 0..count as u32 {
                for &class in classes {
                    if step(state, class) == state && !moving.has(state, class) {
                        idle.insert(state, class);
                    }
                }
            }
        }
        Self {
            from: 0,
            horizon: NONE,
            classes: classes.to_vec(),
            numbers: None,
            block: Vec::new(),
            rows: HashMap::default(),
            idle,
            possible: automaton.reached_from(classes, |state, class| step(state, class) != ILLEGAL),
            dependent: if allowed.commuting {
                automaton.dependent(classes, work)
            } else {
                Rows::new(0, automaton.classes)
            },
            hopeless: RefCell::new(vec![0; count]),
        }
    }

    fn number(&self, class: u32) -> Option<u32> {
        match &self.numbers {
            None => Some(class),
            Some(numbers) => numbers.get(&class).copied(),
        }
    }
}

impl View {
    /// Whether an operation of a class that has a place in the returns is idle.
    #[inline]
    pub fn idle(&self, class: u32, place: u32) -> bool {
        place < self.segment.horizon
            && self.segment.number(class).is_some_and(|number| self.segment.idle.has(self.row, number))
    }

    /// Whether something that must happen cannot happen any more.
    pub fn dead_end<B: Bits>(&self, plan: &Plan, window: &Window, limit: usize, bits: &B) -> bool {
        let segment = &self.segment;
        let due = limit.min(segment.horizon as usize);
        let lost = |&r: &u32| {
            let i = plan.returns[r as usize] as usize;
            let possible = |number| segment.possible.has(self.row, number);
            (r as usize) < due && !has(bits, plan.slot[i]) && !segment.number(plan.class[i]).is_some_and(possible)
        };
        segment.hopeless.borrow()[self.row as usize] as usize > window.at || window.open.iter().any(lost)
    }

    /// Finds the classes of `D` (see the module) among those that are present; False if that leaves nothing out.
    pub fn persistent(&self, forced: u32, present: impl Iterator<Item = u32>, set: &mut Set) -> bool {
        let segment = &self.segment;
        let Some(forced) = segment.number(forced) else {
            return false;
        };
        let words = segment.classes.len().max(forced as usize + 1).div_ceil(64).max(segment.possible.words());
        set.clear(words);
        for class in present {
            // What is not possible any more comes before nothing.
            match segment.number(class) {
                Some(number) if segment.possible.has(self.row, number) => {
                    set.present[number as usize / 64] |= 1 << (number % 64);
                }
                Some(_) => {}
                None => return false,
            }
        }
        let mut member = forced;
        loop {
            set.members[member as usize / 64] |= 1 << (member % 64);
            set.present[member as usize / 64] &= !(1 << (member % 64));
            // A member that is still present is one whose own row was not added yet.
            let mut waiting = None;
            for (word, dependent) in segment.dependent.row(member).iter().enumerate() {
                set.members[word] |= set.present[word] & dependent;
                let left = set.members[word] & set.present[word];
                if left != 0 {
                    waiting = Some(word as u32 * 64 + left.trailing_zeros());
                }
            }
            match waiting {
                Some(class) => member = class,
                None => return set.present.iter().any(|&word| word != 0),
            }
        }
    }

    /// Whether a class is in a set that `persistent` made.
    pub fn member(&self, set: &Set, class: u32) -> bool {
        let number = self.segment.number(class);
        number.is_some_and(|number| set.members[number as usize / 64] >> (number % 64) & 1 == 1)
    }
}

/// Room for `View::persistent`.
#[derive(Default)]
pub struct Set {
    present: Vec<u64>,
    members: Vec<u64>,
}

impl Set {
    fn clear(&mut self, words: usize) {
        for row in [&mut self.present, &mut self.members] {
            row.clear();
            row.resize(words, 0);
        }
    }
}

/// Where segments begin: at the first return, and wherever the classes still to come are half as many as at the last start.
fn starts(last: &[u32]) -> Vec<u32> {
    let mut ends: Vec<u32> = last.to_vec();
    ends.sort_unstable_by(|a, b| b.cmp(a));
    let mut starts = vec![0];
    let mut left = ends.len() / 2;
    while left > 0 {
        // From here on, no more than `left` classes have a return.
        let from = ends[left];
        if from != NONE && Some(&from) != starts.last() {
            starts.push(from);
        }
        left /= 2;
    }
    starts
}
