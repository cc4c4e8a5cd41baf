package executor_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/local"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
)

// A bcast of two bytes from rank 0, compiled and run on two goroutine ranks.
func Example() {
	topology, _ := levels.Parse("1x2")
	plan, _ := tasks.ParsePlan("shape=flat,fs=4KiB,w=1,i=adapt/binomial,s=adapt/binomial")
	request := tasks.Request{Coll: tasks.Bcast, Count: 2, Type: tasks.Uint8}
	buffers := [][]byte{[]byte("ok"), make([]byte, 2)}

	world := local.New(2, executor.Config{})
	defer world.Close()
	var both sync.WaitGroup
	for rank := range levels.Rank(2) {
		both.Go(func() {
			compiled, err := submodules.CompileRequest(request, topology, plan, rank, all.Submodules())
			if err != nil {
				fmt.Println(err)
				return
			}
			run, err := world.Endpoint(rank).Comm(0).Bind(executor.Binding{Compiled: compiled, Recv: buffers[rank], Request: request.String()})
			if err == nil {
				err = run.Do(context.Background())
			}
			if err != nil {
				fmt.Println(err)
			}
		})
	}
	both.Wait()
	fmt.Printf("rank 1 has %q\n", buffers[1])
	// Output: rank 1 has "ok"
}
