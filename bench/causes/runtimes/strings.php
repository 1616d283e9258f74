<?php $n=0; for ($r=0;$r<400;$r++){ $s=str_repeat('x',8<<20); $n+=strlen(strrev($s)); } echo $n,"\n";
