//! The operations of one history as columns, and the result of a near-linear check.
//!
//! Every analyzer reads the same columns: an opcode `f`, two arguments `a` and `b`, an optional list argument, and
//! the interval `[s, e]`. The intervals alone determine the order of two operations: `x` precedes `y` iff `e(x) <
//! s(y)`. Operations with equal positions are concurrent. `e == INF` marks an operation that may not have happened.

/// The end of an operation that never returned.
pub const INF: i64 = i64::MAX;
/// Before everything.
pub const NEG: i64 = i64::MIN;
/// No operation.
pub const NONE: u32 = u32::MAX;

/// Opcodes. The family of a history determines which of them it may have.
pub mod op {
    /// Register: reads `a`.
    pub const READ: u8 = 0;
    /// Register: writes `a`.
    pub const WRITE: u8 = 1;
    /// Register: reads `a` and writes `b`.
    pub const CAS: u8 = 2;
    /// Register: reads a value other than `a`.
    pub const CAS_FAIL: u8 = 3;
    /// Mutex: `a` is the process.
    pub const ACQUIRE: u8 = 4;
    /// Mutex: `a` is the process.
    pub const RELEASE: u8 = 5;
    /// Queue: adds `a` at the end.
    pub const ENQUEUE: u8 = 6;
    /// Queue: takes `a`.
    pub const DEQUEUE: u8 = 7;
    /// Queue: takes any element; such a dequeue never returns.
    pub const DEQUEUE_ANY: u8 = 8;
    /// Queue: finds it empty.
    pub const DEQUEUE_EMPTY: u8 = 9;
    /// Set: adds `a`.
    pub const ADD: u8 = 10;
    /// Set: removes `a`, whether it is in the set or not.
    pub const REMOVE: u8 = 11;
    /// Set: finds `a` in the set (`b` is 1) or not (`b` is 0).
    pub const CONTAINS: u8 = 12;
    /// Set: reads exactly the elements in the list, which is sorted and has no duplicates.
    pub const READ_SET: u8 = 13;
    /// Counter: adds `a`.
    pub const INCREMENT: u8 = 14;
    /// Counter: reads `a`.
    pub const READ_COUNT: u8 = 15;
    /// Counter: adds `a` and returns `b`, the count before.
    pub const FETCH_ADD: u8 = 16;
    /// Sequence: appends the list.
    pub const APPEND: u8 = 17;
    /// Sequence: replaces the content by the list.
    pub const PUT: u8 = 18;
    /// Sequence: reads exactly the list.
    pub const READ_LIST: u8 = 19;
    /// Several registers: the list has triples (0 read or 1 write or 2 read any value, register, value), executed in
    /// order.
    pub const TXN: u8 = 20;
    /// Any other: the class `a` of a user's own model.
    pub const CUSTOM: u8 = 21;
    /// Always legal, changes nothing.
    pub const NOOP: u8 = 22;
    /// The highest opcode.
    pub const LAST: u8 = 22;
}

/// The kind of object that the columns describe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// One cell: read, write, cas, failed cas.
    Register,
    /// A lock that anyone may release.
    Mutex,
    /// A lock that only its holder may release.
    OwnerMutex,
    /// Several cells, changed together.
    MultiRegister,
    /// Elements that can be added and removed.
    Set,
    /// Elements that can only be added.
    GrowSet,
    /// A sum.
    Counter,
    /// A FIFO queue.
    Fifo,
    /// A bag.
    Bag,
    /// A list or a string: append, put, read all.
    Sequence,
    /// Every operation is legal.
    Noop,
    /// A user's own model.
    Custom,
}

impl Family {
    /// The family with this name.
    pub fn of(name: &str) -> Option<Self> {
        Some(match name {
            "register" => Self::Register,
            "mutex" => Self::Mutex,
            "owner-mutex" => Self::OwnerMutex,
            "multi-register" => Self::MultiRegister,
            "set" => Self::Set,
            "grow-set" => Self::GrowSet,
            "counter" => Self::Counter,
            "fifo-queue" => Self::Fifo,
            "unordered-queue" => Self::Bag,
            "sequence" => Self::Sequence,
            "noop" => Self::Noop,
            "custom" => Self::Custom,
            _ => return None,
        })
    }

