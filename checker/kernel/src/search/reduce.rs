//! Reductions for any model that is finite on the history, found from its table of steps.
//!
//! A configuration is *good* if its remaining operations can be appended in some legal order that respects real time.
//! Each reduction replaces the question "is this configuration good?" by one with the same answer. So any of them can
//! be combined, and the search stays exact. `A` is an automaton of `automaton`, restricted to the classes of a
//! segment of the history. There are two kinds of segments:
//!
//! - *Whole*: `A` has every state that the history can reach. A segment has the classes of the operations that are
//!   linearized at its first return or later, so the classes shrink from one segment to the next. Its horizon is the
//!   end of the history.
//! - *Local*, if there are too many states: `A` has the states that can be reached from those that the search meets
//!   in the segment, by operations that are open there or called before its horizon. The horizon is some returns
//!   after its end.
//!
//! Facts about `A` hold for operations that return before the horizon: until then, every step is a step of `A`.
//!
//! 1. **Equivalent states.** Two states are equivalent if no sequence of remaining classes distinguishes them. They
//!    accept the same orders, so the memory of configurations takes them for one. All other reductions use the
//!    quotient of `A`, which allows more of them. Local segments omit this one: operations after the horizon could
//!    distinguish the states.
//! 2. **Idle operations.** A class is idle in a state if it maps that state to itself, and maps each state that can
//!    be reached from it to itself or to none. The search linearizes an open operation of an idle class at once if
//!    the operation returns before the horizon. *Proof.* Take a legal order that has it later. There it changes no
//!    state, so the order without it is legal, and the order with it in front is legal too. It is open, so real time
//!    allows the front. Observers that match are a special case, the only one that needs no table.
//! 3. **Commuting operations.** Two classes commute if in every state both orders end in the same state, or both are
//!    illegal. Let `f` be an operation that returns and is not linearized. Let `D` be the smallest set of classes
//!    that contains the class of `f`, and each class of an open or crashed operation that does not commute with a
//!    member. The search tries only steps of `D`: a persistent set (Godefroid, *Partial-order methods for the
//!    verification of concurrent systems*, 1996). *Proof.* In a legal order, every operation before `f` is open or
//!    crashed, because no other was called before `f` returned. The ones outside `D` commute with all the ones in
//!    `D`, so they can be moved behind `f`, one step after the other. A moved operation is still linearized before
//!    everything called after the return of `f`, so real time is respected at its return. It was called before `f`
//!    returned, so real time is respected at its call.
//! 4. **Dead ends.** A configuration is not good if some remaining operation returns before the horizon, and its
//!    class is possible neither in the state nor in any state that can be reached from it.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use super::automaton::{Automaton, Rows};
use super::machine::{Machine, ILLEGAL};
use super::memo::{has, Bits};
use super::plan::{Plan, Window};
use crate::hash::FastHasher;
use crate::ops::NONE;

/// The reductions that may be used. Tests switch them off one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // each is a switch by itself
pub struct Allowed {
    /// Treat equivalent states as one.
    pub equal: bool,
    /// Linearize idle operations at once.
    pub idle: bool,
    /// Try one order of operations that commute.
    pub commuting: bool,
    /// End a branch if a remaining operation can no longer be linearized.
    pub dead_ends: bool,
    /// When the search explores the model.
    pub start: Start,
    /// Steps of the first round of turns. None: the normal number. Tests use few.
    pub first_turn: Option<u64>,
}

/// When the search explores the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// After a first attempt has not decided, for a share of the search's time.
    Later,
    /// Before any search: the whole model if it is small. For tests.
    Whole,
    /// Before any search: local segments at any cost. For tests.
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

/// How often each reduction applied, and the size of the automaton.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// States of the automaton, or of the largest local one.
    pub states: u64,
    /// Blocks of equivalent states for the classes of the whole history; 0 if the segments are local.
    pub blocks: u64,
    /// Local segments.
    pub segments: u64,
    /// Operations that are not observers and were linearized at once.
    pub idle: u64,
    /// Steps that were omitted because they commute with all members of `D`.
    pub commuting: u64,
    /// Configurations that were dropped as dead ends.
    pub dead_ends: u64,
}

/// The known facts about a history and its model.
pub struct Reduced {
    kind: Kind,
    allowed: Allowed,
    counts: Cell<Counts>,
}

enum Kind {
    Whole(Vec<Rc<Segment>>),
    Local(RefCell<Local>),
}

/// A part of the history, with the facts of its automaton.
pub struct Segment {
    /// Its first return.
    from: u32,
    /// The automaton covers only operations that return before this one.
    horizon: u32,
    /// The classes of the automaton in order of their numbers.
    classes: Vec<u32>,
    /// By class: its number. None if each class is its own number.
    numbers: Option<HashMap<u32, u32, FastHasher>>,
    /// By state of the machine: its block. None if `rows` has the blocks.
    block: Vec<u32>,
    /// By state of the machine: its row.
    rows: HashMap<u32, u32, FastHasher>,
    /// By block: the classes that are idle there.
    idle: Rows,
    /// By block: the classes that are possible there or later.
    possible: Rows,
    /// By class: the classes that it does not commute with.
    dependent: Rows,
    /// By block: before this return, a class still to be called is no longer possible.
    hopeless: RefCell<Vec<u32>>,
}

