//! One directed link: its rule, what the rule draws for each packet, and what is counted.

use std::collections::BTreeSet;

use crate::random::{Stream, WHOLE};

const NS_PER_S: u64 = 1_000_000_000;

/// What a rule asks of a link. Shares are in millionths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    pub seed: u64,
    /// The share that is lost.
    pub lose: u32,
    /// The share that arrives twice.
    pub duplicate: u32,
    /// The share with a flipped bit.
    pub damage: u32,
    /// The mean delay, and its standard deviation.
    pub delay_ns: u64,
    pub jitter_ns: u64,
    /// The share without delay.
    pub hurry: u32,
    /// The rate; 0: no limit.
    pub bits_per_s: u64,
    /// What may pass at once after a pause, beside the rate.
    pub burst_bytes: u64,
    /// How long a packet may wait for the rate.
    pub patience_ns: u64,
    /// Whether nothing passes.
    pub cut: bool,
}

impl Rule {
    /// The first reason why no link can have this rule.
    pub fn refusal(&self) -> Option<&'static str> {
        if [self.lose, self.duplicate, self.damage, self.hurry].iter().any(|share| *share > WHOLE) {
            return Some("a share is at most 1000000 millionths");
        }
        if [self.delay_ns, self.jitter_ns, self.patience_ns].iter().any(|time| *time > 60 * NS_PER_S) {
            return Some("a time is at most 60 s");
        }
        None
    }
}

/// Counts of a link since the switch began. Frames without a rule can be large segments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Frames that came to the link, and their bytes.
    pub frames: u64,
    pub bytes: u64,
    /// Packets under a rule.
    pub ruled: u64,
    pub cut: u64,
    pub lost: u64,
    /// Packets that the rate did not let pass in time.
    pub limited: u64,
    pub duplicated: u64,
    pub damaged: u64,
    pub delayed: u64,
    /// Packets that went out while an earlier one waited.
    pub ahead: u64,
    /// Packets that the queues had no room for.
    pub full: u64,
    /// Frames that the receiver's device did not take.
    pub refused: u64,
    /// How long packets waited: in all, and the longest.
    pub held_us: u64,
    pub held_max_us: u64,
}

impl Counts {
    pub fn named(&self) -> [(&'static str, u64); 14] {
        [
            ("frames", self.frames),
            ("bytes", self.bytes),
            ("ruled", self.ruled),
            ("cut", self.cut),
            ("lost", self.lost),
            ("limited", self.limited),
            ("duplicated", self.duplicated),
            ("damaged", self.damaged),
            ("delayed", self.delayed),
            ("ahead", self.ahead),
            ("full", self.full),
            ("refused", self.refused),
            ("held_us", self.held_us),
            ("held_max_us", self.held_max_us),
        ]
    }
}

/// A copy of a packet that goes out.
#[derive(Debug, PartialEq, Eq)]
pub struct Copy {
    pub due_ns: u64,
    /// A drawn number that selects the bit to flip.
    pub damage: Option<u64>,
}

struct Active {
    rule: Rule,
    stream: Stream,
    /// When the link has sent all before, at its rate.
    free_ns: u64,
}

/// One directed link.
#[derive(Default)]
pub struct Link {
    pub counts: Counts,
    active: Option<Active>,
    /// The numbers of the packets that wait, in the order of their arrival.
    waiting: BTreeSet<u64>,
    next_number: u64,
}

impl Link {
    pub fn has_rule(&self) -> bool {
        self.active.is_some()
    }

    pub fn set(&mut self, rule: Option<Rule>) {
        self.active = rule.map(|rule| Active { stream: Stream::new(rule.seed), rule, free_ns: 0 });
    }

