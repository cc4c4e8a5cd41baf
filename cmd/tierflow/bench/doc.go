// Package bench is the commands that measure tierflow itself: bench coll, bench
// task, bench overlap and bench algorithms. Each result is checked, and all samples
// begin behind a barrier. Other libraries are measured by package peers.
package bench
