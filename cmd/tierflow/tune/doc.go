// Package tune is the command tune with its subcommands compare, validate and check.
// It reads what to search, runs the search on a job's ranks, and writes decision
// tables and comparisons. How a search goes on is the planner's.
package tune
