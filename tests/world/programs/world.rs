fn main() {
    let what = std::env::args().nth(1).unwrap_or_default();
    let mut total = 0usize;
    match what.as_str() {
        "churn" => {
            for i in 0..60 {
                let blocks: Vec<Vec<u8>> = (0..256).map(|_| vec![i as u8 | 1; 65536]).collect();
                total += blocks.len();
            }
        }
        "large" => {
            for i in 0..20 {
                let block = vec![i as u8 | 1; 48 << 20];
                total += usize::from(block[i << 10]);
            }
        }
        "touch" => {
            let kept: Vec<Vec<u8>> = (0..70_000).map(|i| vec![i as u8 | 1; 4000]).collect();
            total = kept.len();
        }
        _ => {
            let table: Vec<usize> = (0..1000).collect();
            for i in 0..300_000_000usize {
                total = total.wrapping_mul(3).wrapping_add(table[(total ^ i) % 1000]);
            }
        }
    }
    println!("{total}");
}
