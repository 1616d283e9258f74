# Hashes of hashes with strings as keys, built and dropped.
my $total = 0;
for my $round (1 .. 5) {
    my %people;
    for my $i (1 .. 60000) {
        $people{"person $i"} = { age => $i % 90, city => "city " . $i % 500, tags => [ $i, $round ] };
    }
    $total += $people{$_}{age} + length $people{$_}{city} for keys %people;
}
print "$total\n";
