// Package tune is the command tune with its subcommand check. It reads a search from flags, runs
// it on a job's ranks, and writes decision tables. The search itself is the planner's.
package tune
