package bench

import (
	"os"
	"runtime"
	"time"

	"github.com/tierflow/tierflow/cmd/internal/kit"
)

// document is the JSON of a command.
type document struct {
	Provenance provenance `json:"provenance"`
	Results    any        `json:"results"`
}

// provenance says where results come from, so that a file of them can be read later.
type provenance struct {
	Topology   string  `json:"topology"`
	Links      string  `json:"links"`                // between nodes: real, emulated or simulated
	Host       string  `json:"host,omitempty"`       // of rank 0; empty: simulated, or unknown
	CPUs       int     `json:"cpus,omitempty"`       // of that host
	Kernel     string  `json:"kernel,omitempty"`     // of that host
	Congestion string  `json:"congestion,omitempty"` // TCP congestion control of processes
	Regime     string  `json:"regime,omitempty"`     // how calls follow each other; empty: of tasks and simulations
	OthersCPU  float64 `json:"others_cpu,omitempty"` // share of the processors' time that other programs took meanwhile; empty: none, or unknown
	Version    string  `json:"version"`
	Date       string  `json:"date"` // UTC, RFC 3339
}

// newProvenance describes a job, and the program that measures it now.
func newProvenance(j kit.Job, regime string) provenance {
	p := provenance{
		Topology: j.Topology().String(), Links: j.Links(), Regime: regime,
		Version: kit.Version(), Date: time.Now().UTC().Format(time.RFC3339),
	}
	if _, is := j.(kit.Simulated); is {
		return p
	}
	p.Host, _ = os.Hostname() // empty: unknown
	p.CPUs, p.Kernel = runtime.NumCPU(), kit.KernelFile("/proc/sys/kernel/osrelease")
	if kit.IsLaunched() {
		p.Congestion = kit.Congestion()
	}
	return p
}
