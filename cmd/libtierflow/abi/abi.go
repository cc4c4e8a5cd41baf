// Package abi has the C sources as text: the library's header, and the shim, built with an MPI's
// compiler. It never calls C itself.
package abi

import _ "embed"

// Header is tierflow.h. The library imports this package to be built again when the header
// changes.
//
//go:embed tierflow.h
var Header string

// Shim is shim/libtierflow-mpi.c. It includes the header.
//
//go:embed shim/libtierflow-mpi.c
var Shim string
