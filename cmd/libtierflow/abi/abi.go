// Package abi has the C sources as text: the library's header, and the shim that is built
// with an MPI's compiler. It never calls C itself.
package abi

import _ "embed"

// Header is tierflow.h. The library imports this package so that it is built again when
// the header changes.
//
//go:embed tierflow.h
var Header string

// Shim is shim/libtierflow-mpi.c, which includes the header.
//
//go:embed shim/libtierflow-mpi.c
var Shim string
