// Package draw is the commands that show what happens: dag draws graphs of tasks and
// steps, trace draws when each step of a run took place, or what a recorder kept.
package draw
