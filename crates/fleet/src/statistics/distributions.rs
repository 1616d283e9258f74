//! Tails of distributions, both sides together.

/// P(|T| ≥ t) of Student's distribution with these degrees of freedom.
pub fn student_tail(t: f64, freedom: f64) -> f64 {
    incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t))
}

/// The regularised incomplete beta function, by its continued fraction (Abramowitz and Stegun,
/// 26.5.8).
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, 1.0 - x);
    }
    let front =
        libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b) + a * x.ln() + b * (1.0 - x).ln();
    const TINY: f64 = 1e-300;
    let mut c = 1.0;
    let mut d = 1.0 / not_zero(1.0 - (a + b) * x / (a + 1.0), TINY);
    let mut fraction = d;
    for step in 1..500 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut last = 1.0;
        for term in [even, odd] {
            d = 1.0 / not_zero(1.0 + term * d, TINY);
            c = not_zero(1.0 + term / c, TINY);
            last = c * d;
            fraction *= last;
        }
        if (last - 1.0).abs() < 1e-14 {
            break;
        }
    }
    front.exp() * fraction / a
}

fn not_zero(value: f64, tiny: f64) -> f64 {
    if value.abs() < tiny { tiny } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_those_of_tables() {
        assert!((student_tail(12.706_2, 1.0) - 0.05).abs() < 1e-6);
        assert!((student_tail(2.228_139, 10.0) - 0.05).abs() < 1e-6);
        assert!((student_tail(1.962_339, 1_000.0) - 0.05).abs() < 1e-6);
    }
}
