// Package simulate is the command simulate. It simulates a collective on a machine described by a
// file, and says how the time is spent. It runs no ranks.
package simulate
