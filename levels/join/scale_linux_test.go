package join

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// BenchmarkScale joins many ranks in one process, on nodes of 32, and says what crosses
// loopback meanwhile (between nodes that would be the network), how much the heap grows by
// a rank that is in, and the process's peak. A process of a real job has one rank.
//
// 2026-11-22, two busy CPUs, 1,024 ranks: 12 MB cross loopback, and the peak is 0.93 GB. When rank 0 told the whole table
// to each rank, these were 425 MB and 1.23 GB.
func BenchmarkScale(b *testing.B) {
	for _, n := range []int{64, 256, 1024} {
		b.Run(fmt.Sprintf("ranks=%d", n), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				cs := configs(b, n)
				for r := range cs {
					cs[r].Node, cs[r].Interfaces = fmt.Sprint("node", r/32), nil
				}
				before, wire := liveHeap(), loopback(b)
				b.StartTimer()
				jobs, errs := joinAll(b, cs, 2*time.Minute)
				b.StopTimer()
				for r, err := range errs {
					if err != nil {
						b.Fatalf("rank %d: %v", r, err)
					}
				}
				b.ReportMetric(float64(loopback(b)-wire)/1e6, "MB-wire")
				b.ReportMetric(float64(liveHeap()-before)/float64(n)/1e3, "kB/rank")
				b.ReportMetric(peak(b)/1e6, "MB-peak")
				closeAll(b, jobs)
				b.StartTimer()
			}
		})
	}
}

// liveHeap returns the bytes of the heap without garbage.
func liveHeap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// loopback returns the bytes that have crossed it.
func loopback(b *testing.B) int64 { return numberIn(b, "/proc/net/dev", "lo:") }

// peak returns the most memory that the process has had, bytes.
func peak(b *testing.B) float64 { return 1024 * float64(numberIn(b, "/proc/self/status", "VmHWM:")) }

// numberIn returns the number behind a word of a file of the system; 0: there is none.
func numberIn(b *testing.B, file, word string) int64 {
	text, err := os.ReadFile(file)
	if err != nil {
		b.Skip(err)
	}
	_, rest, _ := strings.Cut(string(text), word)
	n, _ := strconv.ParseInt(strings.Fields(rest + " 0")[0], 10, 64)
	return n
}
