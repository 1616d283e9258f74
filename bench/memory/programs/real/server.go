// A server with sessions, of which most expire: it counts itself at /counts, and returns memory at /free.
package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"runtime"
	"runtime/debug"
)

func main() {
	sessions := map[int]map[string]string{}
	for i := 0; i < 150000; i++ {
		sessions[i] = map[string]string{"user": fmt.Sprint("name ", i), "token": fmt.Sprintf("%0200d", i)}
	}
	for i := 0; i < 150000; i++ {
		if i%10 != 0 {
			delete(sessions, i)
		}
	}
	runtime.GC()
	listener, err := net.Listen("unix", os.Args[1])
	if err != nil {
		panic(err)
	}
	fmt.Println("ready")
	for {
		connection, err := listener.Accept()
		if err != nil {
			panic(err)
		}
		question := make([]byte, 1)
		connection.Read(question)
		if question[0] == 't' {
			debug.FreeOSMemory()
		}
		var now runtime.MemStats
		runtime.ReadMemStats(&now)
		json.NewEncoder(connection).Encode(map[string]uint64{
			"in_use": now.HeapAlloc + now.StackInuse,
			"free":   now.HeapInuse - now.HeapAlloc + now.HeapIdle,
			"left":   uint64(len(sessions)),
		})
		connection.Close()
	}
}