/// The facts of a segment about one configuration.
pub struct View {
    segment: Rc<Segment>,
    row: u32,
}

/// Segments that are made on the search's first visit.
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
    /// The segment, and the states from which it was made.
    Made(Rc<Segment>, Vec<u32>),
    /// It has too many states.
    TooLarge,
}

/// The maximum number of look-ups for refinement and for pairs of classes, per table entry; at least `LEAST_WORK` for
/// a whole automaton.
const WORK: u64 = 64;
const LEAST_WORK: u64 = 1 << 20;
/// The same for a local segment.
const LOCAL_WORK: u64 = 16;
/// The number of look-ups that take about as long as a step of the search.
const LOOK_UPS: u64 = 16;
/// The minimum number of returns in a local segment.
const LEAST_SPAN: usize = 16;
/// The distance from a local segment's first return to its horizon, in spans.
const REACH: usize = 3;
/// The limits of a local segment: states, and table entries.
const MOST_STATES: usize = 1 << 10;
const MOST_ENTRIES: usize = 1 << 14;
/// How often a local segment may be made again because the search met a new state in it.
const MOST_SEEDS: usize = 8;

impl Reduced {
    /// The facts of a complete automaton. The classes of `plan` are those of the automaton.
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

    /// Local segments, made on the search's first visit. `allowance` is the initial number of steps for them.
    pub fn local(plan: &Plan, allowed: Allowed, allowance: u64) -> Self {
        let span = LEAST_SPAN.max(plan.concurrency());
        let classes = plan.classes_by_segment(span, REACH * span);
        let local = Local { span, parts: vec![Part::Unseen; classes.len()], classes, allowance };
        Self { kind: Kind::Local(RefCell::new(local)), allowed, counts: Cell::default() }
    }

    /// Treats operations that return at `limit` or later as operations that need not happen.
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

    /// Whether a branch can end before the first return without a linearization.
    pub fn looks_ahead(&self) -> bool {
        self.allowed.dead_ends
    }

    /// Changes the counts.
    pub fn count(&self, change: impl FnOnce(&mut Counts)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }

    /// The number of a state's equivalence class at a return.
    #[inline]
    pub fn key(&self, at: usize, state: u32) -> u32 {
        match &self.kind {
            Kind::Whole(segments) => whole_at(segments, at).block[state as usize],
            Kind::Local(_) => state,
        }
    }

    /// The facts about a state at a return, if there are any.
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

    /// Allows more steps for local segments.
    pub fn earn(&self, steps: u64) {
        if let Kind::Local(local) = &self.kind {
            let mut local = local.borrow_mut();
            local.allowance = local.allowance.saturating_add(steps);
        }
    }

    /// How often each reduction applied, and the number of local segments.
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
            // An exploration that stopped only for its cost continues later: the machine keeps its answers.
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

/// The states that some classes reach from the seeds, with the number of their row, and their automaton. None if
/// there are too many, or if the machine has asked its model more than `last` times.
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
    /// The facts of an automaton about some of its classes, without a horizon.
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
    /// Whether an operation is idle, given its class and its place in the returns.
    #[inline]
    pub fn idle(&self, class: u32, place: u32) -> bool {
        place < self.segment.horizon
            && self.segment.number(class).is_some_and(|number| self.segment.idle.has(self.row, number))
    }

    /// Whether an operation that must happen is no longer possible.
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

    /// Finds the classes of `D` (see the module) among the present ones. Returns false if that omits none.
    pub fn persistent(&self, forced: u32, present: impl Iterator<Item = u32>, set: &mut Set) -> bool {
        let segment = &self.segment;
        let Some(forced) = segment.number(forced) else {
            return false;
        };
        let words = segment.classes.len().max(forced as usize + 1).div_ceil(64).max(segment.possible.words());
        set.clear(words);
        for class in present {
            // A class that is no longer possible does not constrain the order.
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
            // A member that is still present is one whose row was not added yet.
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

    /// Whether a class is in a set of `persistent`.
    pub fn member(&self, set: &Set, class: u32) -> bool {
        let number = self.segment.number(class);
        number.is_some_and(|number| set.members[number as usize / 64] >> (number % 64) & 1 == 1)
    }
}

/// Buffers of `View::persistent`.
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

/// The starts of segments: the first return, and each return at which half of the classes of the last start are left.
fn starts(last: &[u32]) -> Vec<u32> {
    let mut ends: Vec<u32> = last.to_vec();
    ends.sort_unstable_by(|a, b| b.cmp(a));
    let mut starts = vec![0];
    let mut left = ends.len() / 2;
    while left > 0 {
        // From here on, at most `left` classes have a return.
        let from = ends[left];
        if from != NONE && Some(&from) != starts.last() {
            starts.push(from);
        }
        left /= 2;
    }
    starts
}
