// Command tierflow runs, measures, draws, traces and checks collectives, and launches jobs with
// them. It holds no algorithm of its own: each subcommand reads flags, calls the library and
// prints. Here are the root, info, plan and run. The packages below have the other commands, and
// kit has their common parts.
//
//	tierflow bench coll allreduce            # measure, on goroutine ranks
//	tierflow dag allreduce --topo 2x2 -o a.svg
//	tierflow verify all --random 1000        # prove programs right, no bytes moved
//	tierflow trace allreduce -o trace.json   # open in Perfetto
//	tierflow run -n 8 -- ./prog              # launch processes
//
// The exit status is 0, 1 after a failure or a wrong result, and 2 for wrong
// arguments; 130 if SIGINT ended it, 143 if SIGTERM did. tierflow run ends with its program's.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