    /// Whether a history of this family may have the opcode.
    pub fn allows(self, f: u8) -> bool {
        match self {
            Self::Register => f <= op::CAS_FAIL,
            Self::Mutex | Self::OwnerMutex => f == op::ACQUIRE || f == op::RELEASE,
            Self::MultiRegister => f == op::TXN,
            Self::Set => (op::ADD..=op::READ_SET).contains(&f),
            Self::GrowSet => matches!(f, op::ADD | op::CONTAINS | op::READ_SET),
            Self::Counter => (op::INCREMENT..=op::FETCH_ADD).contains(&f),
            Self::Fifo | Self::Bag => (op::ENQUEUE..=op::DEQUEUE_EMPTY).contains(&f),
            Self::Sequence => (op::APPEND..=op::READ_LIST).contains(&f),
            Self::Noop => f == op::NOOP,
            Self::Custom => f == op::CUSTOM,
        }
    }
}

/// Whether an operation never changes the state; then a crashed one is irrelevant.
pub fn observes(f: u8) -> bool {
    matches!(
        f,
        op::READ
            | op::CAS_FAIL
            | op::DEQUEUE_EMPTY
            | op::CONTAINS
            | op::READ_SET
            | op::READ_COUNT
            | op::READ_LIST
            | op::NOOP
    )
}

/// Borrowed columns of one history.
#[derive(Clone, Copy, Debug)]
pub struct Ops<'a> {
    /// Opcodes.
    pub f: &'a [u8],
    /// First arguments.
    pub a: &'a [i64],
    /// Second arguments.
    pub b: &'a [i64],
    /// Starts.
    pub s: &'a [i64],
    /// Ends, or `INF`.
    pub e: &'a [i64],
    /// The bounds of the list arguments in `flat`, one more than operations; empty if there are no lists.
    pub off: &'a [i64],
    /// List arguments, one after the other.
    pub flat: &'a [i64],
}

impl<'a> Ops<'a> {
    /// The number of operations.
    pub fn len(&self) -> usize {
        self.f.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.f.is_empty()
    }

