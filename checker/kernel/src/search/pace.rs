//! The speed of a search, which determines which of several searches in turns gets the longer turns.

/// The search with the least expected work has turns this many times as long.
const LEAD: u64 = 4;

/// The progress of a search, and its work.
#[derive(Clone, Copy, Default)]
pub struct Pace {
    /// The work so far.
    pub spent: u64,
    /// The largest part of the history that it has passed, 0 to 1.
    pub reached: f64,
    /// Whether its last turn made progress.
    advances: bool,
}

impl Pace {
    /// Counts a turn of `work` that has reached place `at` of `places`.
    pub fn went(&mut self, work: u64, at: usize, places: usize) {
        let reached = at as f64 / places.max(1) as f64;
        self.advances = reached > self.reached;
        self.spent += work;
        self.reached = self.reached.max(reached);
    }

    /// The expected work until its end at the present speed; 0 before its first turn.
    pub fn expected(&self) -> f64 {
        self.spent as f64 / self.reached.max(f64::MIN_POSITIVE)
    }
}

/// The length of each search's next turn, as a multiple of a turn.
///
/// If no search makes progress, all turns are equal. Then the history is likely invalid, and the progress of a search
/// does not predict when it will have tried everything.
pub fn shares(paces: [Pace; 3]) -> [u64; 3] {
    let work = |pace: &Pace| if pace.advances { pace.expected() } else { f64::INFINITY };
    let least = paces.iter().map(work).fold(f64::INFINITY, f64::min);
    paces.map(|pace| if pace.advances && work(&pace) <= least { LEAD } else { 1 })
}
