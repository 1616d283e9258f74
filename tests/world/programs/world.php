<?php
$what = $argv[1];
$total = 0;
ini_set('memory_limit', '1G');
if ($what === 'churn') {
    for ($r = 0; $r < 60; $r++) { $a = []; for ($i = 0; $i < 100000; $i++) { $a[] = $i * $r; } $total += count($a); unset($a); }
} elseif ($what === 'large') {
    for ($r = 0; $r < 20; $r++) { $s = str_repeat('x', 40 << 20); $total += strlen($s); unset($s); }
} elseif ($what === 'touch') {
    $kept = []; for ($i = 0; $i < 90000; $i++) { $kept[] = str_repeat(chr($i & 63), 2000); } $total = count($kept);
} else {
    $table = range(0, 999);
    for ($i = 0; $i < 12000000; $i++) { $total += $table[$i % 1000]; }
}
echo $total, "\n";
