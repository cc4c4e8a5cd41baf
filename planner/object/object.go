// Package object moves Go values of any type between ranks: strings, maps, slices, structs with pointers.
// They travel as [encoding/gob] has them, so a struct's exported fields do, and an interface's types are to be
// registered. For elements of fixed size, such as numbers, the calls of package planner are faster by far.
//
// As with all collectives every rank calls the same in the same order. A value that can't be encoded is an error on all
// ranks that wait for it. One that doesn't fit the receiver's type is an error on the rank that decodes it.
//
//	names, err := object.Allgather(ctx, comm, hostname) // names[i] is rank i's
//
// To combine values, gather them and combine what comes, in the order of ranks.
package object

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"

	"github.com/tierflow/tierflow/planner"
)

// Bcast sets v of all ranks to that of root. A slice or map in v is new memory, except at the root, where v stays
// as it is.
func Bcast[T any](ctx context.Context, c *planner.Comm, v *T, root int) error {
	if v == nil {
		return errors.New("object: bcast: the value is nil")
	}
	var sent []byte
	size := []int{0}
	if c.Rank() == root {
		sent = encode(v)
		size[0] = len(sent)
	}
	if err := planner.Bcast(ctx, c, size, root); err != nil {
		return fmt.Errorf("object: %w", err)
	}
	if c.Rank() != root {
		sent = make([]byte, size[0])
	}
	if err := planner.Bcast(ctx, c, sent, root); err != nil {
		return fmt.Errorf("object: %w", err)
	}
	if c.Rank() == root {
		return refused(root, sent)
	}
	got, err := decode[T](sent, root)
	if err == nil {
		*v = got
	}
	return err
}

// Allgather returns the values of all ranks: the i-th is rank i's.
func Allgather[T any](ctx context.Context, c *planner.Comm, v T) ([]T, error) {
	all, err := planner.AllgatherBlocks(ctx, c, encode(&v))
	if err != nil {
		return nil, fmt.Errorf("object: %w", err)
	}
	return decodeAll[T](all)
}

// Gather is [Allgather] to root only. The others get nil.
func Gather[T any](ctx context.Context, c *planner.Comm, v T, root int) ([]T, error) {
	mine := encode(&v)
	all, err := planner.GatherBlocks(ctx, c, mine, root)
	if err != nil {
		return nil, fmt.Errorf("object: %w", err)
	}
	if c.Rank() != root {
		return nil, refused(c.Rank(), mine)
	}
	return decodeAll[T](all)
}

// Alltoall gives all[i] to rank i, and returns what the ranks gave to this one: the i-th is from rank i.
func Alltoall[T any](ctx context.Context, c *planner.Comm, all []T) ([]T, error) {
	blocks := make([][]byte, len(all))
	for i := range all {
		blocks[i] = encode(&all[i])
	}
	got, err := planner.AlltoallBlocks(ctx, c, blocks)
	if err != nil {
		return nil, fmt.Errorf("object: %w", err)
	}
	if err := refused(c.Rank(), blocks...); err != nil {
		return nil, err
	}
	return decodeAll[T](got)
}

// Scatter gives all[i] of root to rank i. Other ranks' all is ignored.
func Scatter[T any](ctx context.Context, c *planner.Comm, all []T, root int) (v T, err error) {
	n := c.Size()
	blocks, counts := make([][]byte, n), make([]int, n)
	if c.Rank() == root {
		for i := range blocks {
			if len(all) == n {
				blocks[i] = encode(&all[i])
			} else {
				blocks[i] = wrong(fmt.Errorf("%d values, for %d ranks", len(all), n))
			}
			counts[i] = len(blocks[i])
		}
	}
	if err := planner.Bcast(ctx, c, counts, root); err != nil {
		return v, fmt.Errorf("object: %w", err)
	}
	mine := make([]byte, counts[c.Rank()])
	if err := planner.Scatterv(ctx, c, bytes.Join(blocks, nil), mine, counts, root); err != nil {
		return v, fmt.Errorf("object: %w", err)
	}
	if err := refused(root, blocks...); err != nil {
		return v, err
	}
	return decode[T](mine, root)
}

