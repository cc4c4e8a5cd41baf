//go:build cgo

package main

/*
#include <stdlib.h>
#define TF_TYPES_ONLY
#include "abi/tierflow.h"
#include "entry.h"

static int tf_call_share(int (*f)(void *, int, void *), void *b, int n, void *arg) { return f(b, n, arg); }
static void tf_call_progress(void (*f)(void *), void *arg) { f(arg); }
*/
import "C"

import (
	"bytes"
	"context"
	"errors"
	"unsafe"

	"github.com/tierflow/tierflow/planner"
)

// setError sets tf_error's text of this thread: the goroutine of a call from C stays on the
// caller's thread.
func setError(err error) {
	f := C.tf_failure_of_thread()
	if f == nil {
		return
	}
	f.recoverable = 0
	if planner.Recoverable(err) {
		f.recoverable = 1
	}
	text := unsafe.Slice((*byte)(unsafe.Pointer(&f.text)), len(f.text))
	text[copy(text[:len(text)-1], err.Error())] = 0
}

// sharer makes a function for join.Config of one in C, and remembers its call.
type sharer struct {
	config C.tf_config
	called bool
}

// sharedBytes is how many bytes rank 0 gives: more than an invitation has.
const sharedBytes = 1024

// share gives all ranks rank 0's text. It ends with a zero byte.
func (s *sharer) share(_ context.Context, text string) (string, error) {
	s.called = true
	room := C.calloc(1, sharedBytes)
	defer C.free(room)
	b := unsafe.Slice((*byte)(room), sharedBytes)
	copy(b[:sharedBytes-1], text)
	if status := C.tf_call_share(s.config.share, room, sharedBytes, s.config.arg); status != 0 {
		return "", errors.New("the caller's share has failed")
	}
	shared, _, _ := bytes.Cut(b, []byte{0})
	if len(shared) == 0 {
		return "", errors.New("rank 0 has nothing to share: it could not begin to join")
	}
	return string(shared), nil
}

// release calls share for ranks waiting in it, if this rank failed before its own call.
func (s *sharer) release() {
	if !s.called {
		_, _ = s.share(context.Background(), "")
	}
}

// progress calls the C function.
func progress(config *C.tf_config) { C.tf_call_progress(config.progress, config.arg) }
