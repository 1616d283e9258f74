package main

import (
	"fmt"
	"runtime/debug"
)

func main() {
	t := 0
	for i := 0; i < 150; i++ {
		b := make([]byte, 32<<20)
		for j := 0; j < len(b); j += 4096 {
			b[j] = 1
			t++
		}
		b = nil
		debug.FreeOSMemory()
	}
	fmt.Println(t)
}
