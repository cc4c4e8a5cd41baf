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
	"text/tabwriter"
	"time"

	"github.com/tierflow/tierflow/cmd/tierflow/kit"
	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/submodules/all"
)

// here is what jobs of this user on this host find when they begin.
type here struct {
	Folder    string     `json:"folder"` // where machines are kept; empty: there is no place
	Machines  []keptFile `json:"machines"`
	Tables    []keptFile `json:"tables"`
	Variables []variable `json:"variables"` // that say what plans are chosen by, if they are set
}

// keptFile is a machine or a decision table that a job has kept.
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

// findHere looks at the environment and at what is kept.
func findHere() (h here, err error) {
	h.Variables = []variable{}
	for _, name := range []string{planner.PlanVariable, planner.RulesVariable, planner.TableVariable, planner.MachineVariable, planner.EffortVariable} {
		if value := os.Getenv(name); value != "" {
			h.Variables = append(h.Variables, variable{name, value})
		}
	}
	if h.Folder, err = planner.KeptFolder(planner.KeptMachines); err != nil {
		h.Machines, h.Tables = []keptFile{}, []keptFile{}
		return h, nil // there is no home, which is no error
	}
	h.Machines, err = findKept(planner.KeptMachines, func(k *keptFile, data []byte) error {
		m, err := machine.Parse(k.File, data)
		if err == nil {
			k.Ranks, k.Date, k.How = m.Provenance.Ranks, m.Provenance.Date, m.Provenance.Method
		}
		return err
	})
	if err != nil {
		return h, err
	}
	h.Tables, err = findKept(planner.KeptTables, func(k *keptFile, data []byte) error {
		t, err := table.Parse(k.File, data, all.Submodules())
		if err == nil {
			k.Ranks, k.Date = strings.Join(t.Provenance.Machines, ", "), t.Provenance.Date
			k.How = fmt.Sprintf("%d entries, %s", len(t.Entries), t.Provenance.Method)
		}
		return err
	})
	return h, err
}

// findKept reads all that is kept of a kind.
func findKept(kind string, read func(k *keptFile, data []byte) error) ([]keptFile, error) {
	found := []keptFile{}
	folder, err := planner.KeptFolder(kind)
	if err != nil {
		return found, err
	}
	names, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return found, err
	}
	for _, name := range names {
		one := keptFile{File: name}
		data, err := os.ReadFile(name)
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

// text is what is printed of it.
func (h *here) text(now time.Time) []byte {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
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

// text is what is printed of one file.
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

// forget removes what is kept, and returns how many machines and tables these were.
func forget() (machines, tables int, err error) {
	h, err := findHere()
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

// runHere does what info --here and --forget ask for.
func runHere(stdout io.Writer, forgets, asJSON bool) error {
	if forgets {
		machines, tables, err := forget()
		fmt.Fprintf(stdout, "%d machines and %d tables removed\n", machines, tables)
		return err
	}
	h, err := findHere()
	if err != nil {
		return err
	}
	if asJSON {
		return kit.WriteJSON(stdout, h)
	}
	return kit.WriteOutput(stdout, "", h.text(time.Now()))
}
