//go:build cgo

package main

/*
#define TF_TYPES_ONLY
#include "abi/tierflow.h"
*/
import "C"

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/tierflow/tierflow/planner/raw"
	"github.com/tierflow/tierflow/tasks"
)

// blockList has room for the blocks of all ranks.
type blockList [][]byte

// blockLists are those of an exchange.
type blockLists struct{ give, get blockList }

func (c *comm) newLists() *blockLists {
	return &blockLists{make(blockList, c.Size()), make(blockList, c.Size())}
}

func (c *comm) borrowLists() *blockLists {
	if l, ok := c.lists.Get().(*blockLists); ok {
		return l
	}
	return c.newLists()
}

// exchange runs an exchange of C's lists.
func (c *comm) exchange(coll tasks.Collective, root int, give, get *C.tf_block) error {
	l := c.borrowLists()
	defer c.lists.Put(l)
	from, to, err := l.of(give, get)
	if err != nil {
		return err
	}
	return raw.Exchange(context.Background(), c.Comm, coll, root, from, to)
}

// startExchange starts one.
func (c *comm) startExchange(coll tasks.Collective, root int, give, get *C.tf_block) (raw.Pending, error) {
	from, to, err := c.newLists().of(give, get)
	if err != nil {
		return nil, err
	}
	return raw.StartExchange(context.Background(), c.Comm, coll, root, from, to)
}

// of returns the blocks of C's two lists; nil for none.
func (l *blockLists) of(give, get *C.tf_block) (from, to [][]byte, err error) {
	if from, err = l.give.of("give", give); err == nil {
		to, err = l.get.of("get", get)
	}
	return from, to, err
}

// of returns the blocks of C's list; nil for none.
func (l blockList) of(name string, first *C.tf_block) ([][]byte, error) {
	if first == nil {
		return nil, nil
	}
	for i, b := range unsafe.Slice(first, len(l)) {
		l[i] = nil
		if b.bytes < 0 || b.bytes > 0 && b.at == nil {
			return nil, fmt.Errorf("tf_exchange: %s[%d] has %d bytes at %p; allowed are 0 and more, and not at NULL", name, i, b.bytes, b.at)
		}
		if b.bytes > 0 {
			l[i] = unsafe.Slice((*byte)(b.at), b.bytes)
		}
	}
	return l, nil
}
