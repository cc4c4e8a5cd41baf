package proc

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/levels"
)

// trial is a Job with an outcome of trials.
type trial struct {
	Job
	err error
}

func (j trial) Probe(context.Context, levels.Rank) (at, from netip.AddrPort, err error) {
	return at, from, j.err
}

type lost int

func (l lost) Error() string  { return "large ones don't pass" }
func (l lost) LostBytes() int { return int(l) }

// Only lost packets of full size are news: of hosts that are gone the control plane tells. Who wants no reports of stalls looks
// at nothing.
func TestDoubts(t *testing.T) {
	for name, c := range map[string]struct {
		job    Job
		config executor.Config
		tries  bool
		want   string
	}{
		"large ones get lost":  {trial{err: errors.Join(lost(9000))}, executor.Config{}, true, "level=WARN msg=stalled rank=3 peer=5 packets=9000 why=\"large ones don't pass\"\n"},
		"all pass":             {trial{}, executor.Config{}, true, ""},
		"no connection":        {trial{err: errors.New("refused")}, executor.Config{}, true, ""},
		"no reports of stalls": {trial{}, executor.Config{StallAfter: -1}, false, ""},
		"another job":          {nil, executor.Config{}, false, ""},
	} {
		var out bytes.Buffer
		c.config.Stalls = slog.New(slog.NewTextHandler(&out, nil))
		d := newDoubts(3, c.job, Config{Config: c.config})
		if (d.job != nil) != c.tries {
			t.Errorf("%s: tries %v", name, d.job != nil)
		}
		if d.job != nil {
			d.try(t.Context(), 5)
		}
		_, got, _ := strings.Cut(out.String(), " ") // the time
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if d := newDoubts(3, trial{}, Config{}); d.job != nil {
		t.Error("a rank without a log looks at its links")
	}
}
