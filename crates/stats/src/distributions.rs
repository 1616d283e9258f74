//! Tails of distributions, both sides together, and derivatives of the logarithm of Γ.

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

/// From here on the series below are exact to 1e-12.
const ASYMPTOTIC: f64 = 10.0;

/// The derivative of the logarithm of Γ (Abramowitz and Stegun, 6.3.5 and 6.3.18).
pub fn digamma(mut x: f64) -> f64 {
    let mut sum = 0.0;
    while x < ASYMPTOTIC {
        sum -= 1.0 / x;
        x += 1.0;
    }
    let y = 1.0 / (x * x);
    let series = y * (1.0 / 12.0 - y * (1.0 / 120.0 - y * (1.0 / 252.0 - y / 240.0)));
    sum + x.ln() - 0.5 / x - series
}

/// Its second derivative (6.4.6 and 6.4.12).
pub fn trigamma(mut x: f64) -> f64 {
    let mut sum = 0.0;
    while x < ASYMPTOTIC {
        sum += 1.0 / (x * x);
        x += 1.0;
    }
    let y = 1.0 / (x * x);
    let series = y * (1.0 / 6.0 - y * (1.0 / 30.0 - y * (1.0 / 42.0 - y / 30.0)));
    sum + (1.0 + 0.5 / x + series) / x
}

/// Where the second derivative has this value: it falls from ∞ to 0, so halving the range finds it.
pub fn inverse_trigamma(value: f64) -> f64 {
    let (mut low, mut high) = (-30.0_f64, 30.0_f64);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        match trigamma(middle.exp()) > value {
            true => low = middle,
            false => high = middle,
        }
    }
    low.exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_those_of_tables() {
        for (t, freedom, known) in [
            (12.706_2, 1.0, 0.05),
            (31.599, 2.0, 0.001),
            (12.924, 3.0, 0.001),
            (5.959, 6.0, 0.001),
            (2.228_139, 10.0, 0.05),
            (-2.045_23, 29.0, 0.05),
            (1.962_339, 1_000.0, 0.05),
        ] {
            let found = student_tail(t, freedom);
            assert!((found / known - 1.0).abs() < 1e-3, "{t} {freedom}: {found}");
        }
    }

    #[test]
    fn derivatives_of_gamma_are_those_of_tables() {
        assert!((digamma(1.0) + 0.577_215_664_901_5).abs() < 1e-11);
        assert!((digamma(0.5) + 1.963_510_026_021_4).abs() < 1e-11);
        assert!((trigamma(1.0) - std::f64::consts::PI.powi(2) / 6.0).abs() < 1e-11);
        assert!((trigamma(0.5) - std::f64::consts::PI.powi(2) / 2.0).abs() < 1e-11);
        for x in [0.01, 0.7, 3.0, 400.0] {
            assert!((inverse_trigamma(trigamma(x)) / x - 1.0).abs() < 1e-9);
        }
    }
}
