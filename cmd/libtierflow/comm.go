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
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join"
	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/raw"
	_ "github.com/tierflow/tierflow/planner/rules/foreign" // C programs can't import it
	"github.com/tierflow/tierflow/tasks"
)

// comm is a communicator, with the collectives that nonblocking calls have left for reuse.
type comm struct {
	*planner.Comm
	open     *atomic.Bool                   // of a world and its successors: progress may be called; nil of others
	progress func()                         // the caller's; nil: none
	watched  atomic.Pointer[C.tf_elsewhere] // by tf_watch; nil: nothing

	known [knowns]atomic.Pointer[checkedRequest] // requests read before, by slotOf; nil: none
	lists sync.Pool                              // of *blockLists

	mu    sync.Mutex
	spare map[tasks.Request][]*startedCollective
	count int     // in spare; at most maxSpare
	next  uintptr // the number of its successor after tf_shrink; 0: none
}

// maxSpare bounds the collectives kept by a communicator for further starts.
const maxSpare = 256

// options is the JSON of tf_config.
type options struct {
	Plan, Table, Machine, Links, Recorder string
	Deterministic, Uniform, Managed       bool
	CallTimeout                           duration `json:"call_timeout"`
}

// duration is a time as text, such as 30s; 0: none.
type duration time.Duration

func (d *duration) UnmarshalText(text []byte) error {
	t, err := time.ParseDuration(string(text))
	if err != nil || t < 0 {
		return fmt.Errorf("call_timeout is %q; allowed are durations such as 30s or 5m, and 0s for none", text)
	}
	*d = duration(t)
	return nil
}

// open enters the job.
func open(config *C.tf_config) (c *comm, err error) {
	if config == nil {
		return nil, errors.New("tf_open: config is NULL; one of zeros with abi = TF_ABI is enough")
	}
	if config.abi != C.TF_ABI {
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
	raw.SeamsOf(o).Elsewhere = c.elsewhere
	if config.progress != nil {
		// Not while joining or leaving: these may be on another thread.
		c.progress = func() {
			if c.open.Load() {
				progress(&s.config)
			}
		}
		raw.SeamsOf(o).Progress = c.progress
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
	launched := os.Getenv(env.Rank) != ""
	cfg, err := join.FromEnv(func(name string) string { // node, interfaces and the like
		switch {
		case name == env.Launcher:
			return "none"
		case name == env.Rendezvous && launched:
			return ""
		}
		return os.Getenv(name)
	})
	if err != nil {
		return nil, err
	}
	cfg.Rank, cfg.Size = levels.Rank(s.config.rank), int(s.config.size)
	cfg.Share, cfg.Leave, cfg.Origin = s.share, nil, "tf_open"
	return raw.JoinAs(context.Background(), cfg, o)
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
		return nil, fmt.Errorf("tf_open: options: %w; allowed are plan, table, machine, links, recorder, deterministic, uniform, managed and call_timeout", err)
	}
	return &planner.Options{
		Plan: o.Plan, Table: o.Table, Machine: o.Machine, Links: o.Links, Recorder: o.Recorder,
		Deterministic: o.Deterministic, Uniform: o.Uniform, Managed: o.Managed, CallTimeout: time.Duration(o.CallTimeout),
	}, nil
}

// close leaves the communicator. The job of one with a successor goes on.
func (c *comm) close() error {
	c.mu.Lock()
	last := c.next == 0
	c.mu.Unlock()
	if c.open != nil && last {
		c.open.Store(false)
	}
	return c.Close()
}
