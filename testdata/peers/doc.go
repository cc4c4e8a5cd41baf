// Package peers holds small drivers that measure the collectives of other libraries as tierflow bench coll measures
// ours: Open MPI and MPICH (drivers/mpi.c, built with each one's compiler) and Gloo (drivers/gloo.cc). Only tierflow
// tierflow-lab peers imports it, and carries the sources along to build them where it runs.
//
// A driver is called, on every rank,
//
//	driver OP[,OP…] BYTES[,BYTES…] SECONDS NODES RANKS_PER_NODE STORE
//
// and rank 0 prints a line of JSON for each collective and size. STORE is an empty folder that all ranks see, where
// Gloo's find each other.
package peers

import "embed"

// Drivers has the sources, in the folder drivers.
//
//go:embed drivers
var Drivers embed.FS
