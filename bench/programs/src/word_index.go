// Builds an index of words over generated text: maps, slices and strings under Go's collector.
package main

import "fmt"

func main() {
	index := make(map[string][]int)
	state := uint32(1)
	for position := 0; position < 5_000_000; position++ {
		state = state*1664525 + 1013904223
		word := fmt.Sprintf("w%d", state>>16%40000)
		index[word] = append(index[word], position)
	}
	longest := 0
	for _, positions := range index {
		longest = max(longest, len(positions))
	}
	fmt.Println(len(index), longest)
}
