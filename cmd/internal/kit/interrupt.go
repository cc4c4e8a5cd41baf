package kit

import (
	"context"
	"errors"
	"io"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// statusSignal plus a signal's number is the exit status of a command ended by it.
const statusSignal = 128

// Interruptible returns do with a context that ends at the first SIGINT or SIGTERM. The command
// then cleans up. Its exit status is 128 plus the signal's number, whether or not do returns an
// error. The second signal kills the process. The command run does without: it forwards signals.
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

// Checked returns the RunE of a command: run, once check has found all arguments right. Signals
// end it, see [Interruptible].
func Checked(check func(args []string) error, run func(ctx context.Context, stdout, stderr io.Writer) error) func(*cobra.Command, []string) error {
	return Interruptible(func(c *cobra.Command, args []string) error {
		if err := check(args); err != nil {
			return err
		}
		return run(c.Context(), c.OutOrStdout(), c.ErrOrStderr())
	})
}

// endedBy returns the error of a command ended by a signal: err, unless that is nil or says only
// that a context has ended. Then it is text.
func endedBy(s syscall.Signal, text string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		err = errors.New(text)
	}
	return WithStatus(err, statusSignal+int(s))
}
