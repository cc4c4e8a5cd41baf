// Command libtierflow is a library for C and whatever calls C: tierflow.h says what it has. It
// knows no MPI, and takes no part in choosing or running: every call is one of planner's.
//
//	go build -buildmode=c-shared -o libtierflow.so ./cmd/libtierflow
//	cc -I cmd/libtierflow prog.c ./libtierflow.so
//
// The package is the only one that needs cgo: without it this is all there is.
package main

func main() {} // -buildmode=c-shared wants one
