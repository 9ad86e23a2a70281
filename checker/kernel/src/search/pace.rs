//! How fast a search comes to its end: which of several searches that take turns should have longer ones.

/// When searches take turns, the one that seems to come to its end with the least work has turns that many times as long.
const LEAD: u64 = 4;

/// How far a search has come, and with how much work.
#[derive(Clone, Copy, Default)]
pub struct Pace {
    /// The work it took.
    pub spent: u64,
    /// What part of the history it has come through at most.
    pub reached: f64,
    /// Whether its last turn brought it further.
    advances: bool,
}

impl Pace {
    /// Counts a turn that has come to one of so many places.
    pub fn went(&mut self, work: u64, at: usize, places: usize) {
        let reached = at as f64 / places.max(1) as f64;
        self.advances = reached > self.reached;
        self.spent += work;
        self.reached = self.reached.max(reached);
    }

    /// The work until it comes to its end, if it goes on as it has; nothing, if it has not begun.
    pub fn expected(&self) -> f64 {
        self.spent as f64 / self.reached.max(f64::MIN_POSITIVE)
    }
}

/// How long the next turn of each search is, as a multiple of a turn. None leads if none advances: then the history is likely to be
/// invalid, and how far a search came does not say how soon it will have tried everything.
pub fn shares(paces: [Pace; 3]) -> [u64; 3] {
    let work = |pace: &Pace| if pace.advances { pace.expected() } else { f64::INFINITY };
    let least = paces.iter().map(work).fold(f64::INFINITY, f64::min);
    paces.map(|pace| if pace.advances && work(&pace) <= least { LEAD } else { 1 })
}
