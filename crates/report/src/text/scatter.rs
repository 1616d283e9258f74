//! Time against memory as a plot of characters.

use pagewise_model::tuning::Point;
use pagewise_model::units::{Bytes, Nanos};

/// Rows of the plot.
const ROWS: usize = 10;

/// A plot `width` columns wide: time to the right, memory upwards, each point drawn as its letter
/// in `letters`. Where points coincide, the first stays.
pub fn scatter(points: &[Point], letters: &[char], width: usize) -> String {
    let columns = width.saturating_sub(20).clamp(20, 70);
    let time = Scale::new(points.iter().map(|point| point.seconds));
    let memory = Scale::new(points.iter().map(|point| point.peak_bytes));
    let mut grid = vec![vec![' '; columns]; ROWS];
    for (point, &letter) in points.iter().zip(letters).rev() {
        let row = ROWS - 1 - memory.place(point.peak_bytes, ROWS);
        grid[row][time.place(point.seconds, columns)] = letter;
    }
    draw(&grid, &time, &memory)
}

fn draw(grid: &[Vec<char>], time: &Scale, memory: &Scale) -> String {
    let mut text = String::new();
    for (row, cells) in grid.iter().enumerate() {
        let label = match row {
            0 => bytes(memory.high),
            _ if row == grid.len() - 1 => bytes(memory.low),
            _ => String::new(),
        };
        let line: String = cells.iter().collect();
        text += &format!("{label:>10} │{}\n", line.trim_end());
    }
    let columns = grid.first().map_or(0, Vec::len);
    let (low, high) = (seconds(time.low), seconds(time.high));
    let gap = columns.saturating_sub(low.chars().count() + high.chars().count());
    text += &format!("{:>10} └{}\n", "memory", "─".repeat(columns));
    text += &format!("{:>12}{low}{}{high}  time\n", "", " ".repeat(gap));
    text
}

/// A logarithmic axis from the smallest to the largest value.
struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    fn new(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = values
            .filter(|value| *value > 0.0)
            .fold((f64::MAX, 0.0_f64), |(low, high), value| {
                (low.min(value), high.max(value))
            });
        Self {
            low: low.min(high),
            high,
        }
    }

    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to 0 to steps - 1 first"
    )]
    fn place(&self, value: f64, steps: usize) -> usize {
        let span = (self.high / self.low).ln();
        if !span.is_normal() {
            return 0;
        }
        let share = ((value.max(self.low) / self.low).ln() / span).clamp(0.0, 1.0);
        (share * (steps - 1) as f64).round() as usize
    }
}

fn seconds(value: f64) -> String {
    Nanos::from_secs_f64(value).to_string()
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a size, not negative"
)]
pub fn bytes(value: f64) -> String {
    Bytes(value as u64).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(seconds: f64, peak_bytes: f64) -> Point {
        Point {
            arm: String::new(),
            seconds,
            peak_bytes,
            told_apart: true,
            on_front: false,
        }
    }

    #[test]
    fn points_stand_where_time_and_memory_put_them() {
        let mib = 1_048_576.0;
        let points = [point(8.0, 10.0 * mib), point(1.0, 80.0 * mib)];
        let plot = scatter(&points, &['a', 'b'], 80);
        let lines: Vec<&str> = plot.lines().collect();
        assert_eq!(lines[0], "  80.0 MiB │b");
        assert!(lines[ROWS - 1].starts_with("  10.0 MiB │ ") && lines[ROWS - 1].ends_with('a'));
        assert!(lines[ROWS + 1].contains("1.00 s") && lines[ROWS + 1].ends_with("8.00 s  time"));
    }

    #[test]
    fn equal_points_do_not_divide_by_zero() {
        let plot = scatter(&[point(1.0, 1.0), point(1.0, 1.0)], &['a', 'b'], 40);
        assert!(plot.contains("│a\n"));
    }
}
