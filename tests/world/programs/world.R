what <- commandArgs(TRUE)[1]
total <- 0
if (what == "churn") {
  for (r in 1:60) { x <- runif(625000); y <- x * 2 + 1; total <- total + sum(y) }
} else if (what == "large") {
  for (r in 1:12) { x <- numeric(6e6); x[] <- r; total <- total + x[5] }
} else if (what == "touch") {
  kept <- lapply(1:80000, function(i) raw(2000)); total <- length(kept)
} else {
  table <- as.numeric(1:1000)
  for (i in 1:6000000) total <- total + table[i %% 1000 + 1]
}
cat(total, "\n")
