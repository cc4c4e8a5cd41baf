package kit

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/levels/join/launcher"
	"github.com/tierflow/tierflow/planner"
)

// launched is the job of this process and others.
type launched struct{ world *planner.Comm }

var _ Job = launched{}

// IsLaunched reports whether a launcher started this process as one of several ranks, or seems
// to. If its variables are incomplete, joining says so.
func IsLaunched() bool {
	l, err := launcher.Find(os.Getenv)
	return err != nil || l.Name != launcher.None
}

// isManaged reports whether ranks in this process are managed, see planner's Options: as those of commands they are,
// unless the environment says otherwise.
func isManaged() bool { return os.Getenv(env.Managed) != "0" }

// ManagedEnviron is this process's environment for a launcher of ranks, which are managed unless it says otherwise.
func ManagedEnviron() []string {
	all := os.Environ()
	if _, said := os.LookupEnv(env.Managed); !said {
		all = append(all, env.Managed+"=1")
	}
	return all
}

// joinJob enters the job of this process. Only rank 0 prints: the writers returned on other ranks
// drop everything.
func joinJob(ctx context.Context, o *planner.Options, stdout, stderr io.Writer) (j launched, out, notes io.Writer, err error) {
	world, err := planner.Join(ctx, o)
	if err != nil {
		return j, nil, nil, err
	}
	if world.Rank() > 0 {
		stdout, stderr = io.Discard, io.Discard
	}
	return launched{world}, stdout, stderr, nil
}

// Topology returns the places of the job's processes.
func (l launched) Topology() *levels.Topology { return l.world.Topology() }

// dupTime bounds the wait for the other ranks when a communicator is made.
const dupTime = 30 * time.Second

// Local makes a communicator of all processes. All must ask for the same ones in the
// same order.
func (l launched) Local(plan string) ([]*planner.Comm, error) {
	ctx, cancel := context.WithTimeout(context.Background(), dupTime)
	defer cancel()
	c, err := l.world.DupWith(ctx, plan)
	if err != nil {
		return nil, err
	}
	return []*planner.Comm{c}, nil
}

// String describes the job for headers.
func (l launched) String() string {
	t := l.Topology()
	links := "real links"
	if name := Congestion(); t.Nodes() > 1 && name != "" {
		links += ", congestion control " + name
	}
	if by := l.world.Secured(); by != "" {
		links += ", " + by
	}
	return fmt.Sprintf("%v: %d process%s on %d node%s; %s", t, t.Size(), es(t.Size()), t.Nodes(), Plural(t.Nodes()), links)
}

// Links returns the same text for all jobs of processes.
func (launched) Links() string { return "real links between processes" }
