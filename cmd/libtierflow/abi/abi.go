// Package abi has the C sources as text: the library's header, the shim, built with an MPI's
// compiler, and the backend of PyTorch. It never calls C itself.
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

// TorchSource is torch/tierflow_torch.cpp, the backend of torch.distributed. It includes the header.
//
//go:embed torch/tierflow_torch.cpp
var TorchSource string

// TorchPackage is torch/__init__.py, the Python side of it.
//
//go:embed torch/__init__.py
var TorchPackage string
