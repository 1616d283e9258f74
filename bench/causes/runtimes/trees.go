package main

import "fmt"

type node struct{ l, r *node }

func build(d int) *node {
	if d == 0 {
		return &node{}
	}
	return &node{build(d - 1), build(d - 1)}
}
func (n *node) count() int {
	if n.l == nil {
		return 1
	}
	return 1 + n.l.count() + n.r.count()
}
func main() {
	keep := build(16)
	t := 0
	for i := 0; i < 300; i++ {
		t += build(14).count()
	}
	fmt.Println(t, keep.count())
}
