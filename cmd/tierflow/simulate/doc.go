// Package simulate is the command simulate. It simulates a collective on a machine that is
// described by a file, and says what the time is spent on. It runs no ranks.
package simulate
