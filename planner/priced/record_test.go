package priced_test

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"hash/fnv"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tierflow/tierflow/costs/machine/machinetest"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// recordVariable names a file for TestRecordBest, which goes on where the file ends.
const recordVariable = "TIERFLOW_PRICE_RECORD"

// recorded has the best plans of the whole catalogue for many requests.
const recorded = "testdata/best.txt"

// cell is a request on a topology, and the best plans that a search has found.
type cell struct {
	coll  tasks.Collective
	spec  string
	bytes int64    // of a rank's buffer or block
	best  [3]found // by speed; ns only at its own
}

func (c *cell) key() string { return fmt.Sprintf("%v %s %d", c.coll, c.spec, c.bytes) }

// cells lists all requests of the sweep, in an arbitrary order: each beginning of the list
// is a sample of it. Blocks are at most 64 MiB together, and
// alltoalls are of at most 256 ranks. Of requests of more than 256 ranks there are few.
func cells() (all []cell) {
	worlds := []string{"4096x1", "1024x4", "64x64", "256x16"}
	for _, nodes := range []int{2, 3, 5, 8, 12, 16, 24, 64, 250, 1024} {
		for _, ranks := range []int{1, 2, 4, 16, 64} {
			if nodes*ranks <= 1024 {
				worlds = append(worlds, fmt.Sprintf("%dx%d", nodes, ranks))
			}
		}
	}
	for _, coll := range []tasks.Collective{tasks.Bcast, tasks.Reduce, tasks.Allreduce, tasks.Allgather, tasks.Gather, tasks.Scatter, tasks.ReduceScatter, tasks.Alltoall} {
		for _, spec := range worlds {
			for _, bytes := range []int64{8, 256, 2 << 10, 12 << 10, 48 << 10, 200 << 10, 1 << 20, 8 << 20, 64 << 20} {
				topo, _ := levels.Parse(spec)
				r := tasktest.Request(coll, bytes)
				if r.AllBytes(topo.Size()) <= 64<<20 && (coll != tasks.Alltoall || topo.Size() <= 256) {
					if c := (cell{coll: coll, spec: spec, bytes: bytes}); topo.Size() <= 256 || hash(c)%8 == 0 {
						all = append(all, c)
					}
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b cell) int { return cmp.Compare(hash(a), hash(b)) })
	return all
}

// hash puts cells into an arbitrary order.
func hash(c cell) uint32 {
	h := fnv.New32a()
	h.Write([]byte(c.key()))
	return h.Sum32()
}

// line is a cell as the file has it.
func (c *cell) line() string {
	var b strings.Builder
	b.WriteString(c.key())
	for speed := range machinetest.Speeds {
		fmt.Fprintf(&b, " | %.0f %v", c.best[speed].ns[speed], c.best[speed].plan)
	}
	return b.String()
}

// parseCells reads what [cell.line] wrote.
func parseCells(text []byte) (all []cell, err error) {
	for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
		parts := strings.Split(s.Text(), " | ")
		words := strings.Fields(parts[0])
		if len(parts) != 1+len(machinetest.Speeds) || len(words) != 3 {
			return nil, fmt.Errorf("%q: want a collective, a topology and a size, and %d plans", s.Text(), len(machinetest.Speeds))
		}
		c := cell{spec: words[1]}
		if c.coll, err = tasks.ParseCollective(words[0]); err != nil {
			return nil, err
		}
		if c.bytes, err = strconv.ParseInt(words[2], 10, 64); err != nil {
			return nil, err
		}
		for speed, part := range parts[1:] {
			ns, plan, _ := strings.Cut(part, " ")
			if c.best[speed].ns[speed], err = strconv.ParseFloat(ns, 64); err != nil {
				return nil, err
			}
			if c.best[speed].plan, err = tasks.ParsePlan(plan); err != nil {
				return nil, err
			}
		}
		all = append(all, c)
	}
	return all, nil
}

// TestRecordBest searches the catalogue for the best plans, cell after cell, and appends
// them to a file. It takes hours to its end, and goes on where it was stopped. -timeout
// bounds it: it stops a minute before.
func TestRecordBest(t *testing.T) {
	name := os.Getenv(recordVariable)
	if name == "" {
		t.Skip(recordVariable + " names no file")
	}
	text, err := os.ReadFile(name)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	before, err := parseCells(text)
	if err != nil {
		t.Fatal(err)
	}
	done := map[string]bool{}
	for _, c := range before {
		done[c.key()] = true
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	end, limited := t.Deadline()
	all := cells()
	for i, c := range all {
		if done[c.key()] || limited && time.Until(end) < time.Minute {
			continue
		}
		topo := tasktest.Topology(t, c.spec)
		begin, plans := time.Now(), 0
		c.best, plans = bestOf(t, tasktest.Request(c.coll, c.bytes), topo, 200_000, 1_200_000)
		if _, err := fmt.Fprintln(file, c.line()); err != nil {
			t.Fatal(err)
		}
		t.Logf("%d of %d: %s: %d plans in %v", i+1, len(all), c.key(), plans, time.Since(begin).Round(time.Millisecond))
	}
}
