package main

import "fmt"

func main() {
	t := 0
	for i := 0; i < 40; i++ {
		m := map[int][]byte{}
		for j := 0; j < 60000; j++ {
			m[j] = make([]byte, 64)
		}
		t += len(m)
	}
	fmt.Println(t)
}
