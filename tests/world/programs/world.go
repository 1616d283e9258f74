package main

import (
	"fmt"
	"os"
	"runtime/debug"
)

type node struct{ l, r *node }

func build(d int) *node {
	if d == 0 {
		return &node{}
	}
	return &node{build(d - 1), build(d - 1)}
}

func main() {
	total := 0
	switch os.Args[1] {
	case "churn":
		for i := 0; i < 60; i++ {
			if build(15).l != nil {
				total++
			}
		}
	case "large":
		for i := 0; i < 20; i++ {
			b := make([]byte, 40<<20)
			for j := 0; j < len(b); j += 4096 {
				b[j] = 1
			}
			total += len(b)
			b = nil
			debug.FreeOSMemory()
		}
	case "touch":
		kept := make([][]byte, 0, 80000)
		for i := 0; i < 80000; i++ {
			kept = append(kept, make([]byte, 2000))
			kept[i][i%2000] = 1
		}
		total = len(kept)
	default:
		table := make([]int, 1000)
		for i := 0; i < 300000000; i++ {
			total = total*3 + table[i%1000]
		}
	}
	fmt.Println(total)
}
