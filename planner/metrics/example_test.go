package metrics_test

import (
	"expvar"
	"log"
	"net/http"
	"os"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/planner/metrics"
	"github.com/tierflow/tierflow/planner/raw"
)

// A program shows its metrics where it serves HTTP anyway.
func Example() {
	http.Handle("/metrics", metrics.Handler())
	expvar.Publish("tierflow", metrics.Var{})
}

// What a rank's metrics look like. [metrics.Handler] writes those of raw.Usages.
func ExampleWrite() {
	u := raw.Usage{Rank: 3, Levels: []string{"node", "network"}}
	u.Calls = []executor.Calls{{Collective: "bcast", Plan: "shape=han,i=adapt", Count: 12}}
	u.Sent, u.Read = []int64{4096, 0}, []int64{0, 0}
	if err := metrics.Write(os.Stdout, []raw.Usage{u}); err != nil {
		log.Fatal(err)
	}
	// Output:
	// # HELP tierflow_calls_total Calls of collectives that have begun.
	// # TYPE tierflow_calls_total counter
	// tierflow_calls_total{world="0",rank="3",collective="bcast",plan="shape=han,i=adapt"} 12
	// # HELP tierflow_sent_bytes_total Payload bytes sent by messages.
	// # TYPE tierflow_sent_bytes_total counter
	// tierflow_sent_bytes_total{world="0",rank="3",level="node"} 4096
	// tierflow_sent_bytes_total{world="0",rank="3",level="network"} 0
	// # HELP tierflow_read_bytes_total Bytes copied or reduced from where other ranks keep them.
	// # TYPE tierflow_read_bytes_total counter
	// tierflow_read_bytes_total{world="0",rank="3",level="node"} 0
	// tierflow_read_bytes_total{world="0",rank="3",level="network"} 0
	// # HELP tierflow_running Calls and transfers that have begun and not ended.
	// # TYPE tierflow_running gauge
	// tierflow_running{world="0",rank="3"} 0
	// # HELP tierflow_waiting Calls that have stood still for 100 ms or more.
	// # TYPE tierflow_waiting gauge
	// tierflow_waiting{world="0",rank="3"} 0
	// # HELP tierflow_waiting_seconds How long the call that waits longest has stood still.
	// # TYPE tierflow_waiting_seconds gauge
	// tierflow_waiting_seconds{world="0",rank="3"} 0
	// # HELP tierflow_waited_seconds_total How long calls have waited with nothing to do; of all ranks a late one waits least.
	// # TYPE tierflow_waited_seconds_total counter
	// tierflow_waited_seconds_total{world="0",rank="3"} 0
	// # HELP tierflow_stalls_total Times that a call stood still for StallAfter, doubled each time.
	// # TYPE tierflow_stalls_total counter
	// tierflow_stalls_total{world="0",rank="3"} 0
	// # HELP tierflow_broken_communicators Communicators that have failed.
	// # TYPE tierflow_broken_communicators gauge
	// tierflow_broken_communicators{world="0",rank="3"} 0
	// # HELP tierflow_tls_handshakes_total TLS handshakes between nodes, by how they ended.
	// # TYPE tierflow_tls_handshakes_total counter
	// # HELP tierflow_tls_certificate_expiry_seconds When this rank's certificate expires, Unix time.
	// # TYPE tierflow_tls_certificate_expiry_seconds gauge
	// # HELP tierflow_computing 1 while a caller's operation is on its way on the rank.
	// # TYPE tierflow_computing gauge
	// tierflow_computing{world="0",rank="3"} 0
	// # HELP tierflow_call_seconds How long calls take on this rank, from begin to end; of calls with less than 256 KiB a sample, each counting for 32.
	// # TYPE tierflow_call_seconds histogram
	// # HELP tierflow_bus_bytes_per_second Bus bandwidth of calls, as NCCL's tests define it; the same calls.
	// # TYPE tierflow_bus_bytes_per_second histogram
}
