what = ARGV[0]
total = 0
case what
when "churn"
  12.times { |r| l = []; 60_000.times { |i| l << [i, "x#{i}"] }; total += l.size }
when "large"
  20.times { |r| s = "x" * (40 << 20); total += s.bytesize }
when "touch"
  kept = []; 80_000.times { |i| kept << ("x" * 2000) }; total = kept.size
else
  table = (0...1000).to_a
  2_500_000.times { |i| total += table[i % 1000] }
end
puts total