    /// Draws what happens to a packet under the rule. Each packet takes equally many draws, whatever comes out.
    pub fn fate(&mut self, bytes: usize, protected: bool, now_ns: u64) -> Vec<Copy> {
        let Some(Active { rule, stream, free_ns }) = &mut self.active else {
            return vec![Copy { due_ns: now_ns, damage: None }];
        };
        let counts = &mut self.counts;
        counts.ruled += 1;
        let (lost, twice) = (stream.hits(rule.lose), stream.hits(rule.duplicate));
        let drawn: Vec<(bool, bool, u64, f64)> = (0..2)
            .map(|_| (stream.hits(rule.hurry), stream.hits(rule.damage), stream.next(), stream.normal()))
            .collect();
        if rule.cut {
            counts.cut += 1;
            return Vec::new();
        }
        if lost {
            counts.lost += 1;
            return Vec::new();
        }
        counts.duplicated += u64::from(twice);
        let mut copies = Vec::with_capacity(2);
        for (hurries, damaged, bit, spread) in drawn.into_iter().take(1 + usize::from(twice)) {
            let mut sent_ns = now_ns;
            if rule.bits_per_s > 0 {
                let time_ns =
                    |bytes: u64| (u128::from(bytes) * 8 * u128::from(NS_PER_S) / u128::from(rule.bits_per_s)) as u64;
                let begin_ns = (*free_ns).max(now_ns.saturating_sub(time_ns(rule.burst_bytes)));
                if begin_ns.saturating_sub(now_ns) > rule.patience_ns {
                    counts.limited += 1;
                    continue;
                }
                *free_ns = begin_ns + time_ns(bytes as u64);
                sent_ns = now_ns.max(*free_ns);
            }
            let delay = (rule.delay_ns as f64 + rule.jitter_ns as f64 * spread).max(0.0) as u64;
            let delay_ns = if hurries { 0 } else { delay };
            let damaged = damaged && protected;
            counts.damaged += u64::from(damaged);
            counts.delayed += u64::from(delay_ns > 0);
            copies.push(Copy { due_ns: sent_ns + delay_ns, damage: damaged.then_some(bit) });
        }
        copies
    }

    /// Notes a packet that waits. Returns its number.
    pub fn wait(&mut self) -> u64 {
        self.next_number += 1;
        self.waiting.insert(self.next_number);
        self.next_number
    }

