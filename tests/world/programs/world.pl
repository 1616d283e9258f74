my $what = shift;
my $total = 0;
if ($what eq 'churn') {
    for my $r (1 .. 8) { my @l = map { { a => $_, b => "x$_" } } 1 .. 40_000; $total += @l }
} elsif ($what eq 'large') {
    for my $r (1 .. 20) { my $s = 'x' x (40 << 20); $total += length $s; undef $s }
} elsif ($what eq 'touch') {
    my @kept = map { 'x' x (2000 + $_ % 8) } 1 .. 90_000; $total = @kept;
} else {
    my @table = 0 .. 999;
    for my $i (1 .. 6_000_000) { $total += $table[$i % 1000] }
}
print "$total\n";
