# Regular expressions over text: computing.
my $text = join ' ', map { "word$_ of " . $_ * 7 % 1000 . " and more;" } 1 .. 60000;
my $found = 0;
for my $round (1 .. 20) {
    $found++ while $text =~ /(\w+)\s+of\s+(\d{2,3})\s+and/g;
}
print "$found\n";
