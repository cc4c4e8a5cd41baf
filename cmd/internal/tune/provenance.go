package tune

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/planner/tune"
)

// describeOrigin notes the origin of the table's numbers in it.
func (u *Tuning) describeOrigin(t *table.Table, r *Rank, m *tune.Method) {
	p := &t.Provenance
	p.Method, p.Date, p.Tierflow = m.String(), time.Now().UTC().Format(time.RFC3339), kit.Version()
	if p.Simulated = r.Simulated; r.Simulated == "" {
		for _, h := range kit.Hosts(r.Comm) {
			if !slices.Contains(p.Hosts, h) {
				p.Hosts = append(p.Hosts, h)
			}
		}
		p.CPUs, p.Kernel = runtime.NumCPU(), kit.KernelFile("/proc/sys/kernel/osrelease")
	}
	if on := r.Topology.String(); !slices.Contains(p.Machines, on) {
		p.Machines = append(p.Machines, on)
	}
	p.Links, p.Regime = u.LinksOf(r), u.Regime
	if kit.IsLaunched() {
		p.CongestionControl = kit.Congestion()
	}
	if p.Types = u.Type + " " + u.Op; u.calls != nil {
		p.Types = "as called"
	}
	stop := u.Stop.WithDefaults()
	p.Stop = StopText(stop)
	p.Intervals, p.Budget = tune.Intervals, "none"
	if u.Budget > 0 {
		p.Budget = u.Budget.String()
	}
}

// StopText says when a measurement ends.
func StopText(s stats.Stop) string {
	return fmt.Sprintf("95%% interval of the mean within %.1f%%, or %v, or %d samples; at least %d", 100*s.Rel, s.Budget, s.Most, s.Least)
}

// LinksOf names the links between nodes: as the communicator does, or else by the kind of
// job.
func (u *Tuning) LinksOf(r *Rank) string {
	if r.Comm == nil {
		return u.Job.Links()
	}
	return cmp.Or(r.Comm.Links(), u.Job.Links())
}
