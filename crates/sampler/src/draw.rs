//! Chances: how many bytes until the next sample, and what a sample stands for.
//!
//! Without the mathematics of libc: the preloaded library depends on as little as can be.

/// The bytes until the next sample, for 64 random bits: exponential with mean `period`, at least one.
#[must_use]
pub fn gap(random: u64, period: u64) -> i64 {
    // In (0, 1], so that the logarithm is finite.
    let uniform = ((random >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    let gap = -ln(uniform) * period as f64;
    // At most 37 periods.
    (gap as i64).max(1)
}

/// What a sampled block of a size stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Weight {
    /// Bytes.
    pub bytes: f64,
    /// Its part of their variance.
    pub bytes_variance: f64,
    /// Blocks.
    pub blocks: f64,
    /// Its part of their variance.
    pub blocks_variance: f64,
}

impl Weight {
    /// Of a block of `size` bytes, sampled with this mean `period` (Horvitz and Thompson, 1952).
    #[must_use]
    pub fn new(size: u64, period: u64) -> Self {
        let size = size.max(1) as f64;
        let chance = chance(size / period.max(1) as f64);
        let blocks = 1.0 / chance;
        let blocks_variance = (1.0 - chance) * blocks * blocks;
        Self {
            bytes: size * blocks,
            bytes_variance: size * size * blocks_variance,
            blocks,
            blocks_variance,
        }
    }
}

/// 1 − exp(−x) for x > 0, exact for small ones, too.
#[must_use]
pub fn chance(x: f64) -> f64 {
    if x > 40.0 {
        return 1.0;
    }
    // exp(-x) - 1 of a part that is small enough for 15 terms, then doubled again:
    // exp(-2y) - 1 = (exp(-y) - 1) (exp(-y) + 1).
    let mut halved = 0;
    let mut part = x;
    while part > 0.5 {
        part *= 0.5;
        halved += 1;
    }
    let mut sum = 0.0;
    for term in (1..=15).rev() {
        sum = -part / f64::from(term) * (1.0 + sum);
    }
    for _ in 0..halved {
        sum *= sum + 2.0;
    }
    -sum
}

/// The natural logarithm of a normal number above 0.
fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i64 - 1023;
    // In [1, 2): ln = 2 artanh((m - 1) / (m + 1)), whose series needs s < 1/3.
    let mantissa = f64::from_bits(bits & 0x000f_ffff_ffff_ffff | 0x3ff0_0000_0000_0000);
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let square = s * s;
    let mut sum = 0.0;
    for odd in (0..14).rev() {
        sum = sum * square + 1.0 / f64::from(2 * odd + 1);
    }
    2.0 * s * sum + exponent as f64 * core::f64::consts::LN_2
}

/// The next 64 random bits of a generator with this state (splitmix64, Steele and others, 2014).
pub fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_agree_with_those_of_std() {
        for step in 1..4000 {
            let x = f64::from(step) * 0.011;
            assert!((chance(x) + (-x).exp_m1()).abs() < 1e-14, "{x}");
            assert!((ln(x) - x.ln()).abs() < 1e-13, "{x}");
            let small = x * 1e-9;
            assert!((chance(small) / -(-small).exp_m1() - 1.0).abs() < 1e-13);
        }
        assert!((ln(1.0 / (1_u64 << 53) as f64) + 53.0 * core::f64::consts::LN_2).abs() < 1e-12);
    }

    #[test]
    fn gaps_have_the_mean_and_the_spread_of_a_period() {
        let (mut state, period, draws) = (7, 1000, 200_000);
        let gaps = (0..draws).map(|_| gap(next(&mut state), period) as f64);
        let (sum, squares) = gaps.fold((0.0, 0.0), |(sum, squares), gap| {
            (sum + gap, squares + gap * gap)
        });
        let mean = sum / f64::from(draws);
        // With this seed; five standard errors.
        assert!((mean / 1000.0 - 1.0).abs() < 0.012, "{mean}");
        let variance = squares / f64::from(draws) - mean * mean;
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.02, "{variance}");
    }

    #[test]
    fn large_blocks_stand_for_themselves() {
        let large = Weight::new(100 << 20, 1 << 19);
        assert_eq!(large.blocks, 1.0);
        assert_eq!(
            (large.bytes, large.bytes_variance),
            ((100 << 20) as f64, 0.0)
        );
        let small = Weight::new(16, 1 << 19);
        assert!((small.bytes / f64::from(1 << 19) - 1.0).abs() < 1e-4);
        assert!((small.blocks - 32_768.5).abs() < 1e-2, "{}", small.blocks);
    }
}
