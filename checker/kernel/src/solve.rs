//! Chooses the algorithm for a history, and decides many histories on all cores.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use crate::near;
use crate::ops::{op, Family, Kind, Near, Ops, NONE};
use crate::search::budget::{Cause, Limits, Meter};
use crate::search::machine::{Native, Oracle, Register, Table};
use crate::search::plan::Plan;
use crate::search::prepare::prepare;
use crate::search::reduce::{Allowed, Counts};
use crate::search::{search, Config, Found, Method, Progress};

/// The requested algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// The near-linear analyzer where it applies, otherwise the search.
    Auto,
    /// Only the near-linear analyzer.
    Near,
    /// Depth first and breadth first in turns.
    Search,
    /// The just-in-time search.
    Linear,
    /// The classical search.
    Wgl,
    /// `Auto` and `Wgl` at once. The first decision counts.
    Competition,
}

impl Algorithm {
    /// The algorithm with a name.
    pub fn of(name: &str) -> Option<Self> {
        Some(match name {
            "auto" => Self::Auto,
            "near" => Self::Near,
            "search" => Self::Search,
            "linear" => Self::Linear,
            "wgl" => Self::Wgl,
            "competition" => Self::Competition,
            _ => return None,
        })
    }
}

/// A user's own model.
pub trait OracleSource: Sync {
    /// Runs a search with a fresh oracle of its own. The data that the oracle needs on this thread lives as long.
    fn with_oracle(&self, search: &mut (dyn FnMut(Box<dyn Oracle + '_>) + Send));
}

/// A history and its model.
#[derive(Clone, Copy)]
pub struct Problem<'a> {
    /// The kinds of operations.
    pub family: Family,
    /// The history.
    pub ops: Ops<'a>,
    /// The initial state.
    pub initial: &'a [i64],
    /// For a user's own model.
    pub oracle: Option<&'a dyn OracleSource>,
    /// The reductions that the search may use.
    pub allowed: Allowed,
}

/// The result for one history.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Valid, invalid, or the reason for neither.
    pub progress: Progress,
    /// The algorithm that decided.
    pub analyzer: &'static str,
    /// Invalid: the first operation at whose return no linearization is left. Undecided: the furthest return reached.
    pub op: u32,
    /// The kind of violation.
    pub kind: Option<Kind>,
    /// Operations that contradict each other.
    pub core: Vec<u32>,
    /// The linearization.
    pub order: Option<Vec<u32>>,
    /// See `Found`.
    pub configs: Vec<Config>,
    /// See `Found`.
    pub has_all_configs: bool,
    /// The number of model steps.
    pub steps: u64,
    /// How often each reduction applied.
    pub counts: Counts,
    /// Why the requested algorithm does not apply.
    pub unsuited: Option<&'static str>,
    /// Wall time in seconds.
    pub seconds: f64,
}

impl Outcome {
    fn decided(progress: Progress, analyzer: &'static str) -> Self {
        Self {
            progress,
            analyzer,
            op: NONE,
            kind: None,
            core: Vec::new(),
            order: None,
            configs: Vec::new(),
            has_all_configs: false,
            steps: 0,
            counts: Counts::default(),
            unsuited: None,
            seconds: 0.0,
        }
    }

    fn found(found: Found) -> Self {
        Self {
            op: if found.progress == Progress::Valid { NONE } else { found.op },
            kind: (found.progress == Progress::Invalid).then_some(Kind::Search),
            order: found.order,
            configs: found.configs,
            has_all_configs: found.has_all_configs,
            steps: found.steps,
            counts: found.counts,
            ..Self::decided(found.progress, found.analyzer)
        }
    }

