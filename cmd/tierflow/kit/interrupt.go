package kit

import (
	"context"
	"errors"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// statusSignal is added to the number of the signal that ended a command.
const statusSignal = 128

// Interruptible returns do with a context that ends at the first SIGINT or SIGTERM.
// The command then cleans up. Its exit status is 128 and the signal's number, whatever do
// makes of the signal. The second signal kills the process. The command run does without:
// it forwards signals.
func Interruptible(do func(c *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		outer := c.Context()
		interrupted, stop := signal.NotifyContext(outer, syscall.SIGINT)
		defer stop()
		terminated, stopBoth := signal.NotifyContext(interrupted, syscall.SIGTERM)
		defer stopBoth()
		context.AfterFunc(terminated, func() { stop(); stopBoth() })
		c.SetContext(terminated)
		switch err := do(c, args); {
		case outer.Err() != nil || terminated.Err() == nil:
			return err
		case context.Cause(terminated) == context.Cause(interrupted):
			return endedBy(syscall.SIGINT, "interrupted by SIGINT", err)
		default:
			return endedBy(syscall.SIGTERM, "ended by SIGTERM", err)
		}
	}
}

// endedBy returns the error of a command that a signal ended, and that said err. An err
// that speaks only of a context's end says no more than text.
func endedBy(s syscall.Signal, text string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		err = errors.New(text)
	}
	return WithStatus(err, statusSignal+int(s))
}
