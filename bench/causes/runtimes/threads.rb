n=0; 4.times.map { Thread.new { 30.times { l=(0...40_000).map { |i| "y#{i}"*3 }; n+=l.size } } }.each(&:join); puts n
