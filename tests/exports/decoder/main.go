// Reads what Pagewise exports with Go's own pprof package and with the data model of the
// OpenTelemetry Collector.
//
//	decoder otlp FILE     the sums of each profile of a file, as JSON
//	decoder serve         takes pprof at /ingest as Pyroscope does, and prints what arrived
//
// The server's first line is its address. A request is a line of JSON. It refuses what Pyroscope
// would refuse, and a request without the token that its environment names.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/google/pprof/profile"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Sums of a profile: by type of value, and by stack (outermost frame first) for each.
type sums struct {
	Types  []string
	Totals []int64
	Stacks []map[string]int64
	// Texts by which threads, kinds of frames and the resource are told apart.
	Attributes map[string]string
	Begin      int64
}

func main() {
	switch {
	case len(os.Args) == 3 && os.Args[1] == "otlp":
		print(otlp(os.Args[2]))
	case len(os.Args) == 2 && os.Args[1] == "serve":
		serve()
	default:
		log.Fatal("decoder otlp FILE | decoder serve")
	}
}

func print(value any) {
	if err := json.NewEncoder(os.Stdout).Encode(value); err != nil {
		log.Fatal(err)
	}
}

func otlp(path string) sums {
	bytes, err := os.ReadFile(path)
	if err != nil {
		log.Fatal(err)
	}
	all, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(bytes)
	if err != nil {
		log.Fatal(err)
	}
	found := sums{Attributes: map[string]string{}}
	words := all.Dictionary()
	text := func(at int32) string { return words.StringTable().At(int(at)) }
	noted := func(indices interface {
		Len() int
		At(int) int32
	}) {
		for at := range indices.Len() {
			one := words.AttributeTable().At(int(indices.At(at)))
			found.Attributes[text(one.KeyStrindex())] = one.Value().AsString()
		}
	}
	for _, resource := range all.ResourceProfiles().All() {
		for key, value := range resource.Resource().Attributes().All() {
			found.Attributes[key] = value.AsString()
		}
		for _, scope := range resource.ScopeProfiles().All() {
			for _, one := range scope.Profiles().All() {
				total, stacks := int64(0), map[string]int64{}
				for _, sample := range one.Samples().All() {
					value := sample.Values().At(0)
					total += value
					noted(sample.AttributeIndices())
					locations := words.StackTable().At(int(sample.StackIndex())).LocationIndices()
					frames := []string{}
					for at := range locations.Len() {
						location := words.LocationTable().At(int(locations.At(at)))
						noted(location.AttributeIndices())
						function := words.FunctionTable().At(int(location.Lines().At(0).FunctionIndex()))
						frames = append([]string{text(function.NameStrindex())}, frames...)
					}
					stacks[strings.Join(frames, ";")] += value
				}
				found.Types = append(found.Types, text(one.SampleType().TypeStrindex()))
				found.Totals = append(found.Totals, total)
				found.Stacks = append(found.Stacks, stacks)
				found.Begin = int64(one.Time())
			}
		}
	}
	return found
}

func of(body []byte) (sums, error) {
	one, err := profile.ParseData(body)
	if err != nil {
		return sums{}, err
	}
	found := sums{Begin: one.TimeNanos}
	for at, kind := range one.SampleType {
		total, stacks := int64(0), map[string]int64{}
		for _, sample := range one.Sample {
			frames := []string{}
			for _, location := range sample.Location {
				frames = append([]string{location.Line[0].Function.Name}, frames...)
			}
			total += sample.Value[at]
			if sample.Value[at] != 0 {
				stacks[strings.Join(frames, ";")] += sample.Value[at]
			}
		}
		found.Types = append(found.Types, kind.Type)
		found.Totals = append(found.Totals, total)
		found.Stacks = append(found.Stacks, stacks)
	}
	return found, one.CheckValid()
}

func serve() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("http://%s\n", listener.Addr())
	http.HandleFunc("POST /ingest", func(out http.ResponseWriter, in *http.Request) {
		if in.Header.Get("Authorization") != "Bearer "+os.Getenv("EXPECTED_TOKEN") {
			http.Error(out, "no credentials", http.StatusUnauthorized)
			return
		}
		query := in.URL.Query()
		from, begin := strconv.ParseInt(query.Get("from"), 10, 64)
		until, end := strconv.ParseInt(query.Get("until"), 10, 64)
		if query.Get("format") != "pprof" || query.Get("name") == "" || begin != nil || end != nil || from > until {
			http.Error(out, "a query that Pyroscope would not take", http.StatusBadRequest)
			return
		}
		body, err := io.ReadAll(in.Body)
		if err != nil {
			http.Error(out, err.Error(), http.StatusRequestTimeout)
			return
		}
		found, err := of(body)
		if err != nil {
			http.Error(out, err.Error(), http.StatusUnprocessableEntity)
			return
		}
		print(map[string]any{"name": query.Get("name"), "from": from, "until": until, "sums": found})
	})
	// Takes requests and never answers.
	http.HandleFunc("POST /silent/ingest", func(_ http.ResponseWriter, in *http.Request) {
		<-in.Context().Done()
	})
	log.Fatal(http.Serve(listener, nil))
}