    /// Notes that a packet goes out, after it has waited for `held_ns`.
    pub fn leave(&mut self, number: u64, held_ns: u64) {
        self.waiting.remove(&number);
        self.counts.ahead += u64::from(self.waiting.first().is_some_and(|first| *first < number));
        let time_us = held_ns / 1000;
        self.counts.held_us += time_us;
        self.counts.held_max_us = self.counts.held_max_us.max(time_us);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn carried(rule: Rule, count: u64, apart_ns: u64) -> (Vec<Vec<Copy>>, Counts) {
        let mut link = Link::default();
        link.set(Some(rule));
        let fates = (0..count).map(|number| link.fate(1000, true, number * apart_ns)).collect();
        (fates, link.counts)
    }

    #[test]
    fn a_link_without_a_rule_lets_all_pass_at_once() {
        let mut link = Link::default();
        assert_eq!(link.fate(9, true, 7), [Copy { due_ns: 7, damage: None }]);
        assert_eq!(link.counts, Counts::default());
    }

    #[test]
    fn the_seed_of_a_rule_decides_the_fate_of_each_packet() {
        let rule = |seed| Rule { seed, lose: 300_000, duplicate: 300_000, damage: 300_000, ..Rule::default() };
        assert_eq!(carried(rule(1), 500, 0).0, carried(rule(1), 500, 0).0);
        assert_ne!(carried(rule(1), 500, 0).0, carried(rule(2), 500, 0).0);
    }

    #[test]
    fn another_share_keeps_the_other_draws() {
        let rule = |lose| Rule { seed: 4, lose, duplicate: 300_000, damage: 300_000, ..Rule::default() };
        let (all, _) = carried(rule(0), 500, 0);
        let (some, counts) = carried(rule(400_000), 500, 0);
        assert!(counts.lost > 100);
        assert!(some.iter().zip(&all).all(|(one, other)| one.is_empty() || one == other));
    }

    #[test]
    fn shares_are_counted_and_near_what_was_asked() {
        let rule = Rule { seed: 9, lose: 200_000, duplicate: 100_000, damage: 50_000, ..Rule::default() };
        let (fates, counts) = carried(rule, 20_000, 0);
        assert_eq!(counts.ruled, 20_000);
        assert_eq!(fates.iter().filter(|copies| copies.is_empty()).count() as u64, counts.lost);
        assert_eq!(fates.iter().filter(|copies| copies.len() == 2).count() as u64, counts.duplicated);
        let damaged = fates.iter().flatten().filter(|copy| copy.damage.is_some()).count() as u64;
        assert_eq!(damaged, counts.damaged);
        assert!((3_800..4_200).contains(&counts.lost), "{counts:?}");
        assert!((1_450..1_750).contains(&counts.duplicated), "{counts:?}");
        assert!((780..980).contains(&counts.damaged), "{counts:?}");
    }

    #[test]
    fn delays_vary_around_their_mean_and_are_never_negative() {
        let rule = Rule { delay_ns: 100 * MS, jitter_ns: 50 * MS, ..Rule::default() };
        let (fates, _) = carried(rule, 10_000, 0);
        let delays: Vec<u64> = fates.iter().map(|copies| copies[0].due_ns / MS).collect();
        let mean = delays.iter().sum::<u64>() / 10_000;
        assert!((98..=103).contains(&mean), "{mean}");
        let within = delays.iter().filter(|delay| (50..=150).contains(*delay)).count();
        assert!((6_500..7_200).contains(&within), "{within}");
    }

    #[test]
    fn what_is_not_covered_by_a_checksum_is_not_damaged() {
        let mut link = Link::default();
        link.set(Some(Rule { damage: WHOLE, ..Rule::default() }));
        assert_eq!(link.fate(60, false, 0), [Copy { due_ns: 0, damage: None }]);
        assert_eq!(link.counts.damaged, 0);
    }

    #[test]
    fn a_rate_spaces_packets_and_drops_what_would_wait_too_long() {
        // 8 Mbit/s: a packet of 1000 bytes each millisecond; 2 at once, and those that wait for up to 5 ms.
        let rule = Rule { bits_per_s: 8_000_000, burst_bytes: 2000, patience_ns: 5 * MS, ..Rule::default() };
        let mut link = Link::default();
        link.set(Some(rule));
        let at_ns = 10 * MS;
        let due: Vec<u64> = (0..20).flat_map(|_| link.fate(1000, true, at_ns)).map(|copy| copy.due_ns / MS).collect();
        assert_eq!(due, [10, 10, 11, 12, 13, 14, 15, 16]);
        assert_eq!(link.counts.limited, 12);
        assert_eq!(link.fate(1000, true, 30 * MS).len(), 1, "later, packets pass again");
    }

    #[test]
    fn a_packet_ahead_of_an_earlier_one_is_counted() {
        let mut link = Link::default();
        let (first, second, third) = (link.wait(), link.wait(), link.wait());
        link.leave(second, 0);
        link.leave(first, 3_000_000);
        link.leave(third, 1_000_000);
        assert_eq!((link.counts.ahead, link.counts.held_us, link.counts.held_max_us), (1, 4000, 3000));
    }

    #[test]
    fn a_cut_link_carries_nothing() {
        let (fates, counts) = carried(Rule { cut: true, ..Rule::default() }, 10, 0);
        assert!(fates.iter().all(Vec::is_empty));
        assert_eq!(counts.cut, 10);
    }

    #[test]
    fn rules_beyond_their_bounds_are_refused() {
        assert!(Rule { lose: WHOLE + 1, ..Rule::default() }.refusal().is_some());
        assert!(Rule { delay_ns: u64::MAX, ..Rule::default() }.refusal().is_some());
        assert!(Rule { lose: WHOLE, delay_ns: 10_000 * MS, ..Rule::default() }.refusal().is_none());
    }
}
