//! Random numbers from the seed of a run: a stream for each purpose, so that a new purpose changes no other stream.
//!
//! The generator is `SplitMix64` (G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// A stream of random numbers.
#[derive(Clone, PartialEq, Eq)]
pub struct Chance(u64);

impl Chance {
    /// Returns the stream of a purpose in the run of a seed.
    pub fn new(seed: u64, purpose: &str) -> Self {
        // FNV-1a of the purpose, then one step, so that neighbouring seeds have unlike streams.
        let start = purpose
            .bytes()
            .fold(seed ^ 0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        let mut first = Self(start);
        Self(first.next())
    }

    /// Returns the next 64 bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number from 0 to below `limit`; 0 if `limit` is 0. The bias of the remainder is below 2^-32 for our limits.
    pub fn below(&mut self, limit: u64) -> u64 {
        if limit == 0 {
            0
        } else {
            self.next() % limit
        }
    }

    /// Returns a number from 0 to below 1.
    #[allow(clippy::cast_precision_loss)] // 53 bits are exact
    pub fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns whether something of a probability happens.
    pub fn happens(&mut self, probability: f64) -> bool {
        self.share() < probability
    }

    /// Returns a number of the exponential distribution with the mean 1.
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.share()).ln()
    }

    /// Returns a number close to the normal distribution with the mean 0 and the deviation 1: a sum of twelve shares.
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.share()).sum::<f64>() - 6.0
    }

    /// Returns random bytes.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(count + 8);
        while bytes.len() < count {
            bytes.extend(self.next().to_le_bytes());
        }
        bytes.truncate(count);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::Chance;

    #[test]
    fn a_stream_repeats_and_differs_from_others() {
        let draw = |seed, purpose| Chance::new(seed, purpose).bytes(16);
        assert_eq!(draw(1, "net"), draw(1, "net"));
        assert_ne!(draw(1, "net"), draw(2, "net"));
        assert_ne!(draw(1, "net"), draw(1, "threads"));
    }

    #[test]
    fn draws_are_in_their_range() {
        let mut chance = Chance::new(7, "test");
        assert!((0..1000).all(|_| chance.below(3) < 3));
        assert_eq!(chance.below(0), 0);
        let hits = (0..10_000).filter(|_| chance.happens(0.25)).count();
        assert!((2_200..2_800).contains(&hits), "{hits}");
        let mean = |draws: Vec<f64>| draws.iter().sum::<f64>() / 10_000.0;
        let exponential = mean((0..10_000).map(|_| chance.exponential()).collect());
        assert!((0.95..1.05).contains(&exponential), "{exponential}");
        let normal: Vec<f64> = (0..10_000).map(|_| chance.normal()).collect();
        assert!(mean(normal.clone()).abs() < 0.05);
        assert!((0.95..1.05).contains(&mean(normal.iter().map(|draw| draw * draw).collect())));
    }
}
