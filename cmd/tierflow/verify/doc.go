// Package verify is the command verify: it compiles collectives for all ranks and
// checks the programs symbolically, on all CPUs. It lists or draws the cases, counts
// what came of them, and writes the smallest failure as a command that repeats it.
package verify
