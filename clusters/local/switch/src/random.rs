//! Random numbers of one rule: a stream that its seed alone decides.

/// The generator `SplitMix64` (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
pub struct Stream {
    state: u64,
}

/// A share in millionths.
pub const WHOLE: u32 = 1_000_000;

impl Stream {
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 up to 1, without 1.
    fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True with a share of `millionths`.
    pub fn hits(&mut self, millionths: u32) -> bool {
        self.fraction() * f64::from(WHOLE) < f64::from(millionths)
    }

    /// A standard normal number (Box and Muller, 1958).
    pub fn normal(&mut self) -> f64 {
        let (radius, angle) = (1.0 - self.fraction(), self.fraction());
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_the_stream() {
        let draw = |seed| {
            let mut stream = Stream::new(seed);
            (0..9).map(|_| stream.next()).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn the_first_numbers_are_those_of_the_published_generator() {
        let mut stream = Stream::new(1_234_567);
        assert_eq!([stream.next(), stream.next()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }

    #[test]
    fn shares_and_spreads_are_as_asked() {
        let mut stream = Stream::new(3);
        let count = 100_000;
        let hits = (0..count).filter(|_| stream.hits(200_000)).count();
        assert!((19_500..20_500).contains(&hits), "{hits}");
        let drawn: Vec<f64> = (0..count).map(|_| stream.normal()).collect();
        let mean = drawn.iter().sum::<f64>() / f64::from(count);
        let variance = drawn.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / f64::from(count);
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.03, "{mean} {variance}");
    }

    #[test]
    fn no_share_and_the_whole_are_certain() {
        let mut stream = Stream::new(5);
        assert!((0..1000).all(|_| !stream.hits(0)));
        assert!((0..1000).all(|_| stream.hits(WHOLE)));
    }
}