    /// The list argument of an operation.
    pub fn list(&self, i: usize) -> &'a [i64] {
        if self.off.is_empty() {
            &[]
        } else {
            &self.flat[self.off[i] as usize..self.off[i + 1] as usize]
        }
    }

    /// Returns the problem of the columns or of the initial state, if there is one.
    ///
    /// An analyzer may rely only on what is checked here. On columns without a meaning, algorithms could give
    /// different answers.
    pub fn validate(&self, family: Family, initial: &[i64]) -> Result<(), String> {
        self.validate_shape()?;
        let begins = match family {
            Family::Register | Family::Counter => initial.len() == 1,
            Family::Mutex => matches!(initial, [0 | 1]),
            Family::OwnerMutex => matches!(initial, [owner] if *owner >= 0),
            Family::Bag => initial.first() == Some(&0) && initial[1..].is_sorted(),
            Family::Set | Family::GrowSet => rises(initial),
            _ => true,
        };
        if !begins {
            return Err(format!("{family:?} cannot begin with {initial:?}"));
        }
        for i in 0..self.len() {
            if !family.allows(self.f[i]) {
                return Err(format!("operation {i}: opcode {} does not belong to {family:?}", self.f[i]));
            }
            if self.e[i] < self.s[i] || self.s[i] == INF || self.s[i] == NEG {
                return Err(format!("operation {i}: it ends at {} but starts at {}", self.e[i], self.s[i]));
            }
            self.validate_arguments(i, initial).map_err(|what| format!("operation {i}: {what}"))?;
        }
        if family == Family::Counter {
            self.validate_sum(initial[0])?;
        }
        Ok(())
    }

    fn validate_shape(&self) -> Result<(), String> {
        let n = self.f.len();
        if n >= NONE as usize / 2 {
            return Err(format!("expected fewer than {} operations, found {n}", NONE / 2));
        }
        for (name, len) in [("a", self.a.len()), ("b", self.b.len()), ("s", self.s.len()), ("e", self.e.len())] {
            if len != n {
                return Err(format!("expected columns of one length: f has {n} entries, {name} has {len}"));
            }
        }
        if !self.off.is_empty() {
            if self.off.len() != n + 1 {
                return Err(format!("expected {} list bounds, found {}", n + 1, self.off.len()));
            }
            if self.off[0] != 0 || !self.off.is_sorted() || self.off[n] as usize != self.flat.len() {
                return Err("expected list bounds that rise from 0 to the number of list elements".into());
            }
        }
        Ok(())
    }

    fn validate_arguments(&self, i: usize, initial: &[i64]) -> Result<(), String> {
        let (a, b, list) = (self.a[i], self.b[i], self.list(i));
        match self.f[i] {
            op::ACQUIRE | op::RELEASE if !(0..INF).contains(&a) => Err(format!("{a} is no process")),
            op::DEQUEUE_ANY if self.e[i] != INF => {
                Err(format!("expected what a dequeue that returned at {} took", self.e[i]))
            }
            op::CONTAINS if !(0..=1).contains(&b) => Err(format!("expected 1 (there) or 0 (not there), found {b}")),
            op::READ_SET if !rises(list) => Err("expected a sorted list without duplicates".into()),
            op::TXN => {
                let fits = |m: &[i64]| (0..=2).contains(&m[0]) && (0..initial.len() as i64).contains(&m[1]);
                if list.len() % 3 == 0 && list.chunks_exact(3).all(fits) {
                    Ok(())
                } else {
                    Err(format!("expected triples (kind, one of {} registers, value)", initial.len()))
                }
            }
            op::CUSTOM if !(0..i64::from(NONE)).contains(&a) => Err(format!("{a} is no class")),
            _ => Ok(()),
        }
    }

    /// No order of the increments may exceed 64 bits; otherwise some orders would overflow and others would not.
    fn validate_sum(&self, initial: i64) -> Result<(), String> {
        let changes = (0..self.len()).filter(|&i| self.f[i] != op::READ_COUNT).map(|i| i128::from(self.a[i]));
        let (mut least, mut greatest) = (i128::from(initial), i128::from(initial));
        for change in changes {
            least += change.min(0);
            greatest += change.max(0);
        }
        if least < i128::from(i64::MIN) || greatest > i128::from(i64::MAX) {
            return Err(format!("expected counts of at most 64 bits, but they may come to {least} or {greatest}"));
        }
        Ok(())
    }
}

fn rises(list: &[i64]) -> bool {
    list.windows(2).all(|pair| pair[0] < pair[1])
}

/// Owned columns.
#[derive(Clone, Debug, Default)]
pub struct Owned {
    /// See `Ops`.
    pub f: Vec<u8>,
    /// See `Ops`.
    pub a: Vec<i64>,
    /// See `Ops`.
    pub b: Vec<i64>,
    /// See `Ops`.
    pub s: Vec<i64>,
    /// See `Ops`.
    pub e: Vec<i64>,
    /// See `Ops`.
    pub off: Vec<i64>,
    /// See `Ops`.
    pub flat: Vec<i64>,
}

impl Owned {
    /// Adds an operation.
    pub fn push(&mut self, f: u8, a: i64, b: i64, list: &[i64], s: i64, e: i64) {
        if self.off.is_empty() {
            self.off.push(0);
        }
        self.f.push(f);
        self.a.push(a);
        self.b.push(b);
        self.s.push(s);
        self.e.push(e);
        self.flat.extend_from_slice(list);
        self.off.push(self.flat.len() as i64);
    }

