package metrics

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/planner/raw"
)

// Handler answers GET and HEAD with the metrics of this process.
func Handler() http.Handler { return http.HandlerFunc(serve) }

func serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, fmt.Sprintf("method %s; allowed are GET and HEAD", r.Method), http.StatusMethodNotAllowed)
		return
	}
	var page bytes.Buffer
	_ = Write(&page, raw.Usages()) // a buffer takes all
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(page.Bytes()) // a client gone needs no answer
}

// Var is the metrics of this process as JSON: a list of [raw.Usage], durations in
// ns. It is an expvar.Var.
type Var struct{}

// String returns the JSON of now.
func (Var) String() string {
	all := raw.Usages()
	if all == nil {
		all = []raw.Usage{}
	}
	text, err := json.Marshal(all)
	if err != nil { // plain fields: can't be
		panic(fmt.Sprintf("metrics: %v", err))
	}
	return string(text)
}

// family is the metrics of one name.
type family struct {
	name, kind, help string
	each             func(u *raw.Usage, add func(value float64, labels ...string))
}

var families = []family{
	{"tierflow_calls_total", "counter", "Calls of collectives that have begun.", func(u *raw.Usage, add func(float64, ...string)) {
		for _, c := range u.Calls {
			add(float64(c.Count), "collective", c.Collective, "plan", c.Plan)
		}
	}},
	{"tierflow_sent_bytes_total", "counter", "Payload bytes sent by messages.", func(u *raw.Usage, add func(float64, ...string)) {
		addByLevel(u, u.Sent, add)
	}},
	{"tierflow_read_bytes_total", "counter", "Bytes copied or reduced from where other ranks keep them.", func(u *raw.Usage, add func(float64, ...string)) {
		addByLevel(u, u.Read, add)
	}},
	{"tierflow_running", "gauge", "Calls and transfers that have begun and not ended.", func(u *raw.Usage, add func(float64, ...string)) {
		add(float64(u.Running))
	}},
	{"tierflow_waiting", "gauge", "Calls that have stood still for 100 ms or more.", func(u *raw.Usage, add func(float64, ...string)) {
		add(float64(u.Waiting))
	}},
	{"tierflow_waiting_seconds", "gauge", "How long the call that waits longest has stood still.", func(u *raw.Usage, add func(float64, ...string)) {
		add(u.Longest.Seconds())
	}},
	{"tierflow_waited_seconds_total", "counter", "How long calls have waited with nothing to do; of all ranks a late one waits least.", func(u *raw.Usage, add func(float64, ...string)) {
		add(u.Waited.Seconds())
	}},
	{"tierflow_stalls_total", "counter", "Times that a call stood still for StallAfter, doubled each time.", func(u *raw.Usage, add func(float64, ...string)) {
		add(float64(u.Stalls))
	}},
	{"tierflow_broken_communicators", "gauge", "Communicators that have failed.", func(u *raw.Usage, add func(float64, ...string)) {
		add(float64(u.Broken))
	}},
	{"tierflow_tls_handshakes_total", "counter", "TLS handshakes between nodes, by how they ended.", func(u *raw.Usage, add func(float64, ...string)) {
		if u.TLS != nil {
			add(float64(u.TLS.Made), "result", "made")
			add(float64(u.TLS.Failed), "result", "failed")
		}
	}},
	{"tierflow_tls_certificate_expiry_seconds", "gauge", "When this rank's certificate expires, Unix time.", func(u *raw.Usage, add func(float64, ...string)) {
		if u.TLS != nil && !u.TLS.Expires.IsZero() {
			add(float64(u.TLS.Expires.Unix()))
		}
	}},
	{"tierflow_computing", "gauge", "1 while a caller's operation is on its way on the rank.", func(u *raw.Usage, add func(float64, ...string)) {
		add(map[bool]float64{true: 1}[u.Computing])
	}},
}

// histogram is the metrics of one name, with buckets. Their labels are a collective and a plan.
type histogram struct {
	name, help string
	of         func(c *executor.Calls) *executor.Histogram
	bounds     []int64
	unit       float64 // the served unit in the unit of the bounds
}

var histograms = []histogram{
	{
		"tierflow_call_seconds", "How long calls take on this rank, from begin to end; of calls with less than 256 KiB a sample, each counting for 32.",
		func(c *executor.Calls) *executor.Histogram { return &c.Took }, executor.TookBounds[:], 1e9,
	},
	{
		"tierflow_bus_bytes_per_second", "Bus bandwidth of calls, as NCCL's tests define it; the same calls.",
		func(c *executor.Calls) *executor.Histogram { return &c.Rate }, executor.RateBounds[:], 1,
	},
}

// addByLevel adds a value for each level.
func addByLevel(u *raw.Usage, bytes []int64, add func(float64, ...string)) {
	for k, n := range bytes {
		add(float64(n), "level", u.Levels[k])
	}
}

// Write writes usages in Prometheus' text form, version 0.0.4, as [Handler] does.
func Write(w io.Writer, all []raw.Usage) error {
	var b bytes.Buffer
	for _, f := range families {
		writeHead(&b, f.name, f.kind, f.help)
		for i := range all {
			u := &all[i]
			f.each(u, func(value float64, labels ...string) { writeSample(&b, f.name, u, value, labels...) })
		}
	}
	for _, h := range histograms {
		writeHead(&b, h.name, "histogram", h.help)
		for i := range all {
			for k := range all[i].Calls {
				c := &all[i].Calls[k]
				h.write(&b, &all[i], c)
			}
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// writeHead begins the metrics of a name.
func writeHead(b *bytes.Buffer, name, kind, help string) {
	fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

// write writes the buckets, the sum and the count of some calls; nothing if none was timed.
func (h *histogram) write(b *bytes.Buffer, u *raw.Usage, c *executor.Calls) {
	of := h.of(c)
	labels := []string{"collective", c.Collective, "plan", c.Plan}
	count := int64(0)
	for _, n := range of.Buckets {
		count += n
	}
	if count == 0 {
		return
	}
	below := int64(0)
	for k, bound := range h.bounds {
		below += of.Buckets[k]
		writeSample(b, h.name+"_bucket", u, float64(below), append(labels, "le", formatNumber(float64(bound)/h.unit))...)
	}
	writeSample(b, h.name+"_bucket", u, float64(count), append(labels, "le", "+Inf")...)
	writeSample(b, h.name+"_sum", u, float64(of.Sum)/h.unit, labels...)
	writeSample(b, h.name+"_count", u, float64(count), labels...)
}

// writeSample writes a value with its labels: names and values in turns.
func writeSample(b *bytes.Buffer, name string, u *raw.Usage, value float64, labels ...string) {
	fmt.Fprintf(b, `%s{world="%d",rank="%d"`, name, u.World, u.Rank)
	for i := 0; i < len(labels); i += 2 {
		fmt.Fprintf(b, `,%s="%s"`, labels[i], escape.Replace(labels[i+1]))
	}
	fmt.Fprintf(b, "} %s\n", formatNumber(value))
}

func formatNumber(value float64) string { return strconv.FormatFloat(value, 'g', -1, 64) }

// escape escapes a label's value.
var escape = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
