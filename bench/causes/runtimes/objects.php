<?php class P { public $a; public $b; function __construct($a){$this->a=$a;$this->b=[$a];} } $n=0; for($r=0;$r<40;$r++){ $l=[]; for($i=0;$i<100000;$i++) $l[]=new P($i); $n+=count($l);} echo $n,"\n";
