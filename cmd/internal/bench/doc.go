// Package bench is the commands to measure tierflow itself: bench coll, bench p2p, bench task,
// bench sync and bench recover. Each result is checked, and all samples but those of bench
// recover begin behind a barrier. Other libraries are measured by tierflow-lab.
package bench
