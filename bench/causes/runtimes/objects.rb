n=0; 40.times { |r| l=[]; 100_000.times { |i| l << [i, "x#{i}"] }; n+=l.size }; puts n
