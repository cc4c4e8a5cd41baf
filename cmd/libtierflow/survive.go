//go:build cgo

package main

/*
#define TF_TYPES_ONLY
#include "abi/tierflow.h"
*/
import "C"

import (
	"errors"
	"unsafe"

	"github.com/tierflow/tierflow/planner"
)

//export tfAbort
func tfAbort(h C.uintptr_t, reason *C.char) C.int {
	c, err := comms.find(uintptr(h))
	if err != nil {
		return status(err)
	}
	why := "the program gives no reason"
	if reason != nil {
		why = C.GoString(reason)
	}
	return status(c.Revoke(errors.New("aborted: " + why)))
}

//export tfAgree
func tfAgree(h C.uintptr_t, ok C.int, ns C.int64_t, all *C.int) C.int {
	if err := place("tf_agree: all", all); err != nil {
		return status(err)
	}
	*all = 0
	c, ctx, cancel, err := enter(h, ns)
	if err != nil {
		return status(err)
	}
	defer cancel()
	yes, err := c.Agree(ctx, ok != 0)
	if yes {
		*all = 1
	}
	return status(err)
}

//export tfShrink
func tfShrink(h C.uintptr_t, ns C.int64_t, next *C.uintptr_t, old *C.int) C.int {
	if err := place("tf_shrink: next", next); err != nil {
		return status(err)
	}
	c, ctx, cancel, err := enter(h, ns)
	if err != nil {
		return status(err)
	}
	defer cancel()
	change, err := c.Shrink(ctx)
	if err != nil {
		return status(err)
	}
	*next = C.uintptr_t(c.succeed(change.Comm))
	if old != nil {
		for i, r := range change.Old {
			unsafe.Slice(old, len(change.Old))[i] = C.int(r)
		}
	}
	return 0
}

// succeed returns the number of the communicator that takes c's place, the same each time.
func (c *comm) succeed(made *planner.Comm) uintptr {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == 0 {
		c.next = comms.add(&comm{Comm: made, open: c.open, progress: c.progress})
	}
	return c.next
}
