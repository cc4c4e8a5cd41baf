package fuse

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/internal/inside"
	"github.com/tierflow/tierflow/tasks"
)

// Bounds of a bucket's size by prices, bytes.
const (
	leastBucket = 64 << 10
	mostBucket  = 64 << 20
)

// latencyShare is one part in how many of a bucket's time may be latency.
const latencyShare = 10

// bucketFor returns how many bytes a bucket should have on a communicator, and why. Calls of two
// sizes give the latency α and the time of a byte β. α is a tenth of α+βB if B is 9α/β.
func bucketFor(c *planner.Comm, t tasks.Datatype, op tasks.Op, sizes []int) (bytes int64, why string, err error) {
	const near, far = 256 << 10, 4 << 20
	var ns [2]float64
	for i, n := range []int64{near, far} {
		r := tasks.Request{Coll: tasks.Allreduce, Count: n / int64(t.Size()), Type: t, Op: op, InPlace: true}
		var known bool
		if ns[i], known, err = c.Predict(r); err != nil {
			return 0, "", err
		}
		if !known {
			return DefaultBucket, "nothing is known of what calls take", nil
		}
	}
	beta := (ns[1] - ns[0]) / (far - near)
	alpha := ns[0] - float64(beta*near) // all ranks must come to the same size
	if beta <= 0 || alpha <= 0 {
		return DefaultBucket, fmt.Sprintf("calls of %s take %.0f µs, of %s %.0f µs: no latency to be seen", tasks.FormatBytes(near), ns[0]/1e3, tasks.FormatBytes(far), ns[1]/1e3), nil
	}
	bytes = int64((latencyShare - 1) * alpha / beta)
	bytes = (bytes + leastBucket - 1) / leastBucket * leastBucket
	bytes = min(max(bytes, leastBucket), mostBucket)
	return bytes, fmt.Sprintf("a call takes %.0f µs and %.3g ns a byte: latency is a tenth", alpha/1e3, beta), nil
}

// Explain lists the buckets with their tensors. It gives the reason for their size, and the plan of
// the largest.
func (b *Buckets[T]) Explain() string {
	var text strings.Builder
	size := int64(len(inside.Bytes(make([]T, 1))))
	fmt.Fprintf(&text, "%d tensors, %s in %d buckets; %s\n", len(b.tensors), tasks.FormatBytes(int64(b.total())*size), len(b.buckets), b.why)
	largest := 0
	for k, s := range b.buckets {
		if s.len() > b.buckets[largest].len() {
			largest = k
		}
		fmt.Fprintf(&text, "  bucket %d: %s, tensors %v\n", k, tasks.FormatBytes(int64(s.len())*size), b.parts[k])
	}
	if len(b.buckets) > 0 {
		fmt.Fprintf(&text, "bucket %d: %s", largest, b.calls[largest].Explain())
	}
	if runtime.GOMAXPROCS(0) == 1 {
		fmt.Fprintln(&text, oneProcessor)
	}
	return text.String()
}
