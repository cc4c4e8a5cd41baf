// Package abi has the C sources as text: the library's header, the shim, built with an MPI's
// compiler, and the backend of PyTorch. It never calls C itself.
package abi

import "embed"

// Header is tierflow.h. The library imports this package to be built again when the header
// changes.
//
//go:embed tierflow.h
var Header string

// Shim is shim/libtierflow-mpi.c. It includes the header.
//
//go:embed shim/libtierflow-mpi.c
var Shim string

// Debugger is shim/gdb.py, by which gdb finds the frames of a program under the shim.
//
//go:embed shim/gdb.py
var Debugger string

// Torch is the backend of torch.distributed: torch/tierflow_torch.cpp with its headers, which include tierflow.h, and
// torch/__init__.py, the Python side of it.
//
//go:embed torch/*.hpp torch/tierflow_torch.cpp torch/__init__.py
var Torch embed.FS
