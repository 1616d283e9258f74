# Vector arithmetic in R: each operator makes a new 40 MB vector, which the collector frees.
x <- as.double(seq_len(5e6))
y <- x
for (i in 1:30) y <- (x * 0.5 + y) / 1.5 - 1
cat(sprintf("%.3f\n", sum(y)))