// Send sends v to a rank, as two messages with the tag. It returns when v may be changed.
func Send[T any](ctx context.Context, c *planner.Comm, to, tag int, v T) error {
	b := encode(&v)
	if err := refused(c.Rank(), b); err != nil {
		return err
	}
	if err := planner.Send(ctx, c, to, tag, binary.LittleEndian.AppendUint64([]byte(magic), uint64(len(b)))); err != nil {
		return fmt.Errorf("object: %w", err)
	}
	if err := planner.Send(ctx, c, to, tag, b); err != nil {
		return fmt.Errorf("object: %w", err)
	}
	return nil
}

// Recv returns the next value that a rank sends with a tag. For each tag one goroutine may receive at a time. When ctx
// ends before there is a value, only this call ends.
func Recv[T any](ctx context.Context, c *planner.Comm, from, tag int) (v T, err error) {
	head := make([]byte, len(magic)+8)
	n, err := planner.Recv(ctx, c, from, tag, head)
	if err != nil {
		return v, fmt.Errorf("object: %w", err)
	}
	return recvRest[T](ctx, c, from, tag, head[:n])
}

// RecvAny is [Recv] from whichever rank sends first. from says which one it was.
func RecvAny[T any](ctx context.Context, c *planner.Comm, tag int) (v T, from int, err error) {
	head := make([]byte, len(magic)+8)
	got, err := planner.RecvAny(ctx, c, tag, head)
	if err != nil {
		return v, -1, fmt.Errorf("object: %w", err)
	}
	v, err = recvRest[T](ctx, c, got.Source, tag, head[:got.Count])
	return v, got.Source, err
}

// magic begins the first message of a value, before the size of the second one.
const magic = "value\x01\r\n"

// recvRest receives the second message of a value. It is on its way: ctx must not leave it for the next receive.
func recvRest[T any](ctx context.Context, c *planner.Comm, from, tag int, head []byte) (v T, err error) {
	size, is := bytes.CutPrefix(head, []byte(magic))
	if !is || len(size) != 8 {
		return v, fmt.Errorf("object: what rank %d has sent with tag %d is no value", from, tag)
	}
	b := make([]byte, binary.LittleEndian.Uint64(size))
	if _, err := planner.Recv(context.WithoutCancel(ctx), c, from, tag, b); err != nil {
		return v, fmt.Errorf("object: %w", err)
	}
	return decode[T](b, from)
}

// The first byte of an encoded value.
const (
	isValue byte = iota
	isError      // a text follows: there is none
)

func encode[T any](v *T) []byte {
	b := bytes.NewBuffer([]byte{isValue})
	if err := gob.NewEncoder(b).Encode(v); err != nil {
		return wrong(err)
	}
	return b.Bytes()
}

// wrong is sent in place of a value.
func wrong(err error) []byte { return append([]byte{isError}, err.Error()...) }

// refused returns the error of the first value that a rank could not encode; nil: it could encode all.
func refused(by int, values ...[]byte) error {
	for _, b := range values {
		if len(b) > 0 && b[0] == isError {
			return fmt.Errorf("object: the value of rank %d: %s", by, b[1:])
		}
	}
	return nil
}

func decode[T any](b []byte, from int) (v T, err error) {
	if err := refused(from, b); err != nil {
		return v, err
	}
	if len(b) == 0 {
		return v, fmt.Errorf("object: the value of rank %d is missing", from)
	}
	if err := gob.NewDecoder(bytes.NewReader(b[1:])).Decode(&v); err != nil {
		return v, fmt.Errorf("object: the value of rank %d: %w", from, err)
	}
	return v, nil
}

// decodeAll decodes one value of each rank. All are looked at: an error of the lowest rank is returned on all.
func decodeAll[T any](all [][]byte) ([]T, error) {
	values := make([]T, len(all))
	for from, b := range all {
		v, err := decode[T](b, from)
		if err != nil {
			return nil, err
		}
		values[from] = v
	}
	return values, nil
}
