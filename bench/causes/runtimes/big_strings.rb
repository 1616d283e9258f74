n=0; 400.times { s = "x" * (8<<20); n += s.reverse.size }; puts n
