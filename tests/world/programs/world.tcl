set what [lindex $argv 0]
set total 0
if {$what eq "churn"} {
    for {set r 0} {$r < 15} {incr r} {
        set l {}
        for {set i 0} {$i < 60000} {incr i} { lappend l "x$i" }
        incr total [llength $l]
        unset l
    }
} elseif {$what eq "touch"} {
    for {set i 0} {$i < 80000} {incr i} { lappend kept [string repeat x [expr {2000 + $i % 8}]]$i }
    set total [llength $kept]
} else {
    proc hold {} { set sum 0; for {set i 0} {$i < 6000000} {incr i} { set sum [expr {($sum + $i) & 0xffffff}] }; return $sum }
    set total [hold]
}
puts $total