    fn definite(&self) -> bool {
        matches!(self.progress, Progress::Valid | Progress::Invalid)
    }
}

/// Decides one history. `stop` ends only this one.
pub fn solve(
    problem: &Problem,
    algorithm: Algorithm,
    want_order: bool,
    limits: &Limits,
    stop: Option<&AtomicBool>,
) -> Outcome {
    let began = Instant::now();
    let mut outcome = match algorithm {
        Algorithm::Auto => auto(problem, want_order, limits, stop),
        Algorithm::Near => near_only(problem, want_order, limits, stop),
        Algorithm::Search => run(problem, Method::Both, want_order, limits, stop),
        Algorithm::Linear => run(problem, Method::Linear, want_order, limits, stop),
        Algorithm::Wgl => run(problem, Method::Wgl, want_order, limits, stop),
        Algorithm::Competition => compete(problem, want_order, limits),
    };
    outcome.seconds = began.elapsed().as_secs_f64();
    outcome
}

fn auto(problem: &Problem, want_order: bool, limits: &Limits, stop: Option<&AtomicBool>) -> Outcome {
    let outcome = near_only(problem, want_order, limits, stop);
    if outcome.unsuited.is_none() {
        return outcome;
    }
    run(problem, Method::Both, want_order, limits, stop)
}

fn near_only(problem: &Problem, want_order: bool, limits: &Limits, stop: Option<&AtomicBool>) -> Outcome {
    let Problem { family, ops, initial, .. } = *problem;
    // The analyzers of queues return no order, so the search has to find one.
    let searched = want_order && matches!(family, Family::Fifo | Family::Bag);
    let (analyzer, near) = near::check(family, &ops, initial, want_order && !searched);
    match near {
        Near::Valid(order) => {
            let mut outcome = Outcome { order, ..Outcome::decided(Progress::Valid, analyzer) };
            if searched {
                outcome.order = run(problem, Method::Both, true, limits, stop).order;
            }
            outcome
        }
        Near::Invalid { kind, core } => {
            let mut outcome = Outcome { kind: Some(kind), core, ..Outcome::decided(Progress::Invalid, analyzer) };
            if let Some((op, kind, core)) = near::first_failure(family, &ops, initial, kind, &outcome.core) {
                outcome.op = op;
                outcome.kind = Some(kind);
                outcome.core = core;
            } else {
                let found = run(problem, Method::Both, false, limits, stop);
                assert!(found.progress != Progress::Valid, "{analyzer} says invalid, the search says valid");
                outcome.op = if found.progress == Progress::Invalid { found.op } else { NONE };
            }
            outcome
        }
        Near::Unsuited(why) => {
            Outcome { unsuited: Some(why), ..Outcome::decided(Progress::Stopped(Cause::Unsuited), analyzer) }
        }
    }
}

fn run(problem: &Problem, method: Method, want_order: bool, limits: &Limits, stop: Option<&AtomicBool>) -> Outcome {
    let ops = &problem.ops;
    let keep = if method == Method::Wgl {
        // The second opinion also omits the reductions.
        let matters = |&i: &usize| ops.e[i] != crate::ops::INF || !crate::ops::observes(ops.f[i]);
        (0..ops.len()).filter(matters).map(|i| (i as u32, ops.e[i])).collect()
    } else {
        prepare(ops, problem.family, problem.initial)
    };
    let plan = Plan::new(ops, &keep);
    let mut meter = Meter::new(limits, stop);
    let found = match (problem.family, problem.oracle) {
        (Family::Register | Family::Mutex | Family::OwnerMutex, _) => {
            let class = |&i: &u32| as_register(problem.family, ops, i as usize);
            let classes: Vec<_> = plan.representative.iter().map(class).collect();
            let mut machine = Register::new(&classes, problem.initial[0]);
            search(&plan, ops, &keep, &mut machine, &mut meter, method, problem.allowed, want_order)
        }
        (_, Some(source)) => {
            let mut found = None;
            source.with_oracle(&mut |oracle| {
                let oracle = Custom { classes: class_numbers(&plan, ops), oracle };
                let mut machine = Table::new(oracle, plan.classes);
                let allowed = problem.allowed;
                found = Some(search(&plan, ops, &keep, &mut machine, &mut meter, method, allowed, want_order));
            });
            found.expect("a source runs the search")
        }
        _ => {
            let oracle = Native::new(problem.family, *ops, plan.representative.clone(), problem.initial);
            let mut machine = Table::new(oracle, plan.classes);
            search(&plan, ops, &keep, &mut machine, &mut meter, method, problem.allowed, want_order)
        }
    };
    Outcome::found(found)
}

fn as_register(family: Family, ops: &Ops, i: usize) -> (u8, i64, i64) {
    let holder = || {
        if family == Family::Mutex {
            1
        } else {
            ops.a[i] + 1
        }
    };
    match ops.f[i] {
        op::ACQUIRE => (op::CAS, 0, holder()),
        op::RELEASE => (op::CAS, holder(), 0),
        f => (f, ops.a[i], ops.b[i]),
    }
}

fn class_numbers(plan: &Plan, ops: &Ops) -> Vec<u32> {
    plan.representative.iter().map(|&i| ops.a[i as usize] as u32).collect()
}

/// An oracle with the caller's numbers of classes, not the plan's.
struct Custom<'a> {
    classes: Vec<u32>,
    oracle: Box<dyn Oracle + 'a>,
}

impl Oracle for Custom<'_> {
    fn ask(&mut self, state: u32, class: u32) -> Option<u32> {
        self.oracle.ask(state, self.classes[class as usize])
    }
    fn observer(&self, class: u32) -> bool {
        self.oracle.observer(self.classes[class as usize])
    }
    fn viable(&mut self, state: u32, class: u32) -> bool {
        self.oracle.viable(state, self.classes[class as usize])
    }
    fn looks_ahead(&self) -> bool {
        self.oracle.looks_ahead()
    }
    fn resets(&self, class: u32) -> bool {
        self.oracle.resets(self.classes[class as usize])
    }
    fn cost(&self) -> u64 {
        self.oracle.cost()
    }
    fn bytes(&self) -> usize {
        self.oracle.bytes()
    }
}

