<?php $n=0; for ($r=0;$r<120;$r++){ $a=[]; for($i=0;$i<200000;$i++){ $a[]=$i*$r; } $n+=count($a); unset($a);} echo $n,"\n";