    /// The columns.
    pub fn view(&self) -> Ops<'_> {
        Ops { f: &self.f, a: &self.a, b: &self.b, s: &self.s, e: &self.e, off: &self.off, flat: &self.flat }
    }

    /// The history up to and including one return: later returns are open, and later starts are left out. Of returns
    /// at the same position, those with higher numbers are later.
    ///
    /// Returns the columns and the original index of each operation in them.
    pub fn prefix(ops: &Ops, end: (i64, u32)) -> (Self, Vec<u32>) {
        let pending = |i: usize| (ops.e[i], i as u32) > end;
        let there = |i: &usize| ops.s[*i] <= end.0 && !(pending(*i) && observes(ops.f[*i]));
        let count = (0..ops.len()).filter(there).count();
        let mut index = Vec::with_capacity(count);
        index.extend((0..ops.len()).filter(there).map(|i| i as u32));
        let each = || index.iter().map(|&i| i as usize);
        let mut out = Self {
            f: each().map(|i| ops.f[i]).collect(),
            a: each().map(|i| ops.a[i]).collect(),
            b: each().map(|i| ops.b[i]).collect(),
            s: each().map(|i| ops.s[i]).collect(),
            e: each().map(|i| if pending(i) { INF } else { ops.e[i] }).collect(),
            ..Self::default()
        };
        if !ops.off.is_empty() {
            out.off.push(0);
            for i in each() {
                out.flat.extend_from_slice(ops.list(i));
                out.off.push(out.flat.len() as i64);
            }
        }
        (out, index)
    }
}

/// The kind of contradiction that a near-linear analyzer finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An operation observed a value that no operation wrote.
    Phantom,
    /// An operation observed a value before its write began.
    Future,
    /// The object certainly held two values at one time, or a replaced value was read again.
    Stale,
    /// Two effective cas on one value.
    LostUpdate,
    /// A chain of cas without a beginning.
    Cycle,
    /// The order that the values force contradicts real time within one chain.
    Order,
    /// Two reads that cannot both be prefixes of one history of the object.
    Fork,
    /// An event that can happen only once was observed twice.
    Duplicate,
    /// An element that was certainly there was skipped.
    Lost,
    /// A count above the sum of all increments that had begun.
    TooHigh,
    /// A count below the sum of the increments that had ended.
    TooLow,
    /// Two holders at one time.
    Overlap,
    /// An empty answer while an element was certainly there.
    NotEmpty,
    /// Found by the general search.
    Search,
}

impl Kind {
    /// The name in Python.
    pub fn name(self) -> &'static str {
        match self {
            Self::Phantom => "phantom",
            Self::Future => "future",
            Self::Stale => "stale",
            Self::LostUpdate => "lost-update",
            Self::Cycle => "cycle",
            Self::Order => "order",
            Self::Fork => "fork",
            Self::Duplicate => "duplicate",
            Self::Lost => "lost",
            Self::TooHigh => "too-high",
            Self::TooLow => "too-low",
            Self::Overlap => "overlap",
            Self::NotEmpty => "not-empty",
            Self::Search => "search",
        }
    }
}

/// The answer of a near-linear analyzer.
#[derive(Clone, Debug)]
pub enum Near {
    /// Linearizable; with the order of the effective operations on request.
    Valid(Option<Vec<u32>>),
    /// Not linearizable, because of these operations.
    Invalid {
        /// The kind of contradiction.
        kind: Kind,
        /// The operations that contradict each other.
        core: Vec<u32>,
    },
    /// The analyzer does not apply, for this reason.
    Unsuited(&'static str),
}

impl Near {
    /// A refutation.
    pub fn invalid(kind: Kind, core: &[u32]) -> Self {
        let mut unique: Vec<u32> = Vec::with_capacity(core.len());
        for &i in core {
            if i != NONE && !unique.contains(&i) {
                unique.push(i);
            }
        }
        Self::Invalid { kind, core: unique }
    }
}
