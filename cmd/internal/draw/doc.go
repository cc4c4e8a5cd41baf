// Package draw is the commands dag and trace. dag draws graphs of tasks and steps. trace draws
// the times of a run's steps, or prints the events in recordings. It runs nothing but the
// collective of trace.
package draw
