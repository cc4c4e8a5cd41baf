// Package verify is the command verify: it compiles collectives for all ranks and
// checks the programs symbolically, on all CPUs. It lists or draws the cases and counts
// the outcomes. The smallest failure is written as a command that repeats it.
package verify
