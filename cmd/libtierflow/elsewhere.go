//go:build cgo

package main

/*
#include <time.h>
#define TF_TYPES_ONLY
#include "abi/tierflow.h"
#include "entry.h"

// look returns a moment of what another thread writes.
static tf_elsewhere look(const tf_elsewhere *at) {
	struct timespec now;
	tf_elsewhere e = {
		.waited = __atomic_load_n(&at->waited, __ATOMIC_ACQUIRE), .call = __atomic_load_n(&at->call, __ATOMIC_ACQUIRE),
		.since = __atomic_load_n(&at->since, __ATOMIC_RELAXED), .from = __atomic_load_n(&at->from, __ATOMIC_RELAXED),
	};
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	int64_t ns = now.tv_sec * 1000000000LL + now.tv_nsec;
	if (e.waited < 0) e.waited += ns;
	e.since = ns - e.since;
	return e;
}
*/
import "C"

import (
	"strings"
	"time"

	"github.com/tierflow/tierflow/executor"
)

// codePlaces are those of the program.
var codePlaces places

//export tfWatch
func tfWatch(h C.uintptr_t, at *C.tf_elsewhere) C.int {
	c, err := comms.find(uintptr(h))
	if err == nil {
		err = place("tf_watch: at", at)
	}
	if err == nil {
		c.watched.Store(at)
	}
	return status(err)
}

// elsewhere returns what the program does in the library that C watches.
func (c *comm) elsewhere() (e executor.Elsewhere) {
	at := c.watched.Load()
	if at == nil {
		if e.At = codePlaces.of(uintptr(C.tf_last_caller())); strings.Contains(e.At, "libffi") {
			e.At = "" // Python's ctypes: the program isn't known
		}
		return e
	}
	is := C.look(at)
	e.At = codePlaces.of(uintptr(is.from))
	e.Waited = time.Duration(is.waited)
	if is.call != nil {
		e.Call, e.For = C.GoString(is.call)+" (passed on)", max(0, time.Duration(is.since))
	}
	return e
}
