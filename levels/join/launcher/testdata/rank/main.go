// Command rank is what tests start under real launchers: it joins and adds up the
// ranks. Its argument says what rank 1 does wrong, and when.
//
//	sum     nothing: all print their place and the time that Join took after sharing
//	before  it is killed before Join
//	in      it is killed in Join, after it has shared and before it registers, where
//	        something is shared
//	after   it is killed in a job that works
//	fail    it ends with status 7 after Join
//	none    no rank ever joins
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"syscall"
	"time"

	"github.com/tierflow/tierflow/levels/join"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/raw"
	"github.com/tierflow/tierflow/tasks"
)

func main() {
	log.SetFlags(0)
	what := "sum"
	if len(os.Args) > 1 {
		what = os.Args[1]
	}
	cfg, err := join.FromEnv(os.Getenv)
	if err != nil {
		log.Fatal(err)
	}
	if what == "none" {
		<-time.After(300 * time.Millisecond) // mpiexec.hydra dies of SIGPIPE if ranks end while it hands them its input
		return
	}
	if what == "before" && cfg.Rank == 1 {
		die()
	}
	shared := time.Now()
	if share := cfg.Share; share != nil {
		cfg.Share = func(ctx context.Context, text string) (string, error) {
			text, err := share(ctx, text)
			if what == "in" && cfg.Rank == 1 {
				die()
			}
			shared = time.Now()
			return text, err
		}
	}
	comm, err := raw.JoinAs(context.Background(), cfg, nil)
	if err != nil {
		log.Fatal(err)
	}
	took := time.Since(shared)
	if cfg.Rank == 1 {
		switch what {
		case "after":
			die()
		case "fail":
			os.Exit(7)
		}
	}
	sum := []int64{int64(comm.Rank())}
	for range 3 { // a rank that is dead makes one of them fail
		if err := planner.Allreduce(context.Background(), comm, sum, sum, tasks.Max); err != nil {
			log.Fatal(err)
		}
	}
	if err := comm.Close(); err != nil {
		log.Fatal(err)
	}
	line := fmt.Sprintf("rank %d of %d on %v: largest %d, joined in %.1f ms\n",
		comm.Rank(), comm.Size(), comm.Topology(), sum[0], took.Seconds()*1000)
	os.Stdout.WriteString(line) // one write, so that launchers don't mix lines
}

func die() {
	syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}
