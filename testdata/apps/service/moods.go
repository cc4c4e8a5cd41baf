//go:build unix

package main

import (
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

// moods let a rank hang in its next step: for good by SIGUSR1, for a third of the limit of calls by SIGUSR2, four times as long as the
// limit by SIGALRM. SIGWINCH makes its steps a hundred times as long.
type moods struct{ hang, step atomic.Int64 } // ns

// newMoods listens to signals.
func newMoods(limit time.Duration) *moods {
	m := &moods{}
	m.step.Store(int64(5 * time.Millisecond))
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGWINCH, syscall.SIGCONT)
	go func() {
		for s := range signals {
			switch s {
			case syscall.SIGUSR1:
				m.hang.Store(int64(24 * time.Hour))
			case syscall.SIGUSR2:
				m.hang.Store(int64(limit / 3))
			case syscall.SIGALRM:
				m.hang.Store(int64(4 * limit))
			case syscall.SIGWINCH:
				m.step.Store(100 * m.step.Load())
			case syscall.SIGCONT:
				fmt.Printf("pid %d is back\n", os.Getpid())
			}
		}
	}()
	return m
}

// think takes a step's time, and hangs if it is to.
func (m *moods) think() {
	time.Sleep(time.Duration(m.step.Load()))
	if d := time.Duration(m.hang.Swap(0)); d > 0 {
		time.Sleep(d)
		fmt.Printf("pid %d is back\n", os.Getpid())
	}
}
