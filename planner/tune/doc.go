// Package tune searches for fast plans by measuring them on a communicator, and writes
// its findings to a decision table of package table.
//
// It never chooses the plan of a collective: package planner does, by the table. All ranks
// make the same calls and come to the same table.
//
//	meter, err := tune.NewMeter(ctx, comm, costs.Single)
//	search := tune.Search{Topology: comm.Topology(), Requests: requests, Space: space, Method: tune.TasksPruned}
//	found, err := search.Run(ctx, meter)
package tune
