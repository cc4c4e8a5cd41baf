// Package peers is the command peers: it measures tierflow beside Open MPI,
// MPICH and Gloo. It sets up an emulated cluster, builds a driver for each library,
// and starts all jobs as programs, tierflow's own too. It calls no collective.
package peers
