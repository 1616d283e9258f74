// Objects of random sizes, most of them dropped and collected. Arguments: objects in a row with one
// fate, one row in so many stays. Counts itself as truth.c does, by runtime.MemStats.
package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

var held [][]byte

func residentKiB() int {
	text, _ := os.ReadFile("/proc/self/smaps_rollup")
	for _, line := range strings.Split(string(text), "\n") {
		if words := strings.Fields(line); len(words) > 1 && words[0] == "Rss:" {
			number, _ := strconv.Atoi(words[1])
			return number
		}
	}
	return -1
}

func main() {
	row, _ := strconv.Atoi(os.Args[1])
	stays, _ := strconv.Atoi(os.Args[2])
	seed := uint64(88172645463325252)
	for i := 0; i < 200000; i++ {
		seed ^= seed << 13
		seed ^= seed >> 7
		seed ^= seed << 17
		object := make([]byte, 16+seed%3000)
		for at := range object {
			object[at] = 1
		}
		held = append(held, object)
	}
	for i := range held {
		if i/row%stays != 0 {
			held[i] = nil
		}
	}
	runtime.GC()
	runtime.GC()
	debug.SetGCPercent(-1)
	truth, _ := os.OpenFile(os.Getenv("TRUTH"), os.O_WRONLY, 0)
	pass, buffer := os.Getenv("GO"), make([]byte, 1)
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	fmt.Fprintf(truth, "{\"pid\": %d, \"allocator\": \"go\", \"in_use\": %d, \"mapped\": 0}\n",
		os.Getpid(), now.HeapAlloc+now.StackInuse)
	wait, _ := os.Open(pass)
	wait.Read(buffer)
	before := residentKiB()
	debug.FreeOSMemory()
	fmt.Fprintf(truth, "{\"before\": %d, \"after\": %d}\n", before, residentKiB())
	runtime.KeepAlive(held)
}
