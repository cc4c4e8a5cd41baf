package join_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join"
)

// Three ranks in one process, told to be on two nodes, agree on their hellos and
// tables.
func ExampleJoin() {
	rendezvous, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	lines := make([]string, 3)
	var all sync.WaitGroup
	for r, node := range []string{"a", "b", "a"} {
		cfg := join.Config{
			Rank: levels.Rank(r), Size: 3, Node: node, Secret: "example",
			Rendezvous: []string{rendezvous.Addr().String()}, Interfaces: []string{"lo*"},
			Hello: fmt.Appendf(nil, "hello %d", r),
		}
		if r == 0 {
			cfg.Listener = rendezvous
		}
		all.Go(func() { lines[r] = member(cfg) })
	}
	all.Wait()
	for _, line := range lines {
		fmt.Println(line)
	}
	// Output:
	// rank 0 of 3 on a: [table 0 table 1 table 2], hello 1
	// rank 1 of 3 on b: [table 0 table 1 table 2], hello 1
	// rank 2 of 3 on a: [table 0 table 1 table 2], hello 1
}

func member(cfg join.Config) string {
	ctx := context.Background()
	job, err := join.Join(ctx, cfg)
	if err != nil {
		return err.Error()
	}
	defer job.Close(ctx)
	tables, err := job.Exchange(ctx, fmt.Appendf(nil, "table %d", job.Rank))
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("rank %d of %d on %s: %s, %s",
		job.Rank, job.Size, job.Topology.DomainName(job.Rank, 0), tables, job.Peers[1].Hello)
}

func ExampleFromEnv() {
	os.Setenv("TIERFLOW_RANK", "9")
	os.Setenv("TIERFLOW_SIZE", "8")
	defer os.Unsetenv("TIERFLOW_RANK")
	defer os.Unsetenv("TIERFLOW_SIZE")
	_, err := join.FromEnv(os.Getenv)
	fmt.Println(err)
	// Output:
	// TIERFLOW_RANK="9"; allowed are 0 to 7
	// TIERFLOW_RENDEZVOUS is missing: host:port of rank 0, alternatives separated by commas
	// TIERFLOW_SECRET is missing: the job's secret, or the word none to go without
}
