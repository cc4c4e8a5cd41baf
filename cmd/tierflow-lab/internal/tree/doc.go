// Package tree measures the source of a Go module: lines, the names that others may use, and
// what a package stands on. It reads the sources only; the go command says which packages there are.
package tree