fn compete(problem: &Problem, want_order: bool, limits: &Limits) -> Outcome {
    let stops = [AtomicBool::new(false), AtomicBool::new(false)];
    let [mut ours, classical] = thread::scope(|scope| {
        let race = |mine: usize, algorithm: Algorithm| {
            let outcome = solve(problem, algorithm, want_order, limits, Some(&stops[mine]));
            if outcome.definite() {
                stops[1 - mine].store(true, Ordering::Relaxed);
            }
            outcome
        };
        let other = scope.spawn(move || race(1, Algorithm::Wgl));
        let ours = race(0, Algorithm::Auto);
        [ours, other.join().expect("a search does not panic")]
    });
    match (ours.definite(), classical.definite()) {
        (true, true) => {
            assert!(ours.progress == classical.progress, "{} and wgl disagree", ours.analyzer);
            // An analyzer with a certain verdict may have stopped before it knew the first return.
            if ours.op == NONE {
                ours.op = classical.op;
            }
            ours
        }
        (true, false) => ours,
        (false, true) => classical,
        // Neither decided, so neither can have stopped the other. A limit is the more informative reason.
        (false, false) => {
            if ours.progress == Progress::Stopped(Cause::Cancelled) {
                ours.progress = classical.progress;
            }
            ours
        }
    }
}

/// Decides several histories on several threads. A panic in one is an error of that one alone.
pub fn solve_all(
    problems: &[Problem],
    algorithm: Algorithm,
    want_order: bool,
    limits: &Limits,
    threads: usize,
    fail_fast: bool,
) -> Vec<Result<Outcome, String>> {
    // Longest first, so that no thread ends alone with the longest. Shortest first if one failure is enough.
    let mut queue: Vec<usize> = (0..problems.len()).collect();
    queue.sort_by_key(|&i| problems[i].ops.len());
    if !fail_fast {
        queue.reverse();
    }
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    let outcomes = Mutex::new(vec![None; problems.len()]);
    let work = || loop {
        let place = next.fetch_add(1, Ordering::Relaxed);
        let Some(&i) = queue.get(place) else { break };
        let result = guarded(|| solve(&problems[i], algorithm, want_order, limits, Some(&stop)));
        if fail_fast && result.as_ref().is_ok_and(|outcome| outcome.progress == Progress::Invalid) {
            stop.store(true, Ordering::Relaxed);
        }
        outcomes.lock().unwrap_or_else(PoisonError::into_inner)[i] = Some(result);
    };
    let threads = threads.clamp(1, problems.len().max(1));
    if threads == 1 {
        work();
    } else {
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(work);
            }
        });
    }
    let outcomes = outcomes.into_inner().unwrap_or_else(PoisonError::into_inner);
    outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(|| Err("it was not reached".into()))).collect()
}

/// The limits of a quick attempt: operations, and steps per history, a few milliseconds of work.
const QUICK_OPERATIONS: usize = 50_000;
const QUICK_STEPS: u64 = 20_000;

/// Decides on this thread the histories that take only a moment: starting another thread takes longer than most
/// histories.
///
/// The result is None for all other histories, for those that reach a limit, and for users' own models, whose time is
/// unknown. If one failure is enough and is found, the others are cancelled.
pub fn solve_quickly(
    problems: &[Problem],
    algorithm: Algorithm,
    want_order: bool,
    limits: &Limits,
    fail_fast: bool,
) -> Vec<Option<Result<Outcome, String>>> {
    let mut outcomes = vec![None; problems.len()];
    if algorithm == Algorithm::Competition {
        return outcomes;
    }
    let mut queue: Vec<usize> = (0..problems.len()).filter(|&i| problems[i].oracle.is_none()).collect();
    if fail_fast {
        queue.sort_by_key(|&i| problems[i].ops.len());
    }
    let (mut operations, mut steps) = (0, 0);
    for i in queue {
        operations += problems[i].ops.len();
        if operations > QUICK_OPERATIONS || steps > 4 * QUICK_STEPS {
            break;
        }
        let brief = limits.with_steps(QUICK_STEPS);
        let result = guarded(|| solve(&problems[i], algorithm, want_order, &brief, None));
        if brief.ran_out() {
            steps += QUICK_STEPS;
            continue;
        }
        let failed = result.as_ref().is_ok_and(|outcome| outcome.progress == Progress::Invalid);
        steps += result.as_ref().map_or(0, |outcome| outcome.steps);
        outcomes[i] = Some(result);
        if failed && fail_fast {
            let cancelled = Outcome::decided(Progress::Stopped(Cause::Cancelled), "none");
            for outcome in outcomes.iter_mut().filter(|outcome| outcome.is_none()) {
                *outcome = Some(Ok(cancelled.clone()));
            }
            break;
        }
    }
    outcomes
}

/// Turns a panic into an error.
fn guarded(work: impl FnOnce() -> Outcome) -> Result<Outcome, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_string())).unwrap_or_default()
    })
}
