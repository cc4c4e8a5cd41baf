// Package torch is the command tierflow torch. It builds a Python package, by which torch.distributed has the backend
// tierflow. It never runs a program of torch itself.
package torch

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/cmd/libtierflow/abi"
	"github.com/tierflow/tierflow/levels/files"
	"github.com/tierflow/tierflow/levels/join/env"
)

const (
	packageName = "tierflow_torch"
	library     = "libtierflow.so"
)

// Command returns torch.
func Command() *cobra.Command {
	c := kit.Group("torch", "Run the collectives of PyTorch programs", buildCommand())
	c.Long = `torch.distributed gets tierflow's collectives for tensors in host memory, as a backend beside Gloo:

  import tierflow_torch
  torch.distributed.init_process_group("tierflow")

Programs are started as ever: by torchrun, or with an init_method. Ranks meet by torch's store.`
	return c
}

func buildCommand() *cobra.Command {
	var b builder
	c := &cobra.Command{
		Use: "build", Short: "Build the Python package tierflow_torch", Args: kit.NoOperands,
		Long: fmt.Sprintf(`Builds a Python package for one torch: the one that --python imports. The source is part of
this command. It needs a C++ compiler, the headers of Python and torch, and libtierflow.so, which is
copied into the package:

  go build -buildmode=c-shared -o libtierflow.so ./cmd/libtierflow

At run time %s may say where another one is.`, env.Lib),
		Example: `  tierflow torch build --out site
  PYTHONPATH=site torchrun --nproc_per_node 4 train.py`,
		RunE: func(c *cobra.Command, _ []string) error { return b.build(c.Context()) },
	}
	c.Flags().StringVar(&b.python, "python", "python3", "the Python that has torch")
	c.Flags().StringVar(&b.cxx, "cxx", "c++", "the C++ compiler")
	c.Flags().StringVar(&b.lib, "lib", "", "the library (default: "+env.Lib+", or "+library+" here)")
	c.Flags().StringVar(&b.out, "out", ".", "folder to write the package to")
	return c
}

// builder has the flags of build.
type builder struct{ python, cxx, lib, out string }

// probed is what probe.py says of a torch.
type probed struct {
	Torch       string   // its version
	Distributed bool     // it has torch.distributed
	Include     []string // folders of headers, the last one Python's
	Lib         []string // folders of libraries
	Define      []string // NAME=VALUE for the compiler
}

// build writes the package. What is missing it says at once, before anything is compiled.
func (b *builder) build(ctx context.Context) error {
	lib, err := b.library()
	if err != nil {
		return err
	}
	if _, err := exec.LookPath(b.cxx); err != nil {
		return fmt.Errorf("%w: install a C++ compiler (g++), or give --cxx", err)
	}
	t, err := b.probe(ctx)
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "tierflow-torch")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	if err := os.CopyFS(temp, abi.Torch); err != nil {
		return err
	}
	source := filepath.Join(temp, "torch")
	if err := os.WriteFile(filepath.Join(source, "tierflow.h"), []byte(abi.Header), 0o644); err != nil {
		return err
	}
	extension := filepath.Join(temp, "_C.so")
	out, err := exec.CommandContext(ctx, b.cxx, t.compile(source, extension)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s, for torch %s: %w\n%s", b.cxx, t.Torch, err, out)
	}
	to := filepath.Join(b.out, packageName)
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	built := fmt.Sprintf("TORCH = %s  # its version\n", strconv.Quote(t.Torch))
	return errors.Join(
		os.WriteFile(filepath.Join(to, "_built.py"), []byte(built), 0o644),
		place(filepath.Join(source, "__init__.py"), filepath.Join(to, "__init__.py"), 0o644),
		place(extension, filepath.Join(to, "_C.so"), 0o755),
		place(lib, filepath.Join(to, library), 0o755))
}

// library is the file to copy.
func (b *builder) library() (string, error) {
	file := cmp.Or(b.lib, os.Getenv(env.Lib), library)
	if _, err := os.Stat(file); err != nil {
		return "", fmt.Errorf("%w: go build -buildmode=c-shared -o %s ./cmd/libtierflow makes it, --lib says where it is", err, library)
	}
	return file, nil
}

// probe asks Python for its torch, and looks for the headers.
func (b *builder) probe(ctx context.Context) (t probed, err error) {
	python, err := exec.LookPath(b.python)
	if err != nil {
		return t, fmt.Errorf("%w: install Python (python3), or give --python", err)
	}
	cmd := exec.CommandContext(ctx, python, "-c", probe)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		lines := strings.Split(strings.TrimSpace(complaints.String()), "\n")
		return t, fmt.Errorf("%s can't import torch: %s: install it (python3-torch, or pip install torch), or give --python", python, lines[len(lines)-1])
	}
	if err := json.Unmarshal(out, &t); err != nil {
		return t, fmt.Errorf("%s: %w", python, err)
	}
	if !t.Distributed {
		return t, fmt.Errorf("%s: torch %s was built without torch.distributed: install one with it", python, t.Torch)
	}
	for _, need := range []struct{ file, from string }{
		{"torch/csrc/distributed/c10d/ProcessGroup.hpp", "libtorch-dev, or torch of pip"},
		{"pybind11/pybind11.h", "pybind11-dev, or torch of pip"},
		{"Python.h", "python3-dev"},
	} {
		if !slices.ContainsFunc(append(t.Include, "/usr/include", "/usr/local/include"), func(dir string) bool {
			_, err := os.Stat(filepath.Join(dir, need.file))
			return err == nil
		}) {
			return t, fmt.Errorf("%s, torch %s: there is no header %s: install %s", python, t.Torch, need.file, need.from)
		}
	}
	return t, nil
}

// probe prints a probed.
const probe = `
import json, sysconfig, torch, torch.utils.cpp_extension as ext
c = torch._C
define = ["_GLIBCXX_USE_CXX11_ABI=%d" % c._GLIBCXX_USE_CXX11_ABI]
for name in "COMPILER_TYPE", "STDLIB", "BUILD_ABI":
    if value := getattr(c, "_PYBIND11_" + name, None):
        define.append('PYBIND11_%s="%s"' % (name, value))
print(json.dumps({"torch": torch.__version__, "distributed": torch.distributed.is_available(),
    "include": ext.include_paths() + [sysconfig.get_paths()["include"]], "lib": ext.library_paths(), "define": define}))
`

// compile is the arguments of the compiler.
func (t probed) compile(source, output string) []string {
	args := []string{"-O2", "-std=c++17", "-fPIC", "-fvisibility=hidden", "-shared", "-w", "-o", output, filepath.Join(source, "tierflow_torch.cpp")}
	for _, d := range t.Define {
		args = append(args, "-D"+d)
	}
	for _, dir := range t.Include {
		args = append(args, "-isystem", dir)
	}
	for _, dir := range t.Lib {
		args = append(args, "-L"+dir)
	}
	return append(args, "-ltorch_python", "-ltorch_cpu", "-ltorch", "-lc10", "-ldl")
}

// place copies a file. What processes have loaded stays as it is: the copy takes its name.
func place(from, to string, mode os.FileMode) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return files.Write(to, b, mode)
}
