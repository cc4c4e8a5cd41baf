// Command libtierflow is a library for C and its callers: tierflow.h lists its functions. It
// knows no MPI, and takes no part in choosing or running: every call is one of planner's.
//
//	go build -buildmode=c-shared -o libtierflow.so ./cmd/libtierflow
//	cc -I cmd/libtierflow/abi prog.c ./libtierflow.so
//
// The package alone needs cgo: without it this is all there is.
package main

func main() {} // -buildmode=c-shared wants one
