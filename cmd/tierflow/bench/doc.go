// Package bench is the commands that measure tierflow itself: bench coll, bench
// p2p, bench task and bench recover. Each result is checked, and all samples
// but those of bench recover begin behind a barrier. Other libraries are measured by package peers.
package bench
