//go:build cgo

package main

/*
#define TF_TYPES_ONLY
#include "abi/tierflow.h"
*/
import "C"

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

// comm is a communicator, with the collectives that nonblocking calls have left for reuse.
type comm struct {
	*planner.Comm
	open *atomic.Bool // of a world: progress may be called; nil of others

	known [knowns]atomic.Pointer[checkedRequest] // requests read before, by slotOf; nil: none
	lists sync.Pool                              // of *blockLists

	mu    sync.Mutex
	spare map[tasks.Request][]*planner.Collective
	count int // in spare; at most maxSpare
}

// maxSpare bounds the collectives kept by a communicator for further starts.
const maxSpare = 256

// options is the JSON of tf_config.
type options struct {
	Plan, Table, Machine, Links, Recorder string
	Deterministic                         bool
}

// open enters the job.
func open(config *C.tf_config) (c *comm, err error) {
	if config == nil || config.abi != C.TF_ABI {
		return nil, fmt.Errorf("tf_open: the program was not built with this library's tierflow.h, of TF_ABI %d", C.TF_ABI)
	}
	s := &sharer{config: *config}
	if config.share != nil && config.size > 1 {
		defer s.release()
	}
	o, err := readOptions(config)
	if err != nil {
		return nil, err
	}
	c = &comm{open: &atomic.Bool{}}
	if config.progress != nil {
		// Not while joining or leaving: these may be on another thread.
		o.Progress = func() {
			if c.open.Load() {
				progress(&s.config)
			}
		}
	}
	if config.share == nil {
		c.Comm, err = planner.Join(context.Background(), o)
	} else {
		c.Comm, err = joinShared(s, o)
	}
	if err != nil {
		return nil, err
	}
	c.open.Store(true)
	return c, nil
}

// joinShared enters the job of a caller with its own rank and size. tierflow run tells its ranks where to meet by
// other numbers, and listens there itself: the caller's text says where.
func joinShared(s *sharer, o *planner.Options) (*planner.Comm, error) {
	launched := os.Getenv("TIERFLOW_RANK") != ""
	cfg, err := join.FromEnv(func(name string) string { // node, interfaces and the like
		switch {
		case name == "TIERFLOW_LAUNCHER":
			return "none"
		case name == "TIERFLOW_RENDEZVOUS" && launched:
			return ""
		}
		return os.Getenv(name)
	})
	if err != nil {
		return nil, err
	}
	cfg.Rank, cfg.Size = levels.Rank(s.config.rank), int(s.config.size)
	cfg.Share, cfg.Leave, cfg.Origin = s.share, nil, "tf_open"
	return planner.JoinAs(context.Background(), cfg, o)
}

// readOptions reads the options, and their JSON.
func readOptions(config *C.tf_config) (*planner.Options, error) {
	if config.options == nil {
		return &planner.Options{}, nil
	}
	var o options
	d := json.NewDecoder(bytes.NewReader([]byte(C.GoString(config.options))))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		return nil, fmt.Errorf("tf_open: options: %w; allowed are plan, table, machine, links, recorder and deterministic", err)
	}
	return &planner.Options{
		Plan: o.Plan, Table: o.Table, Machine: o.Machine, Links: o.Links, Recorder: o.Recorder, Deterministic: o.Deterministic,
	}, nil
}

func (c *comm) close() error {
	if c.open != nil {
		c.open.Store(false)
	}
	return c.Close()
}

// started is a collective on its way.
type started struct {
	comm     *comm
	col      *planner.Collective // nil: an exchange
	pending  *planner.Pending
	exchange *planner.Exchange
}

// start starts a used collective again, or a new one.
func (c *comm) start(r tasks.Request, send, recv []byte) (*started, error) {
	col, err := c.spareFor(r), error(nil)
	if col == nil {
		col, err = c.Prepare(r, send, recv)
	} else {
		err = col.Rebind(send, recv)
	}
	if err != nil {
		return nil, err
	}
	p, err := col.Start(context.Background())
	if err != nil {
		return nil, err
	}
	return &started{comm: c, col: col, pending: p}, nil
}

// spareFor takes a collective of an earlier start; nil: there is none.
func (c *comm) spareFor(r tasks.Request) *planner.Collective {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.spare[r]
	if len(list) == 0 {
		return nil
	}
	col := list[len(list)-1]
	c.spare[r] = list[:len(list)-1]
	c.count--
	return col
}

// done reports whether it has ended.
func (s *started) done() bool {
	if s.exchange != nil {
		return s.exchange.Done()
	}
	return s.pending.Done()
}

// end waits for it, and keeps the reusable collective.
func (s *started) end() error {
	if s.exchange != nil {
		return s.exchange.Wait()
	}
	if err := s.pending.Wait(); err != nil {
		return err
	}
	c := s.comm
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count >= maxSpare || c.spare == nil {
		c.spare, c.count = map[tasks.Request][]*planner.Collective{}, 0
	}
	r := s.col.Request()
	c.spare[r] = append(c.spare[r], s.col)
	c.count++
	return nil
}
