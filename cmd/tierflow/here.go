package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/levels/files"
	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/planner/raw"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/submodules/all"
)

// hostState is the state that jobs of this user on this host begin with.
type hostState struct {
	Folder    string     `json:"folder"` // of kept machines; empty: there is no place
	Machines  []keptFile `json:"machines"`
	Tables    []keptFile `json:"tables"`
	Variables []variable `json:"variables"` // set ones, by which plans are chosen
}

// keptFile is a machine or a decision table kept by a job.
type keptFile struct {
	File  string `json:"file"`
	Ranks string `json:"ranks"`
	Date  string `json:"date"`
	How   string `json:"how"`
	Error string `json:"error,omitempty"` // why no job reads it
}

// variable is one of the environment.
type variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// readHostState looks at the environment and at kept files.
func readHostState() (h hostState, err error) {
	h.Variables = []variable{}
	for _, name := range []string{env.Plan, env.Rules, env.Table, env.Machine, env.Effort, env.Managed} {
		if value := os.Getenv(name); value != "" {
			h.Variables = append(h.Variables, variable{name, value})
		}
	}
	if h.Folder, err = raw.KeptFolder(raw.KeptMachines); err != nil {
		h.Machines, h.Tables = []keptFile{}, []keptFile{}
		return h, nil // no home is no error
	}
	h.Machines, err = findKept(raw.KeptMachines, machine.MaxBytes, func(k *keptFile, data []byte) error {
		m, err := machine.Parse(k.File, data)
		if err == nil {
			k.Ranks, k.Date, k.How = m.Provenance.Ranks, m.Provenance.Date, m.Provenance.Method
		}
		return err
	})
	if err != nil {
		return h, err
	}
	h.Tables, err = findKept(raw.KeptTables, table.MaxBytes, func(k *keptFile, data []byte) error {
		t, err := table.Parse(k.File, data, all.Submodules())
		if err == nil {
			k.Ranks, k.Date = strings.Join(t.Provenance.Machines, ", "), t.Provenance.Date
			k.How = fmt.Sprintf("%d entries, %s", len(t.Entries), t.Provenance.Method)
		}
		return err
	})
	return h, err
}

// findKept reads all kept files of a kind, of at most so many bytes each.
func findKept(kind string, most int64, read func(k *keptFile, data []byte) error) ([]keptFile, error) {
	found := []keptFile{}
	folder, err := raw.KeptFolder(kind)
	if err != nil {
		return found, err
	}
	names, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return found, err
	}
	for _, name := range names {
		one := keptFile{File: name}
		data, err := files.Read(name, most)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a job has removed it meanwhile
		}
		if err == nil {
			err = read(&one, data)
		}
		if err != nil {
			one.Error = err.Error()
		}
		found = append(found, one)
	}
	return found, nil
}

// text is the printed form.
func (h *hostState) text(now time.Time) []byte {
	var b bytes.Buffer
	w := kit.NewTable(&b)
	for _, v := range h.Variables {
		fmt.Fprintf(w, "%s\t%s\n", v.Name, v.Value)
	}
	if len(h.Variables) == 0 {
		fmt.Fprintln(w, "variables\tnone: no plan, rules or table, and the machine is found by itself")
	}
	switch {
	case h.Folder == "":
		fmt.Fprintln(w, "machines\tnone is kept: there is no home")
	case len(h.Machines) == 0:
		fmt.Fprintf(w, "machines\tnone in %s: the first job on several nodes measures one\n", h.Folder)
	}
	for _, m := range h.Machines {
		fmt.Fprintf(w, "machine\t%s\n", m.text(now))
	}
	for _, t := range h.Tables {
		fmt.Fprintf(w, "table\t%s\n", t.text(now))
	}
	w.Flush()
	return b.Bytes()
}

// text is the printed form of one file.
func (k *keptFile) text(now time.Time) string {
	if k.Error != "" {
		return fmt.Sprintf("%s: not read: %s", k.File, k.Error)
	}
	age := ""
	if date, err := time.Parse(time.RFC3339, k.Date); err == nil {
		age = fmt.Sprintf(", %v ago", now.Sub(date).Round(time.Second))
	}
	return fmt.Sprintf("%s: %s, %s%s", k.File, k.Ranks, k.How, age)
}

// forget removes kept files, and returns the numbers of machines and tables.
func forget() (machines, tables int, err error) {
	h, err := readHostState()
	remove := func(all []keptFile) (n int) {
		for _, k := range all {
			if gone := os.Remove(k.File); gone != nil {
				err = errors.Join(err, gone)
				continue
			}
			n++
		}
		return n
	}
	if machines, tables = remove(h.Machines), remove(h.Tables); err != nil {
		return machines, tables, fmt.Errorf("forget: %w", err)
	}
	return machines, tables, nil
}

// runHostState does info --here and info --forget.
func runHostState(stdout io.Writer, forgets, asJSON bool) error {
	if forgets {
		machines, tables, err := forget()
		fmt.Fprintf(stdout, "%d machines and %d tables removed\n", machines, tables)
		return err
	}
	h, err := readHostState()
	if err != nil {
		return err
	}
	return kit.WriteResult(stdout, asJSON, h, func() []byte { return h.text(time.Now()) })
}
