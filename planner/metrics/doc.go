// Package metrics shows the work of a process's ranks, to Prometheus and to expvar.
//
//	http.Handle("/metrics", metrics.Handler())    // in Prometheus' text form
//	expvar.Publish("tierflow", metrics.Var{})     // as JSON
//
// It is a package of its own because net/http would double the packages under every
// user of planner. It counts nothing itself: a program without it pays
// nothing, and one with it pays when somebody asks.
//
// The metrics, all with the labels world and rank of [raw.Usage]:
//
//	tierflow_calls_total             calls of collectives, by collective and plan: the plan in use is the one that grows
//	tierflow_sent_bytes_total        payload bytes sent by messages, by level: node, network, …
//	tierflow_read_bytes_total        bytes copied or reduced from where other ranks of the node keep them, by level
//	tierflow_running                 calls and transfers that have begun and not ended
//	tierflow_waiting                 calls of them that have stood still for 100 ms or more
//	tierflow_waiting_seconds         how long the one that waits longest has stood still
//	tierflow_stalls_total            times that a call stood still for Options.StallAfter, doubled each time
//	tierflow_broken_communicators    communicators that have failed
//	tierflow_tls_handshakes_total    TLS handshakes between nodes by result: made, failed; of jobs with TLS
//	tierflow_tls_certificate_expiry_seconds  when the rank's certificate expires, Unix time
//	tierflow_call_seconds            histogram of how long calls take on this rank, from begin to end, by collective and plan
//	tierflow_bus_bytes_per_second    histogram of their bus bandwidth: bytes, times how often the busiest link carries them, over time
//	tierflow_computing               1 while a caller's operation is on its way on the rank
//
// Counters begin with the job and end with it. A rank tells 256 pairs of collective and
// plan apart; calls with further ones have the plan "other". The histograms have 14 buckets, with bounds
// four times each other: from 1 µs to 16.8 s, and from 100 kB/s to 1.7 TB/s. A pair has 32 series of them at most, and none
// before one of its calls was timed. Calls with 256 KiB or more are all timed. Of others one in 32 is, drawn evenly, and
// counts for 32; their means and quantiles are those of all.
//
// Programs under tierflow run need no code: with TIERFLOW_METRICS=:9100 each host
// serves the metrics of its ranks. grafana.json is a board for them.
package metrics
